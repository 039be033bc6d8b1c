// SHA-256 of a stream, piece by piece.
#pragma once

#include "holt/base/encoding.hpp"
#include "holt/base/error.hpp"

#include <memory>
#include <string>
#include <string_view>

#include <openssl/evp.h>

namespace holt::image {

class Sha256 {
 public:
  Sha256() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
    if (!context_ || EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) != 1) {
      throw Error(ErrorCode::internal, "start a SHA-256 digest: OpenSSL refused");
    }
  }
  void update(std::string_view bytes) { EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()); }
  /// 64 hexadecimal digits. Ends the digest.
  std::string finish_hex() {
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned length = 0;
    EVP_DigestFinal_ex(context_.get(), digest, &length);
    return hex(std::string_view(reinterpret_cast<const char*>(digest), length));
  }

 private:
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
};

}  // namespace holt::image
