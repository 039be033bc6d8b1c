// Images as the command line names, fetches and shows them.
#pragma once

#include "cli/pull_progress.hpp"
#include "cli/session.hpp"
#include "holt/base/json.hpp"
#include "holt/image/pull.hpp"
#include "holt/image/store.hpp"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace holt::cli {

/// Names of machines by the digest of their image.
using ImageUsers = std::map<std::string, std::vector<std::string>>;
ImageUsers image_users(Session& session);
/// Whether a machine stands on an image; asked anew each time.
std::function<bool(const image::Image&)> used_by_machines(Session& session);

/// References of all images.
std::vector<std::string> image_names(const Directories& directories);
/// What `action` does with the image of a name. Its failure gets a name in front of its hint that is near.
void with_near_image(Session& session, const std::string& name, const std::function<void()>& action);

/// {"reference","digest","size","created","platform","usedBy"}
Json image_json(const image::Image& image, const ImageUsers& users);
/// These and everything else that is known of it.
Json whole_image_json(const image::Image& image, const ImageUsers& users);

PullProgress::Kind kind_of(const std::string& image);
/// Does what fetches an image, with its progress shown and, after an interrupt, what that leaves.
image::Image with_progress(Session& session, PullProgress& progress,
                           const std::function<image::Image()>& fetch);
/// The image of a machine that shall be (holt::obtain_image), with progress.
image::Image obtain_image_of(Session& session, const std::string& name, image::PullPolicy pull,
                             const HostConfig& host);

}  // namespace holt::cli
