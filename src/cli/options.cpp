#include "cli/options.hpp"

#include "cli/errors.hpp"
#include "cli/help_format.hpp"
#include "cli/units.hpp"

#include <charconv>
#include <limits>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace holt::cli {
namespace {

std::string environment_name(const std::string& long_name) {
  std::string name = "HOLT_";
  for (char c : long_name)
    name += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

/// "--timeout" of "-t,--timeout".
std::string shown_name(const std::string& names) {
  auto comma = names.rfind(',');
  return comma == std::string::npos ? names : names.substr(comma + 1);
}

[[noreturn]] void refuse(const std::string& names, const std::string& text, const std::string& why) {
  throw usage_error(fmt::format("{}: '{}' {}", shown_name(names), printable(text, 80), why));
}

unsigned whole_units(const std::string& names, const std::string& text, std::uint64_t unit,
                     const char* unit_name) {
  auto bytes = parse_size(text, unit);
  if (!bytes) refuse(names, text, bytes.error());
  if (*bytes % unit != 0 || *bytes == 0)
    refuse(names, text, fmt::format("is no whole number of {}", unit_name));
  if (*bytes / unit > std::numeric_limits<unsigned>::max()) refuse(names, text, "is too large");
  return static_cast<unsigned>(*bytes / unit);
}

}  // namespace

CLI::Option* Options::finish(CLI::Option* option) const {
  if (environment_ == Environment::used && !option->get_lnames().empty()) {
    option->envname(environment_name(option->get_lnames().front()));
  }
  return option;
}

CLI::Option* Options::value(const std::string& names, const std::string& placeholder, const std::string& help,
                            const std::function<void(const std::string&)>& take) {
  auto* option = app_->add_option_function<std::string>(names, take, help);
  option->type_name(placeholder);
  return finish(option);
}

void Options::flag(const std::string& names, bool& target, const std::string& help) {
  finish(app_->add_flag(names, target, help));
}

void Options::count(const std::string& names, int& target, const std::string& help) {
  finish(app_->add_flag(names, target, help));
}

void Options::text(const std::string& names, const std::string& placeholder,
                   std::optional<std::string>& target, const std::string& help) {
  value(names, placeholder, help, [&target](const std::string& text) { target = text; });
}

void Options::texts(const std::string& names, const std::string& placeholder,
                    std::vector<std::string>& target, const std::string& help) {
  auto* option = app_->add_option(names, target, help);
  option->type_name(placeholder)->allow_extra_args(false);
  finish(option);
}

void Options::number(const std::string& names, const std::string& placeholder,
                     std::optional<unsigned>& target, const std::string& help) {
  value(names, placeholder, help, [&target, names](const std::string& text) {
    unsigned number = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size()) refuse(names, text, "is no whole number");
    target = number;
  });
}

void Options::duration(const std::string& names, std::optional<Duration>& target, const std::string& help) {
  value(names, "DURATION", help, [&target, names](const std::string& text) {
    auto duration = parse_duration(text);
    if (!duration) refuse(names, text, duration.error());
    target = *duration;
  });
}

void Options::memory(const std::string& names, std::optional<unsigned>& target, const std::string& help) {
  value(names, "SIZE", help,
        [&target, names](const std::string& text) { target = whole_units(names, text, k_mib, "MiB"); });
}

void Options::disk(const std::string& names, std::optional<unsigned>& target, const std::string& help) {
  value(names, "SIZE", help,
        [&target, names](const std::string& text) { target = whole_units(names, text, k_gib, "GiB"); });
}

void Options::bytes(const std::string& names, std::optional<std::size_t>& target, const std::string& help) {
  value(names, "SIZE", help, [&target, names](const std::string& text) {
    auto size = parse_size(text, 1);
    if (!size) refuse(names, text, size.error());
    target = *size;
  });
}

void Options::argument(const std::string& name, std::string& target, const std::string& help) {
  app_->add_option(name, target, help)->type_name("")->required();
}

void Options::optional_argument(const std::string& name, std::optional<std::string>& target,
                                const std::string& help) {
  auto* option = app_->add_option_function<std::string>(
      name, [&target](const std::string& text) { target = text; }, help);
  option->type_name("");
}

void Options::arguments(const std::string& name, std::vector<std::string>& target, Need need,
                        const std::string& help) {
  app_->add_option(name, target, help)->type_name("")->required(need == Need::required);
}

void Options::later_flag(const std::string& names, const std::string& what) {
  auto refuse_it = [names, what](std::int64_t) { throw later_error(shown_name(names) + ": " + what); };
  finish(app_->add_flag_function(names, refuse_it, what))->group(std::string(k_refused_group));
}

void Options::later_value(const std::string& names, const std::string& what) {
  auto* option = app_->add_option_function<std::vector<std::string>>(
      names,
      [names, what](const std::vector<std::string>&) { throw later_error(shown_name(names) + ": " + what); },
      what);
  option->type_name("")->allow_extra_args(false)->group(std::string(k_refused_group));
  finish(option);
}

}  // namespace holt::cli
