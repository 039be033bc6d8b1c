#include "replay/service.hpp"

#include "holt/base/error.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace holt::replay {
namespace {

bool is_event_stream(const std::string& body) {
  return body.starts_with("event:") || body.starts_with("data:");
}

bool has_header(const Reply& reply, std::string_view name) {
  return std::any_of(reply.headers.begin(), reply.headers.end(), [&](const auto& header) {
    return std::equal(header.first.begin(), header.first.end(), name.begin(), name.end(),
                      [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); });
  });
}

/// The raw keys of an entry laid over the API's own answer.
Reply make_reply(const Json& entry, const Api& api, const Request& request, std::size_t number) {
  int status = entry.value("status", 200);
  bool raw_body = entry.contains("body");
  Reply reply;
  if (!raw_body && status < 300) reply = api.answer(entry, request, number);
  reply.status = status;
  auto headers = entry.value("headers", Json::object());
  if (!headers.empty()) reply.headers.clear();
  for (const auto& [name, value] : headers.items()) reply.headers.emplace_back(name, value);
  if (raw_body) {
    const auto& body = entry["body"];
    reply.body = body.is_string() ? body.get<std::string>() : dump_json(body);
  } else if (status >= 300) {
    reply.body = api.error_body(status, entry.value("text", std::string("scripted error")));
  }
  if (!has_header(reply, "content-type")) {
    reply.headers.emplace_back("content-type",
                               is_event_stream(reply.body) ? "text/event-stream" : "application/json");
  }
  if (entry.contains("chunks")) reply.splits = entry["chunks"].get<std::vector<std::size_t>>();
  auto cut = entry.value("cut", Json(false));
  if (cut == true) reply.cut_at = reply.body.size();
  if (cut.is_number()) reply.cut_at = std::min(cut.get<std::size_t>(), reply.body.size());
  return reply;
}

}  // namespace

Service::Service(ReplayScript script, std::function<void(const std::string&)> on_misfit)
    : apis_(all_apis()), player_(std::move(script)), on_misfit_(std::move(on_misfit)) {}

TimedReply Service::handle(const HttpCall& call) {
  ++requests_;
  auto it = std::find_if(apis_.begin(), apis_.end(), [&](const auto& api) { return api->takes(call); });
  if (it == apis_.end()) return misfit(call, *apis_.front(), "no API that is known here has this path");
  const Api& api = **it;
  try {
    auto request = api.read(call);
    const auto& entry = player_.take(request);
    return {.reply = make_reply(entry.reply, api, request, requests_),
            .delay = std::chrono::milliseconds(entry.reply.value("delay_ms", 0))};
  } catch (const std::exception& error) {  // a Misfit, or a request in a shape that no check foresaw
    return misfit(call, api, error.what());
  }
}

TimedReply Service::misfit(const HttpCall& call, const Api& api, const std::string& why) {
  auto sentence = fmt::format("request {} ({} {}) does not fit: {}", requests_, printable(call.method, 20),
                              printable(call.path, 200), why);
  misfits_.push_back(sentence);
  if (on_misfit_) on_misfit_(sentence);
  TimedReply out;
  out.reply.status = 400;
  out.reply.headers = {{"content-type", "application/json"}};
  out.reply.body = api.error_body(400, sentence);
  return out;
}

ReplayReport Service::report() const {
  return {.misfits = misfits_, .unused = player_.unused_lines()};
}

}  // namespace holt::replay
