#include "holt/base/error.hpp"
#include "holt/models/anthropic.hpp"
#include "models/anthropic_mapping.hpp"
#include "models/anthropic_reply.hpp"
#include "models/exchange.hpp"

#include <algorithm>
#include <cctype>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace holt {
namespace {

constexpr const char* k_api_version = "2026-10-21";
constexpr std::size_t k_stream_limit = std::size_t{256} << 20;

using HeaderList = std::vector<std::pair<std::string, std::string>>;

bool same_name(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

void set_header(HeaderList& headers, const std::string& name, const std::string& value) {
  std::erase_if(headers, [&](const auto& header) { return same_name(header.first, name); });
  headers.emplace_back(name, value);
}

void add_betas(const ModelSettings& settings, HeaderList& headers) {
  auto betas = settings.value("anthropic_betas", Json());
  if (!betas.is_array()) return;
  std::set<std::string> names;
  for (const auto& beta : betas) {
    if (beta.is_string()) names.insert(beta.get<std::string>());
  }
  if (!names.empty()) set_header(headers, "anthropic-beta", fmt::format("{}", fmt::join(names, ",")));
}

void add_extra_headers(const ModelSettings& settings, HeaderList& headers) {
  auto extra = settings.value("extra_headers", Json());
  if (!extra.is_object()) return;
  for (const auto& [name, value] : extra.items()) {
    if (!value.is_string()) throw UserError("The values of the setting `extra_headers` must be texts");
    set_header(headers, name, value.get<std::string>());
  }
}

void check_event_stream(const HttpHead& head, bool& is_stream) {
  auto type = head.headers.find("content-type");
  is_stream = type == head.headers.end() || type->second.find("event-stream") != std::string::npos;
}

class AnthropicModel : public Model {
 public:
  AnthropicModel(std::string model_name, AnthropicOptions options)
      : model_name_(std::move(model_name)),
        options_(std::move(options)),
        profile_(options_.profile ? *options_.profile : profile_for("anthropic", model_name_)),
        clock_{.sleep = options_.clock.sleep, .now = options_.clock.now} {
    if (options_.api_key.empty()) throw UserError("The key of the Anthropic provider is empty");
  }

  std::string model_name() const override { return model_name_; }
  std::string provider_name() const override { return "anthropic"; }
  const ModelProfile& profile() const override { return profile_; }
  const ModelSettings& settings() const override { return options_.settings; }

  ModelRequestParameters resolve(ModelRequestParameters parameters,
                                 const ModelSettings& settings) const override {
    return anthropic::resolve_parameters(std::move(parameters), profile_, settings);
  }

  Task<ModelResponse> request(MessageHistory messages, ModelSettings settings,
                              ModelRequestParameters parameters) override {
    settings = merge_settings(options_.settings, settings);
    auto resolved = resolve(std::move(parameters), settings);
    auto body = make_body(messages, settings, resolved, anthropic::Delivery::whole);
    if (body.value("stream", Json()) == true) {
      StreamedResponse gathered;
      co_await stream_body(std::move(body), settings, resolved, gathered);
      co_return std::move(gathered.response);
    }
    co_return co_await whole_body(std::move(body), settings);
  }

  Task<void> request_stream(MessageHistory messages, ModelSettings settings,
                            ModelRequestParameters parameters, StreamedResponse& stream) override {
    settings = merge_settings(options_.settings, settings);
    auto resolved = resolve(std::move(parameters), settings);
    auto body = make_body(messages, settings, resolved, anthropic::Delivery::streamed);
    co_await stream_body(std::move(body), settings, resolved, stream);
  }

 private:
  Json make_body(const MessageHistory& messages, const ModelSettings& settings,
                 const ModelRequestParameters& resolved, anthropic::Delivery delivery) const {
    return anthropic::build_body(
        {.model_name = model_name_, .profile = profile_, .settings = settings, .parameters = resolved},
        messages, delivery);
  }

  HttpRequest make_request(const Json& body, const ModelSettings& settings) const {
    std::string_view base = options_.base_url;
    while (base.ends_with('/')) base.remove_suffix(1);
    HttpRequest request{.url = fmt::format("{}/v1/messages", base)};
    request.headers = {{"content-type", "application/json"},
                       {"accept", "application/json"},
                       {"user-agent", "holt"},
                       {"anthropic-version", k_api_version},
                       {"authorization", "Bearer " + options_.api_key}};
    if (settings.is_object()) {
      add_betas(settings, request.headers);
      add_extra_headers(settings, request.headers);
    }
    request.body = dump_json(body);
    return request;
  }

  Task<ModelResponse> whole_body(Json body, const ModelSettings& settings) {
    auto limits = ExchangeLimits::from_settings(settings);
    BodyBuffer buffer;
    HttpHead head;
    ReplySink sink;
    sink.begin = [&](const HttpHead& started) {
      head = started;
      buffer.clear();
    };
    sink.piece = [&](std::string_view piece) { buffer.add(piece, model_name_); };
    auto refused = co_await exchange(client_, clock_, limits, make_request(body, settings), ReplyKind::whole,
                                     sink, {.asked = model_name_, .current = [&] { return model_name_; }});
    if (refused) anthropic::throw_refusal(*refused, model_name_, clock_.now());
    co_return anthropic::read_reply(decode_reply(head, buffer.text(), model_name_), options_.base_url);
  }

  Task<void> stream_body(Json body, const ModelSettings& settings, const ModelRequestParameters& resolved,
                         StreamedResponse& stream) {
    stream.response.state = ResponseState::incomplete;
    try {
      co_await read_stream(std::move(body), settings, resolved, stream);
    } catch (...) {
      stream.response.state = ResponseState::interrupted;
      throw;
    }
  }

  Task<void> read_stream(Json body, const ModelSettings& settings, const ModelRequestParameters& resolved,
                         StreamedResponse& stream) {
    auto limits = ExchangeLimits::from_settings(settings);
    anthropic::StreamReader reader(stream, OutputRules::of(resolved), model_name_, options_.base_url);
    SseParser parser;
    BodyBuffer other;  // a reply that is no stream
    HttpHead head;
    bool is_stream = true;
    std::size_t length = 0;
    ReplySink sink;
    sink.begin = [&](const HttpHead& started) {
      head = started;
      check_event_stream(started, is_stream);
    };
    sink.piece = [&](std::string_view piece) {
      if (!is_stream) return other.add(piece, model_name_);
      length += piece.size();
      if (length > k_stream_limit) {
        throw ModelAPIError(fmt::format("The stream is longer than {} bytes", k_stream_limit),
                            {.model_name = reader.model_name()});
      }
      feed(parser, piece, reader);
    };
    auto refused =
        co_await exchange(client_, clock_, limits, make_request(body, settings), ReplyKind::streamed, sink,
                          {.asked = model_name_, .current = [&] { return reader.model_name(); }});
    if (refused) anthropic::throw_refusal(*refused, model_name_, clock_.now());
    if (is_stream) {
      reader.end();
      co_return;
    }
    decode_reply(head, other.text(), model_name_);
    throw ModelAPIError("The reply is no event stream", {.model_name = model_name_});
  }

  static void feed(SseParser& parser, std::string_view piece, anthropic::StreamReader& reader) {
    try {
      parser.feed(piece, [&](const SseEvent& event) { reader.take(event); });
    } catch (const Error& error) {
      if (error.code() != ErrorCode::limit_exceeded || dynamic_cast<const AgentRunError*>(&error)) throw;
      throw ModelAPIError(error.what(), {.model_name = reader.model_name()});
    }
  }

  std::string model_name_;
  AnthropicOptions options_;
  ModelProfile profile_;
  RetryClock clock_;
  HttpClient client_;
};

}  // namespace

ModelPtr make_anthropic_model(std::string model_name, AnthropicOptions options) {
  return std::make_shared<AnthropicModel>(std::move(model_name), std::move(options));
}

}  // namespace holt
