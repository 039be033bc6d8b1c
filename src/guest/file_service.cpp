#include "guest/file_service.hpp"

#include "guest/paths.hpp"

#include <sys/stat.h>
#include <type_traits>

namespace holt::guest {
namespace {

using namespace protocol;

/// Checks and joins every path of a request in place.
template <class Request>
Outcome<> resolve_paths(Request& request, const std::string& base) {
  auto resolve = [&](std::string& path) -> Outcome<> {
    auto absolute = absolute_path(path, base);
    if (!absolute) return std::unexpected(absolute.error());
    path = std::move(*absolute);
    return {};
  };
  if constexpr (std::is_same_v<Request, RenameRequest>) {
    if (auto from = resolve(request.from); !from) return from;
    return resolve(request.to);
  } else {
    if constexpr (std::is_same_v<Request, RemoveRequest>) {
      for (auto& path : request.keep) {
        if (auto kept = resolve(path); !kept) return kept;
      }
    }
    return resolve(request.path);
  }
}

Outcome<RealPathReply> resolve(const RealPathRequest& request) {
  auto path = real_path(request.path);
  if (!path) return std::unexpected(path.error());
  return RealPathReply{.path = std::move(*path)};
}

struct Run {
  JobStream& stream;
  const Identity& user;

  auto operator()(const ReadFileRequest& r) const { return encoded(read_file(stream, r)); }
  auto operator()(const WriteFileRequest& r) const { return encoded(write_file(stream, r)); }
  auto operator()(const StatRequest& r) const { return encoded(stat_path(r)); }
  auto operator()(const ExistsRequest& r) const { return encoded(path_exists(r)); }
  auto operator()(const ListRequest& r) const { return encoded(list_directory(stream, r)); }
  auto operator()(const MakeDirRequest& r) const { return encoded(make_directory(r)); }
  auto operator()(const RemoveRequest& r) const { return encoded(remove_path(stream, r)); }
  auto operator()(const RealPathRequest& r) const { return encoded(resolve(r)); }
  auto operator()(const SetAttributesRequest& r) const { return encoded(set_attributes(r)); }
  auto operator()(const RenameRequest& r) const { return encoded(rename_path(r)); }
  auto operator()(const TreeOutRequest& r) const { return encoded(send_tree(stream, r)); }
  auto operator()(const TreeInRequest& r) const { return encoded(receive_tree(stream, r, user)); }
};

template <class Request>
Outcome<std::string> run_file_operation(JobStream& stream, Request request, const FileDefaults& defaults) {
  if (auto resolved = resolve_paths(request, defaults.working_dir); !resolved) {
    return std::unexpected(resolved.error());
  }
  auto user = find_user(request.user.empty() ? defaults.user : request.user);
  if (!user) return std::unexpected(user.error());
  if constexpr (std::is_same_v<Request, RemoveRequest>) request.keep.push_back(defaults.working_dir);
  ActAs rights(*user);
  if (!rights.works()) return refuse_errno(EPERM, "act as user", request.user);
  return Run{stream, *user}(request);
}

}  // namespace

JobHub::Job FileService::job(const Request& request) const {
  return std::visit(
      [&](const auto& operation) -> JobHub::Job {
        if constexpr (requires(const Run& run) { run(operation); }) {
          return [operation, defaults = defaults_](JobStream& stream) {
            return run_file_operation(stream, operation, defaults);
          };
        } else {
          return [](JobStream&) -> Outcome<std::string> {
            return refuse(ErrorCode::not_supported, "no such file operation");
          };
        }
      },
      request);
}

}  // namespace holt::guest
