#include "call.hpp"
#include "convert.hpp"
#include "machine.hpp"
#include "options.hpp"
#include "streams.hpp"

namespace holt::python {

namespace {

nb::object stat_object(FileStat& stat) {
  return to_dict(stat);
}
nb::object text_object(std::string& path) {
  return to_path(path);
}
nb::object copy_object(CopyResult& result) {
  return to_dict(result);
}

ReadOptions read_options(const Options& options) {
  ReadOptions read{.offset = options.get<std::uint64_t>("offset", 0),
                   .length = options.get<std::uint64_t>("length"),
                   .user = options.get<std::string>("user", {}),
                   .call = options.call()};
  if (auto limit = options.get<std::uint64_t>("limit")) read.limit = *limit;
  return read;
}

FileWriteOptions write_options(const Options& options) {
  auto flag = [&](const char* name) { return options.get<bool>(name, false); };
  return {.mode = options.get<std::uint32_t>("mode"),
          .parents = flag("parents") ? Parents::make : Parents::must_exist,
          .size = options.get<std::uint64_t>("size"),
          .existing = flag("exclusive") ? Existing::refuse : Existing::replace,
          .expected_sha256 = options.get<std::string>("expected_sha256"),
          .owner = options.get<std::string>("owner", {}),
          .mtime_ns = options.get<std::int64_t>("mtime_ns"),
          .durability = flag("durable") ? Durability::now : Durability::at_stop,
          .user = options.get<std::string>("user", {}),
          .call = options.call()};
}

CallPointer read_file(const MachineObject& object, nb::bytes path, nb::dict values) {
  return call(object.calls().read_file(from_bytes(path), read_options(Options(values))),
              [](std::string& content) -> nb::object { return to_bytes(content); });
}

CallPointer open_read(const MachineObject& object, nb::bytes path, nb::dict values) {
  return call(
      object.calls().open_read(from_bytes(path), read_options(Options(values))),
      [](FileReader& reader) -> nb::object { return nb::cast(std::make_unique<Reader>(std::move(reader))); });
}

CallPointer write_file(const MachineObject& object, nb::bytes path, nb::bytes data, nb::dict values) {
  return call(object.calls().write_file(from_bytes(path), from_bytes(data), write_options(Options(values))));
}

std::unique_ptr<Writer> open_write(const MachineObject& object, nb::bytes path, nb::dict values) {
  return std::make_unique<Writer>(
      object.calls().open_write(from_bytes(path), write_options(Options(values))));
}

CallPointer list_dir(const MachineObject& object, nb::bytes path, nb::dict values) {
  return call(object.calls().list(from_bytes(path), Options(values).call()),
              [](std::vector<DirEntry>& entries) -> nb::object { return to_list(entries); });
}

std::unique_ptr<Walk> walk(const MachineObject& object, nb::bytes path, nb::dict values) {
  Options options(values);
  WalkOptions walk{.max_depth = options.get<std::uint32_t>("max_depth", 0),
                   .user = options.get<std::string>("user", {}),
                   .call = options.call()};
  return std::make_unique<Walk>(object.calls().walk(from_bytes(path), walk));
}

CallPointer set_attributes(const MachineObject& object, nb::bytes path, nb::dict values) {
  Options options(values);
  FileAttributes attributes{.mode = options.get<std::uint32_t>("mode"),
                            .owner = options.get<std::string>("owner", {}),
                            .mtime_ns = options.get<std::int64_t>("mtime_ns")};
  AttributeOptions how{.follow = options.get<bool>("follow_links", true) ? FollowLinks::yes : FollowLinks::no,
                       .user = options.get<std::string>("user", {}),
                       .call = options.call()};
  return call(object.calls().set_attributes(from_bytes(path), attributes, how));
}

CallPointer remove_path(const MachineObject& object, nb::bytes path, nb::dict values) {
  Options options(values);
  auto kind = options.get<bool>("recursive", false) ? RemoveKind::tree : RemoveKind::file_or_empty_dir;
  return call(object.calls().remove_path(from_bytes(path), kind, options.call()));
}

CallPointer rename(const MachineObject& object, nb::bytes from, nb::bytes to, nb::dict values) {
  return call(object.calls().rename(from_bytes(from), from_bytes(to), Options(values).call()));
}

CopyOptions copy_options(const Options& options) {
  return {.follow = options.get<bool>("follow_links", false) ? FollowLinks::yes : FollowLinks::no,
          .owners = options.get<bool>("keep_owners", false) ? Owners::kept : Owners::of_user,
          .owner = options.get<std::string>("owner", {}),
          .mode = options.get<std::uint32_t>("mode"),
          .user = options.get<std::string>("user", {}),
          .call = options.call()};
}

CallPointer copy_in(const MachineObject& object, nb::bytes source, nb::bytes target, nb::dict values) {
  return job(
      Lane::transfers,
      [machine = object.machine(), source = from_bytes(source), target = from_bytes(target),
       copy = copy_options(Options(values))](const CancellationToken& cancel) mutable {
        copy.call.cancel = cancel;
        return machine.copy_in(source, target, copy);
      },
      copy_object);
}

CallPointer copy_out(const MachineObject& object, nb::bytes source, nb::bytes target, nb::dict values) {
  return job(
      Lane::transfers,
      [machine = object.machine(), source = from_bytes(source), target = from_bytes(target),
       copy = copy_options(Options(values))](const CancellationToken& cancel) mutable {
        copy.call.cancel = cancel;
        return machine.copy_out(source, target, copy);
      },
      copy_object);
}

}  // namespace

void bind_files(MachineClass& type) {
  type.def("read_file", read_file)
      .def("open_read", open_read)
      .def("write_file", write_file)
      .def("open_write", open_write)
      .def("list_dir", list_dir)
      .def("walk", walk)
      .def("set_attributes", set_attributes)
      .def("remove_path", remove_path)
      .def("rename", rename)
      .def("copy_in", copy_in)
      .def("copy_out", copy_out);
  type.def("stat", [](const MachineObject& object, nb::bytes path, nb::dict values) {
    return call(object.calls().stat(from_bytes(path), Options(values).call()), stat_object);
  });
  type.def("lstat", [](const MachineObject& object, nb::bytes path, nb::dict values) {
    return call(object.calls().lstat(from_bytes(path), Options(values).call()), stat_object);
  });
  type.def("exists", [](const MachineObject& object, nb::bytes path, nb::dict values) {
    return call(object.calls().exists(from_bytes(path), Options(values).call()),
                [](bool& there) -> nb::object { return nb::bool_(there); });
  });
  type.def("realpath", [](const MachineObject& object, nb::bytes path, nb::dict values) {
    return call(object.calls().realpath(from_bytes(path), Options(values).call()), text_object);
  });
  type.def("make_dir", [](const MachineObject& object, nb::bytes path, nb::dict values) {
    return call(object.calls().make_dir(from_bytes(path), Options(values).call()));
  });
  type.def("ping", [](const MachineObject& object, nb::dict values) {
    return call(object.calls().ping(Options(values).call()));
  });
}

}  // namespace holt::python
