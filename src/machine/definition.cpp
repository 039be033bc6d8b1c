#include "holt/base/error.hpp"
#include "holt/base/ids.hpp"
#include "holt/base/json.hpp"
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

MachineRecord record_for(const MachineConfig& config, const image::Image& image) {
  MachineRecord record{
      .config = config,
      .machine_id = random_hex(32),
      .image_reference = image.reference,
      .image_digest = image.digest,
      .image_file = image.ext4,
      .disk_bytes = disk_bytes_for(config),
      .working_dir = config.working_dir.empty() ? image.config.working_dir : config.working_dir,
      .user = config.user.empty() ? image.config.user : config.user,
      .image_env = image.config.env,
      .created_at = wall_now()};
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
  if (!config.env.empty() && config.lifetime == Lifetime::persistent) {
    Json env = Json::object();
    for (const auto& [name, value] : config.env) env[name] = value;
    write_file_atomically(staging.env_file(), dump_json(env));
  }
  write_record(staging, record);
  auto lock = folders.publish(std::move(staged), config.name);
  return {folders.of(config.name), std::move(lock)};
}

}  // namespace holt::machine
