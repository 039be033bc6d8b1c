#include "holt/base/error.hpp"
#include "holt/base/ids.hpp"
#include "holt/image/store.hpp"
#include "machine/lifecycle.hpp"
#include "machine/qcow2.hpp"

#include <cerrno>
#include <chrono>
#include <fcntl.h>

#include <fmt/format.h>

namespace holt::machine {
namespace {

using namespace std::chrono_literals;

std::uint64_t disk_bytes_for(const MachineConfig& config) {
  return std::uint64_t{config.resources.disk_gb} << 30;
}

/// A start message holds it several times over.
constexpr std::size_t k_most_image_env = std::size_t{1} << 20;

/// Entries that are no NAME=VALUE name no variable and are left out.
std::vector<std::string> environment_of(const image::Image& image) {
  std::vector<std::string> env;
  std::size_t bytes = 0;
  for (const auto& entry : image.config.env) {
    auto equals = entry.find('=');
    if (equals == 0 || equals == std::string::npos || entry.find('\0') != std::string::npos) continue;
    bytes += entry.size() + 1;
    env.push_back(entry);
  }
  if (bytes <= k_most_image_env) return env;
  throw Error(
      ErrorCode::limit_exceeded,
      fmt::format("The environment of image {} has more than {} bytes", image.reference, k_most_image_env),
      {.subject = image.reference});
}

/// What commands start in: the configuration's, else the image's, where a relative one counts from the root.
std::string working_dir_of(const MachineConfig& config, const image::ImageConfig& image) {
  if (!config.working_dir.empty() || image.working_dir.empty()) return config.working_dir;
  return image.working_dir.starts_with('/') ? image.working_dir : "/" + image.working_dir;
}

/// The image's texts are no more than a caller's.
void check_texts(const MachineRecord& record) {
  try {
    check_machine_config({.working_dir = record.working_dir, .user = record.user});
  } catch (const Error& e) {
    throw Error(
        ErrorCode::image_invalid,
        fmt::format("The configuration of image {} cannot be used: {}", record.image_reference, e.what()),
        {.subject = record.image_reference});
  }
}

MachineRecord record_for(const MachineConfig& config, const image::Image& image) {
  MachineRecord record{.config = config,
                       .machine_id = random_hex(32),
                       .image_reference = image.reference,
                       .image_digest = image.digest,
                       .image_file = image.ext4,
                       .disk_bytes = disk_bytes_for(config),
                       .working_dir = working_dir_of(config, image.config),
                       .user = config.user.empty() ? image.config.user : config.user,
                       .image_env = environment_of(image),
                       .created_at = wall_now()};
  check_texts(record);
  return record;
}

/// A machine that ends with its owner need not survive a crash of the host: its record is not waited for.
void write_record(const MachineFolder& folder, const MachineRecord& record) {
  if (record.config.lifetime == Lifetime::persistent) {
    return write_file_atomically(folder.record_file(), encode_record(record));
  }
  Fd fd(::open(folder.record_file().c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd)
    throw system_error(errno, fmt::format("write {}", folder.record_file().string()), folder.record_file());
  write_all(fd.get(), encode_record(record));
}

}  // namespace

Defined define_machine(const MachineConfig& config, const HostConfig& host) {
  MachineFolders folders(host.directories);
  image::Store store(host.directories);
  auto image = store.resolve(config.image.empty() ? image::k_default_image : std::string_view(config.image));
  auto pin = store.pin(image, Deadline::after(30s));
  if (disk_bytes_for(config) < image.disk_bytes) image = store.with_disk_size(image, disk_bytes_for(config));

  auto staged = folders.stage();
  MachineFolder staging(staged.folder.path());
  auto record = record_for(config, image);
  create_overlay(staging.disk(), record.disk_bytes, record.image_file, BackingFormat::raw);
  if (!config.env.empty() && config.lifetime == Lifetime::persistent) staging.write_env(config.env);
  write_record(staging, record);
  auto lock = folders.publish(std::move(staged), config.name);
  return {folders.of(config.name), std::move(lock)};
}

}  // namespace holt::machine
