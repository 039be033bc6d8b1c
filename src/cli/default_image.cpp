#include "cli/default_image.hpp"

#include "holt/base/error.hpp"
#include "holt/base/process.hpp"

#include <cstdlib>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace holt::cli {
namespace {

constexpr const char* k_suite = "bookworm";
constexpr const char* k_packages = "python3,git,ripgrep,curl,ca-certificates";
constexpr const char* k_path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
constexpr std::size_t k_shown_words = 1500;  // of a failure, its end

/// What apt and mmdebstrap look at, and one time for everything that the packages' scripts write: the image
/// says nothing of when it was made.
std::map<std::string, std::string> build_environment() {
  std::map<std::string, std::string> env{{"SOURCE_DATE_EPOCH", "1577836800"}, {"LC_ALL", "C.UTF-8"}};
  for (const char* name : {"PATH", "HOME", "TMPDIR", "APT_CONFIG", "http_proxy", "https_proxy", "no_proxy"}) {
    if (const char* value = std::getenv(name)) env[name] = value;
  }
  return env;
}

std::string end_of(const std::string& text) {
  return text.size() <= k_shown_words ? text : text.substr(text.size() - k_shown_words);
}

}  // namespace

std::vector<std::string> default_image_recipe(const std::string& more) {
  return {
      "mmdebstrap",
      "--variant=minbase",
      fmt::format("--include={}{}{}", k_packages, more.empty() ? "" : ",", more),
      "--dpkgopt=path-exclude=/usr/share/man/*",
      "--dpkgopt=path-exclude=/usr/share/locale/*",
      "--dpkgopt=path-exclude=/usr/share/doc/*",
      "--dpkgopt=path-exclude=/usr/share/info/*",
      "--dpkgopt=path-include=/usr/share/doc/*/copyright",
      R"(--customize-hook=rm -rf "$1"/var/lib/apt/lists/* "$1"/var/cache/apt/*.bin "$1"/var/log/* "$1"/etc/hostname)",
      k_suite};
}

void make_root_tar(Session& session, std::vector<std::string> recipe, const std::filesystem::path& tar) {
  auto part = tar.string() + ".part.tar";
  recipe.push_back(part);
  session.note("making a root file system from Debian's packages (about a minute)");
  std::error_code ignored;
  try {
    auto result = run_process({.argv = recipe, .env = build_environment(), .new_session = true},
                              {.cancel = session.interrupts.token()});
    if (result.status.exit_code != 0) {
      throw Error(
          ErrorCode::storage_error, fmt::format("mmdebstrap failed: {}", printable(end_of(result.err))),
          {.subject = "mmdebstrap",
           .hint = "Without root it needs user namespaces, the package uidmap and a range in /etc/subuid."});
    }
    std::filesystem::rename(part, tar);
  } catch (const Error& e) {
    std::filesystem::remove(part, ignored);
    if (e.code() != ErrorCode::not_found) throw;
    throw Error(
        ErrorCode::runtime_not_installed,
        "mmdebstrap is not installed, and the default image is made with it",
        {.subject = "mmdebstrap",
         .hint =
             "On Debian and Ubuntu: apt install mmdebstrap uidmap. Any other image can be pulled: holt pull "
             "debian:bookworm."});
  }
}

image::ImageConfig default_image_config() {
  return {.env = {fmt::format("PATH={}", k_path), "LANG=C.UTF-8"}, .cmd = {"/bin/bash"}};
}

}  // namespace holt::cli
