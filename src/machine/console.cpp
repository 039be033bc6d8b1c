#include "machine/console.hpp"

#include "holt/base/error.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

namespace holt::machine {
namespace {

constexpr off_t k_shown = 1500;
constexpr int k_shown_lines = 10;
// A panic with its registers and call trace takes a few KiB.
constexpr std::size_t k_tail = std::size_t{64} << 10;
constexpr std::size_t k_line = 300;

Fd open_log(const std::filesystem::path& file) {
  return Fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
}

std::uint64_t size_of(const Fd& fd) {
  struct stat info{};
  return fd && ::fstat(fd.get(), &info) == 0 ? static_cast<std::uint64_t>(info.st_size) : 0;
}

}  // namespace

ConsoleReader::ConsoleReader(Fd console, std::filesystem::path file)
    : console_(std::move(console)), file_(std::move(file)) {
  std::tie(stop_, stop_writer_) = make_pipe();
  thread_ = std::thread([this] { read_all(); });
}

ConsoleReader::~ConsoleReader() {
  end();
}

void ConsoleReader::end() {
  stop_writer_.reset();
  if (thread_.joinable()) thread_.join();
}

std::string ConsoleReader::find_line(std::string_view text) {
  end();
  auto from = tail_.find(text, tail_.size() - std::min(tail_.size(), k_tail));
  if (from == std::string::npos) return {};
  return printable(tail_.substr(from, tail_.find_first_of("\r\n", from) - from), k_line);
}

void ConsoleReader::read_all() {
  Fd log = open_log(file_);
  std::uint64_t size = size_of(log);
  std::array<char, 16384> bytes;
  for (;;) {
    std::array<pollfd, 2> ready{{{console_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}}};
    if (::poll(ready.data(), ready.size(), -1) < 0) continue;
    if (ready[0].revents == 0) return;  // told to stop, and nothing is left to read
    ssize_t n = ::read(console_.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    tail_.append(bytes.data(), static_cast<std::size_t>(n));
    if (tail_.size() > 2 * k_tail) tail_.erase(0, tail_.size() - k_tail);
    if (size >= k_console_limit / 2) {
      auto old = file_;
      old += ".1";
      ::rename(file_.c_str(), old.c_str());
      log = open_log(file_);
      size = 0;
    }
    ssize_t written = log ? ::write(log.get(), bytes.data(), static_cast<std::size_t>(n)) : 0;
    size += static_cast<std::uint64_t>(std::max<ssize_t>(written, 0));
  }
}

std::string ConsoleReader::last_lines() const {
  return last_lines_of(file_);
}

std::string last_lines_of(const std::filesystem::path& file) {
  Fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  auto size = static_cast<off_t>(size_of(fd));
  std::array<char, k_shown> bytes;
  ssize_t n = fd ? ::pread(fd.get(), bytes.data(), bytes.size(), std::max<off_t>(size - k_shown, 0)) : 0;
  std::string text(bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  std::erase(text, '\r');
  while (!text.empty() && text.back() == '\n') text.pop_back();
  std::size_t from = text.size();
  for (int line = 0; line < k_shown_lines && from != std::string::npos && from > 0; line++) {
    from = text.rfind('\n', from - 1);
  }
  if (from != std::string::npos && from < text.size()) text.erase(0, from + 1);
  std::ranges::replace(text, '\n', '|');
  return printable(text);
}

}  // namespace holt::machine
