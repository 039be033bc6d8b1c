# The compilers holt accepts, and the flags every target gets.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 14)
  message(FATAL_ERROR
    "holt needs clang 19 or GCC 14 to build: GCC ${CMAKE_CXX_COMPILER_VERSION} destroys aggregates in "
    "expressions with co_await twice. Use the presets: cmake --preset dev")
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 19)
  message(FATAL_ERROR "holt needs clang 19: clang ${CMAKE_CXX_COMPILER_VERSION} has no std::expected here. "
    "Use the presets: cmake --preset dev")
endif()

set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_FLAGS_DEV "-O1 -g1 -fno-omit-frame-pointer")
set(CMAKE_C_FLAGS_DEV "${CMAKE_CXX_FLAGS_DEV}")
set(CMAKE_EXE_LINKER_FLAGS_DEV "")
# -O2 instead of CMake's -O3: a clean build has a budget, and the time goes into the guest, the disk and JSON.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_C_FLAGS_RELEASE "${CMAKE_CXX_FLAGS_RELEASE}")
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Dev)
endif()

set(HOLT_SANITIZE OFF CACHE STRING "ON: AddressSanitizer and UndefinedBehaviorSanitizer; thread: ThreadSanitizer")
set_property(CACHE HOLT_SANITIZE PROPERTY STRINGS OFF ON thread)

add_library(holt_flags INTERFACE)
# -fPIC everywhere, programs too: one precompiled header serves libraries and programs.
target_compile_options(holt_flags INTERFACE -fPIC -Wall -Wextra -Wpedantic -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # False positives in a moved std::expected inside a coroutine.
  target_compile_options(holt_flags INTERFACE -Wno-error=maybe-uninitialized)
endif()
if(HOLT_SANITIZE STREQUAL "thread")
  set(HOLT_SANITIZE_FLAGS -fsanitize=thread)
elseif(HOLT_SANITIZE)
  # The checks left out cost compile time on Asio and find what ASan finds too.
  set(HOLT_SANITIZE_FLAGS -fsanitize=address,undefined -fno-sanitize=null,alignment,object-size,vptr
    -fno-sanitize-recover=undefined)
endif()
if(HOLT_SANITIZE)
  target_compile_options(holt_flags INTERFACE ${HOLT_SANITIZE_FLAGS})
  target_link_options(holt_flags INTERFACE ${HOLT_SANITIZE_FLAGS})
endif()

if(HOLT_BUILD_FUZZ)
  target_compile_options(holt_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

find_program(HOLT_CCACHE ccache)
if(HOLT_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER "${HOLT_CCACHE}")
  # A precompiled header is cached only when its time stamps do not count.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime "${HOLT_CCACHE}")
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  find_program(HOLT_LLD NAMES ld.lld-19)
  if(HOLT_LLD)
    target_link_options(holt_flags INTERFACE "--ld-path=${HOLT_LLD}")
  endif()
endif()
