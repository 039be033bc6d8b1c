// The flags and arguments of one verb, declared by the verb and parsed by CLI11 behind this header.
//
//   options.flag("-f,--force", force_, "Kill it first when it runs");
//   options.duration("--timeout", timeout_, "End the command after so long");
//   options.arguments("NAME", names_, "Machines");
#pragma once

#include "holt/base/deadline.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace holt::cli {

enum class Need { optional, required };

/// Each long flag has an environment form, HOLT_ and its name in capitals; the flag wins. A value that does
/// not fit is an Error USAGE that names the flag. Targets must outlive the parsing.
class Options {
 public:
  enum class Environment { used, ignored };
  Options(CLI::App& app, Environment environment) : app_(&app), environment_(environment) {}

  void flag(const std::string& names, bool& target, const std::string& help);
  void count(const std::string& names, int& target, const std::string& help);
  void text(const std::string& names, const std::string& placeholder, std::optional<std::string>& target,
            const std::string& help);
  /// May be given many times.
  void texts(const std::string& names, const std::string& placeholder, std::vector<std::string>& target,
             const std::string& help);
  void number(const std::string& names, const std::string& placeholder, std::optional<unsigned>& target,
              const std::string& help);
  void duration(const std::string& names, std::optional<Duration>& target, const std::string& help);
  /// MiB; a bare number is MiB.
  void memory(const std::string& names, std::optional<unsigned>& target, const std::string& help);
  /// GiB; a bare number is GiB.
  void disk(const std::string& names, std::optional<unsigned>& target, const std::string& help);
  /// Bytes; a bare number is bytes.
  void bytes(const std::string& names, std::optional<std::size_t>& target, const std::string& help);

  void argument(const std::string& name, std::string& target, const std::string& help);
  void optional_argument(const std::string& name, std::optional<std::string>& target,
                         const std::string& help);
  void arguments(const std::string& name, std::vector<std::string>& target, Need need,
                 const std::string& help);

  /// A flag of the published grammar that this version refuses, by name.
  void later_flag(const std::string& names, const std::string& what);
  void later_value(const std::string& names, const std::string& what);

 private:
  CLI::Option* value(const std::string& names, const std::string& placeholder, const std::string& help,
                     const std::function<void(const std::string&)>& take);
  CLI::Option* finish(CLI::Option* option) const;

  CLI::App* app_;
  Environment environment_;
};

}  // namespace holt::cli
