// File operations over a StreamConnection.
#pragma once

#include "holt/machine/files.hpp"
#include "machine/stream_connection.hpp"

#include <string>
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

FileReader open_reader(const MachineFolder& folder, const std::string& path, const ReadOptions& options);
FileWriter open_writer(const MachineFolder& folder, const std::string& path, const FileWriteOptions& options);
std::vector<DirEntry> list_directory(const MachineFolder& folder, const std::string& path,
                                     const CallOptions& call);

/// True for one component that may become a name on the host.
bool is_file_name(std::string_view name);

}  // namespace holt::machine
