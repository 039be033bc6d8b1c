// Writers of libarchive that are given up.
#pragma once

struct archive;

namespace holt::image {

/// Ends a writer that was not closed: the member being written is not padded to its size, as a close alone
/// would do with zeros. The writer's callback may still get what libarchive holds and the end of an archive;
/// without the close libarchive would not free its buffer.
void give_up_archive(archive* writer);

}  // namespace holt::image
