// Images as the command line shows them.
#pragma once

#include "cli/session.hpp"
#include "holt/base/json.hpp"
#include "holt/image/store.hpp"

#include <map>
#include <string>
#include <vector>

namespace holt::cli {

/// Names of machines by the digest of their image.
using ImageUsers = std::map<std::string, std::vector<std::string>>;
ImageUsers image_users(Session& session);

/// {"reference","digest","size","created","platform","usedBy"}
Json image_json(const image::Image& image, const ImageUsers& users);

}  // namespace holt::cli
