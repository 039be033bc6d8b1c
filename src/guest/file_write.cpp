#include "guest/file_replacement.hpp"
#include "guest/file_service.hpp"
#include "guest/paths.hpp"
#include "guest/sha256.hpp"
#include "guest/users.hpp"

#include <cerrno>
#include <fcntl.h>

namespace holt::guest {
namespace {

using namespace protocol;

Outcome<Fd> open_folder(const std::string& path, bool make) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd && errno == ENOENT && make) {
    if (auto made = make_directories(path, 0755); !made) {
      // A file where a folder should be: to the writer that is no folder, rather than something in its place.
      if (made.error().error_number == EEXIST) return refuse_errno(ENOTDIR, "write below", path);
      return std::unexpected(made.error());
    }
    fd.reset(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  // A folder that may be written to and not read.
  if (!fd && errno == EACCES) fd.reset(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return refuse_errno(errno, "write below", path);
  return fd;
}

Outcome<> receive_bytes(JobStream& stream, const WriteFileRequest& request, FileReplacement& file) {
  auto refuse_size = [&] {
    return refuse(ErrorCode::invalid_config, "another number of bytes than announced for " + request.path,
                  request.path);
  };
  while (true) {
    auto frame = stream.receive();
    if (!frame) return refuse(ErrorCode::cancelled, "the write was cancelled", request.path);
    if (frame->header.type != FrameType::input) {
      return refuse(ErrorCode::guest_protocol, "an entry in the bytes of a file", request.path);
    }
    if (request.size && file.written() + frame->payload.size() > *request.size) return refuse_size();
    if (auto written = file.write(frame->payload); !written) return written;
    stream.release(frame->payload.size());
    if (frame->header.has(FrameFlag::end_of_data)) break;
  }
  if (request.size && file.written() != *request.size) return refuse_size();
  return {};
}

Outcome<ReplacementOptions> replacement_options(const WriteFileRequest& request) {
  bool is_digest = request.expected_sha256.size() == k_sha256_digits &&
                   request.expected_sha256.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (!request.expected_sha256.empty() && !is_digest) {
    return refuse(ErrorCode::invalid_config, "the expected content is not the 64 hex digits of a SHA-256",
                  request.path);
  }
  auto owner = find_owner(request.owner);
  if (!owner) return std::unexpected(owner.error());
  ReplacementOptions options{.write = request.write,
                             .mode = request.mode,
                             .size = request.size,
                             .durable = request.durable,
                             .owner = *owner,
                             .expected_sha256 = request.expected_sha256};
  if (request.mtime_s) {
    options.mtime = timespec{.tv_sec = *request.mtime_s, .tv_nsec = static_cast<long>(request.mtime_ns)};
  }
  return options;
}

}  // namespace

Outcome<WriteFileReply> write_file(JobStream& stream, const WriteFileRequest& request) {
  auto target = write_target(request.path);
  if (!target) return std::unexpected(target.error());
  auto [folder_path, name] = split_path(*target);
  if (name.empty() || name == "." || name == "..") return refuse_errno(EISDIR, "write", request.path);
  auto folder = open_folder(folder_path, request.make_parents);
  if (!folder) return std::unexpected(folder.error());

  auto options = replacement_options(request);
  if (!options) return std::unexpected(options.error());
  auto file = FileReplacement::begin(folder->get(), name, request.path, *options);
  if (!file) return std::unexpected(file.error());
  if (auto received = receive_bytes(stream, request, **file); !received)
    return std::unexpected(received.error());
  if (auto committed = (*file)->commit(); !committed) return std::unexpected(committed.error());
  return WriteFileReply{.bytes = (*file)->written(), .created = (*file)->creates()};
}

}  // namespace holt::guest
