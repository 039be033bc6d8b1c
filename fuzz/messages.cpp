// Every message that either side decodes. What is accepted must survive being written and read again.
#include "holt/protocol/messages.hpp"

#include "fuzz.hpp"

using namespace holt;
using namespace holt::protocol;

namespace {

template <class Message>
void read(std::string_view payload) {
  auto message = decode<Message>(payload);
  if (!message) return;
  auto once = encode(*message);
  auto again = decode<Message>(once);
  fuzz::require(again && encode(*again) == once);
}

template <class... Messages>
void read_one(std::uint8_t choice, std::string_view payload) {
  std::uint8_t index = 0;
  ((index++ == choice % sizeof...(Messages) ? read<Messages>(payload) : void()), ...);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  auto choice = input.byte();
  auto payload = input.all();
  if ((choice & 1) != 0) {
    auto request = decode_request(payload);
    if (!request) return 0;
    auto once = encode_request(*request);
    auto again = decode_request(once);
    fuzz::require(again && encode_request(*again) == once && again->index() == request->index());
    return 0;
  }
  read_one<Hello, Failure, IdentityReply, ExecStarted, ExecReply, FileStatus, ReadFileReply, WriteFileReply,
           ExistsReply, DirectoryPage, ListReply, RemoveReply, RealPathReply, TreeEntry, TreeHole, TreePage,
           TreeReply, StatusReply, CommandStatus, CommandsReply, RenewReply, GrowReply, StatsReply, Done>(
      static_cast<std::uint8_t>(choice >> 1), payload);
  return 0;
}
