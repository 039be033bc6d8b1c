// Which blobs must stay: those of images, and those of pulls under way.
//
// A pull writes the digests it needs into its staging folder before it looks for the first of them, and the
// folder outlives the moment when the image's own record names them. Who removes a blob holds its lock and,
// holding it, reads the leases first and the records then. So a lease written before that is seen, and one
// written after it finds the blob gone and fetches it.
#pragma once

#include "image/blobs.hpp"
#include "image/folders.hpp"
#include "image/staging.hpp"

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace holt::image {

/// Keeps blobs, there or not yet, for as long as the staging folder lives.
void hold_blobs(const Staging& staging, const std::set<std::string>& digests);

/// What leases, images and names need, but for images that are to go.
std::set<std::string> needed_blobs(const Folders& folders, const std::set<std::string>& gone = {});

struct FreedBlobs {
  std::vector<std::string> digests;
  std::uint64_t bytes = 0;
};
/// Removes those of the blobs, and of their beginnings, that nothing needs and nobody is at.
FreedBlobs free_blobs(const Folders& folders, const std::vector<std::string>& digests);

}  // namespace holt::image
