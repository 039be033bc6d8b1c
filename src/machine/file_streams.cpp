#include "machine/file_streams.hpp"

#include "machine/guest_link.hpp"

#include <algorithm>
#include <chrono>
#include <limits>

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
  Impl(std::unique_ptr<StreamConnection> connection, const ReadOptions& options)
      : connection_(std::move(connection)), patience_(options.call) {
    auto frame = connection_->next(patience_.next_step());
    if (!frame || frame->header.type != FrameType::started) broken("a file without its facts");
    auto status = decode<FileStatus>(frame->payload);
    if (!status) throw guest_protocol_error(status.error());
    stat = file_stat(*status);
    auto behind = stat.size - std::min(stat.size, options.offset);
    // Files of /proc have no size and are read as they come.
    if (stat.size > 0) announced_ = std::min(behind, options.length.value_or(behind));
  }
  ~Impl() { connection_->kill(); }

  std::optional<std::string> next() {
    if (ended_) return std::nullopt;
    auto frame = connection_->next(patience_.next_step());
    if (!frame) broken("a file without an end");
    if (frame->header.type == FrameType::output) {
      received_ += frame->payload.size();
      if (announced_ && received_ > *announced_) broken("more bytes of a file than announced");
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

  FileStat stat;

 private:
  std::unique_ptr<StreamConnection> connection_;
  Patience patience_;
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

class FileWriter::Impl {
 public:
  Impl(std::unique_ptr<StreamConnection> connection, const CallOptions& call)
      : connection_(std::move(connection)), patience_(call) {}
  ~Impl() { connection_->kill(); }

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
    auto reply = decode<WriteFileReply>(connection_->reply(patience_.next_step()));
    if (!reply) throw guest_protocol_error(reply.error());
    if (reply->bytes != sent_) broken("another number of bytes written than sent");
  }

 private:
  std::unique_ptr<StreamConnection> connection_;
  Patience patience_;
  std::uint64_t sent_ = 0;
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

FileReader open_reader(const MachineFolder& folder, const std::string& path, const ReadOptions& options) {
  ReadFileRequest request{
      .path = path, .offset = options.offset, .length = options.length, .user = options.user};
  auto connection = StreamConnection::open(folder, request, Effect::none, Patience(options.call).next_step());
  return FileReader(std::make_unique<FileReader::Impl>(std::move(connection), options));
}

FileWriter open_writer(const MachineFolder& folder, const std::string& path,
                       const FileWriteOptions& options) {
  WriteFileRequest request{.path = path,
                           .size = options.size,
                           .mode = options.mode,
                           .make_parents = options.parents == Parents::make,
                           .user = options.user};
  auto connection =
      StreamConnection::open(folder, request, Effect::possible, Patience(options.call).next_step());
  return FileWriter(std::make_unique<FileWriter::Impl>(std::move(connection), options.call));
}

std::vector<DirEntry> list_directory(const MachineFolder& folder, const std::string& path,
                                     const CallOptions& call) {
  Patience patience(call);
  auto connection =
      StreamConnection::open(folder, ListRequest{.path = path}, Effect::none, patience.next_step());
  std::vector<DirEntry> entries;
  while (auto frame = connection->next(patience.next_step())) {
    if (frame->header.type == FrameType::reply) break;
    if (frame->header.type != FrameType::entry) continue;
    auto page = decode<DirectoryPage>(frame->payload);
    if (!page) throw guest_protocol_error(page.error());
    if (entries.size() + page->entries.size() > k_most_entries) {
      throw Error(ErrorCode::limit_exceeded,
                  fmt::format("The folder has more than {} entries", k_most_entries),
                  {.subject = printable(path)});
    }
    for (auto& entry : page->entries) {
      if (!is_file_name(entry.name)) broken("a name that no file can have");
      entries.push_back({.name = std::move(entry.name),
                         .type = file_type(entry.type),
                         .target = file_type(entry.target),
                         .size = entry.size,
                         .mode = entry.mode & 07777,
                         .mtime_ns = nanoseconds(entry.mtime_s, entry.mtime_ns)});
    }
  }
  std::ranges::sort(entries, {}, &DirEntry::name);
  if (std::ranges::adjacent_find(entries, {}, &DirEntry::name) != entries.end())
    broken("one name twice in a folder");
  return entries;
}

}  // namespace machine
}  // namespace holt
