#include "images.hpp"

#include "call.hpp"
#include "convert.hpp"
#include "holt/image/pull.hpp"
#include "holt/machine/machine_image.hpp"
#include "options.hpp"

#include <utility>

namespace holt::python {

namespace {

nb::dict to_dict(const image::Image& image) {
  nb::dict result;
  result["reference"] = to_text(image.reference);
  result["digest"] = to_text(image.digest);
  result["size"] = image.size;
  result["disk_bytes"] = image.disk_bytes;
  result["created_at"] = to_text(image.created);
  result["platform"] = to_text(image.platform);
  return result;
}

/// Looks into the store, which is a few small files, without the interpreter's lock.
template <class Look>
auto in_store(const nb::dict& host, Look look) {
  image::Store store(host_config(Options(host)).directories);
  nb::gil_scoped_release release;
  return look(store);
}

nb::list list_images(const nb::dict& host) {
  nb::list result;
  for (const auto& image : in_store(host, [](const image::Store& store) { return store.list(); })) {
    result.append(to_dict(image));
  }
  return result;
}

nb::dict find_image(const std::string& reference, const nb::dict& host) {
  return to_dict(in_store(host, [&](const image::Store& store) { return store.resolve(reference); }));
}

nb::object image_object(image::Image& image) {
  return to_dict(image);
}

/// As machines get theirs: from the store, a registry, a file or folder.
CallPointer obtain(const std::string& name, const nb::dict& options, const nb::dict& host) {
  Options given(options);
  return job(
      Lane::transfers,
      [name, pull = pull_policy(given), deadline = given.deadline("timeout"),
       host = host_config(Options(host))](const CancellationToken& cancel) {
        return obtain_image(name, {.pull = pull, .call = {.deadline = deadline, .cancel = cancel}}, host);
      },
      image_object);
}

CallPointer import_image(const nb::bytes& source, const nb::dict& options, const nb::dict& host) {
  Options given(options);
  return job(
      Lane::transfers,
      [source = from_bytes(source), reference = given.get<std::string>("reference", {}),
       select = given.get<std::string>("select", {}),
       host = host_config(Options(host))](const CancellationToken& cancel) {
        image::Store store(host.directories);
        return image::import_image(
            store, source,
            {.reference = reference, .select = select, .limits = host.image_limits, .cancel = cancel});
      },
      image_object);
}

}  // namespace

void bind_images(nb::module_& module) {
  module.def("list_images", list_images);
  module.def("find_image", find_image);
  module.def("obtain_image", obtain);
  module.def("import_image", import_image);
}

}  // namespace holt::python
