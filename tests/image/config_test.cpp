// Configurations of strangers.
#include "holt/base/error.hpp"
#include "image/layout_builder.hpp"
#include "image/oci/documents.hpp"
#include "support/asking.hpp"

#include <gtest/gtest.h>

namespace holt::image {
namespace {

using holt::test::failure;
using test::config_of;

const std::string k_digest = "sha256:" + std::string(64, 'a');

ErrorCode config_error(const Json& json) {
  return failure([&] { parse_config(dump_json(json)); }).first;
}
ImageConfig process_of(const Json& process) {
  return parse_config(dump_json(config_of({}, process))).config;
}

TEST(Config, IMG_02_ReadsTheDigestsOfTheUnpackedLayers) {
  auto document = parse_config(dump_json(config_of({"a", "b"})));
  EXPECT_EQ(document.diff_ids, (std::vector{test::digest_of("a"), test::digest_of("b")}));
  auto with = [](Json rootfs) {
    Json json = config_of({});
    json["rootfs"] = std::move(rootfs);
    return config_error(json);
  };
  EXPECT_EQ(with(nullptr), ErrorCode::image_invalid);
  EXPECT_EQ(with({{"type", "zips"}, {"diff_ids", Json::array()}}), ErrorCode::image_invalid);
  EXPECT_EQ(with({{"type", "layers"}, {"diff_ids", k_digest}}), ErrorCode::image_invalid);
  EXPECT_EQ(with({{"type", "layers"}, {"diff_ids", {"sha256:../../x"}}}), ErrorCode::image_invalid);
  EXPECT_EQ(with({{"type", "layers"}, {"diff_ids", Json(k_layers + 1, k_digest)}}),
            ErrorCode::limit_exceeded);
}

TEST(Config, ReadsEveryMemberThatCounts) {
  ImageConfig config =
      process_of({{"Env", {"PATH=/bin", "EMPTY="}},
                  {"WorkingDir", "/srv/app"},
                  {"User", "web:www"},
                  {"Entrypoint", {"/bin/sh", "-c"}},
                  {"Cmd", {"serve"}},
                  {"StopSignal", "SIGQUIT"},
                  {"ExposedPorts", {{"80/tcp", Json::object()}, {"8000-8010", Json::object()}}},
                  {"Volumes", {{"/data", Json::object()}}},
                  {"Labels", {{"a", "b"}}}});
  EXPECT_EQ(config.env, (std::vector<std::string>{"PATH=/bin", "EMPTY="}));
  EXPECT_EQ(config.working_dir, "/srv/app");
  EXPECT_EQ(config.user, "web:www");
  EXPECT_EQ(config.entrypoint, (std::vector<std::string>{"/bin/sh", "-c"}));
  EXPECT_EQ(config.cmd, std::vector<std::string>{"serve"});
  EXPECT_EQ(config.stop_signal, "SIGQUIT");
  EXPECT_EQ(config.exposed_ports, (std::vector<std::string>{"80/tcp", "8000-8010"}));
  EXPECT_EQ(config.volumes, std::vector<std::string>{"/data"});
  EXPECT_EQ(config.labels, (std::map<std::string, std::string>{{"a", "b"}}));
}

TEST(Config, IMG_29_NothingSaidIsEmpty) {
  Json bare = config_of({});
  for (const Json& process :
       {Json(nullptr), Json::object(),
        Json{{"Env", nullptr}, {"Entrypoint", nullptr}, {"Cmd", nullptr}, {"Volumes", nullptr}}}) {
    bare["config"] = process;
    ImageConfig config = parse_config(dump_json(bare)).config;
    EXPECT_TRUE(config.env.empty() && config.entrypoint.empty() && config.cmd.empty() &&
                config.volumes.empty());
    EXPECT_TRUE(config.working_dir.empty() && config.user.empty() && config.stop_signal.empty());
  }
  bare.erase("config");
  EXPECT_TRUE(parse_config(dump_json(bare)).config.cmd.empty());
}

TEST(Config, IMG_29_TheEnvironmentHasEachNameOnce) {
  EXPECT_EQ(process_of({{"Env", {"A=1", "B=2", "A=3", "NOVALUE", "=x", "C=a=b", ""}}}).env,
            (std::vector<std::string>{"A=3", "B=2", "C=a=b"}));
  EXPECT_EQ(config_error(config_of({}, {{"Env", {std::string("A=\0x", 4)}}})), ErrorCode::image_invalid);
  EXPECT_EQ(config_error(config_of({}, {{"Env", {1}}})), ErrorCode::image_invalid);
  EXPECT_EQ(config_error(config_of({}, {{"Env", {{"A", "1"}}}})), ErrorCode::image_invalid);
}

TEST(Config, IMG_29_TheWorkingDirectoryIsAPathBelowTheRoot) {
  const std::vector<std::pair<std::string, std::string>> paths{
      {"app", "/app"}, {"/a/../../../etc", "/etc"}, {"../..", "/"},   {"/", "/"}, {"//a//./b/", "/a/b"},
      {"", ""},        {"/a/..b", "/a/..b"},        {"/a/b/..", "/a"}};
  for (const auto& [text, clean] : paths)
    EXPECT_EQ(process_of({{"WorkingDir", text}}).working_dir, clean) << text;
  EXPECT_EQ(config_error(config_of({}, {{"WorkingDir", "/" + std::string(5000, 'a')}})),
            ErrorCode::image_invalid);
  EXPECT_EQ(config_error(config_of({}, {{"WorkingDir", std::string("/a\0b", 4)}})), ErrorCode::image_invalid);
}

TEST(Config, IMG_29_CommandsAreListsOfStrings) {
  EXPECT_EQ(config_error(config_of({}, {{"Entrypoint", "/bin/sh"}})), ErrorCode::image_invalid);
  EXPECT_EQ(config_error(config_of({}, {{"Cmd", "/bin/sh"}})), ErrorCode::image_invalid);
  EXPECT_EQ(config_error(config_of({}, {{"Cmd", {1}}})), ErrorCode::image_invalid);
  EXPECT_EQ(config_error(config_of({}, {{"Cmd", {std::string("a\0b", 3)}}})), ErrorCode::image_invalid);
  EXPECT_TRUE(process_of({{"Cmd", {"only"}}}).entrypoint.empty());
}

TEST(Config, IMG_29_OddMembersAreRefusedOrLeftOut) {
  EXPECT_EQ(process_of({{"Volumes", {{"/../../etc", Json::object()}}}}).volumes,
            std::vector<std::string>{"/etc"});
  EXPECT_TRUE(
      process_of({{"ExposedPorts", {{"99999/tcp", Json::object()}, {"0", Json::object()}, {"80/x", 1}}}})
          .exposed_ports.empty());
  EXPECT_EQ(process_of({{"StopSignal", "RTMIN+3"}}).stop_signal, "RTMIN+3");
  EXPECT_EQ(process_of({{"StopSignal", "kill -9 1; rm"}}).stop_signal, "");
  EXPECT_EQ(process_of({{"User", "4294967296"}}).user, "4294967296");
  EXPECT_EQ(config_error(config_of({}, {{"User", 0}})), ErrorCode::image_invalid);
  EXPECT_EQ(config_error(config_of({}, {{"User", std::string(300, 'u')}})), ErrorCode::image_invalid);
  EXPECT_EQ(config_error(config_of({}, {{"Labels", {{"a", 1}}}})), ErrorCode::image_invalid);
  EXPECT_EQ(config_error(config_of({}, {{"Healthcheck", 5}, {"Unknown", {1, {{"x", nullptr}}}}})),
            ErrorCode::internal)
      << "members that holt does not know do not matter";
  Json history = config_of({"a"});
  history["history"] = Json(500, {{"created_by", "x"}});
  EXPECT_EQ(parse_config(dump_json(history)).diff_ids.size(), 1U);
}

TEST(Config, IMG_29_WhatIsKeptOfItIsBounded) {
  Json many = Json::array();
  Json some = Json::array();
  Json names = Json::object();
  for (int i = 0; i < 150'000; ++i) {
    std::string entry = std::to_string(i) + "=";
    many.push_back(entry);
    if (i < 60'000) some.push_back(entry);
    names[entry] = "";
  }
  for (const char* member : {"Env", "Entrypoint", "Cmd"}) {
    EXPECT_EQ(config_error(config_of({}, {{member, many}})), ErrorCode::limit_exceeded) << member;
  }
  for (const char* member : {"ExposedPorts", "Volumes", "Labels"}) {
    EXPECT_EQ(config_error(config_of({}, {{member, names}})), ErrorCode::limit_exceeded) << member;
  }
  std::string large(k_member_bytes, 'x');
  EXPECT_EQ(config_error(config_of({}, {{"Env", {"A=" + large}}})), ErrorCode::limit_exceeded);
  EXPECT_EQ(config_error(config_of({}, {{"Labels", {{"a", large}}}})), ErrorCode::limit_exceeded);
  EXPECT_EQ(process_of({{"Env", some}}).env.size(), 60'000U);
}

TEST(Config, IMG_29_IsBounded) {
  std::string text = dump_json(config_of({}));
  EXPECT_NO_THROW(parse_config(text + std::string(k_config_bytes - text.size(), ' ')));
  auto large = failure([&] { parse_config(text + std::string(k_config_bytes, ' ')); });
  EXPECT_EQ(large.first, ErrorCode::limit_exceeded);
  EXPECT_EQ(failure([] { parse_config(std::string(100'000, '[')); }).first, ErrorCode::limit_exceeded);
  EXPECT_EQ(failure([] { parse_config(""); }).first, ErrorCode::image_invalid);
  EXPECT_EQ(failure([] { parse_config("{}"); }).first, ErrorCode::image_invalid);
}

TEST(Config, ThePlatformIsSaidOrThatOfMachines) {
  auto platform = [](Json os, Json architecture, Json variant = nullptr) {
    Json json = config_of({});
    json["os"] = std::move(os);
    json["architecture"] = std::move(architecture);
    json["variant"] = std::move(variant);
    return parse_config(dump_json(json)).platform.text();
  };
  EXPECT_EQ(platform(nullptr, nullptr), "linux/amd64");
  EXPECT_EQ(platform("windows", "amd64"), "windows/amd64");
  EXPECT_EQ(platform("linux", "arm64", "v8"), "linux/arm64/v8");
  EXPECT_EQ(failure([&] { platform("linux", "amd64/v3"); }).first, ErrorCode::image_invalid);
  EXPECT_EQ(failure([&] { platform("linux", ".."); }).first, ErrorCode::image_invalid);
  EXPECT_EQ(failure([&] { platform(1, "amd64"); }).first, ErrorCode::image_invalid);
}

}  // namespace
}  // namespace holt::image
