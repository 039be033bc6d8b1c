#include "image/archive_writer.hpp"

#include <archive.h>

namespace holt::image {

void give_up_archive(archive* writer) {
  archive_write_fail(writer);
  archive_write_close(writer);
}

}  // namespace holt::image
