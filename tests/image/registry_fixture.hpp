// A registry client in a world of its own: no real waits, no environment, addresses of chosen kinds.
#pragma once

#include "holt/base/error.hpp"
#include "holt/base/files.hpp"
#include "image/fake_registry.hpp"
#include "image/registry/registry_source.hpp"

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holt::image::test {

/// A blob in memory.
class MemorySink final : public BlobSink {
 public:
  explicit MemorySink(std::string begun = {}) : bytes(std::move(begun)) {}
  std::uint64_t offset() const override { return bytes.size(); }
  void restart() override {
    ++restarts;
    bytes.clear();
  }
  void write(std::string_view piece) override { bytes += piece; }
  bool is_right() override { return wanted.empty() || bytes == wanted; }

  std::string bytes;
  std::string wanted;  ///< empty: anything is right
  int restarts = 0;
};

class RegistryTest : public ::testing::Test {
 protected:
  Surroundings surroundings() {
    auto world = Surroundings::of_process();
    world.environment = [this](const std::string& name) -> std::optional<std::string> {
      auto it = variables_.find(name);
      return it == variables_.end() ? std::nullopt : std::optional(it->second);
    };
    world.chance = [] { return 0.0; };
    world.wait = [this](Duration wait, const auto&) {
      std::lock_guard lock(mutex_);
      waits_.push_back(std::chrono::duration<double>(wait).count());
    };
    if (kind_of_127_0_0_2_) {
      world.address_kind = [kind = *kind_of_127_0_0_2_](const sockaddr& address) {
        return address_text(address) == "127.0.0.2" ? kind : address_kind(address);
      };
    }
    return world;
  }
  RegistrySource source_at(const std::string& host, const RegistryOptions& options = {}) {
    auto reference = parse_reference(host + "/app:1");
    EXPECT_TRUE(reference) << host;
    return RegistrySource(*reference, options, cancel_, surroundings());
  }
  RegistrySource source(const RegistryOptions& options = {}) { return source_at(registry_.host(), options); }

  Descriptor blob(const std::string& bytes) { return blob_at(registry_, bytes); }
  static Descriptor blob_at(FakeRegistry& registry, const std::string& bytes) {
    return {
        .media_type = "application/octet-stream", .digest = registry.add_blob(bytes), .size = bytes.size()};
  }

  /// What `call` throws; a failure when it throws nothing. No secret of these tests may be in it.
  template <class Call>
  Error error_of(Call call) {
    try {
      call();
    } catch (const Error& error) {
      for (const auto& text : {std::string(error.what()), error.hint(), error.subject()}) {
        for (const char* secret : {"hunter2", "aHVudGVy", "idtoken", "bearer-", "secretquery"}) {
          EXPECT_THAT(text, ::testing::Not(::testing::HasSubstr(secret)));
        }
      }
      return error;
    }
    ADD_FAILURE() << "it succeeded";
    return Error(ErrorCode::internal, "it succeeded");
  }

  TempDir dir_;
  std::map<std::string, std::string> variables_;
  std::optional<AddressKind> kind_of_127_0_0_2_;
  CancellationToken cancel_;
  std::mutex mutex_;
  std::vector<double> waits_;
  FakeRegistry registry_;
};

inline const Credentials k_alice{.user = "alice", .password = "hunter2", .identity_token = {}};
inline const std::string k_alice_basic = "Basic YWxpY2U6aHVudGVyMg==";

}  // namespace holt::image::test
