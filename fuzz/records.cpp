// The state files of a machine, and what monitor and starter tell each other. A damaged file is an Error or a
// machine that failed, never anything else.
#include "fuzz.hpp"
#include "holt/base/error.hpp"
#include "machine/event_log.hpp"
#include "machine/launch.hpp"
#include "machine/record.hpp"

using namespace holt;
using namespace holt::machine;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  auto choice = input.byte();
  auto text = input.all();
  try {
    switch (choice % 5) {
      case 0: {
        auto record = decode_record(text);
        auto once = encode_record(record);
        fuzz::require(encode_record(decode_record(once)) == once);
        break;
      }
      case 1:
        decode_status(encode_status(decode_status(text)));
        break;
      case 2: {
        auto once = encode_launch(decode_launch(text));
        fuzz::require(encode_launch(decode_launch(once)) == once);
        break;
      }
      case 3:
        decode_report(text);
        break;
      default:
        if (auto event = decode_event(text)) fuzz::require(!event->kind.empty());
        break;
    }
  } catch (const Error& error) {
    fuzz::require(*error.what() != '\0');
  }
  return 0;
}
