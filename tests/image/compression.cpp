#include "image/compression.hpp"

#include <memory>
#include <stdexcept>
#include <zlib.h>
#include <zstd.h>

namespace holt::image::test {

std::string gzip(std::string_view bytes) {
  z_stream stream{};
  constexpr int k_with_gzip_header = 16 + MAX_WBITS;
  if (::deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, k_with_gzip_header, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::runtime_error("deflateInit2");
  std::string out(::deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  int status = ::deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  ::deflateEnd(&stream);
  if (status != Z_STREAM_END) throw std::runtime_error("deflate");
  return out;
}

std::string zstd(std::string_view bytes) {
  return zstd_with_window(bytes, 0);
}

std::string zstd_with_window(std::string_view bytes, int window_log) {
  std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> context(ZSTD_createCCtx(), ZSTD_freeCCtx);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, 1);
  if (window_log != 0) ZSTD_CCtx_setParameter(context.get(), ZSTD_c_windowLog, window_log);
  // As a stream of unknown length: the frame then says its window instead of its size.
  std::string out(ZSTD_compressBound(bytes.size()) + 64, '\0');
  ZSTD_outBuffer to{out.data(), out.size(), 0};
  ZSTD_inBuffer from{bytes.data(), bytes.size(), 0};
  ZSTD_compressStream2(context.get(), &to, &from, ZSTD_e_continue);
  if (ZSTD_compressStream2(context.get(), &to, &from, ZSTD_e_end) != 0) throw std::runtime_error("zstd");
  out.resize(to.pos);
  return out;
}

}  // namespace holt::image::test
