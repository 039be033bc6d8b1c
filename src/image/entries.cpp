#include "image/entries.hpp"

#include "holt/base/log.hpp"
#include "image/content_digest.hpp"

#include <algorithm>
#include <cerrno>
#include <sys/stat.h>

#include <fmt/format.h>

namespace holt::image {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t k_record_bytes = std::size_t{16} << 20;
constexpr std::uint64_t k_disk_step = std::uint64_t{1} << 20;
constexpr std::uint64_t k_disk_least = std::uint64_t{64} << 20;
constexpr std::uint64_t k_disk_most = std::uint64_t{1} << 40;
/// As many digits as tools print of an image's digest.
constexpr std::size_t k_short_digits = 12;
constexpr std::string_view k_digest_prefix = "sha256:";

std::optional<ReferenceRecord> read_reference_file(const fs::path& file) {
  auto text = read_file_if_exists(file, k_record_bytes);
  if (!text) return std::nullopt;
  auto record = read_reference_record(*text);
  if (!record) logger("holt.image")->warn("the image record {} is damaged", file.string());
  return record;
}

bool means(const ReferenceRecord& record, std::string_view digest) {
  return record.digest == digest || record.manifest == digest || record.top == digest;
}

std::optional<ReferenceRecord> look_up_digest(const Folders& folders, const std::string& digest) {
  auto references = read_references(folders);
  auto named = std::ranges::find_if(references, [&](const auto& record) { return means(record, digest); });
  if (named != references.end()) {
    named->reference = named->digest;
    return *named;
  }
  for (const std::string& present : read_digests(folders)) {
    auto image = read_entry(folders, present);
    if (present != digest && !(image && image->manifest_digest == digest)) continue;
    return ReferenceRecord{
        .reference = present, .digest = present, .manifest = image ? image->manifest_digest : "", .top = {}};
  }
  return std::nullopt;
}

bool is_digest_beginning(std::string_view digits) {
  return digits.size() >= k_short_digits && is_digest(fmt::format("{}{:0<64}", k_digest_prefix, digits));
}

std::optional<ReferenceRecord> look_up_beginning(const Folders& folders, std::string_view text) {
  if (text.starts_with(k_digest_prefix)) text.remove_prefix(k_digest_prefix.size());
  if (!is_digest_beginning(text)) return std::nullopt;
  std::string beginning = fmt::format("{}{}", k_digest_prefix, text);
  auto digests = read_digests(folders);
  auto first = digests.lower_bound(beginning);
  if (first == digests.end() || !first->starts_with(beginning)) return std::nullopt;
  if (auto next = std::next(first); next != digests.end() && next->starts_with(beginning)) {
    throw Error(ErrorCode::usage, fmt::format("find the image '{}': several digests begin so", text),
                {.subject = std::string(text), .hint = "Give more digits."});
  }
  return look_up_digest(folders, *first);
}

std::optional<struct stat> file_system_status(const Image& image) {
  struct stat status{};
  bool whole = ::stat(image.ext4.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
               static_cast<std::uint64_t>(status.st_size) == image.disk_bytes;
  return whole ? std::optional(status) : std::nullopt;
}

}  // namespace

Reference parsed_reference(std::string_view text) {
  auto parsed = parse_reference(text);
  if (parsed) return std::move(*parsed);
  throw Error(ErrorCode::usage,
              fmt::format("read the image name '{}': {}", printable(text, 200), parsed.error()),
              {.subject = printable(text, 200)});
}

bool is_disk_size(std::uint64_t bytes) {
  return bytes >= k_disk_least && bytes <= k_disk_most && bytes % k_disk_step == 0;
}

void check_disk_size(std::uint64_t bytes) {
  if (is_disk_size(bytes)) return;
  throw InvalidArgument(fmt::format("an image's disk has 64 MiB to 1 TiB in whole MiB, not {} bytes", bytes));
}

std::string key_of(std::string_view reference) {
  return is_digest(reference) ? std::string(reference) : parsed_reference(reference).canonical();
}

std::optional<Image> read_entry(const Folders& folders, const std::string& digest) {
  fs::path folder = folders.entry(digest);
  auto text = read_file_if_exists(folder / "image.json", k_record_bytes);
  auto image = text ? read_image_record(*text) : std::nullopt;
  if (!image || image->digest != digest) return std::nullopt;
  image->ext4 = folder / "root.ext4";
  image->reference = digest;
  return image;
}

bool has_file_system(const Image& image) {
  return file_system_status(image).has_value();
}

std::optional<Image> load_entry(const Folders& folders, const std::string& digest) {
  auto image = read_entry(folders, digest);
  auto status = image ? file_system_status(*image) : std::nullopt;
  if (!status) return std::nullopt;
  image->size = static_cast<std::uint64_t>(status->st_blocks) * 512;
  return image;
}

bool is_sound(const Image& image, const std::optional<CancellationToken>& cancel) {
  return image.content_digest.empty() || content_digest(image.ext4, cancel) == image.content_digest;
}

void check_same_content(const std::optional<Image>& recorded, const Image& built) {
  if (!recorded || recorded->content_digest.empty() || recorded->content_digest == built.content_digest)
    return;
  throw Error(
      ErrorCode::conflict,
      fmt::format("build the image {} again: another version of holt made the file system that its "
                  "machines stand on, and this one does not make the same",
                  built.digest),
      {.subject = built.digest,
       .hint = fmt::format("Remove its machines and the image (holt image rm {}), then make it again.",
                           built.digest)});
}

std::vector<ReferenceRecord> read_references(const Folders& folders) {
  std::vector<ReferenceRecord> records;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folders.references(), error)) {
    if (entry.path().extension() != ".json") continue;
    if (auto record = read_reference_file(entry.path())) records.push_back(std::move(*record));
  }
  std::ranges::sort(records, {}, &ReferenceRecord::reference);
  return records;
}

