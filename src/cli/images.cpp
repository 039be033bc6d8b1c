#include "cli/images.hpp"

namespace holt::cli {

ImageUsers image_users(Session& session) {
  ImageUsers users;
  for (const auto& info : Machine::list_all(session.host())) {
    if (!info.image_digest.empty()) users[info.image_digest].push_back(info.name);
  }
  return users;
}

Json image_json(const image::Image& image, const ImageUsers& users) {
  auto found = users.find(image.digest);
  return {
      {"reference", image.reference}, {"digest", image.digest},
      {"size", image.size},           {"created", image.created},
      {"platform", image.platform},   {"usedBy", found != users.end() ? Json(found->second) : Json::array()}};
}

}  // namespace holt::cli
