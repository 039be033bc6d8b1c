#include "guest/jobs.hpp"

#include "guest/channel.hpp"

#include <utility>

namespace holt::guest {

bool JobStream::send(protocol::FrameType type, std::string payload) {
  std::unique_lock lock(hub_.mutex_);
  hub_.changed_.wait(lock, [&] {
    bool room = !hub_.congested_ && hub_.outbox_bytes_ < k_high_water;
    return cancelled_ || (room && (!costs_credit(type) || credit_.can_send(payload.size())));
  });
  if (cancelled_) return false;
  if (costs_credit(type)) credit_.spend(payload.size());
  hub_.post(lock, {.outlet = outlet_, .type = type, .payload = std::move(payload)});
  return true;
}

std::optional<protocol::Frame> JobStream::receive() {
  std::unique_lock lock(hub_.mutex_);
  hub_.changed_.wait(lock, [&] { return cancelled_ || !input_.empty(); });
  if (cancelled_) return std::nullopt;
  auto frame = std::move(input_.front());
  input_.pop_front();
  return frame;
}

void JobStream::release(std::size_t payload) {
  // Waking the loop for each of many small frames would take longer than the frames do.
  constexpr std::size_t k_step = protocol::k_initial_window / 8;
  unreleased_ += protocol::frame_cost(payload);
  if (unreleased_ < k_step) return;
  std::unique_lock lock(hub_.mutex_);
  hub_.post(lock, {.outlet = outlet_,
                   .type = protocol::FrameType::credit,
                   .payload = {},
                   .released = std::exchange(unreleased_, 0) - protocol::k_header_size});
}

bool JobStream::cancelled() {
  std::unique_lock lock(hub_.mutex_);
  return cancelled_;
}

void JobStream::on_frame(protocol::Frame frame) {
  std::unique_lock lock(hub_.mutex_);
  switch (frame.header.type) {
    case protocol::FrameType::cancel:
      cancelled_ = true;
      break;
    case protocol::FrameType::input:
    case protocol::FrameType::entry:
      input_.push_back(std::move(frame));
      break;
    default:
      return;
  }
  hub_.changed_.notify_all();
}

std::expected<void, protocol::ProtocolError> JobStream::on_credit(std::uint32_t bytes) {
  std::unique_lock lock(hub_.mutex_);
  auto granted = credit_.grant(bytes);
  hub_.changed_.notify_all();
  return granted;
}

void JobStream::on_disconnect() {
  std::unique_lock lock(hub_.mutex_);
  cancelled_ = true;
  hub_.changed_.notify_all();
}

namespace {

/// Out of memory must end one operation and not the machine.
Outcome<std::string> run_guarded(const JobHub::Job& job, JobStream& stream) {
  try {
    return job(stream);
  } catch (const std::exception& error) {
    return refuse(ErrorCode::internal, std::string("the guest program failed: ") + error.what());
  }
}

}  // namespace

JobHub::~JobHub() {
  {
    std::unique_lock lock(mutex_);
    ending_ = true;
    wanted_.notify_all();
  }
  for (auto& thread : threads_) thread.join();
}

std::shared_ptr<StreamHandler> JobHub::run(Outlet outlet, Job job, Urgency urgency) {
  std::unique_lock lock(mutex_);
  const bool full = idle_ <= waiting_.size() && threads_.size() >= max_threads_;
  if (full && urgency == Urgency::normal) return nullptr;
  auto stream = std::make_shared<JobStream>(*this, outlet);
  waiting_.push_back([this, stream, job = std::move(job)] {
    auto result = run_guarded(job, *stream);
    std::unique_lock inner(mutex_);
    if (stream->cancelled_) result = refuse(ErrorCode::cancelled, "the operation was cancelled");
    using enum protocol::FrameType;
    post(inner, {.outlet = stream->outlet_,
                 .type = result ? reply : failure,
                 .payload = result ? std::move(*result) : protocol::encode(result.error())});
  });
  if (idle_ < waiting_.size()) {
    threads_.emplace_back([this] { work(); });
  }
  wanted_.notify_one();
  return stream;
}

void JobHub::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    ++idle_;
    wanted_.wait(lock, [&] { return ending_ || !waiting_.empty(); });
    --idle_;
    if (waiting_.empty()) return;
    auto job = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    job();
    lock.lock();
  }
}

void JobHub::post(std::unique_lock<std::mutex>&, Message message) {
  bool first = outbox_.empty();
  outbox_bytes_ += message.payload.size();
  outbox_.push_back(std::move(message));
  if (first) loop_.post([this] { deliver(); });
}

void JobHub::deliver() {
  std::vector<Message> messages;
  {
    std::unique_lock lock(mutex_);
    messages.swap(outbox_);
    outbox_bytes_ = 0;
  }
  bool congested = false;
  for (auto& message : messages) {
    if (message.type == protocol::FrameType::credit) {
      message.outlet.release(message.released);
    } else {
      message.outlet.send(message.type, std::move(message.payload));
    }
    congested = message.outlet.congested();
  }
  std::unique_lock lock(mutex_);
  congested_ = congested;
  changed_.notify_all();
}

void JobHub::on_drained() {
  std::unique_lock lock(mutex_);
  congested_ = false;
  changed_.notify_all();
}

}  // namespace holt::guest
