#include "holt/machine/host_config.hpp"

#include "holt/base/error.hpp"

#include <cstdlib>
#include <optional>
#include <string>

#include <gtest/gtest.h>

namespace holt {
namespace {

/// A variable of the environment for the length of a test.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    ::setenv(name, value.c_str(), 1);
  }
  ~Variable() {
    if (old_) {
      ::setenv(name_, old_->c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }
  Variable(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> old_;
};

std::string subject_of_refusal() {
  try {
    HostConfig::from_environment();
    return "none";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::invalid_config);
    return e.subject();
  }
}

TEST(HostConfig, TheEnvironmentSaysHowRegistriesAreTalkedTo) {
  Variable insecure("HOLT_INSECURE", "1");
  Variable ca("HOLT_CA_FILE", "/etc/ca.pem");
  Variable auth("HOLT_AUTH_FILE", "/home/me/auth.json");
  Variable mirror("HOLT_MIRROR",
                  "docker.io=https://a.example  docker.io=https://b.example quay.io=http://127.0.0.1:1");
  auto registry = HostConfig::from_environment().registry;
  EXPECT_TRUE(registry.insecure);
  EXPECT_EQ(registry.ca_file, "/etc/ca.pem");
  EXPECT_EQ(registry.auth_file, "/home/me/auth.json");
  ASSERT_EQ(registry.mirrors.size(), 2U);
  EXPECT_EQ(registry.mirrors.at("docker.io"),
            (std::vector<std::string>{"https://a.example", "https://b.example"}));
  EXPECT_EQ(registry.mirrors.at("quay.io"), std::vector<std::string>{"http://127.0.0.1:1"});
}

TEST(HostConfig, WithoutVariablesCertificatesAreChecked) {
  Variable insecure("HOLT_INSECURE", "");
  Variable ca("HOLT_CA_FILE", "");
  Variable mirror("HOLT_MIRROR", "");
  auto registry = HostConfig::from_environment().registry;
  EXPECT_FALSE(registry.insecure);
  EXPECT_EQ(registry.ca_file, std::nullopt);
  EXPECT_TRUE(registry.mirrors.empty());
}

TEST(HostConfig, IMG_25_TheEnvironmentSaysWhatImagesMayCost) {
  image::Limits usual;
  {
    Variable bytes("HOLT_IMAGE_MAX_BYTES", "34359738368");
    Variable entries("HOLT_IMAGE_MAX_ENTRIES", "2000000");
    auto limits = HostConfig::from_environment().image_limits;
    EXPECT_EQ(limits.unpacked_bytes, 34359738368U);
    EXPECT_EQ(limits.file_bytes, 34359738368U);
    EXPECT_EQ(limits.entries, 2'000'000U);
    EXPECT_EQ(limits.walk_steps, 2 * usual.walk_steps);
    EXPECT_GT(limits.tree_bytes, usual.tree_bytes / 10 * 19);
  }
  Variable bytes("HOLT_IMAGE_MAX_BYTES", "");
  Variable entries("HOLT_IMAGE_MAX_ENTRIES", "10");
  auto limits = HostConfig::from_environment().image_limits;
  EXPECT_EQ(limits.unpacked_bytes, usual.unpacked_bytes);
  EXPECT_EQ(limits.entries, 10U);
  EXPECT_EQ(limits.tree_bytes, usual.tree_bytes) << "fewer members leave the rest as it is";
  EXPECT_EQ(limits.walk_steps, usual.walk_steps);
}

TEST(HostConfig, BadValuesAreRefusedByName) {
  {
    Variable insecure("HOLT_INSECURE", "perhaps");
    EXPECT_EQ(subject_of_refusal(), "HOLT_INSECURE");
  }
  for (const auto* bad : {"docker.io", "=https://a.example", "docker.io=a.example", "https://a.example"}) {
    Variable mirror("HOLT_MIRROR", bad);
    EXPECT_EQ(subject_of_refusal(), "HOLT_MIRROR") << bad;
  }
  for (const auto* bad : {"0", "-1", "16G", "1 ", "99999999999999999999", "1099511627777"}) {
    Variable bytes("HOLT_IMAGE_MAX_BYTES", bad);
    EXPECT_EQ(subject_of_refusal(), "HOLT_IMAGE_MAX_BYTES") << bad;
  }
}

}  // namespace
}  // namespace holt
