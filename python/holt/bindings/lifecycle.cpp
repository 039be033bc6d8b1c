#include "call.hpp"
#include "convert.hpp"
#include "holt/machine/availability.hpp"
#include "holt/machine/names.hpp"
#include "machine.hpp"
#include "options.hpp"

#include <chrono>
#include <string_view>

namespace holt::python {

namespace {

using namespace std::chrono_literals;

nb::object machine_object(Machine& machine) {
  return nb::cast(std::make_unique<MachineObject>(std::move(machine)));
}
nb::object info_object(MachineInfo& info) {
  return to_dict(info);
}

std::string_view step_name(StartProgress::Step step) {
  switch (step) {
    case StartProgress::Step::fetching_image:
      return "fetching_image";
    case StartProgress::Step::probing_accelerator:
      return "probing_accelerator";
    case StartProgress::Step::building_template:
      return "building_template";
    case StartProgress::Step::waiting_for_template:
      return "waiting_for_template";
    case StartProgress::Step::booting:
      break;
  }
  return "booting";
}

/// Dropped with the interpreter's lock held: the last reference may be a pool thread's.
std::shared_ptr<nb::object> shared(nb::object object) {
  return {new nb::object(std::move(object)), [](nb::object* held) {
            if (!Py_IsInitialized()) return;
            nb::gil_scoped_acquire acquire;
            delete held;  // NOLINT(cppcoreguidelines-owning-memory)
          }};
}

std::function<void(const StartProgress&)> progress_of(const Options& options) {
  auto function = options.get<nb::object>("on_progress");
  if (!function) return {};
  return [call = shared(std::move(*function))](const StartProgress& progress) {
    nb::gil_scoped_acquire acquire;
    try {
      (*call)(std::string(step_name(progress.step)), to_text(progress.text));
    } catch (nb::python_error& error) {
      error.discard_as_unraisable("holt: on_progress");
    }
  };
}

OwnerEnd owner_end(const Options& options) {
  auto word = options.get<std::string>("owner_end", "keep");
  if (word == "stop") return OwnerEnd::stop;
  return word == "remove" ? OwnerEnd::remove : OwnerEnd::keep;
}

StartOptions start_options(const Options& options) {
  return {.on_progress = progress_of(options),
          .owner_end = owner_end(options),
          .call = {.deadline = options.deadline("timeout")}};
}

StartOptions with(StartOptions options, const CancellationToken& cancel) {
  options.call.cancel = cancel;
  return options;
}
CallOptions with(CallOptions options, const CancellationToken& cancel) {
  options.cancel = cancel;
  return options;
}

/// An image that was named may have to be pulled, which takes what it takes.
Lane lane_of(const MachineConfig& config) {
  return config.image.empty() ? Lane::starts : Lane::transfers;
}

CallPointer create(nb::dict values, nb::dict start, nb::dict host) {
  auto config = machine_config(Options(values));
  return job(
      lane_of(config),
      [config, start = start_options(Options(start)), host = host_config(Options(host))](
          const CancellationToken& cancel) { return Machine::create(config, with(start, cancel), host); },
      machine_object);
}

CallPointer define(nb::dict values, nb::dict host) {
  auto config = machine_config(Options(values));
  return job(
      lane_of(config),
      [config, host = host_config(Options(host))](const CancellationToken&) {
        return Machine::define(config, host);
      },
      machine_object);
}

CallPointer connect(const std::string& name, nb::dict start, nb::dict host) {
  return job(
      Lane::starts,
      [name, start = start_options(Options(start)), host = host_config(Options(host))](
          const CancellationToken& cancel) { return Machine::connect(name, with(start, cancel), host); },
      machine_object);
}

std::unique_ptr<MachineObject> open(const std::string& name, nb::dict host) {
  return std::make_unique<MachineObject>(Machine::open(name, host_config(Options(host))));
}

CallPointer list_all(nb::dict host) {
  return job(
      Lane::looks,
      [host = host_config(Options(host))](const CancellationToken&) { return Machine::list_all(host); },
      [](std::vector<MachineInfo>& infos) -> nb::object { return to_list(infos); });
}

CallPointer start(const MachineObject& object, nb::dict options) {
  return job(Lane::starts,
             [machine = Machine(object.machine()), start = start_options(Options(options))](
                 const CancellationToken& cancel) mutable { machine.start(with(start, cancel)); });
}

CallPointer resume(const MachineObject& object, nb::dict options) {
  return job(Lane::starts,
             [machine = Machine(object.machine()), start = start_options(Options(options))](
                 const CancellationToken& cancel) mutable { machine.resume(with(start, cancel)); });
}

CallPointer stop(const MachineObject& object, nb::dict values) {
  Options options(values);
  StopOptions stop{.call = {.deadline = options.deadline("timeout")}};
  if (auto grace = options.seconds("grace")) stop.grace = *grace;
  return job(Lane::changes,
             [machine = Machine(object.machine()), stop](const CancellationToken& cancel) mutable {
               stop.call.cancel = cancel;
               machine.stop(stop);
             });
}

CallPointer remove(const MachineObject& object, nb::dict values) {
  Options options(values);
  RemoveOptions remove{
      .mode = options.get<bool>("force", false) ? RemoveMode::force : RemoveMode::stopped_only,
      .call = {.deadline = options.deadline("timeout")}};
  return job(Lane::changes,
             [machine = Machine(object.machine()), remove](const CancellationToken& cancel) mutable {
               remove.call.cancel = cancel;
               machine.remove(remove);
             });
}

CallPointer pause(const MachineObject& object, nb::dict values) {
  return job(Lane::changes,
             [machine = Machine(object.machine()), call = Options(values).call()](
                 const CancellationToken& cancel) mutable { machine.pause(with(call, cancel)); });
}

CallPointer suspend(const MachineObject& object, nb::dict values) {
  return job(Lane::changes,
             [machine = Machine(object.machine()), call = Options(values).call()](
                 const CancellationToken& cancel) mutable { machine.suspend(with(call, cancel)); });
}

CallPointer resize(const MachineObject& object, nb::dict values) {
  Options options(values);
  ResizeOptions resize{.cpus = options.get<unsigned>("cpus"),
                       .memory_mb = options.get<unsigned>("memory_mb"),
                       .disk_gb = options.get<unsigned>("disk_gb"),
                       .call = options.call()};
  return job(
      Lane::changes,
      [machine = Machine(object.machine()), resize](const CancellationToken& cancel) mutable {
        resize.call.cancel = cancel;
        return machine.resize(resize);
      },
      [](Resources& sizes) -> nb::object { return to_dict(sizes); });
}

CallPointer update(const MachineObject& object, nb::dict values) {
  Options options(values);
  UpdateOptions changes{
      .labels = options.get<std::map<std::string, std::optional<std::string>>>("labels", {}),
      .env = options.bytes_changes("env")};
  auto idle = [&](const char* name, std::optional<std::optional<Duration>>& target) {
    if (options.has(name)) target = options.seconds(name);
  };
  idle("idle_stop", changes.idle_stop);
  idle("idle_suspend", changes.idle_suspend);
  return job(Lane::changes, [machine = Machine(object.machine()), changes](const CancellationToken&) mutable {
    machine.update(changes);
  });
}

/// Look by look: waits may take as long as machines live, and there may be many.
CallPointer wait(const MachineObject& object, const std::string& what, nb::dict values) {
  auto wanted = what == "ready" ? WaitFor::ready : WaitFor::ended;
  return repeated_job(
      Lane::waits,
      [machine = object.machine(), wanted,
       call = Options(values).call()](const CancellationToken& cancel) -> std::optional<MachineInfo> {
        try {
          return machine.wait(wanted, {.deadline = Deadline::after(0s), .cancel = cancel});
        } catch (const Error& e) {
          bool passed = call.deadline && call.deadline->passed();
          if (e.code() != ErrorCode::timeout || passed) throw;
          return std::nullopt;
        }
      },
      info_object);
}

CallPointer info(const MachineObject& object) {
  return job(
      Lane::looks, [machine = object.machine()](const CancellationToken&) { return machine.info(); },
      info_object);
}

CallPointer state(const MachineObject& object) {
  return job(
      Lane::looks, [machine = object.machine()](const CancellationToken&) { return machine.state(); },
      [](MachineState& state) -> nb::object { return nb::cast(std::string(to_string(state))); });
}

CallPointer stats(const MachineObject& object, nb::dict values) {
  return job(
      Lane::looks,
      [machine = object.machine(), call = Options(values).call()](const CancellationToken& cancel) {
        return machine.stats(with(call, cancel));
      },
      [](MachineStats& stats) -> nb::object { return to_dict(stats); });
}

CallPointer events(const MachineObject& object) {
  return job(
      Lane::looks, [machine = object.machine()](const CancellationToken&) { return machine.events(); },
      [](std::vector<MachineEvent>& events) -> nb::object { return to_list(events); });
}

nb::tuple availability(nb::dict host) {
  auto answer = local_availability(host_config(Options(host)));
  auto text = [](const auto& value) -> nb::object {
    return value ? to_text(*value) : nb::object(nb::none());
  };
  auto code = answer.code ? std::optional(to_string(*answer.code)) : std::nullopt;
  return nb::make_tuple(answer.available, text(code), text(answer.reason));
}

}  // namespace

void bind_lifecycle(nb::module_& module, MachineClass& type) {
  type.def_prop_ro("name", [](const MachineObject& object) { return object.machine().name(); })
      .def("info", info)
      .def("state", state)
      .def("console_log",
           [](const MachineObject& object) { return to_path(object.machine().console_log().native()); })
      .def("start", start)
      .def("stop", stop)
      .def("remove", remove)
      .def("pause", pause)
      .def("suspend", suspend)
      .def("resume", resume)
      .def("resize", resize)
      .def("update", update)
      .def("wait", wait)
      .def("stats", stats)
      .def("events", events);
  module.def("create", create);
  module.def("define", define);
  module.def("connect", connect);
  module.def("open", open);
  module.def("list_all", list_all);
  module.def("new_machine_name", new_machine_name);
  module.def("check_machine_name", [](const std::string& name) { check_machine_name(name); });
  module.def("local_availability", availability);
}

}  // namespace holt::python
