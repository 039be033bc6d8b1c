// File operations over a StreamConnection.
#pragma once

#include "holt/machine/files.hpp"
#include "machine/stream_connection.hpp"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holt::machine {

/// What file operations of a call wait for: its deadline, else 30 s for each step that makes progress.
class Patience {
 public:
  explicit Patience(const CallOptions& call) : call_(call) {}
  Wait next_step() const;

 private:
  CallOptions call_;
};

FileStat file_stat(const protocol::FileStatus& status);
FileType file_type(protocol::FileType type);
std::int64_t nanoseconds(std::int64_t seconds, std::uint32_t rest);

/// One request, one reply.
std::string ask(const MachineFolder& folder, const protocol::Request& request, Effect effect,
                const CallOptions& call);
template <class Reply>
Reply ask_for(const MachineFolder& folder, const protocol::Request& request, Effect effect,
              const CallOptions& call);

protocol::ReadFileRequest read_request(const std::string& path, const ReadOptions& options);
/// `started` is the first frame of the connection. Throws GUEST_PROTOCOL.
FileReader reader_of(std::unique_ptr<StreamConnection> connection, const ReadOptions& options,
                     const protocol::Frame& started);
FileReader open_reader(const MachineFolder& folder, const std::string& path, const ReadOptions& options);
/// Throws INVALID_CONFIG for an empty checksum.
protocol::WriteFileRequest write_request(const std::string& path, const FileWriteOptions& options);
FileWriter open_writer(const MachineFolder& folder, const std::string& path, const FileWriteOptions& options,
                       Sending sending = Sending::waits);
/// Checks the reply to a write of so many bytes. Throws GUEST_PROTOCOL.
void check_written(const std::string& payload, std::uint64_t bytes);
std::vector<DirEntry> list_directory(const MachineFolder& folder, const std::string& path,
                                     const CallOptions& call);

protocol::SetAttributesRequest attributes_request(const std::string& path, const FileAttributes& attributes,
                                                  const AttributeOptions& options);
void change_attributes(const MachineFolder& folder, const std::string& path, const FileAttributes& attributes,
                       const AttributeOptions& options);

/// The content of a file from its pieces, within the limit of the options.
class FileCollector {
 public:
  FileCollector(std::string path, ReadOptions options)
      : path_(std::move(path)), options_(std::move(options)) {}
  /// What the guest says of the file. Throws TOO_LARGE, as add().
  void announce(const FileStat& stat);
  void add(std::string_view piece);
  std::string content() { return std::move(content_); }

 private:
  Error too_large() const;

  std::string path_;
  ReadOptions options_;
  std::string content_;
};

/// The names of a folder from the frames of its listing.
class DirectoryCollector {
 public:
  explicit DirectoryCollector(std::string path) : path_(std::move(path)) {}
  /// The names, sorted, with the final frame. Throws GUEST_PROTOCOL, LIMIT_EXCEEDED.
  std::optional<std::vector<DirEntry>> take(const protocol::Frame& frame);

 private:
  std::string path_;
  std::vector<DirEntry> entries_;
};

/// Nanoseconds since 1970 as seconds, rounded down, and the rest.
std::pair<std::int64_t, std::uint32_t> split_time(std::int64_t nanoseconds);

/// True for one component that may become a name on the host.
bool is_file_name(std::string_view name);

}  // namespace holt::machine
