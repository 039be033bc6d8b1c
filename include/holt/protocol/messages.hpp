// Messages: the payloads of hello, request, started, entry, reply and failure frames, as plain structs.
//
//   ExecRequest request{.argv = {"python3", "x.py"}, .cwd = "/workspace", .timeout_ms = 30'000};
//   std::string payload = holt::protocol::encode_request(request);
//   auto reply = holt::protocol::decode<ExecReply>(frame.payload);   // std::expected
//
// On the wire a message is one CBOR map (RFC 8949) of field names to values. A field that is missing keeps
// the default written here, an unknown one is skipped, so both ends may learn new fields. Strings are written
// as byte strings, since paths, arguments and names are bytes; text strings are read too. Depends on
// frame.hpp and base/error.hpp. Nothing is checked here but types and ranges; the guest checks the rest.
#pragma once

#include "holt/base/error.hpp"
#include "holt/protocol/frame.hpp"

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace holt::protocol {

// ---- The connection
// -------------------------------------------------------------------------------------------

/// First frame of each side. The opener's hello ends every stream of an earlier connection; the server
/// answers with its own. A guest also says hello by itself once, when it opens its port: that is the moment
/// of the template.
struct Hello {
  std::uint32_t version = k_version;
  std::string program = {};                    ///< "holt-guest 0.1.0", for logs only
  std::vector<std::string> capabilities = {};  ///< features beyond the version, e.g. "terminal"
  std::string generation = {};                 ///< of a guest: what IdentityRequest gave it, empty before
};

/// Why an operation, or a connection, failed. Nothing was half-done unless the operation says so.
struct Failure {
  std::string code = "INTERNAL";  ///< word of holt::ErrorCode
  std::int64_t error_number = 0;  ///< Linux errno, 0 for none
  std::string message = {};       ///< one sentence; text of a guest, to be shown with holt::printable()
  std::string path = {};          ///< the path, user or variable concerned, may be empty
};
/// Code of a failure; an unknown word is ErrorCode::internal.
ErrorCode error_code(const Failure& failure);

/// One variable of an environment.
struct Variable {
  std::string name;
  std::string value = {};
};

// ---- Start
// ----------------------------------------------------------------------------------------------------

/// Network of a machine that has one.
struct NetworkConfig {
  std::string address = {};      ///< IPv4, dotted
  std::uint32_t prefix = 24;     ///< bits of the network
  std::string gateway = {};      ///< IPv4; empty for no default route
  std::string name_server = {};  ///< IPv4, written to /etc/resolv.conf; empty leaves that file alone
  std::uint32_t mtu = 1500;
};

/// Where programs of the machine are placed in memory.
enum class AddressLayout {
  random,  ///< as Linux does by default
  /// Always alike. Under emulation QEMU translates code anew for each address, so random placement costs
  /// every program start (measured: /bin/true of Debian 25 ms, 7 ms when fixed). The guest program itself is
  /// placed randomly.
  fixed,
};

/// Tells a restored guest who it is. Nothing runs before the reply; requests behind it in the stream wait for
/// it, so a first command may be sent along. Any failure is final for the machine: destroy it. Allowed once.
struct IdentityRequest {
  std::string generation = {};      ///< fresh random text of this start, 1-64 bytes
  std::string entropy = {};         ///< 32-512 fresh random bytes, credited in full
  std::int64_t wall_clock_ns = 0;   ///< since 1970, read right before sending
  std::string hostname = {};        ///< 1-64 bytes
  std::string machine_id = {};      ///< 32 hex digits, used when the image has no /etc/machine-id of its own
  std::string root_device = "vda";  ///< name below /dev of the ext4 root; empty stays in the initramfs
  std::uint64_t root_size = 0;  ///< bytes the device has; waited for, since a restore changes it. 0: no wait
  std::vector<Variable> env = {};  ///< of every command, below that of its request
  std::string working_dir = {};    ///< of commands that name none, made where missing; empty is "/"
  std::string user = {};           ///< of commands and file operations that name none; empty is root
  std::vector<std::string> make_dirs =
      {};  ///< made with parents where missing, then `user`'s, e.g. /workspace
  std::optional<NetworkConfig> network = std::nullopt;
  AddressLayout address_layout = AddressLayout::random;
};
struct IdentityReply {
  std::string generation = {};
  std::string working_dir = {};  ///< the folder commands start in, symlinks resolved
  std::uint64_t root_bytes = 0;  ///< size of the root file system
  bool grown = false;            ///< the file system was made larger
  std::uint64_t duration_us = 0;
};

// ---- Commands
// -------------------------------------------------------------------------------------------------

enum class StdinMode {
  none,    ///< end of file at once
  stream,  ///< input frames
};
struct TerminalSize {
  std::uint32_t rows = 24;
  std::uint32_t columns = 80;
};
/// What a command may use at most, with all it starts where that is said; setrlimit(2), cgroups(7).
struct CommandLimits {
  std::optional<std::uint64_t> cpu_seconds = std::nullopt;   ///< of processor time, each process: RLIMIT_CPU
  std::optional<std::uint64_t> file_bytes = std::nullopt;    ///< of a file it writes: RLIMIT_FSIZE
  std::optional<std::uint64_t> open_files = std::nullopt;    ///< of each process: RLIMIT_NOFILE
  std::optional<std::uint64_t> processes = std::nullopt;     ///< and threads of the whole tree: pids.max
  std::optional<std::uint64_t> memory_bytes = std::nullopt;  ///< of the whole tree: memory.max
  std::optional<std::uint64_t> core_bytes = std::nullopt;    ///< of a core dump: RLIMIT_CORE
};

/// Runs a command. Exactly one of argv and script is set. Frames back: started, output, error_output, reply.
///
/// What cannot be found or executed is a reply with exit code 127 or 126 and one line on error_output that
/// names it. A bad cwd, user or variable is a failure: nothing ran. With `cancel` the whole process tree is
/// killed and the failure CANCELLED ends the stream.
struct ExecRequest {
  std::vector<std::string> argv = {};  ///< no shell in between; argv[0] without '/' is looked up on PATH
  std::optional<std::string> script = std::nullopt;  ///< for /bin/sh -c, may be empty
  std::vector<Variable> env = {};                    ///< on top of the machine's
  std::string cwd = {};   ///< empty: the machine's working_dir; relative to it otherwise
  std::string user = {};  ///< name, uid, name:group or uid:gid; empty: the machine's
  std::optional<std::int64_t> timeout_ms =
      std::nullopt;  ///< from the start, above 0; then the tree is killed
  StdinMode stdin_mode = StdinMode::none;
  std::uint64_t output_limit =
      0;  ///< bytes kept of each stream, its beginning; the rest is dropped. 0: no limit
  std::optional<TerminalSize> terminal = std::nullopt;  ///< a terminal of this size is all three streams
  std::optional<CommandLimits> limits = std::nullopt;
  std::uint32_t stop_signal = 0;  ///< its processes get it when the machine stops, 1-64; 0: SIGTERM
  /// Idempotency key; empty for none. A repeat with the same key and command starts nothing: it gets the
  /// output and the end of the first, from the beginning on, of long output the last part, and its `cancel`
  /// is for that command. CONFLICT when the key was another command's, or its result is no longer kept.
  std::string key = {};
};
/// Sent when the program runs. Before it nothing of the command can have run.
struct ExecStarted {
  std::int64_t pid = 0;  ///< inside the machine
};
struct ExecReply {
  std::optional<std::int64_t> exit_code = std::nullopt;  ///< 0-255; or
  std::optional<std::int64_t> signal = std::nullopt;     ///< 1-64. Exactly one of the two
  bool timed_out = false;
  bool oom = false;  ///< killed for want of memory
  bool stdout_truncated = false;
  bool stderr_truncated = false;
  std::uint64_t stdout_bytes = 0;  ///< written by the command, also what was dropped
  std::uint64_t stderr_bytes = 0;
  std::uint64_t duration_us = 0;  ///< start of the command to its end, monotonic clock of the guest
};

// ---- Background commands
// -------------------------------------------------------------------------------------------------
// A command without a stream: it ends by itself, when it is killed, or with the machine. What it writes is
// kept in a bounded log in the guest's memory. Its id is valid in this life of the machine only; an unknown
// one is NOT_FOUND.

/// Starts one. Reply: CommandStatus. What cannot be found or executed is a command that has ended with 127 or
/// 126. A repeat with the same key answers with the command of the first.
struct StartCommandRequest {
  ExecRequest command = {};     ///< its stdin_mode and output_limit count for nothing
  std::string input = {};       ///< all of its standard input
  std::uint64_t log_limit = 0;  ///< bytes kept of each output, its end; 0: none
};
struct CommandStatus {
  std::string id = {};
  std::int64_t pid = 0;
  std::vector<std::string> argv = {};  ///< of long ones the beginning and "..."
  bool terminal = false;
  std::optional<ExecReply> result = std::nullopt;  ///< once it has ended
  std::int64_t started_at_ns = 0;                  ///< since 1970, the guest's wall clock
  std::uint64_t stdout_bytes = 0;                  ///< written so far
  std::uint64_t stderr_bytes = 0;
  bool log_truncated = false;  ///< the log has lost its beginning
};
/// All of them, oldest first. Reply: CommandsReply.
struct CommandsRequest {};
inline constexpr std::size_t k_max_commands = 256;
struct CommandsReply {
  std::vector<CommandStatus> commands = {};  ///< at most k_max_commands
};
/// Sends the log from a place on, then what the command goes on to write. Frames back: started (ExecStarted),
/// output, error_output, reply (ExecReply) when it has ended and all has been sent; its truncated flags say
/// that the log had lost something of what was asked for. `cancel` ends the stream, not the command; signal
/// and resize reach the command.
struct AttachCommandRequest {
  std::string id = {};
  std::uint64_t stdout_offset = 0;
  std::uint64_t stderr_offset = 0;
};
/// Reply: CommandStatus, when it has ended.
struct WaitCommandRequest {
  std::string id = {};
};
/// To its process group. Reply: Done, also when it has ended.
struct SignalCommandRequest {
  std::string id = {};
  std::uint32_t signal = 0;  ///< 1-64
};
/// Kills it with all it started. Reply: CommandStatus, when it has ended.
struct KillCommandRequest {
  std::string id = {};
};

// ---- Files
// ---------------------------------------------------------------------------------------------------- Paths
// are resolved in the guest as its kernel does; a relative one counts from the machine's working_dir. `user`
// is whose permissions count, as in ExecRequest. Empty paths and NUL are INVALID_CONFIG, over-long ones
// TOO_LARGE.

enum class FileType { unknown, regular, directory, symlink, fifo, socket, character_device, block_device };
enum class Links { follow, keep };

struct FileStatus {
  FileType type = FileType::unknown;
  std::uint64_t size = 0;       ///< apparent, bytes
  std::uint64_t allocated = 0;  ///< bytes on disk
  std::uint32_t mode = 0;       ///< permission bits with setuid, setgid, sticky
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::uint64_t links = 0;
  std::int64_t mtime_s = 0;  ///< seconds since 1970, may be negative
  std::uint32_t mtime_ns = 0;
  std::string link_target = {};  ///< of a symlink looked at with Links::keep
};

/// Streams a regular file. Frames back: started (FileStatus), output, reply. IS_DIRECTORY, NOT_REGULAR
/// (message begins "not a regular file"). A file that shrinks meanwhile fails with CONFLICT; one that grows
/// is cut at the size of `started`. Files of the kernel (/proc, /sys) have size 0 and are read to their end,
/// 16 MiB at most.
struct ReadFileRequest {
  std::string path = {};
  std::uint64_t offset = 0;
  std::optional<std::uint64_t> length = std::nullopt;  ///< to the end
  std::string user = {};
};
struct ReadFileReply {
  std::uint64_t bytes = 0;
};

enum class WriteMode {
  replace,      ///< or create
  create_only,  ///< CONFLICT when something is there
};
/// Writes a whole file from input frames, up to end_of_data, then replaces the target in one step: readers
/// see the old or the new content. Symlinks are followed to the target; mode, owner and extended attributes
/// of a replaced file stay; of several hard links only this name changes. After a failure or cancel nothing
/// has changed.
struct WriteFileRequest {
  std::string path = {};
  std::optional<std::uint64_t> size = std::nullopt;  ///< when known; another number of bytes is a failure
  std::optional<std::uint32_t> mode = std::nullopt;  ///< of the file; default 0644 for a new one
  WriteMode write = WriteMode::replace;
  bool make_parents = false;
  bool durable = false;  ///< fsync file and folder before the reply
  std::optional<std::int64_t> mtime_s = std::nullopt;
  std::uint32_t mtime_ns = 0;
  std::string owner = {};  ///< as SetAttributesRequest; empty: of the replaced file, else the user
  /// CONFLICT unless the file there has this content; 64 hex digits, empty for no condition. Look and
  /// replacement are one step among all writes of this protocol.
  std::string expected_sha256 = {};
  std::string user = {};
};
struct WriteFileReply {
  std::uint64_t bytes = 0;
  bool created = false;
};

struct StatRequest {
  std::string path = {};
  Links links = Links::follow;
  std::string user = {};
};

struct ExistsRequest {
  std::string path = {};
  std::string user = {};
};
struct ExistsReply {
  bool exists = false;
};

/// Lists a folder, in no order. Frames back: entry (DirectoryPage), reply.
struct ListRequest {
  std::string path = {};
  std::string user = {};
};
struct DirectoryEntry {
  std::string name = {};
  FileType type = FileType::unknown;    ///< of the name itself
  FileType target = FileType::unknown;  ///< with links followed; a dangling link or a loop stays symlink
  std::optional<std::uint64_t> size = std::nullopt;  ///< of the target when that is a regular file
  std::uint32_t mode = 0;                            ///< of the target
  std::int64_t mtime_s = 0;
  std::uint32_t mtime_ns = 0;
};
struct DirectoryPage {
  std::vector<DirectoryEntry> entries = {};  ///< at most k_max_page
};
inline constexpr std::size_t k_max_page = 512;
struct ListReply {
  std::uint64_t entries = 0;
};

/// Makes a folder and its parents; quiet when it is there. CONFLICT over anything else.
struct MakeDirRequest {
  std::string path = {};
  std::optional<std::uint32_t> mode = std::nullopt;  ///< default 0755
  std::string user = {};
};

/// Removes a file, a link (never its target), or with `recursive` a tree, staying on its file system.
struct RemoveRequest {
  std::string path = {};
  bool recursive = false;
  std::vector<std::string> keep =
      {};  ///< INVALID_CONFIG for these folders and all above them; "/" is always among them
  std::string user = {};
};
struct RemoveReply {
  std::uint64_t entries = 0;
};

/// Resolves every symlink as POSIX does; missing components are kept as written. A loop is STORAGE_ERROR
/// (ELOOP).
struct RealPathRequest {
  std::string path = {};
  std::string user = {};
};
struct RealPathReply {
  std::string path = {};
};

struct RenameRequest {
  std::string from = {};
  std::string to = {};
  WriteMode write = WriteMode::replace;
  std::string user = {};
};

/// Changes what is set and leaves the rest. The owner goes first, since the kernel clears setuid bits then.
struct SetAttributesRequest {
  std::string path = {};
  Links links = Links::follow;                       ///< of a link itself: no mode (NOT_SUPPORTED)
  std::optional<std::uint32_t> mode = std::nullopt;  ///< 07777
  std::string owner = {};  ///< "user" or "user:group", names of the machine or numbers; empty: stays
  std::optional<std::int64_t> mtime_s = std::nullopt;
  std::uint32_t mtime_ns = 0;
  std::string user = {};
};

// ---- Trees: many files in one stream
// --------------------------------------------------------------------------

/// One item of a tree, in an entry frame. A regular file is followed by exactly `size` bytes in output or
/// input frames. Parents come before their children. `path` is relative to the tree's root without ".", ".."
/// or empty components; the root itself has an empty path.
struct TreeEntry {
  std::string path = {};
  FileType type = FileType::regular;
  std::uint64_t size = 0;
  std::uint32_t mode = 0;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::int64_t mtime_s = 0;
  std::uint32_t mtime_ns = 0;
  std::string link_target = {};
  std::string hard_link = {};  ///< to the guest: another name of this earlier entry; no bytes follow
  bool holes = false;          ///< TreeHole items may stand among the bytes
  bool failed = false;         ///< to the host: could not be read, `problem` says why; no bytes follow
  std::string problem = {};
};
/// Among the bytes of a file: so many that are zero and not sent. In an entry frame.
struct TreeHole {
  std::uint64_t length = 0;
};
/// Entries without content, in one entry frame.
struct TreePage {
  std::vector<TreeEntry> entries = {};  ///< at most k_max_page
};
enum class TreeContent { files, names_only };
/// Sends a file or a folder with all in it. Frames back: entry (TreeEntry; TreePage for names only), output,
/// reply. Links are sent as links, also `path` itself with Links::keep; other file systems are not entered.
struct TreeOutRequest {
  std::string path = {};
  Links links = Links::follow;
  TreeContent content = TreeContent::files;
  std::uint32_t max_depth = 0;  ///< 1: the root's own entries; 0: no limit
  std::string user = {};
};
/// Writes items below `path` from entry and input frames, up to end_of_data on an empty input frame of its
/// own. A file replaces what has its name in one step each; a folder is merged; what cannot be written is a
/// problem of that item, the rest goes on. Links below `path` are never followed.
struct TreeInRequest {
  std::string path = {};
  bool make_parents = false;
  bool keep_owner = false;  ///< give files the uid and gid of their entries, else those of `user`
  std::string owner = {};   ///< of everything, as SetAttributesRequest; wins over keep_owner
  std::string user = {};
};
struct TreeProblem {
  std::string path = {};
  std::int64_t error_number = 0;
  std::string message = {};
};
struct TreeReply {
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;
  std::uint64_t failed = 0;
  std::vector<TreeProblem> problems = {};  ///< the first 100 that failed
};

// ---- The machine
// ----------------------------------------------------------------------------------------------

enum class Freeze { no, yes, thaw };
/// Writes everything to the disk; with Freeze::yes the root file system then stays still until Freeze::thaw.
struct SyncRequest {
  Freeze freeze = Freeze::no;
};
/// Ends every command (SIGTERM, after `grace_ms` SIGKILL), then syncs and freezes. QEMU may be quit after the
/// reply.
struct ShutdownRequest {
  std::uint32_t grace_ms = 0;
};
/// Counts for the monitor: is anybody at work?
struct StatusRequest {};
struct StatusReply {
  std::uint64_t commands = 0;   ///< whose stream is open
  std::uint64_t processes = 0;  ///< alive of all commands, also those of commands that have ended
  std::uint64_t uptime_ms = 0;
  std::uint64_t memory_total = 0;      ///< bytes that the guest's kernel has
  std::uint64_t memory_available = 0;  ///< bytes it could give to programs
};
/// Sets the wall clock after a pause or a resume.
struct ClockRequest {
  std::int64_t wall_clock_ns = 0;
};
/// Tells a resumed guest that it has been away: new generation, fresh entropy, the wall clock. Streams and
/// frame numbers go on; no hello stands between. Needs an identity.
struct RenewRequest {
  std::string generation = {};     ///< fresh random text of this resume, 1-64 bytes
  std::string entropy = {};        ///< 32-512 fresh random bytes, credited in full
  std::int64_t wall_clock_ns = 0;  ///< since 1970, read right before sending
};
struct RenewReply {
  std::string generation = {};
};
/// Makes the root file system as large as its disk has become.
struct GrowRequest {
  std::uint64_t root_size = 0;  ///< bytes the device has; waited for
};
struct GrowReply {
  std::uint64_t root_bytes = 0;  ///< size of the root file system now
};

// ---- The machine, for its monitor alone
// -----------------------------------------------------------------------------

enum class LifeChange {
  pause,    ///< freeze the vCPUs
  resume,   ///< let them go on
  suspend,  ///< memory to a file, then no process is left
};
/// Answered with Done once it is so.
struct LifeRequest {
  LifeChange change = LifeChange::pause;
};
/// What the machine uses, as its monitor sees it.
struct StatsRequest {};
struct StatsReply {
  std::uint64_t disk_read = 0;     ///< bytes since the VMM's start
  std::uint64_t disk_written = 0;  ///<
  bool guest_answered = false;     ///< the rest is of the guest
  std::uint64_t processes = 0;
  std::uint64_t uptime_ms = 0;
  std::uint64_t memory_total = 0;
  std::uint64_t memory_available = 0;
};
/// Gives the disk a new size, bytes; the guest's file system grows with it.
struct ResizeDiskRequest {
  std::uint64_t disk_bytes = 0;
};
/// Reply without anything to tell.
struct Done {};

using Request =
    std::variant<IdentityRequest, ExecRequest, ReadFileRequest, WriteFileRequest, StatRequest, ExistsRequest,
                 ListRequest, MakeDirRequest, RemoveRequest, RealPathRequest, RenameRequest, TreeOutRequest,
                 TreeInRequest, SyncRequest, ShutdownRequest, StatusRequest, ClockRequest,
                 StartCommandRequest, CommandsRequest, AttachCommandRequest, WaitCommandRequest,
                 SignalCommandRequest, KillCommandRequest, RenewRequest, GrowRequest, LifeRequest,
                 StatsRequest, ResizeDiskRequest, SetAttributesRequest>;

/// Name of a request on the wire and in logs, e.g. "exec".
std::string_view operation_name(const Request& request);

/// Payload of a request frame. Never longer than k_max_request by itself: check the size before sending.
std::string encode_request(const Request& request);
/// Unknown operations are malformed_message.
std::expected<Request, ProtocolError> decode_request(std::string_view payload);

/// Payload of any other message: Hello, Failure, ExecStarted, every ...Reply, FileStatus, DirectoryPage,
/// TreeEntry, TreeHole, TreePage, Done.
template <class Message>
std::string encode(const Message& message);
/// Reads one message and nothing behind it. Depth at most 16, no key twice, no reservation by a claimed
/// count.
template <class Message>
std::expected<Message, ProtocolError> decode(std::string_view payload);

}  // namespace holt::protocol
