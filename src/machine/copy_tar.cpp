// Tars in and out of a machine.
#include "machine/tar_items.hpp"
#include "machine/tar_writer.hpp"
#include "machine/tree_copy.hpp"
#include "machine/tree_upload.hpp"

#include <fmt/format.h>

namespace holt::machine {

CopyResult copy_tar_in(const MachineFolder& folder, const TarInput& tar, const std::string& target,
                       const CopyOptions& options) {
  TreeUpload upload(folder, target, options);
  send_tar(tar, upload, upload.log());
  return upload.finish();
}

CopyResult copy_tar_out(const MachineFolder& folder, const std::string& source, const TarOutput& tar,
                        const CopyOptions& options) {
  auto name = std::filesystem::path(source).lexically_normal();
  if (!name.has_filename()) name = name.parent_path();
  // A hole of a terabyte is a terabyte of zeroes: its end need not be waited for.
  TarOutput output = [&](std::string_view bytes) {
    if (options.call.cancel) options.call.cancel->throw_if_cancelled();
    if (options.call.deadline && options.call.deadline->passed()) {
      throw Error(ErrorCode::timeout, fmt::format("Copying {} took too long", printable(source)));
    }
    tar(bytes);
  };
  TarWriter writer(output, name.has_filename() ? name.filename().string() : "file");
  return receive_tree(folder, source, writer, options);
}

}  // namespace holt::machine
