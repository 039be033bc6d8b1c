#include "image/local/file_source.hpp"

#include "holt/base/error.hpp"

#include <fmt/format.h>

namespace holt::image {
namespace {

constexpr std::size_t k_piece_bytes = std::size_t{1} << 20;
constexpr std::size_t k_names_shown = 20;

}  // namespace

RawDocument FileSource::document(const Descriptor& descriptor, std::size_t limit) {
  return {.bytes = read_slice(blob(descriptor.digest), limit, descriptor.digest),
          .media_type = descriptor.media_type};
}

void FileSource::fetch(const Descriptor& descriptor, BlobSink& sink) {
  FileSlice slice = blob(descriptor.digest);
  if (sink.offset() > slice.size) sink.restart();
  for (std::uint64_t at = sink.offset(); at < slice.size;) {
    std::string piece = read_at(slice, at, k_piece_bytes);
    if (piece.empty()) return;
    sink.write(piece);
    at += piece.size();
  }
}

void refuse_choice(std::string_view title, std::string_view select, const std::vector<std::string>& names) {
  std::vector<std::string> shown;
  for (const std::string& name : names) {
    if (shown.size() == k_names_shown) {
      shown.emplace_back("others");
      break;
    }
    shown.push_back(printable(name, 200));
  }
  std::string list = fmt::format("{}", fmt::join(shown, ", "));
  if (select.empty()) {
    throw Error(ErrorCode::usage, fmt::format("choose an image of {}: it holds {}", title, list),
                {.hint = "Select one of them by its name or digest."});
  }
  throw Error(ErrorCode::usage, fmt::format("choose the image '{}' of {}: it holds {}",
                                            printable(select, 200), title, list.empty() ? "no image" : list));
}

}  // namespace holt::image
