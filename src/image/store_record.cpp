#include "image/store_record.hpp"

#include "holt/base/json.hpp"

namespace holt::image {
namespace {

constexpr int k_record_version = 1;

/// Field names of the OCI image specification, config.md.
Json config_json(const ImageConfig& config) {
  return Json{{"Env", config.env},
              {"WorkingDir", config.working_dir},
              {"User", config.user},
              {"Entrypoint", config.entrypoint},
              {"Cmd", config.cmd}};
}

ImageConfig config_of(const Json& json) {
  return {.env = json.at("Env"),
          .working_dir = json.at("WorkingDir"),
          .user = json.at("User"),
          .entrypoint = json.at("Entrypoint"),
          .cmd = json.at("Cmd")};
}

/// Runs `read` on the JSON value of a text; nothing when either fails.
template <class T, class Read>
std::optional<T> read_record(std::string_view text, Read read) {
  auto json = parse_json(text);
  if (!json) return std::nullopt;
  try {
    if (json->at("version") != k_record_version) return std::nullopt;
    return read(*json);
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

}  // namespace

std::string oci_config(const ImageConfig& config, std::string_view layer_digest) {
  return dump_json(
      Json{{"architecture", "amd64"},
           {"os", "linux"},
           {"config", config_json(config)},
           {"rootfs", {{"type", "layers"}, {"diff_ids", Json::array({std::string(layer_digest)})}}}});
}

std::string write_image_record(const Image& image) {
  Json json{{"version", k_record_version},   {"digest", image.digest},
            {"diskBytes", image.disk_bytes}, {"created", image.created},
            {"platform", image.platform},    {"config", config_json(image.config)}};
  return dump_json(json, {.indent = 2}) + "\n";
}

std::optional<Image> read_image_record(std::string_view text) {
  return read_record<Image>(text, [](const Json& json) {
    Image image;
    image.digest = json.at("digest");
    image.disk_bytes = json.at("diskBytes");
    image.created = json.at("created");
    image.platform = json.at("platform");
    image.config = config_of(json.at("config"));
    return image;
  });
}

std::string write_reference_record(const ReferenceRecord& record) {
  return dump_json(Json{
             {"version", k_record_version}, {"reference", record.reference}, {"digest", record.digest}}) +
         "\n";
}

std::optional<ReferenceRecord> read_reference_record(std::string_view text) {
  return read_record<ReferenceRecord>(text, [](const Json& json) {
    return ReferenceRecord{.reference = json.at("reference"), .digest = json.at("digest")};
  });
}

}  // namespace holt::image
