// Field names of the messages, once, for encoding and decoding.
#pragma once

#include "holt/protocol/messages.hpp"

#include <boost/describe.hpp>

namespace holt::protocol {

BOOST_DESCRIBE_ENUM(StdinMode, none, stream)
BOOST_DESCRIBE_ENUM(FileType, unknown, regular, directory, symlink, fifo, socket, character_device,
                    block_device)
BOOST_DESCRIBE_ENUM(Links, follow, keep)
BOOST_DESCRIBE_ENUM(AddressLayout, random, fixed)
BOOST_DESCRIBE_ENUM(WriteMode, replace, create_only)
BOOST_DESCRIBE_ENUM(TreeContent, files, names_only)
BOOST_DESCRIBE_ENUM(Freeze, no, yes, thaw)
BOOST_DESCRIBE_ENUM(LifeChange, pause, resume, suspend)

BOOST_DESCRIBE_STRUCT(Hello, (), (version, program, capabilities, generation))
BOOST_DESCRIBE_STRUCT(Failure, (), (code, error_number, message, path))
BOOST_DESCRIBE_STRUCT(Variable, (), (name, value))
BOOST_DESCRIBE_STRUCT(NetworkConfig, (), (address, prefix, gateway, name_server, mtu))
BOOST_DESCRIBE_STRUCT(IdentityRequest, (),
                      (generation, entropy, wall_clock_ns, hostname, machine_id, root_device, root_size, env,
                       working_dir, user, make_dirs, network, address_layout))
BOOST_DESCRIBE_STRUCT(IdentityReply, (), (generation, working_dir, root_bytes, grown, duration_us))
BOOST_DESCRIBE_STRUCT(TerminalSize, (), (rows, columns))
BOOST_DESCRIBE_STRUCT(CommandLimits, (),
                      (cpu_seconds, file_bytes, open_files, processes, memory_bytes, core_bytes))
BOOST_DESCRIBE_STRUCT(ExecRequest, (),
                      (argv, script, env, cwd, user, timeout_ms, stdin_mode, output_limit, terminal, limits,
                       stop_signal, key))
BOOST_DESCRIBE_STRUCT(ExecStarted, (), (pid))
BOOST_DESCRIBE_STRUCT(ExecReply, (),
                      (exit_code, signal, timed_out, oom, stdout_truncated, stderr_truncated, stdout_bytes,
                       stderr_bytes, duration_us))
BOOST_DESCRIBE_STRUCT(StartCommandRequest, (), (command, input, log_limit))
BOOST_DESCRIBE_STRUCT(CommandStatus, (),
                      (id, pid, argv, terminal, result, started_at_ns, stdout_bytes, stderr_bytes,
                       log_truncated))
BOOST_DESCRIBE_STRUCT(CommandsRequest, (), ())
BOOST_DESCRIBE_STRUCT(CommandsReply, (), (commands))
BOOST_DESCRIBE_STRUCT(AttachCommandRequest, (), (id, stdout_offset, stderr_offset))
BOOST_DESCRIBE_STRUCT(WaitCommandRequest, (), (id))
BOOST_DESCRIBE_STRUCT(SignalCommandRequest, (), (id, signal))
BOOST_DESCRIBE_STRUCT(KillCommandRequest, (), (id))
BOOST_DESCRIBE_STRUCT(FileStatus, (),
                      (type, size, allocated, mode, uid, gid, links, mtime_s, mtime_ns, link_target))
BOOST_DESCRIBE_STRUCT(ReadFileRequest, (), (path, offset, length, user))
BOOST_DESCRIBE_STRUCT(ReadFileReply, (), (bytes))
BOOST_DESCRIBE_STRUCT(WriteFileRequest, (),
                      (path, size, mode, write, make_parents, durable, mtime_s, mtime_ns, owner,
                       expected_sha256, user))
BOOST_DESCRIBE_STRUCT(SetAttributesRequest, (), (path, links, mode, owner, mtime_s, mtime_ns, user))
BOOST_DESCRIBE_STRUCT(WriteFileReply, (), (bytes, created))
BOOST_DESCRIBE_STRUCT(StatRequest, (), (path, links, user))
BOOST_DESCRIBE_STRUCT(ExistsRequest, (), (path, user))
BOOST_DESCRIBE_STRUCT(ExistsReply, (), (exists))
BOOST_DESCRIBE_STRUCT(ListRequest, (), (path, user))
BOOST_DESCRIBE_STRUCT(DirectoryEntry, (), (name, type, target, size, mode, mtime_s, mtime_ns))
BOOST_DESCRIBE_STRUCT(DirectoryPage, (), (entries))
BOOST_DESCRIBE_STRUCT(ListReply, (), (entries))
BOOST_DESCRIBE_STRUCT(MakeDirRequest, (), (path, mode, user))
BOOST_DESCRIBE_STRUCT(RemoveRequest, (), (path, recursive, keep, user))
BOOST_DESCRIBE_STRUCT(RemoveReply, (), (entries))
BOOST_DESCRIBE_STRUCT(RealPathRequest, (), (path, user))
BOOST_DESCRIBE_STRUCT(RealPathReply, (), (path))
BOOST_DESCRIBE_STRUCT(RenameRequest, (), (from, to, write, user))
BOOST_DESCRIBE_STRUCT(TreeEntry, (),
                      (path, type, size, mode, uid, gid, mtime_s, mtime_ns, link_target, hard_link, holes,
                       failed, problem))
BOOST_DESCRIBE_STRUCT(TreeHole, (), (length))
BOOST_DESCRIBE_STRUCT(TreePage, (), (entries))
BOOST_DESCRIBE_STRUCT(TreeOutRequest, (), (path, links, content, max_depth, user))
BOOST_DESCRIBE_STRUCT(TreeInRequest, (), (path, make_parents, keep_owner, owner, user))
BOOST_DESCRIBE_STRUCT(TreeProblem, (), (path, error_number, message))
BOOST_DESCRIBE_STRUCT(TreeReply, (), (entries, bytes, failed, problems))
BOOST_DESCRIBE_STRUCT(SyncRequest, (), (freeze))
BOOST_DESCRIBE_STRUCT(ShutdownRequest, (), (grace_ms))
BOOST_DESCRIBE_STRUCT(StatusRequest, (), ())
BOOST_DESCRIBE_STRUCT(StatusReply, (), (commands, processes, uptime_ms, memory_total, memory_available))
BOOST_DESCRIBE_STRUCT(ClockRequest, (), (wall_clock_ns))
BOOST_DESCRIBE_STRUCT(RenewRequest, (), (generation, entropy, wall_clock_ns))
BOOST_DESCRIBE_STRUCT(RenewReply, (), (generation))
BOOST_DESCRIBE_STRUCT(GrowRequest, (), (root_size))
BOOST_DESCRIBE_STRUCT(GrowReply, (), (root_bytes))
BOOST_DESCRIBE_STRUCT(LifeRequest, (), (change))
BOOST_DESCRIBE_STRUCT(StatsRequest, (), ())
BOOST_DESCRIBE_STRUCT(StatsReply, (),
                      (disk_read, disk_written, guest_answered, processes, uptime_ms, memory_total,
                       memory_available))
BOOST_DESCRIBE_STRUCT(ResizeDiskRequest, (), (disk_bytes))
BOOST_DESCRIBE_STRUCT(Done, (), ())

}  // namespace holt::protocol
