#include "holt/machine/machine_image.hpp"

#include "holt/base/error.hpp"

#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <thread>

#include <fmt/format.h>

namespace holt {
namespace {

/// A token for what knows no deadlines: cancelled at one, and with the caller's own.
class TimedCancel {
 public:
  explicit TimedCancel(const CallOptions& call) : call_(call) {
    if (call.cancel) caller_ = call.cancel->on_cancel([token = token_] { token.cancel(); });
    auto at = call.deadline ? call.deadline->at() : std::nullopt;
    if (!at) return;
    timer_ = std::jthread([token = token_, at = *at](const std::stop_token& stop) {
      std::mutex mutex;
      std::unique_lock lock(mutex);
      std::condition_variable_any never;
      if (!never.wait_until(lock, stop, at, [] { return false; }) && !stop.stop_requested()) token.cancel();
    });
  }

  const CancellationToken& token() const { return token_; }
  /// The deadline was the reason.
  bool timed_out() const {
    return call_.deadline && call_.deadline->passed() && !(call_.cancel && call_.cancel->cancelled());
  }

 private:
  CallOptions call_;
  CancellationToken token_;
  CancellationToken::Registration caller_;
  std::jthread timer_;
};

/// What `scripts/setup` makes here; a registry that has the name knows nothing of it.
bool is_default(const std::string& name) {
  auto reference = image::parse_reference(name);
  return name.empty() || (reference && reference->canonical() == image::k_default_image);
}

image::Image fetch(const std::string& name, const ObtainOptions& options, const HostConfig& host,
                   const CancellationToken& cancel) {
  image::Store store(host.directories);
  if (image::is_local_image(name))
    return image::import_image(store, name,
                               {.limits = host.image_limits, .progress = options.progress, .cancel = cancel});
  bool here_only = is_default(name);
  return image::pull(store, here_only ? image::k_default_image : std::string_view(name),
                     {.policy = here_only ? image::PullPolicy::never : options.pull,
                      .registry = host.registry,
                      .limits = host.image_limits,
                      .progress = options.progress,
                      .cancel = cancel});
}

}  // namespace

image::Image obtain_image(const std::string& image, const ObtainOptions& options, const HostConfig& host) {
  TimedCancel limit(options.call);
  try {
    return fetch(image, options, host, limit.token());
  } catch (const Error& e) {
    if (e.code() != ErrorCode::cancelled || !limit.timed_out()) throw;
    throw Error(ErrorCode::timeout, fmt::format("The image {} did not come in time", printable(image, 300)),
                {.subject = image,
                 .hint = "What has come stays; the next pull goes on from there.",
                 .retryable = true,
                 .causes = {e.what()}});
  }
}

}  // namespace holt
