#include "cli/session.hpp"

#include "cli/table.hpp"

namespace holt::cli {

const HostConfig& Session::host() {
  if (!host_) host_ = HostConfig::from_environment();
  return *host_;
}

StartOptions Session::start_options() {
  StartOptions options;
  options.call = call();
  options.on_progress = [this](const StartProgress& progress) {
    if (globals.quiet) return;
    bool slow = progress.step != StartProgress::Step::booting;
    // A template takes seconds: a log should show what was waited for, a terminal shows every step.
    if (slow && !output.err_is_terminal()) output.note(progress.text);
    output.progress("holt: " + progress.text);
  };
  return options;
}

CallOptions Session::call() const {
  return {.cancel = interrupts.token()};
}

void Session::warn_of(Accelerator accelerator) {
  if (accelerator != Accelerator::tcg || warned_) return;
  warned_ = true;
  note(
      "warning: without KVM the machine is emulated in software, which is no isolation boundary; "
      "use --require-kvm to refuse that");
}

void Session::note(std::string_view text) {
  if (!globals.quiet) output.note(text);
}

void Session::print_objects(const Json& list) {
  if (!globals.format) return output.line(dump_json(list, {.indent = globals.json ? 0 : 2}));
  for (const auto& object : list) output.line(format_template(*globals.format, object));
}

}  // namespace holt::cli
