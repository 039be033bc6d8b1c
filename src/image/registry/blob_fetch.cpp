#include "image/registry/blob_fetch.hpp"

#include "image/blobs.hpp"

#include <charconv>

#include <fmt/format.h>

namespace holt::image {
namespace {

constexpr int k_whole = 200;
constexpr int k_part = 206;
constexpr int k_not_satisfiable = 416;
constexpr std::size_t k_etag_bytes = 256;

/// A weak one says nothing of bytes (RFC 9110, 8.8.1).
std::string strong_etag(const HttpHead& head) {
  auto text = head.header("etag");
  return text.starts_with('"') && text.size() <= k_etag_bytes ? std::string(text) : std::string();
}

}  // namespace

std::optional<std::uint64_t> first_byte(std::string_view content_range) {
  constexpr std::string_view k_unit = "bytes ";
  if (!content_range.starts_with(k_unit)) return std::nullopt;
  content_range.remove_prefix(k_unit.size());
  std::uint64_t first = 0;
  auto [end, error] =
      std::from_chars(content_range.data(), content_range.data() + content_range.size(), first);
  bool good = error == std::errc() && end != content_range.data() + content_range.size() && *end == '-';
  return good ? std::optional(first) : std::nullopt;
}

void BlobFetch::restart() {
  sink_.restart();
  etag_.clear();
  begun_elsewhere_ = false;
}

void BlobFetch::begin_again(const std::string& reason) {
  restart();
  throw TransferError(TransferError::Kind::broken, reason);
}

void BlobFetch::begin(const HttpHead& head, std::uint64_t offset) {
  if (head.status == k_whole) {
    if (offset > 0) restart();
    etag_ = strong_etag(head);
    return;
  }
  if (head.status != k_part) {
    throw TransferError(TransferError::Kind::broken, fmt::format("it answered {}", head.status));
  }
  if (first_byte(head.header("content-range")) != offset)
    begin_again("it answered with another part than asked for");
  auto etag = strong_etag(head);
  if (!etag_.empty() && !etag.empty() && etag != etag_) begin_again("it has other bytes now");
  if (!etag.empty()) etag_ = etag;
}

void BlobFetch::attempt(RegistryClient& client) {
  if (&client != client_) {
    client_ = &client;
    etag_.clear();
    begun_elsewhere_ = sink_.offset() > 0;
  }
  while (true) {
    try {
      transfer(client);
      if (sink_.is_right()) return;
      auto bytes = sink_.offset();
      throw digest_mismatch(
          descriptor_.digest,
          bytes == descriptor_.size
              ? fmt::format("{} sends other bytes", client.registry())
              : fmt::format("{} sends {} bytes instead of {}", client.registry(), bytes, descriptor_.size));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::digest_mismatch) throw;
      bool may_be_others = begun_elsewhere_;
      restart();
      if (!may_be_others) throw;
    }
  }
}

void BlobFetch::transfer(RegistryClient& client) {
  if (sink_.offset() > descriptor_.size) restart();
  auto offset = sink_.offset();
  if (offset == descriptor_.size && offset > 0) return;
  RegistryClient::Get get{.what = what_, .path = "blobs/" + descriptor_.digest};
  get.headers.emplace_back("Accept-Encoding", "identity");
  if (offset > 0) {
    get.headers.emplace_back("Range", fmt::format("bytes={}-", offset));
    if (!etag_.empty()) get.headers.emplace_back("If-Range", etag_);
  }
  get.on_head = [&](const HttpHead& head) { begin(head, offset); };
  get.on_body = [&](std::string_view piece) {
    sink_.write(piece);
    patience_.note_progress();
  };
  try {
    auto head = client.get(get);
    // Where the body says its length, a short one is a wrong blob and not a broken transfer.
    if (sink_.offset() < descriptor_.size && !head.is_delimited()) {
      throw TransferError(TransferError::Kind::broken,
                          fmt::format("fetch {} from {}: the connection ended", what_, client.registry()));
    }
  } catch (const Refusal& refusal) {
    if (refusal.status() != k_not_satisfiable || offset == 0) throw;
    begin_again(refusal.what());
  }
}

}  // namespace holt::image
