// The one JSON type of holt: objects keep the order of their keys. Forward declaration for public headers;
// include holt/base/json.hpp to use it.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace holt {
using Json = nlohmann::ordered_json;
}
