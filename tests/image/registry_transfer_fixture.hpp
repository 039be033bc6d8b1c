// A registry whose blobs are answered as a test says.
#pragma once

#include "image/registry_fixture.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace holt::image::test {

inline constexpr const char* k_manifest_type = "application/vnd.oci.image.manifest.v1+json";

inline std::string some_bytes(std::size_t size) {
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>((i * 31 + i / 251) & 0xff);
  return bytes;
}

class RegistryTransfer : public RegistryTest {
 protected:
  /// The n-th request for a blob (from 0) is answered by `script`.
  void script_blobs(std::function<std::optional<FakeReply>(int, const FakeRequest&)> script) {
    auto count = std::make_shared<std::atomic<int>>(0);
    registry_.script(
        [count, script = std::move(script)](const FakeRequest& request) -> std::optional<FakeReply> {
          if (!request.asks_for("/blobs/")) return std::nullopt;
          return script((*count)++, request);
        });
  }
  FakeReply cut(const FakeRequest& request, FakeReply::End end, std::size_t sent) {
    auto reply = registry_.good_reply(request);
    reply.end = end;
    reply.sent = sent;
    return reply;
  }
};

}  // namespace holt::image::test
