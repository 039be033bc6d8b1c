// zlib for gzip and libzstd for zstd, whose limits and ends are ours to decide; libarchive for what only
// kernels use.
#include "holt/base/error.hpp"
#include "image/byte_source.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>

namespace holt::image {
namespace {

using namespace std::literals;

constexpr std::size_t k_out_bytes = std::size_t{256} << 10;
constexpr std::size_t k_kernel_window_bytes = std::size_t{128}
                                              << 20;  ///< `zstd --ultra -22`, as kernels are built

enum class Format { plain, gzip, zstd, xz, lz4, other };

struct Magic {
  std::string_view bytes;
  Format format;
  std::string_view name;
};
constexpr std::array k_magics{
    Magic{"\x1f\x8b"sv, Format::gzip, "gzip"},
    Magic{"\x28\xb5\x2f\xfd"sv, Format::zstd, "zstd"},
    Magic{"\xfd"
          "7zXZ\0"sv,
          Format::xz, "xz"},
    Magic{"\x04\x22\x4d\x18"sv, Format::lz4, "lz4"},
    Magic{"\x02\x21\x4c\x18"sv, Format::lz4, "lz4"},
    Magic{"BZh91AY&SY"sv, Format::other, "bzip2"},
    Magic{"LZIP\x01"sv, Format::other, "lzip"},
    Magic{"\x1f\x9d"sv, Format::other, "compress"},
};
constexpr std::size_t k_magic_bytes = 10;  ///< the longest

/// A frame of zstd that its readers pass over may come first: 0x184D2A50 to 0x184D2A5F.
bool is_skippable_frame(std::string_view bytes) {
  return bytes.size() >= 4 && (static_cast<unsigned char>(bytes[0]) & 0xf0U) == 0x50 &&
         bytes.substr(1, 3) == "\x2a\x4d\x18"sv;
}

Magic magic_of(std::string_view bytes) {
  for (const Magic& magic : k_magics) {
    if (bytes.starts_with(magic.bytes)) return magic;
  }
  if (is_skippable_frame(bytes)) return {.bytes = {}, .format = Format::zstd, .name = "zstd"};
  // The block size of bzip2, 1 to 9, stands amid its magic.
  if (bytes.size() >= k_magic_bytes && bytes.starts_with("BZh") && bytes.substr(4, 6) == "1AY&SY") {
    return {.bytes = {}, .format = Format::other, .name = "bzip2"};
  }
  return {.bytes = {}, .format = Format::plain, .name = "none"};
}

[[noreturn]] void damaged(std::string_view reason) {
  throw Error(ErrorCode::image_invalid, fmt::format("decompress the image: {}", reason));
}

[[noreturn]] void not_supported(std::string_view which) {
  throw Error(ErrorCode::not_supported, fmt::format("decompress the image: {} is not supported", which),
              {.hint = "Use a plain tar, gzip or zstd."});
}

/// Bytes that have been read, then those of a source.
class HeadSource final : public ByteSource {
 public:
  HeadSource(std::string head, ByteSource& below) : head_(std::move(head)), below_(below) {}
  std::string_view read() override {
    if (std::exchange(head_is_next_, false) && !head_.empty()) return head_;
    return below_.read();
  }

 private:
  std::string head_;
  bool head_is_next_ = true;
  ByteSource& below_;
};

class GzipSource final : public ByteSource {
 public:
  explicit GzipSource(ByteSource& below) : below_(below), out_(k_out_bytes, '\0') {
    constexpr int k_with_gzip_header = 16 + MAX_WBITS;
    if (::inflateInit2(&stream_, k_with_gzip_header) != Z_OK) {
      throw Error(ErrorCode::internal, "start to decompress gzip: zlib refused");
    }
  }
  ~GzipSource() override { ::inflateEnd(&stream_); }
  GzipSource(const GzipSource&) = delete;
  GzipSource& operator=(const GzipSource&) = delete;

  std::string_view read() override {
    stream_.next_out = reinterpret_cast<Bytef*>(out_.data());
    stream_.avail_out = static_cast<uInt>(out_.size());
    while (stream_.avail_out == out_.size()) {
      if (in_.empty() && !pending_) in_ = below_.read();
      if (in_.empty() && !pending_) {
        if (inside_) damaged("its gzip data are cut");
        return {};
      }
      inflate_some();
    }
    return {out_.data(), out_.size() - stream_.avail_out};
  }

 private:
  void inflate_some() {
    inside_ = true;
    auto given = static_cast<uInt>(std::min<std::size_t>(in_.size(), std::numeric_limits<uInt>::max()));
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in_.data()));
    stream_.avail_in = given;
    int status = ::inflate(&stream_, Z_NO_FLUSH);
    in_.remove_prefix(given - stream_.avail_in);
    pending_ = status == Z_OK && stream_.avail_out == 0;
    if (status == Z_STREAM_END) {
      inside_ = false;
      ::inflateReset(&stream_);  // for the next member
    } else if (status != Z_OK && status != Z_BUF_ERROR) {
      damaged(fmt::format("its gzip data are damaged ({})", stream_.msg ? stream_.msg : "unknown"));
    }
  }

