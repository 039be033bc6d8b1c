// An image in the files of a layout or a saved archive, as acquire() wants it.
#pragma once

#include "image/local/source_files.hpp"
#include "image/oci/source.hpp"

#include <string>

namespace holt::image {

/// What both have in common: blobs are runs of bytes in files.
class FileSource : public ImageSource {
 public:
  /// `title` names it in messages: "the layout ./app".
  explicit FileSource(std::string title) : title_(std::move(title)) {}
  std::string name() const override { return title_; }
  RawDocument document(const Descriptor& descriptor, std::size_t limit) override;
  void fetch(const Descriptor& descriptor, BlobSink& sink) override;

  /// What the source calls the image, NAME[:TAG]; a tag alone begins with ':'. Empty: nothing.
  const std::string& image_name() const { return image_name_; }

 protected:
  /// The blob of a digest. Throws Error IMAGE_INVALID when it is not there.
  virtual FileSlice blob(const std::string& digest) const = 0;
  std::string image_name_;

 private:
  std::string title_;
};

/// Throws Error USAGE for several images of which none was chosen.
[[noreturn]] void refuse_choice(std::string_view title, std::string_view select,
                                const std::vector<std::string>& names);

}  // namespace holt::image
