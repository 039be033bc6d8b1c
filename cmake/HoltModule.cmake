include(GoogleTest)

# The heavy headers, compiled once a build: Asio and JSON. Every module and test reuses it.
add_library(holt_pch STATIC "${CMAKE_CURRENT_LIST_DIR}/pch.cpp")
target_link_libraries(holt_pch PRIVATE holt_flags Boost::headers nlohmann_json::nlohmann_json fmt::fmt)
target_compile_definitions(holt_pch PUBLIC BOOST_ASIO_NO_DEPRECATED BOOST_ASIO_DISABLE_BOOST_COROUTINE)
target_precompile_headers(holt_pch PRIVATE <boost/asio.hpp> <nlohmann/json.hpp> <fmt/format.h>
  <string> <vector> <map> <memory> <optional> <variant> <functional> <expected>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(holt_pch PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
endif()

# holt_module(NAME [DEPENDS module...] [LIBRARIES target...])
# Static library holt_NAME from src/NAME/*.cpp and include/holt/NAME. DEPENDS names modules below it.
function(holt_module name)
  cmake_parse_arguments(arg "" "" "DEPENDS;LIBRARIES" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/${name}/*.cpp")
  if(NOT sources)
    return()
  endif()
  add_library(holt_${name} STATIC ${sources})
  add_library(holt::${name} ALIAS holt_${name})
  target_include_directories(holt_${name}
    PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>
    PRIVATE "${PROJECT_SOURCE_DIR}/src")
  foreach(module IN LISTS arg_DEPENDS)
    if(TARGET holt_${module})
      target_link_libraries(holt_${name} PUBLIC holt_${module})
    endif()
  endforeach()
  target_link_libraries(holt_${name} PUBLIC ${arg_LIBRARIES} Boost::headers nlohmann_json::nlohmann_json
    fmt::fmt Threads::Threads PRIVATE $<BUILD_INTERFACE:holt_flags>)
  holt_use_pch(holt_${name})
endfunction()

function(holt_use_pch target)
  target_compile_definitions(${target} PUBLIC BOOST_ASIO_NO_DEPRECATED BOOST_ASIO_DISABLE_BOOST_COROUTINE)
  target_precompile_headers(${target} REUSE_FROM holt_pch)
endfunction()

# All unit tests, for the sanitized build that runs nothing else.
add_custom_target(holt_unit_tests)

# holt_test(NAME MODULES module... [LABELS label...])
# Test program holt_NAME_tests from tests/NAME/*.cpp; each TEST becomes a ctest case.
# Without a label it is a unit test; "machine" means it boots microVMs.
function(holt_test name)
  cmake_parse_arguments(arg "" "" "MODULES;LABELS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/${name}/*.cpp")
  if(NOT sources)
    return()
  endif()
  string(REPLACE "/" "_" target "holt_${name}_tests")
  add_executable(${target} ${sources})
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/tests")
  foreach(module IN LISTS arg_MODULES)
    if(NOT TARGET holt_${module})
      message(FATAL_ERROR "test ${name} needs module ${module}, which has no sources")
    endif()
    target_link_libraries(${target} PRIVATE holt_${module})
  endforeach()
  target_link_libraries(${target} PRIVATE holt_flags GTest::gtest GTest::gmock GTest::gtest_main fmt::fmt)
  target_compile_definitions(${target} PRIVATE
    HOLT_SOURCE_DIR="${PROJECT_SOURCE_DIR}" HOLT_BINARY_DIR="${PROJECT_BINARY_DIR}"
    BOOST_ASIO_NO_DEPRECATED BOOST_ASIO_DISABLE_BOOST_COROUTINE)
  target_precompile_headers(${target} REUSE_FROM holt_pch)
  if(NOT arg_LABELS)
    set(arg_LABELS unit)
  endif()
  if("unit" IN_LIST arg_LABELS)
    add_dependencies(holt_unit_tests ${target})
  endif()
  gtest_discover_tests(${target} DISCOVERY_TIMEOUT 60 PROPERTIES LABELS "${arg_LABELS}" TIMEOUT 300)
endfunction()
