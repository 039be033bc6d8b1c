// Manifests and indexes of strangers.
#include "image/oci/documents.hpp"

#include "holt/base/error.hpp"
#include "image/layout_builder.hpp"
#include "image/oci/media_types.hpp"
#include "support/asking.hpp"

#include <gtest/gtest.h>

namespace holt::image {
namespace {

using holt::test::failure;
using test::descriptor;
using test::index_of;
using test::manifest_of;

const std::string k_digest = "sha256:" + std::string(64, 'a');

Json config_descriptor() {
  return descriptor(k_oci_config, "{}");
}
Json layer(std::string_view type = k_oci_layer_gzip) {
  return descriptor(type, "layer");
}
Json manifest() {
  return manifest_of(config_descriptor(), Json::array({layer()}));
}
Json entry(const std::string& content, const std::string& os, const std::string& architecture,
           const std::string& variant = "") {
  Json json = descriptor(k_oci_manifest, content);
  json["platform"] = {{"os", os}, {"architecture", architecture}};
  if (!variant.empty()) json["platform"]["variant"] = variant;
  return json;
}
Manifest parsed_manifest(const Json& json, std::string_view content_type = "") {
  return std::get<Manifest>(parse_document(dump_json(json), content_type));
}
Index parsed_index(const Json& entries) {
  return std::get<Index>(parse_document(dump_json(index_of(entries)), k_oci_index));
}

ErrorCode text_error(const std::string& bytes, std::string_view content_type = "") {
  auto [code, sentence] = failure([&] { parse_document(bytes, content_type); });
  EXPECT_FALSE(sentence.empty());
  return code;
}
ErrorCode document_error(const Json& json, std::string_view content_type = "") {
  return text_error(dump_json(json), content_type);
}

TEST(Documents, ReadsManifestsOfBothKinds) {
  Manifest oci = parsed_manifest(manifest(), k_oci_manifest);
  EXPECT_EQ(oci.config.digest, test::digest_of("{}"));
  ASSERT_EQ(oci.layers.size(), 1U);
  EXPECT_EQ(oci.layers[0].size, 5U);
  EXPECT_EQ(oci.layers[0].media_type, k_oci_layer_gzip);

  Json docker = manifest_of(descriptor(k_docker_config, "{}"),
                            Json::array({layer("application/vnd.docker.image.rootfs.diff.tar.gzip")}));
  docker["mediaType"] = std::string(k_docker_manifest);
  EXPECT_EQ(parsed_manifest(docker, "Application/VND.docker.distribution.manifest.v2+json; charset=utf-8")
                .layers.size(),
            1U);
}

TEST(Documents, ADocumentWithoutATypeIsKnownByItsMembers) {
  Json bare = manifest();
  bare.erase("mediaType");
  EXPECT_EQ(parsed_manifest(bare).layers.size(), 1U);
  EXPECT_EQ(parsed_manifest(bare, "application/json").layers.size(), 1U);
  Json index = index_of(Json::array());
  index.erase("mediaType");
  EXPECT_TRUE(std::holds_alternative<Index>(parse_document(dump_json(index), "")));
}

TEST(Documents, LayersThatMayNotBeHandedOnAreReadAndTheirUrlsAreNot) {
  Json foreign = layer("application/vnd.docker.image.rootfs.foreign.diff.tar.gzip");
  foreign["urls"] = {"http://169.254.169.254/latest"};
  EXPECT_EQ(parsed_manifest(manifest_of(config_descriptor(), Json::array({foreign}))).layers.size(), 1U);
}

TEST(Documents, SaysWhichLayersAndArtifactsItDoesNotRead) {
  auto refused = [](const Json& config, const Json& layer) {
    return failure([&] { parsed_manifest(manifest_of(config, Json::array({layer}))); });
  };
  for (const char* type : {"application/vnd.oci.image.layer.v1.tar+gzip+encrypted",
                           "application/vnd.oci.image.layer.v1.tar+br", "application/x-squashfs", ""}) {
    EXPECT_EQ(refused(config_descriptor(), layer(type)).first, ErrorCode::not_supported) << type;
  }
  auto [code, sentence] = refused(descriptor("application/vnd.cncf.helm.config.v1+json", "{}"), layer());
  EXPECT_EQ(code, ErrorCode::not_supported);
  EXPECT_NE(sentence.find("helm"), std::string::npos) << sentence;
}

TEST(Documents, IMG_03_ADigestIsNeverAPath) {
  const std::vector<std::string> bad{"sha256:../../../../tmp/x",
                                     "sha256:" + std::string(63, 'a'),
                                     "sha256:" + std::string(65, 'a'),
                                     "sha256:" + std::string(64, 'A'),
                                     "md5:d41d8cd98f00b204e9800998ecf8427e",
                                     "",
                                     "sha256+b64:" + std::string(43, 'a'),
                                     std::string(10'240, 'a'),
                                     k_digest + std::string("\0", 1)};
  for (const std::string& digest : bad) {
    Json of_layer = layer();
    of_layer["digest"] = digest;
    EXPECT_EQ(document_error(manifest_of(config_descriptor(), Json::array({of_layer}))),
              ErrorCode::image_invalid)
        << digest;
    EXPECT_EQ(document_error(manifest_of(of_layer, Json::array({layer()}))), ErrorCode::image_invalid)
        << digest;
    Json of_entry = entry("x", "linux", "amd64");
    of_entry["digest"] = digest;
    EXPECT_EQ(document_error(index_of(Json::array({of_entry}))), ErrorCode::image_invalid) << digest;
  }
  Json sha512 = layer();
  sha512["digest"] = "sha512:" + std::string(128, 'a');
  auto [code, sentence] =
      failure([&] { parsed_manifest(manifest_of(config_descriptor(), Json::array({sha512}))); });
  EXPECT_EQ(code, ErrorCode::not_supported);
  EXPECT_NE(sentence.find("sha512"), std::string::npos) << sentence;
}

TEST(Documents, IMG_13_RefusesWhatIsTwoThings) {
  Json both = manifest();
  both["manifests"] = Json::array();
  EXPECT_EQ(document_error(both), ErrorCode::image_invalid);
  Json index = index_of(Json::array());
  index["config"] = config_descriptor();
  EXPECT_EQ(document_error(index), ErrorCode::image_invalid);

  EXPECT_EQ(document_error(manifest(), k_oci_index), ErrorCode::image_invalid);
  EXPECT_EQ(document_error(manifest(), k_docker_manifest), ErrorCode::image_invalid);
  EXPECT_EQ(document_error(manifest(), "text/html"), ErrorCode::image_invalid);
  Json untyped = manifest();
  untyped.erase("mediaType");
  EXPECT_EQ(document_error(untyped, k_oci_index), ErrorCode::image_invalid);
  Json disguised = index_of(Json::array());
  disguised["mediaType"] = std::string(k_oci_manifest);
  EXPECT_EQ(document_error(disguised), ErrorCode::image_invalid);
}

TEST(Documents, IMG_13_Schema1IsNotReadAndSaysWhatHelps) {
  Json old{
      {"schemaVersion", 1}, {"name", "library/x"}, {"fsLayers", Json::array()}, {"history", Json::array()}};
  for (std::string_view type : {"", "application/vnd.docker.distribution.manifest.v1+prettyjws"}) {
    auto [code, sentence] = failure([&] { parse_document(dump_json(old), type); });
    EXPECT_EQ(code, ErrorCode::not_supported);
    EXPECT_NE(sentence.find("push the image"), std::string::npos) << sentence;
  }
  Json version = manifest();
  version["schemaVersion"] = 3;
  EXPECT_EQ(document_error(version), ErrorCode::image_invalid);
  version.erase("schemaVersion");
  EXPECT_EQ(document_error(version), ErrorCode::image_invalid);
}

TEST(Documents, IMG_13_RefusesLooseJson) {
  std::string good = dump_json(manifest());
  ASSERT_TRUE(std::holds_alternative<Manifest>(parse_document(good, "")));
  EXPECT_EQ(text_error("\xef\xbb\xbf" + good), ErrorCode::image_invalid);
  EXPECT_EQ(text_error(good + "x"), ErrorCode::image_invalid);
  EXPECT_EQ(text_error(good + good), ErrorCode::image_invalid);
  EXPECT_EQ(text_error(good + std::string(1, '\0')), ErrorCode::image_invalid);
  EXPECT_EQ(text_error(std::string()), ErrorCode::image_invalid);
  EXPECT_EQ(text_error("[]"), ErrorCode::image_invalid);
  EXPECT_EQ(text_error("null"), ErrorCode::image_invalid);
  EXPECT_EQ(text_error(good.substr(0, good.size() - 1)), ErrorCode::image_invalid);
  EXPECT_EQ(text_error("{\"schemaVersion\":2," + good.substr(1)), ErrorCode::image_invalid);
  EXPECT_EQ(text_error("{\"x\":{\"a\":1,\"\\u0061\":2}," + good.substr(1)), ErrorCode::image_invalid);
  EXPECT_EQ(text_error("{\"x\":NaN," + good.substr(1)), ErrorCode::image_invalid);
  EXPECT_EQ(text_error("{\"x\":\"\xff\"," + good.substr(1)), ErrorCode::image_invalid);
}

TEST(Documents, IMG_13_ASizeIsAWholeNumberThatFits) {
  for (const char* size : {"\"5\"", "-1", "1e400", "5.0", "1e3", "null", "true", "[5]", "9223372036854775808",
                           "18446744073709551616", "123456789012345678901234567890"}) {
    std::string text = dump_json(manifest());
    std::size_t at = text.find("\"size\":5");
    ASSERT_NE(at, std::string::npos);
    text.replace(at, 8, std::string("\"size\":") + size);
    EXPECT_EQ(text_error(text), ErrorCode::image_invalid) << size;
  }
  Json largest = layer();
  largest["size"] = INT64_MAX;
  EXPECT_EQ(parsed_manifest(manifest_of(config_descriptor(), Json::array({largest}))).layers[0].size,
            INT64_MAX);
}

TEST(Documents, IMG_13_BoundsWhatADocumentCosts) {
  EXPECT_EQ(text_error(dump_json(manifest()) + std::string(k_manifest_bytes, ' ')),
            ErrorCode::limit_exceeded);
  EXPECT_EQ(text_error(std::string(100'000, '[')), ErrorCode::limit_exceeded);
  EXPECT_EQ(text_error("{\"a\":" + std::string(100'000, '[') + std::string(100'000, ']') + "}"),
            ErrorCode::limit_exceeded);
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  EXPECT_EQ(text_error(objects), ErrorCode::limit_exceeded);
  std::string values = "{\"a\":[";
  for (int i = 0; i < 1'000'000; ++i) values += "0,";
  EXPECT_EQ(text_error(values + "0]}"), ErrorCode::limit_exceeded);

  EXPECT_EQ(document_error(manifest_of(config_descriptor(), Json(k_layers + 1, layer()))),
            ErrorCode::limit_exceeded);
  EXPECT_EQ(document_error(manifest_of(config_descriptor(), Json(10'000, layer()))),
            ErrorCode::limit_exceeded);
  EXPECT_EQ(parsed_manifest(manifest_of(config_descriptor(), Json(k_layers, layer()))).layers.size(),
            k_layers);
  EXPECT_EQ(document_error(index_of(Json(k_index_entries + 1, entry("x", "linux", "amd64")))),
            ErrorCode::limit_exceeded);
}

TEST(Documents, MembersOfTheWrongKindAreRefused) {
  auto with = [](const char* key, Json value) {
    Json json = manifest();
    json[key] = std::move(value);
    return document_error(json);
  };
  EXPECT_EQ(with("config", "x"), ErrorCode::image_invalid);
  EXPECT_EQ(with("config", nullptr), ErrorCode::image_invalid);
  EXPECT_EQ(with("layers", Json::object()), ErrorCode::image_invalid);
  EXPECT_EQ(with("layers", Json::array({1})), ErrorCode::image_invalid);
  EXPECT_EQ(with("mediaType", 2), ErrorCode::image_invalid);
  EXPECT_EQ(with("mediaType", "application/x"), ErrorCode::not_supported);
  Json annotated = entry("x", "linux", "amd64");
  annotated["annotations"] = {{"org.opencontainers.image.ref.name", 1}};
  EXPECT_EQ(document_error(index_of(Json::array({annotated}))), ErrorCode::image_invalid);
}

TEST(Documents, IMG_14_ChoosesTheFirstEntryOfThePlatform) {
  Index index = parsed_index(Json::array(
      {entry("arm", "linux", "arm64"), entry("first", "linux", "amd64"), entry("second", "linux", "amd64")}));
  EXPECT_EQ(choose(index, {}).digest, test::digest_of("first"));
  auto [code, sentence] = failure([&] { choose(index, {.architecture = "s390x"}); });
  EXPECT_EQ(code, ErrorCode::not_found);
  EXPECT_NE(sentence.find("linux/s390x"), std::string::npos) << sentence;
  EXPECT_NE(sentence.find("linux/arm64, linux/amd64"), std::string::npos) << sentence;
}

TEST(Documents, IMG_14_ChoosesTheRightVariant) {
  Index index =
      parsed_index(Json::array({entry("v6", "linux", "arm", "v6"), entry("v7", "linux", "arm", "v7"),
                                entry("v8", "linux", "arm64", "v8"), entry("v3", "linux", "amd64", "v3"),
                                entry("plain", "linux", "amd64")}));
  EXPECT_EQ(choose(index, {.architecture = "arm", .variant = "v7"}).digest, test::digest_of("v7"));
  EXPECT_EQ(choose(index, {.architecture = "arm64"}).digest, test::digest_of("v8"));
  EXPECT_EQ(choose(index, {.architecture = "arm64", .variant = "v8"}).digest, test::digest_of("v8"));
  EXPECT_EQ(choose(index, {}).digest, test::digest_of("plain"));
  EXPECT_EQ(choose(index, {.architecture = "arm"}).digest, test::digest_of("v6"));
  EXPECT_EQ(failure([&] { choose(index, {.architecture = "arm", .variant = "v5"}); }).first,
            ErrorCode::not_found);
  Index bare = parsed_index(Json::array({entry("bare", "linux", "arm64")}));
  EXPECT_EQ(choose(bare, {.architecture = "arm64", .variant = "v8"}).digest, test::digest_of("bare"));
}

TEST(Documents, IMG_14_AttestationsAndArtifactsAreNeverChosen) {
  Json attestation = entry("attestation", "unknown", "unknown");
  attestation["annotations"] = {{"vnd.docker.reference.type", "attestation-manifest"}};
  Json posing = entry("posing", "linux", "amd64");
  posing["annotations"] = {{"vnd.docker.reference.type", "attestation-manifest"}};
  Json artifact = descriptor(k_oci_manifest, "artifact");
  artifact["artifactType"] = "application/vnd.example.sbom";
  Json other = entry("other", "linux", "amd64");
  other["mediaType"] = "application/vnd.example+json";
  Json entries = Json::array({attestation, posing, artifact, other});
  EXPECT_EQ(failure([&] { choose(parsed_index(entries), {}); }).first, ErrorCode::not_found);
  entries.push_back(entry("image", "linux", "amd64"));
  EXPECT_EQ(choose(parsed_index(entries), {}).digest, test::digest_of("image"));
}

TEST(Documents, IMG_14_AnEmptyIndexHasNothingToChoose) {
  auto [code, sentence] = failure([&] { choose(parsed_index(Json::array()), {}); });
  EXPECT_EQ(code, ErrorCode::not_found);
  EXPECT_NE(sentence.find("no image"), std::string::npos) << sentence;
}

TEST(Documents, AnEntryWithoutAPlatformIsTheLastChoice) {
  Json nameless = descriptor(k_oci_manifest, "nameless");
  EXPECT_EQ(choose(parsed_index(Json::array({nameless})), {}).digest, test::digest_of("nameless"));
  EXPECT_EQ(choose(parsed_index(Json::array({nameless, entry("x", "linux", "amd64")})), {}).digest,
            test::digest_of("x"));
}

TEST(Documents, PlatformsInErrorsAreFitToBeShown) {
  Index index = parsed_index(Json::array({entry("x", "\x1b[2J", "\r\n")}));
  std::string sentence = failure([&] { choose(index, {}); }).second;
  EXPECT_EQ(sentence.find('\x1b'), std::string::npos);
  EXPECT_EQ(sentence.find('\n'), std::string::npos);
}

}  // namespace
}  // namespace holt::image