  ByteSource& below_;
  std::string_view in_;
  std::string out_;
  z_stream stream_{};
  bool inside_ = false;   ///< a member has begun and not ended
  bool pending_ = false;  ///< zlib may hold output for which there was no room
};

class ZstdSource final : public ByteSource {
 public:
  ZstdSource(ByteSource& below, std::size_t window)
      : below_(below),
        window_(window),
        out_(ZSTD_DStreamOutSize(), '\0'),
        context_(ZSTD_createDCtx(), ZSTD_freeDCtx) {
    auto log = static_cast<int>(std::bit_width(window) - 1);
    if (!context_ || ZSTD_isError(ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax, log))) {
      throw Error(ErrorCode::internal, "start to decompress zstd: libzstd refused");
    }
  }

  std::string_view read() override {
    ZSTD_outBuffer out{out_.data(), out_.size(), 0};
    while (out.pos == 0) {
      if (in_.empty() && !pending_) in_ = below_.read();
      if (in_.empty() && !pending_) {
        if (inside_) damaged("its zstd data are cut");
        return {};
      }
      ZSTD_inBuffer in{in_.data(), in_.size(), 0};
      std::size_t status = ZSTD_decompressStream(context_.get(), &out, &in);
      check(status);
      inside_ = status != 0;
      pending_ = inside_ && out.pos == out.size;
      in_.remove_prefix(in.pos);
    }
    return {out_.data(), out.pos};
  }

  std::uint64_t memory() const override { return ZSTD_sizeof_DCtx(context_.get()); }

 private:
  void check(std::size_t status) const {
    if (!ZSTD_isError(status)) return;
    if (ZSTD_getErrorCode(status) == ZSTD_error_frameParameter_windowTooLarge) {
      throw Error(ErrorCode::limit_exceeded,
                  fmt::format("decompress the image: its zstd data need a window of more than {} MiB",
                              window_ >> 20));
    }
    damaged(fmt::format("its zstd data are damaged ({})", ZSTD_getErrorName(status)));
  }

  ByteSource& below_;
  std::size_t window_;
  std::string_view in_;
  std::string out_;
  std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context_;
  bool inside_ = false;   ///< a frame has begun and not ended
  bool pending_ = false;  ///< libzstd may hold output for which there was no room
};

/// xz and lz4, by libarchive.
class ArchiveSource final : public ByteSource {
 public:
  explicit ArchiveSource(ByteSource& below) : feed_(below), handle_(archive_read_new()) {
    archive_read_support_filter_xz(handle_.get());
    archive_read_support_filter_lz4(handle_.get());
    archive_read_support_format_raw(handle_.get());
    archive_entry* entry = nullptr;
    int status = feed_.open(handle_.get());
    if (status == ARCHIVE_OK) status = archive_read_next_header(handle_.get(), &entry);
    check(status);
  }

  std::string_view read() override {
    const void* data = nullptr;
    std::size_t size = 0;
    la_int64_t offset = 0;
    while (true) {
      int status = archive_read_data_block(handle_.get(), &data, &size, &offset);
      if (status == ARCHIVE_EOF) return {};
      check(status);
      if (size > 0) return {static_cast<const char*>(data), size};
    }
  }

 private:
  void check(int status) {
    feed_.rethrow();
    if (status == ARCHIVE_OK || status == ARCHIVE_WARN) return;
    const char* text = archive_error_string(handle_.get());
    damaged(text ? printable(text, 200) : "unreadable");
  }

  ArchiveFeed feed_;
  ArchiveHandle handle_;
};

/// Enough to know a magic, or all there is.
std::string read_head(ByteSource& source) {
  std::string head;
  while (head.size() < k_magic_bytes) {
    std::string_view piece = source.read();
    if (piece.empty()) break;
    head += piece;
  }
  return head;
}

std::unique_ptr<ByteSource> open(ByteSource& source, const Magic& magic, Compressions accepted) {
  bool kernel = accepted == Compressions::kernel;
  switch (magic.format) {
    case Format::plain:
      return nullptr;
    case Format::gzip:
      return std::make_unique<GzipSource>(source);
    case Format::zstd:
      return std::make_unique<ZstdSource>(source, kernel ? k_kernel_window_bytes : k_zstd_window_bytes);
    case Format::xz:
    case Format::lz4:
      if (kernel) return std::make_unique<ArchiveSource>(source);
      [[fallthrough]];
    default:
      not_supported(magic.name);
  }
}

}  // namespace

bool is_compressed(std::string_view beginning) {
  return magic_of(beginning).format != Format::plain;
}

DecompressedSource::DecompressedSource(ByteSource& below, Compressions accepted) {
  std::string head = read_head(below);
  Magic magic = magic_of(head);
  head_ = std::make_unique<HeadSource>(std::move(head), below);
  plain_ = open(*head_, magic, accepted);
  look_inside_ = plain_ && accepted == Compressions::layers;
}

DecompressedSource::~DecompressedSource() = default;

std::string_view DecompressedSource::read() {
  std::string_view piece = plain_ ? plain_->read() : head_->read();
  if (std::exchange(look_inside_, false)) {
    Magic inner = magic_of(piece);
    if (inner.format != Format::plain) not_supported(fmt::format("nested {}", inner.name));
  }
  return piece;
}

}  // namespace holt::image
