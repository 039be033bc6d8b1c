// What a user's program does first: find out whether machines can run here, and list what there is.
#include <holt/base/directories.hpp>
#include <holt/base/error.hpp>
#include <holt/image/engine_files.hpp>
#include <holt/image/store.hpp>
#include <iostream>

int main() {
  auto directories = holt::Directories::from_environment();
  holt::image::Store store(directories);
  for (const auto& image : store.list()) std::cout << image.reference << " " << image.digest << "\n";
  try {
    holt::image::EngineFiles::load(directories);
    std::cout << "engine installed\n";
  } catch (const holt::Error& error) {
    std::cout << holt::to_string(error.code()) << ": " << error.what() << "\n";
  }
}
