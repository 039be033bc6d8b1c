// What the replay server needs to know of a provider's API. One class an API; a new one is added to
// all_apis().
#pragma once

#include "holt/base/json.hpp"

#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace holt::replay {

/// A request does not fit the API or the script. what() says how.
class Misfit : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct HttpCall {
  std::string method;
  std::string path;                            ///< without the query
  std::map<std::string, std::string> headers;  ///< names in lower case
  std::string body;
};

/// A request in words that all APIs share.
struct Request {
  std::string path;
  std::string model;
  bool stream = false;
  std::string first_user;                ///< text of the first user message: names the conversation
  std::string last_user;                 ///< text of the newest user message that has one
  std::vector<std::string> new_results;  ///< texts of the newest tool results
  std::vector<std::string> tools;        ///< names on offer
};

/// What is written back.
struct Reply {
  int status = 200;
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::string body = {};
  std::vector<std::size_t> splits = {};              ///< offsets in `body`, rising
  std::optional<std::size_t> cut_at = std::nullopt;  ///< the connection breaks behind so many bytes
};

class Api {
 public:
  virtual ~Api() = default;
  /// Whether a request is meant for this API.
  virtual bool takes(const HttpCall& call) const = 0;
  /// Checks headers and body by the API's own rules. Throws Misfit.
  virtual Request read(const HttpCall& call) const = 0;
  /// A whole answer from the keys text, tool_calls, finish, usage. `number`: of the reply, from 1.
  virtual Reply answer(const Json& reply, const Request& request, std::size_t number) const = 0;
  /// A body in the API's error form.
  virtual std::string error_body(int status, const std::string& message) const = 0;
};

std::unique_ptr<Api> make_anthropic_api();
/// Never empty; the first one's error form serves requests that no API takes.
std::vector<std::unique_ptr<Api>> all_apis();

}  // namespace holt::replay
