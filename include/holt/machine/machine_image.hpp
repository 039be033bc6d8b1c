// The image that machines are made of: from the store, from a registry, from a file of this machine.
//
//   auto host = holt::HostConfig::from_environment();
//   auto image = holt::obtain_image("python:3.12-alpine", {.progress = show}, host);
//   auto machine = holt::Machine::create({.image = image.reference}, {}, host);
//
// Machine::create does the first by itself; this is for who wants to see it happen. Depends on base/ and
// image/ only.
#pragma once

#include "holt/image/pull.hpp"
#include "holt/machine/host_config.hpp"
#include "holt/machine/types.hpp"

#include <string>

namespace holt {

struct ObtainOptions {
  image::PullPolicy pull = image::PullPolicy::missing;
  image::ProgressSink progress = nullptr;
  CallOptions call = {};  ///< default deadline: none; a registry that says nothing for long ends it
};

/// The image of a name or digest, pulled as `pull` says, or what is in a file or folder of this machine
/// (image::is_local_image), imported under its own name. Empty: the default image, which no registry is asked
/// for. Blocks; thread-safe. Throws Error as image::pull() and image::import_image(), NOT_FOUND for a digest
/// that is not here, TIMEOUT.
image::Image obtain_image(const std::string& image, const ObtainOptions& options, const HostConfig& host);

}  // namespace holt
