// What tests must know of the sanitizers they are built with.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define HOLT_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HOLT_ADDRESS_SANITIZER 1
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

}  // namespace holt::test
