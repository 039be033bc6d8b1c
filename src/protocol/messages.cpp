#include "holt/protocol/messages.hpp"

#include "protocol/cbor.hpp"
#include "protocol/describe.hpp"

#include <array>
#include <utility>

namespace holt::protocol {
namespace {

// In the order of the variant's alternatives.
constexpr std::array<std::string_view, std::variant_size_v<Request>> k_operations = {
    "identity", "exec",           "read_file",    "write_file",     "stat",          "exists",
    "list",     "make_dir",       "remove",       "real_path",      "rename",        "tree_out",
    "tree_in",  "sync",           "shutdown",     "status",         "clock",         "start_command",
    "commands", "attach_command", "wait_command", "signal_command", "kill_command",  "renew",
    "grow",     "life",           "stats",        "resize_disk",    "set_attributes"};
constexpr std::string_view k_operation_key = "op";

template <std::size_t index = 0>
bool read_request(cbor::Reader& reader, std::string_view operation, std::uint64_t members, Request& out) {
  if constexpr (index == k_operations.size()) {
    return reader.fail(Violation::malformed_message, "an unknown operation");
  } else {
    if (operation != k_operations[index]) return read_request<index + 1>(reader, operation, members, out);
    return cbor::read_members(reader, out.emplace<index>(), members);
  }
}

}  // namespace

ErrorCode error_code(const Failure& failure) {
  return error_code_from(failure.code).value_or(ErrorCode::internal);
}

std::string_view operation_name(const Request& request) {
  return k_operations[request.index()];
}

std::string encode_request(const Request& request) {
  cbor::Writer writer;
  std::visit(
      [&]<class Message>(const Message& message) {
        writer.head(cbor::Major::map, 1 + boost::mp11::mp_size<cbor::Members<Message>>::value);
        writer.text(k_operation_key);
        writer.text(operation_name(request));
        cbor::write_members(writer, message);
      },
      request);
  return writer.take();
}

std::expected<Request, ProtocolError> decode_request(std::string_view payload) {
  cbor::Reader reader(payload);
  std::uint64_t members = 0;
  std::string_view key;
  std::string_view operation;
  Request request;
  bool good = reader.enter(cbor::Major::map, members);
  if (good && members == 0) good = reader.fail(Violation::malformed_message, "a request without operation");
  good = good && reader.string(key);
  if (good && key != k_operation_key) {
    good = reader.fail(Violation::malformed_message, "a request that does not begin with its operation");
  }
  good = good && reader.string(operation) && read_request(reader, operation, members - 1, request);
  if (good && !reader.at_end()) good = reader.fail(Violation::malformed_message, "bytes behind the message");
  if (!good) return std::unexpected(reader.error());
  return request;
}

template <class Message>
std::string encode(const Message& message) {
  cbor::Writer writer;
  cbor::write(writer, message);
  return writer.take();
}

template <class Message>
std::expected<Message, ProtocolError> decode(std::string_view payload) {
  cbor::Reader reader(payload);
  Message message;
  bool good = cbor::read(reader, message);
  if (good && !reader.at_end()) good = reader.fail(Violation::malformed_message, "bytes behind the message");
  if (!good) return std::unexpected(reader.error());
  return message;
}

#define HOLT_MESSAGE(Type)                  \
  template std::string encode(const Type&); \
  template std::expected<Type, ProtocolError> decode<Type>(std::string_view);
HOLT_MESSAGE(Hello)
HOLT_MESSAGE(Failure)
HOLT_MESSAGE(IdentityRequest)
HOLT_MESSAGE(IdentityReply)
HOLT_MESSAGE(ExecStarted)
HOLT_MESSAGE(ExecReply)
HOLT_MESSAGE(FileStatus)
HOLT_MESSAGE(ReadFileReply)
HOLT_MESSAGE(WriteFileReply)
HOLT_MESSAGE(ExistsReply)
HOLT_MESSAGE(DirectoryPage)
HOLT_MESSAGE(ListReply)
HOLT_MESSAGE(RemoveReply)
HOLT_MESSAGE(RealPathReply)
HOLT_MESSAGE(TreeEntry)
HOLT_MESSAGE(TreeHole)
HOLT_MESSAGE(TreePage)
HOLT_MESSAGE(TreeReply)
HOLT_MESSAGE(StatusReply)
HOLT_MESSAGE(CommandStatus)
HOLT_MESSAGE(CommandsReply)
HOLT_MESSAGE(RenewReply)
HOLT_MESSAGE(GrowReply)
HOLT_MESSAGE(StatsReply)
HOLT_MESSAGE(Done)
#undef HOLT_MESSAGE

}  // namespace holt::protocol
