#include "registry.hpp"

#include <unordered_set>
#include <vector>

namespace holt::python {

namespace {

/// Never destroyed: objects may go after static ones have.
std::unordered_set<Abandonable*>& objects() {
  static auto* all = new std::unordered_set<Abandonable*>;  // NOLINT(cppcoreguidelines-owning-memory)
  return *all;
}

}  // namespace

Abandonable::Abandonable() {
  objects().insert(this);
}

Abandonable::~Abandonable() {
  objects().erase(this);
}

void abandon_all() noexcept {
  for (auto* object : objects()) object->abandon();
  objects().clear();
}

void cancel_all() {
  for (auto* object : objects()) object->cancel();
}

}  // namespace holt::python