std::optional<ReferenceRecord> read_reference(const Folders& folders, std::string_view canonical) {
  auto record = read_reference_file(folders.reference(canonical));
  if (record && record->reference != canonical) return std::nullopt;
  return record;
}

std::set<std::string> read_digests(const Folders& folders) {
  std::set<std::string> digests;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folders.entries(), error)) {
    std::string digest = fmt::format("{}{}", k_digest_prefix, entry.path().filename().string());
    if (is_digest(digest)) digests.insert(std::move(digest));
  }
  return digests;
}

std::optional<ReferenceRecord> look_up(const Folders& folders, std::string_view reference) {
  if (is_digest(reference)) return look_up_digest(folders, std::string(reference));
  if (reference.starts_with(k_digest_prefix)) {
    if (auto found = look_up_beginning(folders, reference)) return found;
  }
  Reference parsed = parsed_reference(reference);
  if (auto named = read_reference(folders, parsed.canonical())) return named;
  if (!parsed.digest.empty()) return look_up_digest(folders, parsed.digest);
  return look_up_beginning(folders, reference);
}

FileLock lock_entry(const Folders& folders, std::string_view digest, Deadline deadline) {
  return wait_for_lock(folders.entry_lock(digest), deadline);
}

FileLock lock_references(const Folders& folders) {
  return wait_for_lock(folders.references_lock(), Deadline::after(k_lock_wait));
}

void place_entry(const Folders& folders, const fs::path& fresh, std::string_view digest) {
  fs::path place = folders.entry(digest);
  std::error_code error;
  if (!fs::is_directory(place, error)) return move_into_place(fresh, place);
  for (const char* file : {"root.ext4", "image.json"}) {
    if (fs::exists(fresh / file)) move_into_place(fresh / file, place / file);
  }
}

void name_entry(const Folders& folders, const ReferenceRecord& record, const fs::path& scratch) {
  FileLock lock = lock_references(folders);
  fs::path fresh = scratch / "reference.json";
  write_file_atomically(fresh, write_reference_record(record), {.mode = 0644});
  move_into_place(fresh, folders.reference(record.reference));
}

Error image_not_found(const Folders& folders, std::string_view reference) {
  std::string shown = printable(reference, 200);
  auto record = look_up(folders, reference);
  if (!record) {
    auto parsed = parse_reference(reference);
    bool is_default = parsed && parsed->canonical() == k_default_image;
    auto hint = is_default ? std::string("scripts/setup makes it, and so does holt image build-default.")
                : is_digest(reference)
                    ? std::string("holt images --format '{{.digest}} {{.reference}}' lists what is here.")
                    : fmt::format(
                          "holt pull {0} fetches it, holt image import FILE {0} makes it of a file; name "
                          "no image to use {1}.",
                          shown, k_default_image);
    return {ErrorCode::not_found,
            fmt::format("find the image '{}': it is not on this machine", shown),
            {.subject = shown, .hint = hint}};
  }
  auto image = read_entry(folders, record->digest);
  std::string_view part = !image                    ? "its record"
                          : fs::exists(image->ext4) ? "a part of its file system"
                                                    : "its file system";
  bool can_be_pulled = !record->manifest.empty() || (image && !image->manifest_digest.empty());
  return {ErrorCode::not_found,
          fmt::format("use the image '{}': {} is missing", shown, part),
          {.subject = shown,
           .hint = can_be_pulled ? fmt::format("holt pull {} builds it again.", shown)
                                 : fmt::format("Import it again: holt image import FILE {}.", shown)}};
}

}  // namespace holt::image
