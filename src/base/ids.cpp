#include "holt/base/ids.hpp"

#include "holt/base/encoding.hpp"
#include "holt/base/error.hpp"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <sys/random.h>

namespace holt {

std::string random_bytes(std::size_t bytes) {
  std::string out(bytes, '\0');
  std::size_t done = 0;
  while (done < bytes) {
    ssize_t n = ::getrandom(out.data() + done, bytes - done, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw Error(ErrorCode::internal, "The kernel gives no random bytes");
    done += static_cast<std::size_t>(n);
  }
  return out;
}

std::string random_hex(std::size_t digits) {
  return hex(random_bytes((digits + 1) / 2)).substr(0, digits);
}

std::string uuid7() {
  // RFC 9562 § 6.2, method 1: milliseconds, then a counter of 12 bits (rand_a), then random bits. The 60 bits
  // of time and counter only grow within a process.
  static std::atomic<std::uint64_t> last = 0;
  auto now = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::system_clock::now().time_since_epoch());
  std::uint64_t wanted = static_cast<std::uint64_t>(now.count()) << 12;
  std::uint64_t before = last.load();
  std::uint64_t stamp = 0;
  do {
    stamp = std::max(wanted, before + 1);
  } while (!last.compare_exchange_weak(before, stamp));

  std::string bytes = random_bytes(16);
  std::uint64_t ms = stamp >> 12;
  for (int i = 0; i < 6; ++i) bytes[static_cast<std::size_t>(i)] = static_cast<char>(ms >> (40 - 8 * i));
  bytes[6] = static_cast<char>(0x70 | ((stamp >> 8) & 0x0f));
  bytes[7] = static_cast<char>(stamp & 0xff);
  bytes[8] = static_cast<char>(0x80 | (bytes[8] & 0x3f));
  std::string text = hex(bytes);
  for (std::size_t at : {8, 13, 18, 23}) text.insert(at, "-");
  return text;
}

}  // namespace holt
