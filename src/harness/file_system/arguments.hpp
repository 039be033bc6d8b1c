// The parameters of the file tools, as models see them.
#pragma once

#include "holt/agent/schema.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <boost/describe.hpp>

namespace holt::file_tools {

struct ReadFile {
  std::string path = {};
  std::int64_t offset = 0;
  std::optional<std::int64_t> limit = std::nullopt;
};
BOOST_DESCRIBE_STRUCT(ReadFile, (), (path, offset, limit))

struct WriteFile {
  std::string path = {};
  std::string content = {};
};
BOOST_DESCRIBE_STRUCT(WriteFile, (), (path, content))

struct Replacement {
  std::string old_text = {};
  std::string new_text = {};
};
BOOST_DESCRIBE_STRUCT(Replacement, (), (old_text, new_text))

struct EditFile {
  std::string path = {};
  std::optional<std::string> old_text = std::nullopt;
  std::optional<std::string> new_text = std::nullopt;
  std::optional<std::vector<Replacement>> replacements = std::nullopt;
};
BOOST_DESCRIBE_STRUCT(EditFile, (), (path, old_text, new_text, replacements))

struct ListFiles {
  std::string path = ".";
  std::optional<std::string> glob = std::nullopt;
};
BOOST_DESCRIBE_STRUCT(ListFiles, (), (path, glob))

struct Grep {
  std::string pattern = {};
  std::string path = ".";
  std::optional<std::string> glob = std::nullopt;
  std::optional<std::string> file_type = std::nullopt;
  bool ignore_case = false;
  bool literal = false;
  std::int64_t context = 0;
};
BOOST_DESCRIBE_STRUCT(Grep, (), (pattern, path, glob, file_type, ignore_case, literal, context))

void describe(Schema<ReadFile>& schema);
void describe(Schema<WriteFile>& schema);
void describe(Schema<Replacement>& schema);
void describe(Schema<EditFile>& schema);
void describe(Schema<ListFiles>& schema);
void describe(Schema<Grep>& schema);

}  // namespace holt::file_tools
