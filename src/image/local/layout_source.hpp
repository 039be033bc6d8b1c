// An OCI image layout, in a folder or in a tar.
// Source: OCI image specification 1.1, image-layout.md.
#pragma once

#include "holt/image/platform.hpp"
#include "image/local/file_source.hpp"

#include <memory>
#include <string>
#include <string_view>

namespace holt::image {

class LayoutSource final : public FileSource {
 public:
  /// `select`: name, tag or digest of an entry of index.json; empty for the only one, or for that of the
  /// platform where all have one name. Throws Error USAGE when that leaves several or none, IMAGE_INVALID,
  /// NOT_SUPPORTED, LIMIT_EXCEEDED, NOT_FOUND when there is none for the platform.
  LayoutSource(std::unique_ptr<SourceFiles> files, std::string title, std::string_view select,
               const Platform& platform);
  /// Throws also DIGEST_MISMATCH when it is not what index.json says.
  RawDocument top() override;

 protected:
  FileSlice blob(const std::string& digest) const override;

 private:
  std::string read(const char* name, std::size_t limit) const;
  void check_version() const;

  std::unique_ptr<SourceFiles> files_;
  Descriptor chosen_;
};

}  // namespace holt::image
