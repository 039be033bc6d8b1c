#include "machine/file_streams.hpp"

#include "machine/guest_link.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <tuple>

#include <fmt/format.h>

namespace holt {

using namespace machine;
using namespace protocol;

namespace {

using namespace std::chrono_literals;

constexpr auto k_progress_deadline = 30s;
constexpr std::size_t k_most_entries = 1'000'000;
constexpr std::size_t k_longest_name = 255;  // NAME_MAX

[[noreturn]] void broken(const std::string& what) {
  throw Error(ErrorCode::guest_protocol, fmt::format("The guest program broke the protocol: {}", what));
}

}  // namespace

class FileReader::Impl {
 public:
  /// `started` is the first frame of the stream.
  Impl(std::unique_ptr<StreamConnection> connection, const ReadOptions& options, const Frame& started)
      : connection_(std::move(connection)), patience_(options.call), asked_(options.length) {
    if (started.header.type != FrameType::started) broken("a file without its facts");
    auto status = decode<FileStatus>(started.payload);
    if (!status) throw guest_protocol_error(status.error());
    stat = file_stat(*status);
    auto behind = stat.size - std::min(stat.size, options.offset);
    // Files of /proc have no size and are read as they come.
    if (stat.size > 0) announced_ = std::min(behind, options.length.value_or(behind));
  }
  ~Impl() {
    if (connection_) connection_->kill();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  std::optional<std::string> next() {
    if (ended_) return std::nullopt;
    return piece_of(connection_->next(patience_.next_step()));
  }

  Tried<std::string> try_next() {
    if (ended_) return Tried<std::string>::end();
    auto frame = connection_->try_next();
    if (frame.pending) return Tried<std::string>::not_yet();
    connection_->set_alarm(patience_.next_step().deadline);
    return {.value = piece_of(std::move(frame.value))};
  }

  StreamConnection& connection() { return *connection_; }
  void abandon() noexcept {
    connection_->abandon();
    [[maybe_unused]] auto* kept = connection_.release();
  }

  FileStat stat;

 private:
  std::optional<std::string> piece_of(std::optional<Frame> frame) {
    if (!frame) throw Error(ErrorCode::cancelled, "The reading was cancelled");
    if (frame->header.type == FrameType::output) {
      received_ += frame->payload.size();
      if (announced_ && received_ > *announced_) broken("more bytes of a file than announced");
      if (asked_ && received_ > *asked_) broken("more bytes of a file than asked for");
      return std::move(frame->payload);
    }
    auto reply = decode<ReadFileReply>(frame->payload);
    if (!reply) throw guest_protocol_error(reply.error());
    if (reply->bytes != received_ || (announced_ && received_ != *announced_)) {
      broken("fewer bytes of a file than announced");
    }
    ended_ = true;
    return std::nullopt;
  }

  std::unique_ptr<StreamConnection> connection_;
  Patience patience_;
  std::optional<std::uint64_t> asked_;
  std::optional<std::uint64_t> announced_;
  std::uint64_t received_ = 0;
  bool ended_ = false;
};

FileReader::FileReader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
FileReader::FileReader(FileReader&&) noexcept = default;
FileReader& FileReader::operator=(FileReader&&) noexcept = default;
FileReader::~FileReader() = default;
const FileStat& FileReader::stat() const {
  return impl_->stat;
}
std::optional<std::string> FileReader::next() {
  return impl_->next();
}
Tried<std::string> FileReader::try_next() {
  return impl_->try_next();
}
int FileReader::fd() const {
  return impl_->connection().poll_fd();
}
void FileReader::cancel() {
  impl_->connection().kill();
}
void FileReader::abandon() noexcept {
  impl_->abandon();
}

class FileWriter::Impl {
 public:
  Impl(std::unique_ptr<StreamConnection> connection, const CallOptions& call)
      : connection_(std::move(connection)), patience_(call) {}
  ~Impl() {
    if (connection_) connection_->kill();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void write(std::string_view bytes) {
    constexpr std::size_t k_step = std::size_t{1} << 20;
    while (!bytes.empty()) {
      auto piece = bytes.substr(0, k_step);
      if (!connection_->send_input(piece, patience_.next_step())) {
        // The stream ended early: the final frame says why.
        connection_->reply(patience_.next_step());
        broken("a write that ended before its data");
      }
      sent_ += piece.size();
      bytes.remove_prefix(piece.size());
    }
  }

  void finish() {
    connection_->end_input();
    check_written(connection_->reply(patience_.next_step()), sent_);
  }

  std::size_t try_write(std::string_view bytes) {
    auto taken = connection_->try_send_input(bytes);
    if (taken > 0) connection_->set_alarm(patience_.next_step().deadline);
    sent_ += taken;
    // Over before its data: the final frame says why.
    if (taken == 0 && connection_->ended() && reply()) broken("a write that ended before its data");
    return taken;
  }

  bool try_finish() {
    if (!ending_) {
      ending_ = true;
      connection_->set_alarm(patience_.next_step().deadline);
      connection_->end_input();
    }
    auto payload = reply();
    if (payload) check_written(*payload, sent_);
    return payload.has_value();
  }

  StreamConnection& connection() { return *connection_; }
  void abandon() noexcept {
    connection_->abandon();
    [[maybe_unused]] auto* kept = connection_.release();
  }

 private:
  std::optional<std::string> reply() {
    for (;;) {
      auto frame = connection_->try_next();
      if (frame.pending) return std::nullopt;
      if (!frame.value) throw Error(ErrorCode::cancelled, "The writing was cancelled");
      if (frame.value->header.type == FrameType::reply) return std::move(frame.value->payload);
    }
  }

  std::unique_ptr<StreamConnection> connection_;
  Patience patience_;
  std::uint64_t sent_ = 0;
  bool ending_ = false;
};

FileWriter::FileWriter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
FileWriter::FileWriter(FileWriter&&) noexcept = default;
FileWriter& FileWriter::operator=(FileWriter&&) noexcept = default;
FileWriter::~FileWriter() = default;
void FileWriter::write(std::string_view bytes) {
  impl_->write(bytes);
}
void FileWriter::finish() {
  impl_->finish();
}
std::size_t FileWriter::try_write(std::string_view bytes) {
  return impl_->try_write(bytes);
}
bool FileWriter::try_finish() {
  return impl_->try_finish();
}
int FileWriter::write_fd() const {
  return impl_->connection().room_fd();
}
int FileWriter::finish_fd() const {
  return impl_->connection().poll_fd();
}
void FileWriter::cancel() {
  impl_->connection().kill();
}
void FileWriter::abandon() noexcept {
  impl_->abandon();
}

namespace machine {

Wait Patience::next_step() const {
  return {.deadline = call_.deadline ? *call_.deadline : Deadline::after(k_progress_deadline),
          .cancel = call_.cancel};
}

holt::FileType file_type(protocol::FileType type) {
  switch (type) {
    case protocol::FileType::regular:
      return holt::FileType::regular;
    case protocol::FileType::directory:
      return holt::FileType::directory;
    case protocol::FileType::symlink:
      return holt::FileType::symlink;
    case protocol::FileType::fifo:
      return holt::FileType::fifo;
    case protocol::FileType::socket:
      return holt::FileType::socket;
    case protocol::FileType::block_device:
      return holt::FileType::block_device;
    case protocol::FileType::character_device:
      return holt::FileType::char_device;
    case protocol::FileType::unknown:
      return holt::FileType::unknown;
  }
  return holt::FileType::unknown;
}

std::int64_t nanoseconds(std::int64_t seconds, std::uint32_t rest) {
  // A guest says any number: those beyond the years 1678 to 2262 become the last that fits.
  constexpr std::int64_t k_most = std::numeric_limits<std::int64_t>::max() / 1'000'000'000 - 1;
  return std::clamp(seconds, -k_most, k_most) * 1'000'000'000 + std::min<std::uint32_t>(rest, 999'999'999);
}

std::pair<std::int64_t, std::uint32_t> split_time(std::int64_t nanoseconds) {
  constexpr std::int64_t k_second = 1'000'000'000;
  auto seconds = nanoseconds / k_second;
  auto rest = nanoseconds % k_second;
  if (rest < 0) {
    --seconds;
    rest += k_second;
  }
  return {seconds, static_cast<std::uint32_t>(rest)};
}

protocol::SetAttributesRequest attributes_request(const std::string& path, const FileAttributes& attributes,
                                                  const AttributeOptions& options) {
  SetAttributesRequest request{
      .path = path,
      .links = options.follow == FollowLinks::yes ? protocol::Links::follow : protocol::Links::keep,
      .mode = attributes.mode,
      .owner = attributes.owner,
      .user = options.user};
  if (attributes.mtime_ns) std::tie(request.mtime_s, request.mtime_ns) = split_time(*attributes.mtime_ns);
  return request;
}

void change_attributes(const MachineFolder& folder, const std::string& path, const FileAttributes& attributes,
                       const AttributeOptions& options) {
  ask(folder, attributes_request(path, attributes, options), Effect::possible, options.call);
}

FileStat file_stat(const FileStatus& status) {
  return {.type = file_type(status.type),
          .size = status.size,
          .mode = status.mode & 07777,
          .uid = status.uid,
          .gid = status.gid,
          .mtime_ns = nanoseconds(status.mtime_s, status.mtime_ns),
          .links = status.links,
          .allocated = status.allocated,
          .target = status.link_target};
}

bool is_file_name(std::string_view name) {
  return !name.empty() && name.size() <= k_longest_name && name != "." && name != ".." &&
         name.find('/') == std::string_view::npos && name.find('\0') == std::string_view::npos;
}

std::string ask(const MachineFolder& folder, const Request& request, Effect effect, const CallOptions& call) {
  auto wait = Patience(call).next_step();
  return StreamConnection::open(folder, request, effect, wait)->reply(wait);
}

template <class Reply>
Reply ask_for(const MachineFolder& folder, const Request& request, Effect effect, const CallOptions& call) {
  auto reply = decode<Reply>(ask(folder, request, effect, call));
  if (!reply) throw guest_protocol_error(reply.error());
  return std::move(*reply);
}
template FileStatus ask_for(const MachineFolder&, const Request&, Effect, const CallOptions&);
template ExistsReply ask_for(const MachineFolder&, const Request&, Effect, const CallOptions&);
template RealPathReply ask_for(const MachineFolder&, const Request&, Effect, const CallOptions&);
template RemoveReply ask_for(const MachineFolder&, const Request&, Effect, const CallOptions&);
template StatusReply ask_for(const MachineFolder&, const Request&, Effect, const CallOptions&);

protocol::ReadFileRequest read_request(const std::string& path, const ReadOptions& options) {
  return {.path = path, .offset = options.offset, .length = options.length, .user = options.user};
}

FileReader reader_of(std::unique_ptr<StreamConnection> connection, const ReadOptions& options,
                     const Frame& started) {
  return FileReader(std::make_unique<FileReader::Impl>(std::move(connection), options, started));
}

FileReader open_reader(const MachineFolder& folder, const std::string& path, const ReadOptions& options) {
  auto wait = Patience(options.call).next_step();
  auto connection = StreamConnection::open(folder, read_request(path, options), Effect::none, wait);
  auto started = connection->next(Patience(options.call).next_step());
  if (!started) broken("a file without its facts");
  return reader_of(std::move(connection), options, *started);
}

protocol::WriteFileRequest write_request(const std::string& path, const FileWriteOptions& options) {
  WriteFileRequest request{
      .path = path,
      .size = options.size,
      .mode = options.mode,
      .write = options.existing == Existing::refuse ? WriteMode::create_only : WriteMode::replace,
      .make_parents = options.parents == Parents::make,
      .durable = options.durability == Durability::now,
      .owner = options.owner,
      .expected_sha256 = options.expected_sha256.value_or(""),
      .user = options.user};
  if (options.expected_sha256 && options.expected_sha256->empty())
    throw InvalidArgument("The expected SHA-256 is empty");
  if (options.mtime_ns) std::tie(request.mtime_s, request.mtime_ns) = split_time(*options.mtime_ns);
  return request;
}

FileWriter open_writer(const MachineFolder& folder, const std::string& path, const FileWriteOptions& options,
                       Sending sending) {
  auto connection = StreamConnection::open(folder, write_request(path, options), Effect::possible,
                                           Patience(options.call).next_step(), sending);
  return FileWriter(std::make_unique<FileWriter::Impl>(std::move(connection), options.call));
}

void check_written(const std::string& payload, std::uint64_t bytes) {
  auto reply = decode<WriteFileReply>(payload);
  if (!reply) throw guest_protocol_error(reply.error());
  if (reply->bytes != bytes) broken("another number of bytes written than sent");
}

std::optional<std::vector<DirEntry>> DirectoryCollector::take(const Frame& frame) {
  if (frame.header.type == FrameType::reply) {
    std::ranges::sort(entries_, {}, &DirEntry::name);
    if (std::ranges::adjacent_find(entries_, {}, &DirEntry::name) != entries_.end())
      broken("one name twice in a folder");
    return std::move(entries_);
  }
  if (frame.header.type != FrameType::entry) return std::nullopt;
  auto page = decode<DirectoryPage>(frame.payload);
  if (!page) throw guest_protocol_error(page.error());
  if (entries_.size() + page->entries.size() > k_most_entries) {
    throw Error(ErrorCode::limit_exceeded, fmt::format("The folder has more than {} entries", k_most_entries),
                {.subject = printable(path_)});
  }
  for (auto& entry : page->entries) {
    if (!is_file_name(entry.name)) broken("a name that no file can have");
    entries_.push_back({.name = std::move(entry.name),
                        .type = file_type(entry.type),
                        .target = file_type(entry.target),
                        .size = entry.size,
                        .mode = entry.mode & 07777,
                        .mtime_ns = nanoseconds(entry.mtime_s, entry.mtime_ns)});
  }
  return std::nullopt;
}

std::vector<DirEntry> list_directory(const MachineFolder& folder, const std::string& path,
                                     const CallOptions& call) {
  Patience patience(call);
  auto connection =
      StreamConnection::open(folder, ListRequest{.path = path}, Effect::none, patience.next_step());
  DirectoryCollector collector(path);
  while (auto frame = connection->next(patience.next_step())) {
    if (auto entries = collector.take(*frame)) return std::move(*entries);
  }
  broken("a folder without an end");
}

Error FileCollector::too_large() const {
  return {ErrorCode::too_large,
          fmt::format("{} has more than {} bytes", printable(path_), options_.limit),
          {.subject = printable(path_), .hint = "Read it as a stream."}};
}

void FileCollector::announce(const FileStat& stat) {
  auto wanted =
      std::min(stat.size - std::min(stat.size, options_.offset), options_.length.value_or(stat.size));
  if (wanted > options_.limit) throw too_large();
  // Reserved by what the guest says, within the limit that the caller set.
  content_.reserve(wanted);
}

void FileCollector::add(std::string_view piece) {
  if (content_.size() + piece.size() > options_.limit) throw too_large();
  content_ += piece;
}

}  // namespace machine
}  // namespace holt
