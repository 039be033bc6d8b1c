#include "holt/image/pull.hpp"

#include "holt/base/error.hpp"
#include "holt/base/log.hpp"
#include "image/acquire.hpp"
#include "image/entries.hpp"
#include "image/registry/registry_source.hpp"
#include "image/restore.hpp"

#include <fmt/format.h>

namespace holt::image {
namespace {

bool fits(const Image& image, const Platform& wanted) {
  auto found = parse_platform(image.platform);
  return found && found->os == wanted.os && found->architecture == wanted.architecture &&
         (wanted.variant.empty() || found->variant == wanted.variant);
}

/// What can be had without a registry.
std::optional<Image> find_here(Store& store, std::string_view reference, const PullOptions& options) {
  auto image = store.find(reference);
  if (!image) {
    auto record = look_up(Folders{store.folder()}, reference);
    if (!record) return std::nullopt;
    image = restore(store, reference,
                    {.limits = options.limits, .progress = options.progress, .cancel = options.cancel});
  }
  if (fits(*image, options.platform)) return image;
  if (options.policy != PullPolicy::never) return std::nullopt;
  throw Error(ErrorCode::not_found,
              fmt::format("use the image '{}': here it is for {}, not for {}", image->reference,
                          image->platform, options.platform.text()),
              {.subject = image->reference,
               .hint = fmt::format("holt pull --platform {} {} fetches the other.", options.platform.text(),
                                   image->reference)});
}

/// The same, nothing where a registry may still help.
std::optional<Image> try_here(Store& store, std::string_view reference, const PullOptions& options) {
  try {
    return find_here(store, reference, options);
  } catch (const Error& error) {
    bool registry_helps = error.code() == ErrorCode::not_found || error.code() == ErrorCode::digest_mismatch;
    if (options.policy == PullPolicy::never || !registry_helps) throw;
    logger("holt.image")->info("pull {} again: {}", printable(reference, 200), error.what());
    return std::nullopt;
  }
}

}  // namespace

std::optional<PullPolicy> pull_policy_from(std::string_view word) {
  if (word == "missing") return PullPolicy::missing;
  if (word == "always") return PullPolicy::always;
  if (word == "never") return PullPolicy::never;
  return std::nullopt;
}

Image pull(Store& store, std::string_view reference, const PullOptions& options) {
  // A digest alone names no registry.
  bool may_ask = options.policy != PullPolicy::never && !is_digest(reference);
  if (!may_ask || options.policy == PullPolicy::missing) {
    if (auto image = try_here(store, reference, options)) return std::move(*image);
  }
  if (!may_ask) throw image_not_found(Folders{store.folder()}, reference);
  AcquireRequest request{.reference = parsed_reference(reference),
                         .platform = options.platform,
                         .limits = options.limits,
                         .disk_bytes = options.disk_bytes,
                         .progress = options.progress,
                         .cancel = options.cancel};
  RegistrySource source(request.reference, options.registry, request.stop);
  return acquire(store, source, request);
}

}  // namespace holt::image
