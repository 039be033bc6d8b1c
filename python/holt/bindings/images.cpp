#include "images.hpp"

#include "convert.hpp"
#include "holt/image/store.hpp"
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

}  // namespace

void bind_images(nb::module_& module) {
  module.def("list_images", list_images);
  module.def("find_image", find_image);
}

}  // namespace holt::python
