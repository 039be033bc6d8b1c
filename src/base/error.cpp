#include "holt/base/error.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <sys/resource.h>
#include <utility>

#include <fmt/format.h>

namespace holt {
namespace {

constexpr std::array<std::pair<ErrorCode, std::string_view>, 29> k_words{{
    {ErrorCode::usage, "USAGE"},
    {ErrorCode::not_found, "NOT_FOUND"},
    {ErrorCode::conflict, "CONFLICT"},
    {ErrorCode::invalid_state, "INVALID_STATE"},
    {ErrorCode::invalid_config, "INVALID_CONFIG"},
    {ErrorCode::not_supported, "NOT_SUPPORTED"},
    {ErrorCode::kvm_unavailable, "KVM_UNAVAILABLE"},
    {ErrorCode::hypervisor_unavailable, "HYPERVISOR_UNAVAILABLE"},
    {ErrorCode::unsupported_platform, "UNSUPPORTED_PLATFORM"},
    {ErrorCode::runtime_not_installed, "RUNTIME_NOT_INSTALLED"},
    {ErrorCode::timeout, "TIMEOUT"},
    {ErrorCode::cancelled, "CANCELLED"},
    {ErrorCode::storage_full, "STORAGE_FULL"},
    {ErrorCode::storage_error, "STORAGE_ERROR"},
    {ErrorCode::permission_denied, "PERMISSION_DENIED"},
    {ErrorCode::is_directory, "IS_DIRECTORY"},
    {ErrorCode::not_a_directory, "NOT_A_DIRECTORY"},
    {ErrorCode::not_regular, "NOT_REGULAR"},
    {ErrorCode::too_large, "TOO_LARGE"},
    {ErrorCode::image_invalid, "IMAGE_INVALID"},
    {ErrorCode::digest_mismatch, "DIGEST_MISMATCH"},
    {ErrorCode::limit_exceeded, "LIMIT_EXCEEDED"},
    {ErrorCode::unauthorized, "UNAUTHORIZED"},
    {ErrorCode::network_error, "NETWORK_ERROR"},
    {ErrorCode::blocked, "BLOCKED"},
    {ErrorCode::guest_protocol, "GUEST_PROTOCOL"},
    {ErrorCode::guest_lost, "GUEST_LOST"},
    {ErrorCode::outcome_unknown, "OUTCOME_UNKNOWN"},
    {ErrorCode::internal, "INTERNAL"},
}};

/// Length of the valid UTF-8 sequence at the front of `text`, 0 when there is none.
std::size_t sequence_length(std::string_view text) {
  auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  auto tail = [&](std::size_t i) { return i < text.size() && (byte(i) & 0xc0) == 0x80; };
  unsigned char first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first < 0xe0) return tail(1) ? 2 : 0;
  if (first >= 0xe0 && first < 0xf0) return tail(1) && tail(2) ? 3 : 0;
  if (first >= 0xf0 && first < 0xf5) return tail(1) && tail(2) && tail(3) ? 4 : 0;
  return 0;
}

}  // namespace

std::string_view to_string(ErrorCode code) {
  for (const auto& [known, word] : k_words) {
    if (known == code) return word;
  }
  return "INTERNAL";
}

std::optional<ErrorCode> error_code_from(std::string_view word) {
  for (const auto& [code, known] : k_words) {
    if (known == word) return code;
  }
  return std::nullopt;
}

Error::Error(ErrorCode code, const std::string& message, ErrorDetails details)
    : std::runtime_error(message), code_(code), details_(std::move(details)) {}

ErrorCode error_code_of_errno(int error_number) {
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
      return ErrorCode::storage_full;
    case ENOENT:
      return ErrorCode::not_found;
    case EACCES:
    case EPERM:
      return ErrorCode::permission_denied;
    case EISDIR:
      return ErrorCode::is_directory;
    case ENOTDIR:
      return ErrorCode::not_a_directory;
    case EEXIST:
      return ErrorCode::conflict;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return ErrorCode::limit_exceeded;
    default:
      return ErrorCode::storage_error;
  }
}

namespace {

/// The way out of a limit of the host: its name, what it is, how it is raised.
std::string hint_of_errno(int error_number) {
  rlimit files{};
  switch (error_number) {
    case EMFILE:
      if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return "Raise the limit of open files with 'ulimit -n'.";
      return fmt::format("A process may have {} files open here; raise that with 'ulimit -n'.",
                         files.rlim_cur);
    case ENFILE:
      return "The host's own limit of open files is reached (sysctl fs.file-max).";
    default:
      return {};
  }
}

}  // namespace

Error system_error(int error_number, const std::string& action, std::string subject) {
  return Error(error_code_of_errno(error_number), fmt::format("{}: {}", action, ::strerror(error_number)),
               {.subject = std::move(subject), .hint = hint_of_errno(error_number)});
}

std::string printable(std::string_view text, std::size_t limit) {
  std::string out;
  bool cut = text.size() > limit;
  text = text.substr(0, limit);
  while (!text.empty()) {
    auto first = static_cast<unsigned char>(text[0]);
    std::size_t length = sequence_length(text);
    // C1 controls are two bytes in UTF-8 (c2 80 - c2 9f) and move a terminal as C0 controls do.
    bool control = first < 0x20 || first == 0x7f ||
                   (length == 2 && first == 0xc2 && static_cast<unsigned char>(text[1]) < 0xa0);
    if (length == 0 || control) {
      out += fmt::format("\\x{:02x}", first);
      text.remove_prefix(1);
      continue;
    }
    out += text.substr(0, length);
    text.remove_prefix(length);
  }
  if (cut) out += "...";
  return out;
}

}  // namespace holt
