#include "holt/machine/prune.hpp"

#include "holt/base/disk_usage.hpp"
#include "holt/base/error.hpp"
#include "holt/base/log.hpp"
#include "holt/image/pull.hpp"
#include "machine/info.hpp"
#include "machine/lifecycle.hpp"
#include "machine/template.hpp"

#include <algorithm>
#include <chrono>
#include <set>

#include <fmt/format.h>

namespace holt {

using namespace machine;

namespace {

/// One run of prune().
class Pruning {
 public:
  Pruning(const PruneOptions& options, const HostConfig& host)
      : options_(options), host_(host), folders_(host.directories) {}

  PruneResult run() {
    sweep_machines(folders_);
    for (auto kind : options_.kinds) {
      if (kind == PruneKind::machines) prune_machines();
      if (kind == PruneKind::images) prune_images();
      if (kind == PruneKind::templates) prune_templates();
    }
    return std::move(result_);
  }

 private:
  /// False in the future too: a clock that was set back makes nothing old.
  bool is_old(const std::filesystem::path& file) const {
    std::error_code error;
    auto changed = std::filesystem::last_write_time(file, error);
    return !error && std::filesystem::file_time_type::clock::now() - changed >= options_.older_than;
  }

  template <class Remove>
  void take(PruneKind kind, const std::string& name, std::uint64_t bytes, Remove remove) {
    if (options_.call.cancel) options_.call.cancel->throw_if_cancelled();
    try {
      if (options_.mode == PruneMode::remove) remove();
      result_.items.push_back({.kind = kind, .name = name, .bytes = bytes});
    } catch (const Error& e) {
      if (e.code() == ErrorCode::not_found) return;  // somebody else was faster
      result_.problems.push_back(fmt::format("{}: {}", name, e.what()));
    }
  }

  void prune_machines() {
    for (const auto& info : all_machine_infos(folders_)) {
      bool ended = info.state == MachineState::created || info.state == MachineState::stopped ||
                   info.state == MachineState::failed;
      auto folder = folders_.of(info.name);
      auto last_use = std::filesystem::exists(folder.status_file()) ? folder.status_file() : folder.path();
      if (!ended || !is_old(last_use)) continue;
      gone_.insert(info.name);
      take(PruneKind::machines, info.name, disk_bytes_below(folder.path()),
           [&] { remove_machine(folders_, folder, {.mode = RemoveMode::stopped_only}); });
    }
  }

  /// Whether a machine stands on it that stays.
  bool is_needed(const image::Image& image) const {
    return std::ranges::any_of(folders_.names(), [&](const std::string& name) {
      if (options_.mode == PruneMode::report && gone_.contains(name)) return false;
      try {
        return folders_.of(name).read_record().image_digest == image.digest;
      } catch (const Error& e) {
        // Of a damaged record nobody knows on what it stands; one that has gone needs nothing.
        return e.code() != ErrorCode::not_found;
      }
    });
  }

  /// Images, and the layers that none of those that stay needs.
  void prune_images() {
    if (options_.call.cancel) options_.call.cancel->throw_if_cancelled();
    image::Store store(host_.directories);
    auto known = store.list();
    image::PruneOptions options{.dry_run = options_.mode == PruneMode::report,
                                .all = true,
                                .in_use = [this](const image::Image& asked) { return is_needed(asked); }};
    if (options_.older_than > Duration::zero()) options.older_than = options_.older_than;
    auto report = image::prune(store, options);
    auto left = report.bytes;
    for (const auto& name : report.images) {
      // One image may have several names.
      auto found = std::ranges::find(known, name, &image::Image::reference);
      auto bytes = found == known.end() ? 0 : std::min(left, found->size);
      for (auto& image : known) {
        if (found != known.end() && image.digest == found->digest) image.size = 0;
      }
      left -= bytes;
      result_.items.push_back({.kind = PruneKind::images, .name = name, .bytes = bytes});
    }
    if (report.blobs.empty()) return;
    result_.items.push_back({.kind = PruneKind::images,
                             .name = fmt::format("{} layers and documents", report.blobs.size()),
                             .bytes = left});
  }

  void prune_templates() {
    TemplateStore store(host_.directories.cache / "templates");
    for (const auto& found : store.all()) {
      if (!is_old(found / "template.json")) continue;
      take(PruneKind::templates, found.filename().string(), disk_bytes_below(found),
           [&] { store.remove(found); });
    }
  }

  const PruneOptions& options_;
  const HostConfig& host_;
  MachineFolders folders_;
  std::set<std::string> gone_;
  PruneResult result_;
};

}  // namespace

std::string_view to_string(PruneKind kind) {
  switch (kind) {
    case PruneKind::machines:
      return "machine";
    case PruneKind::images:
      return "image";
    case PruneKind::templates:
      return "template";
  }
  return "machine";
}

PruneResult prune(const PruneOptions& options, const HostConfig& host) {
  return Pruning(options, host).run();
}

}  // namespace holt
