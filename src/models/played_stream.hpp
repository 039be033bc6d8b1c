// A finished response handed out as if it were streamed.
#pragma once

#include "holt/models/model.hpp"

namespace holt {

/// Text in words with their spaces (a single word in two halves), everything else whole. Fills `stream`,
/// whose parts must be empty; the end state is the response's own.
void play_as_stream(const ModelResponse& response, const ModelRequestParameters& resolved,
                    StreamedResponse& stream);

/// The instructions of a request as one text.
std::optional<std::string> instructions_text(const MessageHistory& messages,
                                             const ModelRequestParameters& parameters);

}  // namespace holt
