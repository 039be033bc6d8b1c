// "Did you mean": the name that a mistyped one was likely to be.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace holt::cli {

/// The only one of `names` that `word` begins, else the one that it is a slip of: as many letters wrong,
/// missing, too many or swapped with their neighbour as a third of it, at least one. Empty where none is
/// near, and for a word that is one of them.
std::string nearest(std::string_view word, const std::vector<std::string>& names);

/// "Did you mean 'NAME'? " for such a one, else nothing: to stand in front of a hint.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& names);

}  // namespace holt::cli
