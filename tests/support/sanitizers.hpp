// What tests must know of the sanitizers they are built with.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define HOLT_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HOLT_ADDRESS_SANITIZER 1
#endif
#if __has_feature(thread_sanitizer)
#define HOLT_THREAD_SANITIZER 1
#endif
#endif

#ifdef HOLT_ADDRESS_SANITIZER
#include <sanitizer/lsan_interface.h>
#endif

namespace holt::test {

#ifdef HOLT_ADDRESS_SANITIZER
inline constexpr bool k_address_sanitizer = true;
/// What this thread allocates while it lives is meant to be leaked.
using LeakedOnPurpose = __lsan::ScopedDisabler;
#else
inline constexpr bool k_address_sanitizer = false;
struct LeakedOnPurpose {
  LeakedOnPurpose() {}
};
#endif

/// One that has an allocator of its own, and takes memory and time of its own for what is tested.
#ifdef HOLT_THREAD_SANITIZER
inline constexpr bool k_sanitizer = true;
#else
inline constexpr bool k_sanitizer = k_address_sanitizer;
#endif

}  // namespace holt::test
