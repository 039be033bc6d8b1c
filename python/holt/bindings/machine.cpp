#include "machine.hpp"

#include "call.hpp"
#include "convert.hpp"
#include "holt/machine/availability.hpp"
#include "holt/machine/machine.hpp"
#include "holt/machine/names.hpp"
#include "streams.hpp"

#include <chrono>
#include <string_view>

namespace holt::python {

namespace {

using CallPointer = std::unique_ptr<Call>;

nb::object machine_object(Machine& machine) {
  return nb::cast(std::move(machine));
}

/// Deadlines of calls count from here on, not from when a thread takes the work up.
std::optional<Deadline> deadline_of(const Options& options) {
  auto left = options.seconds("timeout");
  return left ? std::optional(Deadline::after(*left)) : std::nullopt;
}

std::string_view step_name(StartProgress::Step step) {
  switch (step) {
    case StartProgress::Step::probing_accelerator:
      return "probing_accelerator";
    case StartProgress::Step::building_template:
      return "building_template";
    case StartProgress::Step::waiting_for_template:
      return "waiting_for_template";
    case StartProgress::Step::booting:
      return "booting";
  }
  return "booting";
}

/// A Python function for StartOptions. The work runs without the interpreter's lock and may outlive the
/// caller's interest in it, so the last reference is dropped with the lock held.
std::function<void(const StartProgress&)> progress_of(const Options& options) {
  auto function = options.get<nb::object>("on_progress");
  if (!function) return {};
  std::shared_ptr<nb::object> shared(new nb::object(std::move(*function)), [](nb::object* object) {
    nb::gil_scoped_acquire acquire;
    delete object;
  });
  return [shared](const StartProgress& progress) {
    nb::gil_scoped_acquire acquire;
    try {
      (*shared)(std::string(step_name(progress.step)), to_text(progress.text));
    } catch (nb::python_error& error) {
      error.discard_as_unraisable("holt: on_progress");
    }
  };
}

StartOptions start_options(const Options& options) {
  return {.on_progress = progress_of(options), .call = {.deadline = deadline_of(options)}};
}

StartOptions with(StartOptions options, const CancellationToken& cancel) {
  options.call.cancel = cancel;
  return options;
}

CallPointer create(nb::dict config, nb::dict start, nb::dict host) {
  return job(
      [config = machine_config(Options(config)), start = start_options(Options(start)),
       host = host_config(Options(host))](const CancellationToken& cancel) {
        return Machine::create(config, with(start, cancel), host);
      },
      machine_object);
}

CallPointer define(nb::dict config, nb::dict host) {
  return job([config = machine_config(Options(config)), host = host_config(Options(host))](
                 const CancellationToken&) { return Machine::define(config, host); },
             machine_object);
}

CallPointer connect(const std::string& name, nb::dict start, nb::dict host) {
  return job(
      [name, start = start_options(Options(start)), host = host_config(Options(host))](
          const CancellationToken& cancel) { return Machine::connect(name, with(start, cancel), host); },
      machine_object);
}

Machine open(const std::string& name, nb::dict host) {
  return Machine::open(name, host_config(Options(host)));
}

CallPointer list_all(nb::dict host) {
  return job(
      [host = host_config(Options(host))](const CancellationToken&) { return Machine::list_all(host); },
      [](std::vector<MachineInfo>& infos) -> nb::object {
        nb::list result;
        for (const auto& info : infos) result.append(to_dict(info));
        return result;
      });
}

CallPointer info(const Machine& machine) {
  return job([machine](const CancellationToken&) { return machine.info(); },
             [](MachineInfo& info) -> nb::object { return to_dict(info); });
}

CallPointer state(const Machine& machine) {
  return job([machine](const CancellationToken&) { return machine.state(); },
             [](MachineState& state) -> nb::object { return nb::cast(std::string(to_string(state))); });
}

CallPointer start(const Machine& machine, nb::dict options) {
  return job([machine = Machine(machine), start = start_options(Options(options))](
                 const CancellationToken& cancel) mutable { machine.start(with(start, cancel)); });
}

CallPointer stop(const Machine& machine, nb::dict values) {
  Options options(values);
  StopOptions stop{.call = {.deadline = deadline_of(options)}};
  if (auto grace = options.seconds("grace")) stop.grace = *grace;
  return job([machine = Machine(machine), stop](const CancellationToken& cancel) mutable {
    stop.call.cancel = cancel;
    machine.stop(stop);
  });
}

CallPointer remove(const Machine& machine, nb::dict values) {
  Options options(values);
  RemoveOptions remove{
      .mode = options.get<bool>("force", false) ? RemoveMode::force : RemoveMode::stopped_only,
      .call = {.deadline = deadline_of(options)}};
  return job([machine = Machine(machine), remove](const CancellationToken& cancel) mutable {
    remove.call.cancel = cancel;
    machine.remove(remove);
  });
}

CallPointer copy_in(const Machine& machine, nb::bytes source, nb::bytes target, nb::dict values) {
  CallOptions call{.deadline = deadline_of(Options(values))};
  return job(
      [machine, source = from_bytes(source), target = from_bytes(target),
       call](const CancellationToken& cancel) mutable {
        call.cancel = cancel;
        return machine.copy_in(source, target, {.call = call});
      },
      [](CopyResult& result) -> nb::object { return to_dict(result); });
}

CallPointer copy_out(const Machine& machine, nb::bytes source, nb::bytes target, nb::dict values) {
  CallOptions call{.deadline = deadline_of(Options(values))};
  return job(
      [machine, source = from_bytes(source), target = from_bytes(target),
       call](const CancellationToken& cancel) mutable {
        call.cancel = cancel;
        return machine.copy_out(source, target, {.call = call});
      },
      [](CopyResult& result) -> nb::object { return to_dict(result); });
}

CallPointer exec(const Machine& machine, nb::object command, nb::dict values) {
  auto options = exec_options(Options(values));
  auto convert = [](ExecResult& result) -> nb::object { return to_dict(result); };
  if (nb::isinstance<nb::bytes>(command)) {
    return job(
        [machine, script = from_bytes(command), options](const CancellationToken& cancel) mutable {
          options.cancel = cancel;
          return machine.exec_shell(script, options);
        },
        convert);
  }
  std::vector<std::string> argv;
  for (auto item : command) argv.push_back(from_bytes(item));
  return job(
      [machine, argv = std::move(argv), options](const CancellationToken& cancel) mutable {
        options.cancel = cancel;
        return machine.exec(argv, options);
      },
      convert);
}

std::unique_ptr<Stream> exec_stream(const Machine& machine, nb::object command, nb::dict values) {
  auto options = exec_options(Options(values));
  if (nb::isinstance<nb::bytes>(command))
    return std::make_unique<Stream>(machine.exec_shell_stream(from_bytes(command), options));
  std::vector<std::string> argv;
  for (auto item : command) argv.push_back(from_bytes(item));
  return std::make_unique<Stream>(machine.exec_stream(argv, options));
}

ReadOptions read_options(const Options& options) {
  ReadOptions read{.offset = options.get<std::uint64_t>("offset", 0),
                   .length = options.get<std::uint64_t>("length"),
                   .user = options.get<std::string>("user", {}),
                   .call = {.deadline = deadline_of(options)}};
  if (auto limit = options.get<std::uint64_t>("limit")) read.limit = *limit;
  return read;
}

CallPointer read_file(const Machine& machine, nb::bytes path, nb::dict values) {
  return job(
      [machine, path = from_bytes(path),
       read = read_options(Options(values))](const CancellationToken& cancel) mutable {
        read.call.cancel = cancel;
        return machine.read_file(path, read);
      },
      [](std::string& content) -> nb::object { return to_bytes(content); });
}

FileWriteOptions write_options(const Options& options) {
  return {.mode = options.get<std::uint32_t>("mode"),
          .parents = options.get<bool>("parents", false) ? Parents::make : Parents::must_exist,
          .size = options.get<std::uint64_t>("size"),
          .user = options.get<std::string>("user", {}),
          .call = {.deadline = deadline_of(options)}};
}

CallPointer write_file(const Machine& machine, nb::bytes path, nb::bytes data, nb::dict values) {
  return job([machine, path = from_bytes(path), data = from_bytes(data),
              write = write_options(Options(values))](const CancellationToken& cancel) mutable {
    write.call.cancel = cancel;
    machine.write_file(path, data, write);
  });
}

/// A call on one path.
template <class Ask, class Convert>
auto on_path(Ask ask, Convert convert) {
  return [ask, convert](const Machine& machine, nb::bytes path, nb::dict values) {
    return job(
        [machine, path = from_bytes(path), ask,
         options =
             CallOptions{.deadline = deadline_of(Options(values))}](const CancellationToken& cancel) mutable {
          options.cancel = cancel;
          return ask(machine, path, options);
        },
        convert);
  };
}

using Path = const std::string&;
using With = const CallOptions&;

nb::object stat_object(FileStat& stat) {
  return to_dict(stat);
}

void bind_paths(nb::class_<Machine>& type) {
  type.def("stat", on_path([](const Machine& m, Path p, With o) { return m.stat(p, o); }, stat_object));
  type.def("lstat", on_path([](const Machine& m, Path p, With o) { return m.lstat(p, o); }, stat_object));
  type.def("exists", on_path([](const Machine& m, Path p, With o) { return m.exists(p, o); },
                             [](bool& there) -> nb::object { return nb::bool_(there); }));
  type.def("realpath", on_path([](const Machine& m, Path p, With o) { return m.realpath(p, o); },
                               [](std::string& path) -> nb::object { return to_path(path); }));
  type.def("list_dir", on_path([](const Machine& m, Path p, With o) { return m.list(p, o); },
                               [](std::vector<DirEntry>& entries) -> nb::object {
                                 nb::list result;
                                 for (const auto& entry : entries) result.append(to_dict(entry));
                                 return result;
                               }));
  type.def("make_dir", on_path([](const Machine& m, Path p, With o) { m.make_dir(p, o); }, 0));
  type.def("remove_file", on_path([](const Machine& m, Path p,
                                     With o) { m.remove_path(p, RemoveKind::file_or_empty_dir, o); },
                                  0));
  type.def("remove_tree",
           on_path([](const Machine& m, Path p, With o) { m.remove_path(p, RemoveKind::tree, o); }, 0));
  type.def("rename", [](const Machine& machine, nb::bytes from, nb::bytes to, nb::dict values) {
    return job([machine, from = from_bytes(from), to = from_bytes(to),
                options = CallOptions{.deadline = deadline_of(Options(values))}](
                   const CancellationToken& cancel) mutable {
      options.cancel = cancel;
      machine.rename(from, to, options);
    });
  });
  type.def("ping", [](const Machine& machine, nb::dict values) {
    return job([machine, options = CallOptions{.deadline = deadline_of(Options(values))}](
                   const CancellationToken& cancel) mutable {
      options.cancel = cancel;
      machine.ping(options);
    });
  });
}

}  // namespace

void bind_machine(nb::module_& module) {
  nb::class_<Machine> type(module, "Machine");
  type.def_prop_ro("name", [](const Machine& machine) { return machine.name(); });
  type.def("info", info);
  type.def("state", state);
  type.def("console_log", [](const Machine& machine) { return to_path(machine.console_log().native()); });
  type.def("start", start);
  type.def("stop", stop);
  type.def("remove", remove);
  type.def("copy_in", copy_in);
  type.def("copy_out", copy_out);
  type.def("exec", exec);
  type.def("exec_stream", exec_stream);
  type.def("read_file", read_file);
  type.def("write_file", write_file);
  bind_paths(type);

  module.def("create", create);
  module.def("define", define);
  module.def("connect", connect);
  module.def("open", open);
  module.def("list_all", list_all);
  module.def("new_machine_name", new_machine_name);
  module.def("check_machine_name", [](const std::string& name) { check_machine_name(name); });
  module.def("local_availability", [](nb::dict host) {
    auto answer = local_availability(host_config(Options(host)));
    auto text = [](const auto& value) -> nb::object {
      return value ? to_text(*value) : nb::object(nb::none());
    };
    auto code = answer.code ? std::optional(to_string(*answer.code)) : std::nullopt;
    return nb::make_tuple(answer.available, text(code), text(answer.reason));
  });
}

}  // namespace holt::python
