#include "machine/host_facts.hpp"

#include "holt/base/encoding.hpp"
#include "holt/base/error.hpp"
#include "holt/base/fd.hpp"
#include "holt/base/files.hpp"

#include <array>
#include <cerrno>
#include <cpuid.h>
#include <fcntl.h>
#include <memory>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>
#include <openssl/evp.h>

namespace holt::machine {
namespace {

constexpr std::size_t k_longest_fact = 64 * 1024;

std::string hash_content(const std::filesystem::path& path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) throw system_error(errno, fmt::format("open {}", path.string()), path);
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr);
  std::vector<char> buffer(std::size_t{1} << 20);
  for (;;) {
    ssize_t n = ::read(fd.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw system_error(errno, fmt::format("read {}", path.string()), path);
    if (n == 0) break;
    EVP_DigestUpdate(context.get(), buffer.data(), static_cast<std::size_t>(n));
  }
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  EVP_DigestFinal_ex(context.get(), digest, &length);
  return hex(std::string_view(reinterpret_cast<const char*>(digest), length));
}

}  // namespace

std::string host_boot_id() {
  // Files of /proc have no size; read_file() takes them as they come.
  auto text = read_file_if_exists("/proc/sys/kernel/random/boot_id", 256).value_or("");
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

std::string host_kernel_release() {
  utsname names{};
  ::uname(&names);
  return names.release;
}

std::string host_processor() {
  // Vendor, signature and features: Intel SDM volume 2A, AMD APM volume 3, "CPUID".
  constexpr std::array<unsigned, 4> k_leaves{0, 1, 7, 0x80000001};
  std::string words;
  for (unsigned leaf : k_leaves) {
    unsigned a = 0;
    unsigned b = 0;
    unsigned c = 0;
    unsigned d = 0;
    if (__get_cpuid_count(leaf, 0, &a, &b, &c, &d) == 0) continue;
    // Which processor was asked.
    if (leaf == 1) b = 0;
    words += fmt::format("{:x}:{:x}.{:x}.{:x}.{:x} ", leaf, a, b, c, d);
  }
  return words;
}

std::string file_identity(const std::filesystem::path& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0)
    throw system_error(errno, fmt::format("look at {}", path.string()), path);
  // The change time too: it moves when a file is replaced by one with the same size and modification time.
  return fmt::format("{}:{}:{}:{}.{}:{}.{}", info.st_dev, info.st_ino, info.st_size, info.st_mtim.tv_sec,
                     info.st_mtim.tv_nsec, info.st_ctim.tv_sec, info.st_ctim.tv_nsec);
}

std::string cached_fact(const std::filesystem::path& cache, std::string_view name,
                        const std::filesystem::path& file, const std::function<std::string()>& find) {
  auto key = fmt::format("{}\n{}\n{}", name, file.string(), file_identity(file));
  auto entry = cache / "facts" / sha256_hex(key).substr(0, 32);
  // The key stands in the file, so that a damaged or foreign file is no fact.
  if (auto text = read_file_if_exists(entry, k_longest_fact); text && text->starts_with(key + "\n\n")) {
    return text->substr(key.size() + 2);
  }
  auto fact = find();
  make_private_directory(entry.parent_path());
  write_file_atomically(entry, key + "\n\n" + fact);
  return fact;
}

std::string file_sha256(const std::filesystem::path& cache, const std::filesystem::path& file) {
  return cached_fact(cache, "sha256", file, [&] { return hash_content(file); });
}

}  // namespace holt::machine
