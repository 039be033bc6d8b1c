// Recorded data for tests: the folder, its files, and a count of how they fared.
//
// Tests work from the files alone, so HOLT_FIXTURES may name another folder with more or other cases.
#pragma once

#include "holt/base/files.hpp"
#include "holt/base/json.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

namespace holt::test {

/// HOLT_FIXTURES, else tests/fixtures of the source tree.
inline std::filesystem::path fixtures_directory() {
  const char* given = std::getenv("HOLT_FIXTURES");
  return given && *given ? std::filesystem::path(given)
                         : std::filesystem::path(HOLT_SOURCE_DIR) / "tests/fixtures";
}

/// A file as JSON. Throws when it is missing or none.
inline Json read_fixture(const std::filesystem::path& path) {
  auto value = parse_json(read_file(path, std::size_t{64} << 20));
  if (!value) throw std::runtime_error(path.string() + ": " + value.error().text());
  return std::move(*value);
}

/// The JSON files of a folder below fixtures_directory(), by name; none when there is no such folder.
inline std::vector<std::filesystem::path> fixture_files(std::string_view folder) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(fixtures_directory() / folder, error)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

/// How the cases of one kind fared; prints itself at the end of its life.
class Tally {
 public:
  explicit Tally(std::string what) : what_(std::move(what)) {}
  Tally(const Tally&) = delete;
  Tally& operator=(const Tally&) = delete;
  ~Tally() {
    std::cout << what_ << ": " << passed_ << " passed, " << failed_ << " failed, " << later_
              << " belong to later issues\n";
  }
  void count(bool passed) { ++(passed ? passed_ : failed_); }
  void later() { ++later_; }
  std::size_t passed() const { return passed_; }
  std::size_t failed() const { return failed_; }

 private:
  std::string what_;
  std::size_t passed_ = 0;
  std::size_t failed_ = 0;
  std::size_t later_ = 0;
};

}  // namespace holt::test
