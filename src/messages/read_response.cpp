#include "holt/base/lenient.hpp"
#include "messages/duration.hpp"
#include "messages/reading.hpp"

#include <array>

namespace holt {
namespace {

std::string tool_call_id(const Fields& fields) {
  return fields.find("tool_call_id") ? fields.text("tool_call_id") : generate_tool_call_id();
}

Json to_json(std::optional<std::string> text) {
  return text ? Json(std::move(*text)) : Json(nullptr);
}

TextPart read_text(const Fields& fields) {
  TextPart part{.content = fields.text("content"),
                .id = fields.optional_text("id"),
                .provider_name = fields.optional_text("provider_name"),
                .provider_details = fields.optional_object("provider_details")};
  if (Json* citations = fields.find("citations")) {
    part.citations = read_citations(*citations, fields.place().key("citations"));
  }
  return part;
}

ThinkingPart read_thinking(const Fields& fields) {
  return {.content = fields.text("content"),
          .id = fields.optional_text("id"),
          .signature = fields.optional_text("signature"),
          .provider_name = fields.optional_text("provider_name"),
          .provider_details = fields.optional_object("provider_details")};
}

ToolCallPart read_tool_call(const Fields& fields) {
  ToolCallPart part{.tool_name = fields.text("tool_name"),
                    .args = fields.any("args"),
                    .tool_call_id = tool_call_id(fields),
                    .tool_kind = fields.optional_text("tool_kind"),
                    .id = fields.optional_text("id"),
                    .provider_name = fields.optional_text("provider_name"),
                    .provider_details = fields.optional_object("provider_details")};
  if (!part.args.is_null() && !part.args.is_string() && !part.args.is_object()) {
    refuse(fields.place().key("args"), "Expected a string, an object or null");
  }
  return part;
}

BuiltinToolCallPart read_builtin_tool_call(const Fields& fields) {
  return {read_tool_call(fields)};
}

BuiltinToolReturnPart read_builtin_tool_return(const Fields& fields) {
  BuiltinToolReturnPart part{.tool_name = fields.text("tool_name"),
                             .content = fields.required_any("content"),
                             .tool_call_id = tool_call_id(fields),
                             .tool_kind = fields.optional_text("tool_kind"),
                             .metadata = fields.any("metadata"),
                             .timestamp = fields.timestamp_or_now("timestamp"),
                             .outcome = fields.word_or("outcome", ToolOutcome::success),
                             .provider_name = fields.optional_text("provider_name"),
                             .provider_details = fields.optional_object("provider_details")};
  normalise_tool_content(part.content);
  return part;
}

FilePart read_file_part(const Fields& fields) {
  Place place = fields.place().key("content");
  return {.content = read_binary(fields.need("content"), place),
          .id = fields.optional_text("id"),
          .provider_name = fields.optional_text("provider_name"),
          .provider_details = fields.optional_object("provider_details")};
}

SpeechPart read_assistant_speech(const Fields& fields) {
  return read_speech(fields, "assistant");
}

Json read_excerpts(const Fields& fields) {
  Json out = Json::array();
  Json* excerpts = fields.find("excerpts");
  if (!excerpts) return out;
  Place place = fields.place().key("excerpts");
  for (Json& text : need_array(*excerpts, place)) out.push_back(need_text(text, place.index(out.size())));
  return out;
}

Json read_source(Json& value, const Place& place) {
  Fields fields(value, place);
  std::string kind = fields.text("kind");
  Json source = Json::object();
  if (kind == "web") {
    source["url"] = fields.text("url");
  } else if (kind == "document") {
    source["document_id"] = to_json(fields.optional_text("document_id"));
  } else {
    refuse(place.key("kind"), "Expected 'web' or 'document'");
  }
  source["title"] = to_json(fields.optional_text("title"));
  source["excerpts"] = read_excerpts(fields);
  source["kind"] = kind;
  bool nothing = source["title"].is_null() && source["excerpts"].empty();
  if (kind == "document" && source["document_id"].is_null() && nothing) {
    refuse(place, "a document source needs document_id, title or excerpts");
  }
  return source;
}

Json read_anchor(Json* value, const Place& place) {
  if (!value || value->is_null()) return nullptr;
  Fields fields(*value, place);
  std::int64_t start = need_integer(fields.need("start"), place.key("start"));
  std::int64_t end = need_integer(fields.need("end"), place.key("end"));
  if (start < 0 || end <= start) refuse(place, "Expected 0 <= start < end");
  std::string kind = fields.text_or("kind", "content");
  if (kind != "content" && kind != "marker") refuse(place.key("kind"), "Expected 'content' or 'marker'");
  Json anchor = Json::object();
  anchor["start"] = start;
  anchor["end"] = end;
  anchor["kind"] = kind;
  return anchor;
}

Json read_citation(Json& value, const Place& place) {
  Fields fields(value, place);
  Json citation = Json::object();
  Json sources = Json::array();
  Place sources_place = place.key("sources");
  for (Json& source : fields.array("sources")) {
    sources.push_back(read_source(source, sources_place.index(sources.size())));
  }
  citation["sources"] = std::move(sources);
  citation["anchor"] = read_anchor(fields.find("anchor"), place.key("anchor"));
  return citation;
}

Json read_failed_attempt(Json& value, const Place& place) {
  Fields fields(value, place);
  Json attempt = Json::object();
  attempt["model_name"] = to_json(fields.optional_text("model_name"));
  attempt["provider_name"] = to_json(fields.optional_text("provider_name"));
  std::string outcome = fields.text("outcome");
  if (outcome != "error" && outcome != "rejected")
    refuse(place.key("outcome"), "Expected 'error' or 'rejected'");
  attempt["outcome"] = outcome;
  attempt["error"] = to_json(fields.optional_text("error"));
  auto timestamp = fields.optional_timestamp("timestamp");
  attempt["timestamp"] = timestamp ? Json(to_string(*timestamp)) : Json(nullptr);
  Json duration = fields.any("duration");
  if (!duration.is_null()) {
    auto micros = parse_duration(duration);
    if (!micros) refuse(place.key("duration"), "Expected a duration");
    duration = iso_duration(*micros);
  }
  attempt["duration"] = std::move(duration);
  Json* usage = fields.find("usage");
  Place usage_place = place.key("usage");
  attempt["usage"] =
      usage && !usage->is_null() ? usage_to_json(read_usage(*usage, usage_place)) : Json(nullptr);
  return attempt;
}

struct Reader {
  std::string_view part_kind;
  ResponsePart (*read)(const Fields&);
};
template <auto read>
ResponsePart as_part(const Fields& fields) {
  return read(fields);
}
constexpr std::array<Reader, 8> k_readers = {{
    {"text", as_part<read_text>},
    {"thinking", as_part<read_thinking>},
    {"tool-call", as_part<read_tool_call>},
    {"builtin-tool-call", as_part<read_builtin_tool_call>},
    {"builtin-tool-return", as_part<read_builtin_tool_return>},
    {"file", as_part<read_file_part>},
    {"compaction", as_part<read_compaction>},
    {"speech", as_part<read_assistant_speech>},
}};

}  // namespace

CompactionPart read_compaction(const Fields& fields) {
  fields.need("content");
  return {.content = fields.optional_text("content"),
          .id = fields.optional_text("id"),
          .provider_name = fields.optional_text("provider_name"),
          .provider_details = fields.optional_object("provider_details"),
          .metadata = fields.optional_object("metadata")};
}

SpeechPart read_speech(const Fields& fields, std::string_view speaker) {
  SpeechPart part{.speaker = fields.text("speaker"),
                  .transcript = fields.optional_text("transcript"),
                  .interrupted_at_ms = fields.optional_integer("interrupted_at_ms"),
                  .id = fields.optional_text("id"),
                  .provider_name = fields.optional_text("provider_name"),
                  .provider_details = fields.optional_object("provider_details")};
  if (part.speaker != speaker) {
    refuse(fields.place().key("speaker"), "Expected '" + std::string(speaker) + "'");
  }
  Place place = fields.place().key("audio");
  if (Json* audio = fields.find("audio"); audio && !audio->is_null()) part.audio = read_binary(*audio, place);
  return part;
}

Json read_citations(Json& value, const Place& place) {
  if (value.is_null()) return nullptr;
  Json out = Json::array();
  for (Json& citation : need_array(value, place))
    out.push_back(read_citation(citation, place.index(out.size())));
  return out;
}

Json read_failed_attempts(Json& value, const Place& place) {
  if (value.is_null()) return nullptr;
  Json out = Json::array();
  for (Json& attempt : need_array(value, place)) {
    out.push_back(read_failed_attempt(attempt, place.index(out.size())));
  }
  return out;
}

ResponsePart read_response_part(Json& value, const Place& place) {
  Fields fields(value, place);
  std::string kind = fields.text("part_kind");
  for (const Reader& reader : k_readers) {
    if (reader.part_kind == kind) return reader.read(fields);
  }
  refuse(place.key("part_kind"), "no kind of response part: " + printable(kind, 80));
}

}  // namespace holt
