// How the guest's own functions fail: as the Failure that goes back to the host.
#pragma once

#include "holt/protocol/messages.hpp"

#include <expected>
#include <string>
#include <string_view>

namespace holt::guest {

using protocol::Failure;

template <class T = void>
using Outcome = std::expected<T, Failure>;

/// A refusal of our own.
std::unexpected<Failure> refuse(ErrorCode code, std::string message, std::string path = {});
/// A system call that failed: "ACTION PATH: strerror".
std::unexpected<Failure> refuse_errno(int error_number, std::string_view action, std::string_view path);
/// The kernel's text of an errno. Thread-safe.
std::string_view error_text(int error_number);

}  // namespace holt::guest
