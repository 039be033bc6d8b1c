#include "image/staging.hpp"

#include "holt/base/error.hpp"
#include "holt/base/ids.hpp"
#include "image/folders.hpp"

namespace holt::image {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view k_lock_extension = ".lock";

void remove_quietly(const fs::path& path) {
  std::error_code ignored;
  fs::remove_all(path, ignored);
}

fs::path lock_of(fs::path folder) {
  return folder += k_lock_extension;
}

/// Removes the folders whose lock is free.
void clear_abandoned(const fs::path& staging) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(staging, ignored)) {
    if (entry.path().extension() != k_lock_extension) continue;
    auto lock = FileLock::try_acquire(entry.path());
    if (!lock) continue;
    fs::path folder = entry.path();
    remove_quietly(folder.replace_extension());
    remove_quietly(entry.path());
  }
}

}  // namespace

Staging::Staging(const fs::path& staging) {
  make_private_directory(staging);
  clear_abandoned(staging);
  do {
    path_ = staging / random_hex(16);
    lock_ = FileLock::try_acquire(lock_of(path_));
  } while (!lock_ || !has_name(*lock_));
  make_private_directory(path_);
}

Staging::~Staging() {
  remove_quietly(path_);
  remove_quietly(lock_of(path_));
}

}  // namespace holt::image
