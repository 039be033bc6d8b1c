// File operations of the protocol, as jobs. Each runs on a thread of its own and may block.
#pragma once

#include "guest/jobs.hpp"
#include "guest/users.hpp"
#include "holt/protocol/messages.hpp"

#include <string>

namespace holt::guest {

/// What file operations need to know of the machine. A value, copied into each job.
struct FileDefaults {
  std::string working_dir = "/";
  std::string user;
};

class FileService {
 public:
  void set_defaults(FileDefaults defaults) { defaults_ = std::move(defaults); }

  /// The job of a file request; none for another operation.
  JobHub::Job job(const protocol::Request& request) const;

 private:
  FileDefaults defaults_;
};

// One function an operation. `path`s are absolute by now and the thread acts as the user already.
Outcome<protocol::ReadFileReply> read_file(JobStream& stream, const protocol::ReadFileRequest& request);
Outcome<protocol::WriteFileReply> write_file(JobStream& stream, const protocol::WriteFileRequest& request);
Outcome<protocol::FileStatus> stat_path(const protocol::StatRequest& request);
Outcome<protocol::ExistsReply> path_exists(const protocol::ExistsRequest& request);
Outcome<protocol::ListReply> list_directory(JobStream& stream, const protocol::ListRequest& request);
Outcome<protocol::Done> make_directory(const protocol::MakeDirRequest& request);
Outcome<protocol::RemoveReply> remove_path(JobStream& stream, const protocol::RemoveRequest& request);
Outcome<protocol::Done> set_attributes(const protocol::SetAttributesRequest& request);
Outcome<protocol::Done> rename_path(const protocol::RenameRequest& request);
Outcome<protocol::TreeReply> send_tree(JobStream& stream, const protocol::TreeOutRequest& request);
Outcome<protocol::TreeReply> receive_tree(JobStream& stream, const protocol::TreeInRequest& request,
                                          const Identity& user);

/// Makes a folder and its parents, quiet when it is there. Used by writers too.
Outcome<> make_directories(const std::string& absolute, mode_t mode);

}  // namespace holt::guest
