#include "harness/file_system/arguments.hpp"

namespace holt::file_tools {

void describe(Schema<ReadFile>& schema) {
  schema.field(&ReadFile::path).text("File to read; relative paths start at the working directory.");
  schema.field(&ReadFile::offset)
      .text("How many lines to skip first (0 = start at line 1).")
      .default_value(0);
  schema.field(&ReadFile::limit)
      .text("How many lines to return at most; the configured maximum when absent, and never more than it.");
}

void describe(Schema<WriteFile>& schema) {
  schema.field(&WriteFile::path).text("File to write; relative paths start at the working directory.");
  schema.field(&WriteFile::content).text("Text of the whole file.");
}

void describe(Schema<Replacement>& schema) {
  schema.text("One exact replacement.");
}

void describe(Schema<EditFile>& schema) {
  schema.field(&EditFile::path).text("File to edit; relative paths start at the working directory.");
  schema.field(&EditFile::old_text).text("Exact text to replace; it has to be there once and only once.");
  schema.field(&EditFile::new_text).text("Text to put in its place.");
  schema.field(&EditFile::replacements).text("Ordered replacements, used instead of the single pair.");
}

void describe(Schema<ListFiles>& schema) {
  schema.field(&ListFiles::path)
      .text("Directory to list; relative paths start at the working directory.")
      .default_value(".");
  schema.field(&ListFiles::glob).text("Only files this glob selects, such as '*.py' or 'src/**'.");
}

void describe(Schema<Grep>& schema) {
  schema.field(&Grep::pattern).text("Regular expression in ripgrep syntax, or plain text with literal.");
  schema.field(&Grep::path)
      .text("File or directory to search; relative paths start at the working directory.")
      .default_value(".");
  schema.field(&Grep::glob).text("Only files this glob selects, such as '*.py'.");
  schema.field(&Grep::file_type).text("Only files of this ripgrep type, such as 'py' or 'rust'.");
  schema.field(&Grep::ignore_case).text("Match upper and lower case alike.").default_value(false);
  schema.field(&Grep::literal).text("Take pattern as plain text.").default_value(false);
  schema.field(&Grep::context).text("Lines to show before and after each match, 0 to 20.").default_value(0);
}

}  // namespace holt::file_tools
