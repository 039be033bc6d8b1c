#include "call.hpp"
#include "convert.hpp"
#include "machine.hpp"
#include "options.hpp"
#include "streams.hpp"

namespace holt::python {

namespace {

/// A script of /bin/sh as bytes, or an argv as a list of bytes.
bool is_script(const nb::object& command) {
  return nb::isinstance<nb::bytes>(command);
}
std::vector<std::string> argv_of(const nb::object& command) {
  std::vector<std::string> argv;
  for (auto item : command) argv.push_back(from_bytes(item));
  return argv;
}

nb::object result_object(ExecResult& result) {
  return to_dict(result);
}
nb::object info_object(CommandInfo& info) {
  return to_dict(info);
}

CallPointer exec(const MachineObject& object, nb::object command, nb::dict values) {
  auto options = exec_options(Options(values));
  const auto& calls = object.calls();
  return call(is_script(command) ? calls.exec_shell(from_bytes(command), options)
                                 : calls.exec(argv_of(command), options),
              result_object);
}

std::unique_ptr<Stream> exec_stream(const MachineObject& object, nb::object command, nb::dict values) {
  auto options = exec_options(Options(values));
  const auto& calls = object.calls();
  return std::make_unique<Stream>(is_script(command) ? calls.exec_shell_stream(from_bytes(command), options)
                                                     : calls.exec_stream(argv_of(command), options));
}

CallPointer start_command(const MachineObject& object, nb::object command, nb::dict values) {
  auto options = exec_options(Options(values));
  const auto& calls = object.calls();
  return call(is_script(command) ? calls.start_shell_command(from_bytes(command), options)
                                 : calls.start_command(argv_of(command), options),
              info_object);
}

CallPointer commands(const MachineObject& object, nb::dict values) {
  return call(object.calls().commands(Options(values).call()),
              [](std::vector<CommandInfo>& infos) -> nb::object { return to_list(infos); });
}

std::unique_ptr<Stream> attach_command(const MachineObject& object, const std::string& id, nb::dict values) {
  Options options(values);
  AttachOptions attach{.out_offset = options.get<std::uint64_t>("stdout_offset", 0),
                       .err_offset = options.get<std::uint64_t>("stderr_offset", 0),
                       .deadline = options.deadline("deadline")};
  return std::make_unique<Stream>(object.calls().attach_command(id, attach));
}

CallPointer wait_command(const MachineObject& object, const std::string& id, nb::dict values) {
  return call(object.calls().wait_command(id, Options(values).call()), info_object);
}

CallPointer signal_command(const MachineObject& object, const std::string& id, int number, nb::dict values) {
  return call(object.calls().signal_command(id, number, Options(values).call()));
}

CallPointer kill_command(const MachineObject& object, const std::string& id, nb::dict values) {
  return call(object.calls().kill_command(id, Options(values).call()), info_object);
}

}  // namespace

void bind_commands(MachineClass& type) {
  type.def("exec", exec)
      .def("exec_stream", exec_stream)
      .def("start_command", start_command)
      .def("commands", commands)
      .def("attach_command", attach_command)
      .def("wait_command", wait_command)
      .def("signal_command", signal_command)
      .def("kill_command", kill_command);
}

}  // namespace holt::python
