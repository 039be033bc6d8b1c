#include "machine/suspension.hpp"

#include "holt/base/encoding.hpp"
#include "holt/base/error.hpp"
#include "holt/base/json.hpp"
#include "holt/base/log.hpp"
#include "machine/json_member.hpp"
#include "machine/sparse_file.hpp"

#include <cerrno>
#include <unistd.h>

#include <fmt/format.h>

namespace holt::machine {
namespace {

constexpr int k_version = 1;
constexpr std::size_t k_limit = std::size_t{16} << 20;
constexpr std::size_t k_state_limit = std::size_t{16} << 20;

Json encode_channel(const SuspendedChannel& channel) {
  Json streams = Json::array();
  for (const auto& stream : channel.streams) {
    streams.push_back({{"number", stream.number}, {"started", stream.started}, {"window", stream.window}});
  }
  return {{"generation", channel.generation},
          {"nextStream", channel.next_stream},
          {"nextSequence", channel.next_sequence},
          {"expectedSequence", channel.expected_sequence ? Json(*channel.expected_sequence) : Json()},
          {"unparsed", base64_encode(channel.unparsed, Base64Alphabet::standard)},
          {"unsent", base64_encode(channel.unsent, Base64Alphabet::standard)},
          {"streams", streams}};
}

std::string bytes_of(const Json& text) {
  auto bytes = base64_decode(text.get<std::string>());
  if (!bytes) throw std::runtime_error("no base64");
  return *bytes;
}

SuspendedChannel decode_channel(const Json& json) {
  SuspendedChannel channel{.generation = json.at("generation").get<std::string>(),
                           .next_stream = integer_member<std::uint32_t>(json, "nextStream"),
                           .next_sequence = integer_member<std::uint32_t>(json, "nextSequence"),
                           .unparsed = bytes_of(json.at("unparsed")),
                           .unsent = bytes_of(json.at("unsent"))};
  if (!json.at("expectedSequence").is_null()) {
    channel.expected_sequence = integer_member<std::uint32_t>(json, "expectedSequence");
  }
  for (const auto& stream : json.at("streams")) {
    channel.streams.push_back({.number = integer_member<std::uint32_t>(stream, "number"),
                               .started = stream.at("started").get<bool>(),
                               .window = integer_member<std::uint32_t>(stream, "window")});
  }
  return channel;
}

Error damaged(const MachineFolder& folder, const std::string& why) {
  auto name = folder.path().filename().string();
  return {ErrorCode::storage_error,
          fmt::format("The memory of the suspended machine {} cannot be used: {}", name, why),
          {.subject = name,
           .hint = fmt::format("'holt stop --kill {}' gives it up; the disk stays, as after a power cut.",
                               name)}};
}

}  // namespace

void write_suspension(const MachineFolder& folder, const Suspension& suspension) {
  Json json{{"version", k_version},
            {"vmmVersion", suspension.vmm_version},
            {"accelerator", to_string(suspension.accelerator)},
            {"cpus", suspension.cpus},
            {"memoryMb", suspension.memory_mb},
            {"tscKhz", suspension.tsc_khz},
            {"processor", suspension.processor},
            {"diskBytes", suspension.disk_bytes},
            {"memory", suspension.memory_digest},
            {"state", suspension.state_digest},
            {"atUs", suspension.at.time_since_epoch().count()},
            {"channel", encode_channel(suspension.channel)}};
  write_file_atomically(folder.suspended() / k_suspension_name, dump_json(json));
}

Suspension read_suspension(const MachineFolder& folder) {
  auto json = parse_json(read_file(folder.suspended() / k_suspension_name, k_limit));
  try {
    const Json& object = json.value();
    if (auto version = integer_member<int>(object, "version"); version != k_version) {
      throw std::runtime_error(
          fmt::format("it is of version {}, this holt knows version {}", version, k_version));
    }
    return {.vmm_version = object.at("vmmVersion").get<std::string>(),
            .accelerator = object.at("accelerator") == "kvm" ? Accelerator::kvm : Accelerator::tcg,
            .cpus = integer_member<unsigned>(object, "cpus"),
            .memory_mb = integer_member<unsigned>(object, "memoryMb"),
            .tsc_khz = integer_member<unsigned>(object, "tscKhz"),
            .processor = object.value("processor", std::string()),
            .disk_bytes = integer_member<std::uint64_t>(object, "diskBytes"),
            .memory_digest = object.at("memory").get<std::string>(),
            .state_digest = object.at("state").get<std::string>(),
            .at = WallTime(std::chrono::microseconds(integer_member<std::int64_t>(object, "atUs"))),
            .channel = decode_channel(object.at("channel"))};
  } catch (const std::exception& e) {
    throw damaged(folder, fmt::format("{} is damaged ({})", k_suspension_name, printable(e.what(), 100)));
  }
}

void check_suspension(const MachineFolder& folder, const Suspension& suspension) {
  Template files{folder.suspended()};
  try {
    if (sampled_digest(files.memory()) != suspension.memory_digest)
      throw damaged(folder, "its memory file was changed");
    if (sha256_hex(read_file(files.state(), k_state_limit)) != suspension.state_digest)
      throw damaged(folder, "its device state was changed");
  } catch (const Error& e) {
    if (e.code() == ErrorCode::storage_error) throw;
    throw damaged(folder, e.what());
  }
}

void end_suspension(const MachineFolder& folder) {
  auto file = folder.suspended() / k_suspension_name;
  if (::unlink(file.c_str()) != 0 && errno != ENOENT)
    throw system_error(errno, fmt::format("remove {}", file.string()), file);
}

void delete_suspended_files(const MachineFolder& folder) noexcept {
  try {
    if (!folder.is_suspended()) remove_tree(folder.suspended());
  } catch (const std::exception& e) {
    logger("machine")->debug("{}", e.what());
  }
}

}  // namespace holt::machine
