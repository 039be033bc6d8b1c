#include "holt/workspace/errors.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace holt {
namespace {

PathErrorKind kind_of(int error_number) {
  switch (error_number) {
    case ENOENT:
      return PathErrorKind::not_found;
    case ENOTDIR:
      return PathErrorKind::not_a_directory;
    case EISDIR:
      return PathErrorKind::is_a_directory;
    case EEXIST:
      return PathErrorKind::exists;
    case EACCES:
    case EPERM:
      return PathErrorKind::permission;
    default:
      return PathErrorKind::other;
  }
}

int errno_of(PathErrorKind kind) {
  switch (kind) {
    case PathErrorKind::not_found:
      return ENOENT;
    case PathErrorKind::not_a_directory:
      return ENOTDIR;
    case PathErrorKind::is_a_directory:
      return EISDIR;
    case PathErrorKind::exists:
      return EEXIST;
    case PathErrorKind::permission:
      return EACCES;
    case PathErrorKind::not_regular:
    case PathErrorKind::other:
      return 0;
  }
  return 0;
}

ErrorCode code_of(PathErrorKind kind, int error_number) {
  return kind == PathErrorKind::not_regular ? ErrorCode::not_regular : error_code_of_errno(error_number);
}

/// Upper layers and other programs know a special file by the beginning of this text.
std::string reason_of(int error_number) {
  return error_number == 0 ? "not a regular file" : std::strerror(error_number);
}

}  // namespace

WorkspaceOutputLimitError::WorkspaceOutputLimitError(std::size_t limit, std::string out, std::string err)
    : WorkspaceError(fmt::format("command wrote more than {} bytes and was stopped", limit),
                     ErrorCode::limit_exceeded),
      limit_(limit),
      out_(std::move(out)),
      err_(std::move(err)) {}

PathError::PathError(int error_number, std::string path)
    : Error(code_of(kind_of(error_number), error_number),
            fmt::format("{}: {}", reason_of(error_number), printable(path)), {.subject = path}),
      kind_(kind_of(error_number)),
      path_(std::move(path)),
      error_number_(error_number) {}

PathError::PathError(PathErrorKind kind, std::string path)
    : Error(code_of(kind, errno_of(kind)), fmt::format("{}: {}", reason_of(errno_of(kind)), printable(path)),
            {.subject = path}),
      kind_(kind),
      path_(std::move(path)),
      error_number_(errno_of(kind)) {}

std::string PathError::reason() const {
  return reason_of(error_number_);
}

}  // namespace holt
