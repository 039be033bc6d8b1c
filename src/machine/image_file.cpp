#include "machine/image_file.hpp"

#include "holt/base/error.hpp"
#include "holt/base/log.hpp"
#include "holt/image/pull.hpp"

#include <filesystem>

#include <fmt/format.h>

namespace holt::machine {
namespace {

void build_again(const MachineRecord& record, const CallOptions& call, const HostConfig& host) {
  image::Store store(host.directories);
  auto image =
      image::pull(store, record.image_digest,
                  {.policy = image::PullPolicy::never, .limits = host.image_limits, .cancel = call.cancel});
  if (image.ext4 != record.image_file && record.disk_bytes < image.disk_bytes)
    store.with_disk_size(image, record.disk_bytes, call.cancel);
}

}  // namespace

void require_image_file(const MachineRecord& record, const CallOptions& call, const HostConfig& host) {
  if (std::filesystem::exists(record.image_file)) return;
  try {
    build_again(record, call, host);
  } catch (const Error& e) {
    if (e.code() != ErrorCode::not_found && e.code() != ErrorCode::digest_mismatch) throw;
    logger("machine")->debug("{}", e.what());
  }
  if (std::filesystem::exists(record.image_file)) return;
  throw Error(ErrorCode::not_found,
              fmt::format("The image of {} is gone: {}", record.config.name, record.image_reference),
              {.subject = record.config.name,
               .hint = fmt::format("Bring the same one back: holt pull {}, or import it again.",
                                   record.image_reference)});
}

}  // namespace holt::machine
