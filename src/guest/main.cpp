// holt-guest: PID 1 of every machine. Without arguments it boots one; the other two forms are
//   holt-guest --continue PORT STATE        its own second life, after the identity has arrived
//   holt-guest --serve FD [CGROUP-FOLDER]   an ordinary process that serves a socket, for tests
#include "guest/boot.hpp"
#include "guest/channel.hpp"
#include "guest/hosted_platform.hpp"
#include "guest/machine_platform.hpp"
#include "guest/server.hpp"

#include <array>
#include <charconv>
#include <csignal>
#include <fcntl.h>
#include <malloc.h>
#include <optional>
#include <span>
#include <string_view>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

namespace holt::guest {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view k_port = "agent";
constexpr auto k_port_limit = 10s;
constexpr std::string_view k_commands = "/sys/fs/cgroup/commands";

/// Children are reaped by the loop; a broken pipe is an error of one write, never a signal.
Fd prepare_signals() {
  for (int signal_number = 1; signal_number < NSIG; ++signal_number) ::signal(signal_number, SIG_DFL);
  ::signal(SIGPIPE, SIG_IGN);
  sigset_t children;
  ::sigemptyset(&children);
  ::sigaddset(&children, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &children, nullptr);
  return Fd(::signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK));
}

void watch_children(Loop& loop, int signals, Server& server) {
  loop.watch(signals, EPOLLIN, [signals, &server](std::uint32_t) {
    std::array<signalfd_siginfo, 16> infos{};
    while (::read(signals, infos.data(), sizeof infos) > 0) {
    }
    server.reap();
  });
}

[[noreturn]] void halt(std::string_view reason) {
  console(reason);
  // PID 1 must not end: the kernel would panic and hide the line above. The host has its own deadline.
  while (true) ::pause();
}

[[noreturn]] void serve_machine(Fd port, std::optional<CarriedState> carried) {
  auto signals = prepare_signals();
  Loop loop;
  Channel channel(loop, std::move(port), Channel::Kind::virtio_port);
  MachinePlatform platform(channel);
  bool has_cgroups = ::access(k_commands.data(), F_OK) == 0;
  Server server(loop, channel, platform, has_cgroups ? CgroupTree(std::string(k_commands)) : CgroupTree());
  watch_children(loop, signals.get(), server);
  if (carried) {
    auto identity = protocol::decode<protocol::IdentityRequest>(carried->identity);
    if (!identity) halt("the carried identity cannot be read");
    channel.restore(carried->next_sequence, carried->unhandled);
    server.finish_identity(carried->identity_stream, *identity,
                           MachinePlatform::complete(*identity, carried->started_ns));
  } else {
    server.say_hello();
  }
  server.start();
  loop.run();
  halt("the event loop ended");
}

[[noreturn]] void boot() {
  mount_kernel_file_systems();
  protect_self();
  load_modules();
  set_up_cgroups();
  auto port = open_port(k_port, k_port_limit);
  if (!port) halt(port.error().message);
  serve_machine(std::move(*port), std::nullopt);
}

[[noreturn]] void continue_life(int port, int state) {
  auto carried = read_carried_state(state);
  if (!carried) halt(carried.error().message);
  Fd fd(port);
  ::fcntl(port, F_SETFD, FD_CLOEXEC);
  serve_machine(std::move(fd), std::move(*carried));
}

int serve_socket(int fd, std::string cgroup_folder) {
  // Orphans of commands come here, as they come to PID 1.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  auto signals = prepare_signals();
  Loop loop;
  Channel channel(loop, Fd(fd), Channel::Kind::socket);
  HostedPlatform platform;
  Server server(loop, channel, platform, CgroupTree(std::move(cgroup_folder)));
  watch_children(loop, signals.get(), server);
  server.say_hello();
  server.start();
  loop.run();
  return 0;
}

std::optional<int> parse_fd(std::string_view text) {
  int value = -1;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

/// Memory of frames and transfers stays with the program. Given back after each, it would be faulted in again
/// page by page, which under emulation takes longer than the transfer.
void keep_memory() {
  constexpr int k_largest = 8 << 20;
  ::mallopt(M_ARENA_MAX, 1);
  ::mallopt(M_MMAP_THRESHOLD, k_largest);
  ::mallopt(M_TRIM_THRESHOLD, 4 * k_largest);
}

int run(std::span<char*> arguments) {
  keep_memory();
  ::umask(0);  // every mode is given in full
  std::string_view mode = arguments.size() > 1 ? arguments[1] : "";
  auto first = arguments.size() > 2 ? parse_fd(arguments[2]) : std::nullopt;
  if (mode == "--serve" && first) return serve_socket(*first, arguments.size() > 3 ? arguments[3] : "");
  bool is_init = ::getpid() == 1;
  auto second = arguments.size() > 3 ? parse_fd(arguments[3]) : std::nullopt;
  if (is_init && mode == "--continue" && first && second) continue_life(*first, *second);
  if (is_init) boot();
  console("this program is PID 1 of a holt machine; it does nothing elsewhere");
  return 2;
}

}  // namespace
}  // namespace holt::guest

int main(int argc, char** argv) {
  return holt::guest::run({argv, static_cast<std::size_t>(argc)});
}
