// An archive of `docker save` as it was before OCI layouts were in it: manifest.json, HEX.json,
// HEX/layer.tar. It has no manifest with digests; one is made of what is there.
// Source: Docker image specification 1.2, "Combined Image JSON + Filesystem Changeset Format".
#pragma once

#include "holt/base/cancellation.hpp"
#include "image/local/file_source.hpp"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace holt::image {

class SavedSource final : public FileSource {
 public:
  /// Digests the image's layers. `select`: a name of the image or the digest of its configuration; empty for
  /// the only one. Throws Error USAGE when that leaves several or none, IMAGE_INVALID, LIMIT_EXCEEDED,
  /// CANCELLED.
  SavedSource(std::unique_ptr<ArchiveFiles> files, std::string title, std::string_view select,
              const std::optional<CancellationToken>& cancel);
  RawDocument top() override { return top_; }

 protected:
  FileSlice blob(const std::string& digest) const override;

 private:
  struct Entry;
  std::string read(const std::string& member, std::size_t limit) const;
  std::vector<Entry> read_entries() const;
  Entry choose_entry(std::string_view select) const;
  FileSlice open(const std::string& member) const;
  Descriptor layer(const std::string& member, const std::optional<CancellationToken>& cancel) const;

  std::unique_ptr<ArchiveFiles> files_;
  RawDocument top_;
  std::map<std::string, std::string> members_;  ///< digest -> member
};

}  // namespace holt::image
