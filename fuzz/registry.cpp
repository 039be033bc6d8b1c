// What a registry says about itself in headers and bodies: challenges, places, ranges, errors.
#include "fuzz.hpp"
#include "image/registry/blob_fetch.hpp"
#include "image/registry/challenge.hpp"
#include "image/registry/refusal.hpp"
#include "image/registry/url.hpp"

#include <algorithm>
#include <string>

using namespace holt;

namespace {

// What is sent and shown stays in its line.
void check_line(std::string_view text) {
  fuzz::require(std::ranges::none_of(text, [](unsigned char c) { return c < ' ' || c == 0x7f; }));
}

void check_url(const image::Url& url) {
  fuzz::require(url.scheme == "http" || url.scheme == "https");
  fuzz::require(!url.host.empty() && url.port <= 65535 && url.path.starts_with('/'));
  check_line(url.text());
  // No key of a storage server is shown.
  fuzz::require(url.shown().find('?') == std::string::npos);
  auto again = image::parse_url(url.text());
  fuzz::require(again && again->origin() == url.origin());
  image::is_loopback_name(url.host);
}

void check_challenges(std::string_view text) {
  auto challenges = image::parse_challenges(text);
  fuzz::require(challenges.size() <= 16);
  for (const auto& challenge : challenges) {
    fuzz::require(!challenge.scheme.empty() && challenge.parameters.size() <= 16);
    for (const auto& [name, value] : challenge.parameters) fuzz::require(value.size() <= 4096);
    auto realm = image::parse_url(challenge.parameter("realm"));
    if (!realm) continue;
    check_url(*realm);
    realm->add_parameter("scope", challenge.parameter("scope"));
    check_line(realm->text());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  auto choice = input.byte();
  auto text = input.all();
  switch (choice % 4) {
    case 0:
      check_challenges(text);
      break;
    case 1: {
      auto base = image::parse_url("https://registry.example/v2/a/blobs/b?key=secret");
      fuzz::require(base.has_value());
      if (auto url = image::parse_url(text)) check_url(*url);
      if (auto url = image::resolve_url(*base, text)) check_url(*url);
      break;
    }
    case 2:
      image::first_byte(text);
      break;
    default: {
      check_line(image::error_words(text));
    }
  }
  return 0;
}
