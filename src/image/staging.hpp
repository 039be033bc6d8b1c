// Where an image is built before it is renamed into the store.
#pragma once

#include "holt/base/files.hpp"

#include <filesystem>
#include <optional>

namespace holt::image {

/// A folder below `staging` with a lock that its builder holds while it lives. Removed at the end of life
/// unless its content was moved away. A new one clears what dead builders left.
class Staging {
 public:
  explicit Staging(const std::filesystem::path& staging);
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  std::optional<FileLock> lock_;
};

}  // namespace holt::image
