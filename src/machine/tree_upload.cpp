#include "machine/tree_upload.hpp"

#include "machine/guest_link.hpp"

#include <algorithm>

namespace holt::machine {

using namespace protocol;

TreeUpload::TreeUpload(const MachineFolder& folder, const std::string& target, const CopyOptions& options)
    : patience_(options.call), log_(options) {
  TreeInRequest request{.path = target,
                        .keep_owner = options.owners == Owners::kept,
                        .owner = options.owner,
                        .user = options.user};
  connection_ = StreamConnection::open(folder, request, Effect::possible, patience_.next_step());
}

TreeUpload::~TreeUpload() {
  connection_->kill();
}

void TreeUpload::entry(const TreeEntry& entry) {
  if (!connection_->send_entry(encode(entry), patience_.next_step())) throw_early_end();
  log_.entry();
}

void TreeUpload::bytes(std::string_view bytes) {
  if (!connection_->send_input(bytes, patience_.next_step())) throw_early_end();
  log_.bytes(bytes.size());
}

void TreeUpload::hole(std::uint64_t size) {
  if (!connection_->send_entry(encode(TreeHole{.length = size}), patience_.next_step())) throw_early_end();
  log_.bytes(size);
}

CopyResult TreeUpload::finish() {
  connection_->end_input();
  auto reply = decode<TreeReply>(connection_->reply(patience_.next_step()));
  if (!reply) throw guest_protocol_error(reply.error());
  auto refused = std::min(reply->failed, log_.result.files);
  for (const auto& problem : reply->problems) log_.failed(problem.path, problem.message);
  // Only the first ones are named.
  log_.result.failed += refused - std::min<std::uint64_t>(refused, reply->problems.size());
  log_.result.files -= refused;
  return std::move(log_.result);
}

void TreeUpload::throw_early_end() {
  connection_->reply(patience_.next_step());
  throw Error(ErrorCode::guest_protocol, "The guest program ended a copy before its data");
}

}  // namespace holt::machine
