// Model parameters and errors in the form in which the recorded cases hold them.
#pragma once

#include "holt/base/json.hpp"
#include "holt/models/errors.hpp"
#include "holt/models/model.hpp"

#include <exception>
#include <set>
#include <string>

namespace holt::test {

ModelRequestParameters parameters_from_json(const Json& value);

/// Names of the error's class and of all its bases, as the cases write them.
std::set<std::string> class_names(const std::exception& error);
/// The same, of a recorded error: only names that we have, foreign ones translated.
std::set<std::string> recorded_class_names(const Json& raised);

}  // namespace holt::test
