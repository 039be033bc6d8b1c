#include "image/tree.hpp"

#include <algorithm>
#include <deque>
#include <utility>

#include <fmt/format.h>

namespace holt::image {
namespace {

std::vector<std::string_view> split(std::string_view path) {
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    std::size_t slash = std::min(path.find('/'), path.size());
    std::string_view part = path.substr(0, slash);
    if (!part.empty() && part != ".") parts.push_back(part);
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  return parts;
}

}  // namespace

Node* Place::find() const {
  auto found = directory->children.find(name);
  return found == directory->children.end() ? nullptr : &found->second;
}

std::expected<std::vector<std::string>, std::string> Tree::components(std::string_view path) const {
  if (path.size() > limits_.path_bytes) {
    return std::unexpected(fmt::format("has a path of {} bytes", path.size()));
  }
  if (path.find('\0') != std::string_view::npos) return std::unexpected("has a NUL in its path");
  std::vector<std::string> clean;
  for (std::string_view part : split(path)) {
    if (part == "..") {
      if (!clean.empty()) clean.pop_back();
      continue;
    }
    if (part.size() > k_name_bytes)
      return std::unexpected(fmt::format("has a name of {} bytes", part.size()));
    clean.emplace_back(part);
  }
  if (clean.size() > limits_.path_depth) {
    return std::unexpected(fmt::format("lies {} folders deep", clean.size()));
  }
  return clean;
}

std::expected<Directory*, std::string> Tree::make_directory(const Place& place) {
  if (place.directory->depth >= limits_.path_depth) {
    return std::unexpected(fmt::format("lies more than {} folders deep", limits_.path_depth));
  }
  auto made = std::make_unique<Directory>();
  made->parent = place.directory;
  made->depth = place.directory->depth + 1;
  Directory* directory = made.get();
  place.directory->children.emplace(
      place.name, Node{.kind = EntryKind::directory, .directory = std::move(made), .target = nullptr});
  return directory;
}

std::expected<Place, std::string> Tree::walk(std::string_view path, MissingParents missing) {
  auto parts = components(path);
  if (!parts) return std::unexpected(parts.error());
  if (parts->empty()) return Place{&root_, ""};
  std::string name = std::move(parts->back());
  parts->pop_back();

  std::deque<std::string> pending(std::make_move_iterator(parts->begin()),
                                  std::make_move_iterator(parts->end()));
  Directory* at = &root_;
  std::size_t followed = 0;
  std::size_t steps = 0;
  while (!pending.empty()) {
    if (++steps > limits_.path_depth * limits_.symlinks_followed)
      return std::unexpected("has a parent without end");
    std::string part = std::move(pending.front());
    pending.pop_front();
    if (part == "..") {
      at = at->parent;
      continue;
    }
    if (part.size() > k_name_bytes) return std::unexpected("has a parent with a target too long");
    auto found = at->children.find(part);
    if (found == at->children.end()) {
      if (missing == MissingParents::stop) return Place{nullptr, ""};
      auto made = make_directory({at, std::move(part)});
      if (!made) return std::unexpected(made.error());
      at = *made;
    } else if (found->second.directory) {
      at = found->second.directory.get();
    } else if (found->second.target) {
      if (++followed > limits_.symlinks_followed) return std::unexpected("has too many links in its path");
      const std::string& target = *found->second.target;
      if (target.starts_with('/')) at = &root_;
      auto inserted = split(target);
      pending.insert(pending.begin(), inserted.begin(), inserted.end());
    } else {
      return std::unexpected(fmt::format("lies below '{}', which is no folder", part));
    }
  }
  return Place{at, std::move(name)};
}

std::expected<Place, std::string> Tree::place(std::string_view path) {
  return walk(path, MissingParents::make);
}

std::expected<Node*, std::string> Tree::find(std::string_view path) {
  auto place = walk(path, MissingParents::stop);
  if (!place) return std::unexpected(place.error());
  if (!place->directory || place->name.empty()) return nullptr;
  return place->find();
}

}  // namespace holt::image
