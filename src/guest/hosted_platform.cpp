#include "guest/hosted_platform.hpp"

#include "guest/file_service.hpp"
#include "guest/paths.hpp"

namespace holt::guest {

Outcome<protocol::IdentityReply> HostedPlatform::become(const protocol::IdentityRequest& request,
                                                        std::uint32_t) {
  protocol::IdentityReply reply{.generation = request.generation, .working_dir = "/"};
  for (const auto& path : request.make_dirs) {
    if (auto made = make_directories(path, 0755); !made) return std::unexpected(made.error());
  }
  if (!request.working_dir.empty()) {
    auto resolved = real_path(request.working_dir);
    if (!resolved) return std::unexpected(resolved.error());
    reply.working_dir = std::move(*resolved);
  }
  return reply;
}

Outcome<> HostedPlatform::set_clock(std::int64_t) {
  return {};
}

Outcome<> HostedPlatform::renew(const protocol::RenewRequest&) {
  return {};
}

}  // namespace holt::guest
