#include "image/folders.hpp"

#include "holt/base/encoding.hpp"
#include "holt/base/error.hpp"
#include "holt/base/fd.hpp"
#include "holt/base/files.hpp"
#include "holt/image/reference.hpp"

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

namespace holt::image {
namespace fs = std::filesystem;
namespace {

constexpr int k_lock_pause_ms = 20;

}  // namespace

std::string digest_digits(std::string_view digest) {
  if (!is_digest(digest)) throw InvalidArgument(fmt::format("'{}' is no digest", printable(digest, 80)));
  return std::string(digest.substr(digest.find(':') + 1));
}

fs::path Folders::reference(std::string_view canonical) const {
  return references() / (sha256_hex(canonical) + ".json");
}

fs::path Folders::entry_lock(std::string_view digest) const {
  return locks() / (digest_digits(digest) + ".lock");
}

fs::path Folders::build_lock(std::string_view digest) const {
  return locks() / fmt::format("{}{}.lock", k_build_lock, digest_digits(digest));
}

fs::path Folders::blob_lock(std::string_view digest) const {
  return locks() / fmt::format("{}{}.lock", k_blob_lock, digest_digits(digest));
}

bool has_name(const FileLock& lock) {
  struct stat status{};
  return ::fstat(lock.fd(), &status) == 0 && status.st_nlink > 0;
}

std::optional<FileLock> try_lock(const fs::path& file) {
  make_private_directory(file.parent_path());
  while (true) {
    auto lock = FileLock::try_acquire(file);
    if (!lock || has_name(*lock)) return lock;
  }
}

FileLock wait_for_lock(const fs::path& file, Deadline deadline) {
  make_private_directory(file.parent_path());
  while (true) {
    FileLock lock = FileLock::acquire(file, deadline);
    if (has_name(lock)) return lock;
  }
}

FileLock wait_for_lock(const fs::path& file, const CancellationToken& cancel) {
  while (true) {
    cancel.throw_if_cancelled();
    if (auto lock = try_lock(file)) return std::move(*lock);
    // OFD locks have no wait that anything else can end.
    pollfd cancelled{.fd = cancel.fd(), .events = POLLIN, .revents = 0};
    ::poll(&cancelled, 1, k_lock_pause_ms);
  }
}

void move_into_place(const fs::path& from, const fs::path& to) {
  make_private_directory(to.parent_path());
  if (::rename(from.c_str(), to.c_str()) != 0)
    throw system_error(errno, fmt::format("put {} in its place", to.filename().string()), to.string());
  Fd folder(::open(to.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder || ::fsync(folder.get()) != 0)
    throw system_error(errno, fmt::format("sync {}", to.parent_path().string()), to.string());
}

}  // namespace holt::image
