// JSON objects made quickly from keys that are known to differ.
#pragma once

#include "holt/base/json.hpp"

#include <string_view>
#include <utility>
#include <vector>

namespace holt {

/// An object that gets its members in order. nlohmann's own insert compares each new key with all before it;
/// here the keys are field names of ours.
class ObjectBuilder {
 public:
  explicit ObjectBuilder(std::size_t members) { this->members().reserve(members); }
  ObjectBuilder& add(std::string_view key, Json value) {
    members().emplace_back(key, std::move(value));
    return *this;
  }
  Json take() { return std::move(object_); }

 private:
  Json::object_t& members() { return object_.get_ref<Json::object_t&>(); }
  Json object_ = Json::object();
};

}  // namespace holt
