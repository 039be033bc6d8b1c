#include "image/tar_builder.hpp"

#include <cstring>

#include <fmt/format.h>

namespace holt::image::test {
namespace {

void put(std::string& header, std::size_t offset, std::size_t length, std::string_view text) {
  std::memcpy(header.data() + offset, text.data(), std::min(length, text.size()));
}

std::string pax_records(const Member& member) {
  std::string all;
  for (const auto& [key, value] : member.pax) {
    std::size_t rest = key.size() + value.size() + 3;
    std::size_t length = rest + 1;
    while (fmt::format("{}", length).size() + rest != length) ++length;
    all += fmt::format("{} {}=", length, key) + value + "\n";
  }
  return all;
}

}  // namespace

void TarBuilder::header(const Member& member, std::size_t size) {
  std::string block(512, '\0');
  put(block, 0, 100, member.path);
  put(block, 100, 8, fmt::format("{:07o}", member.mode));
  put(block, 108, 8, fmt::format("{:07o}", member.uid));
  put(block, 116, 8, fmt::format("{:07o}", member.gid));
  put(block, 124, 12, fmt::format("{:011o}", size));
  put(block, 136, 12, fmt::format("{:011o}", member.mtime));
  put(block, 148, 8, "        ");
  block[156] = member.type;
  put(block, 157, 100, member.link);
  put(block, 257, 8, std::string_view("ustar\00000", 8));
  put(block, 329, 8, fmt::format("{:07o}", member.major));
  put(block, 337, 8, fmt::format("{:07o}", member.minor));
  for (const auto& [offset, bytes] : member.raw) put(block, offset, bytes.size(), bytes);
  unsigned sum = 0;
  for (char c : block) sum += static_cast<unsigned char>(c);
  put(block, 148, 8, fmt::format("{:06o}\0", sum));
  bytes_ += block;
}

void TarBuilder::data(std::string_view content) {
  bytes_ += content;
  bytes_.resize((bytes_.size() + 511) / 512 * 512);
}

TarBuilder& TarBuilder::add(const Member& member) {
  if (!member.pax.empty()) {
    std::string records = pax_records(member);
    header({.path = "PaxHeaders/x", .type = 'x'}, records.size());
    data(records);
  }
  header(member, member.content.size());
  data(member.content);
  return *this;
}

}  // namespace holt::image::test
