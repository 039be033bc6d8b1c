// The file tools on hostile and odd files, called as a run would call them.
#include "harness/file_system/toolbox.hpp"
#include "harness/wording.hpp"
#include "holt/base/files.hpp"
#include "holt/workspace/local.hpp"
#include "holt/workspace/wrappers.hpp"

#include <filesystem>
#include <fstream>
#include <sys/stat.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace holt::file_tools {
namespace {

class FileTools : public testing::Test {
 protected:
  FileTools() {
    box_.protection = WriteProtection(WriteProtection::default_patterns());
    root_ = std::filesystem::canonical(directory_.path()) / "work";
    std::filesystem::create_directory(root_);
    workspace_ = make_local_workspace(root_.string());
  }
  void put(const std::string& name, const std::string& content) const {
    std::ofstream(root_ / name, std::ios::binary) << content;
  }
  std::string get(const std::string& name) const {
    return holt::read_file(root_ / name, std::size_t{1} << 30);
  }

  template <class Arguments>
  std::string answer(Task<ToolReturn> (*tool)(const Toolbox&, Workspace, Arguments), Arguments arguments) {
    ToolReturn result = sync_wait(guard(box_, workspace_, tool(box_, workspace_, std::move(arguments))));
    return result.return_value.is_string() ? result.return_value.get<std::string>()
                                           : dump_json(result.return_value);
  }
  std::string read(const std::string& path, std::int64_t offset = 0, std::optional<std::int64_t> limit = {}) {
    return answer<ReadFile>(&read_file, {.path = path, .offset = offset, .limit = limit});
  }
  std::string edit(const std::string& path, const std::string& from, const std::string& to) {
    return answer<EditFile>(&edit_file, {.path = path, .old_text = from, .new_text = to, .replacements = {}});
  }
  std::string search(Grep arguments) { return answer<Grep>(&grep, std::move(arguments)); }
  static std::string retry_of(const std::function<void()>& call) {
    try {
      call();
    } catch (const ModelRetry& retry) {
      return retry.what();
    }
    ADD_FAILURE() << "a retry was expected";
    return {};
  }

  TempDir directory_;
  std::filesystem::path root_;
  Toolbox box_;
  Workspace workspace_;
};

TEST_F(FileTools, EditKeepsBomLineEndsModeAndMissingFinalNewline) {
  put("a.txt", "\xEF\xBB\xBFone\r\ntwo\nthree\tx");
  std::filesystem::permissions(root_ / "a.txt", std::filesystem::perms(0755));
  EXPECT_EQ(edit("a.txt", "two", "TWO"), "Edited a.txt.");
  EXPECT_EQ(get("a.txt"), "\xEF\xBB\xBFone\r\nTWO\nthree\tx");
  EXPECT_EQ(std::filesystem::status(root_ / "a.txt").permissions(), std::filesystem::perms(0755));
}

TEST_F(FileTools, EditOfALinkKeepsTheLink) {
  put("target.txt", "one\n");
  std::filesystem::create_symlink("target.txt", root_ / "link.txt");
  edit("link.txt", "one", "two");
  EXPECT_TRUE(std::filesystem::is_symlink(root_ / "link.txt"));
  EXPECT_EQ(get("target.txt"), "two\n");
}

TEST_F(FileTools, FailedReplacementLeavesTheFileAlone) {
  put("a.txt", "one two three\n");
  std::vector<Replacement> replacements{{"one", "1"}, {"none", "x"}, {"three", "3"}};
  EditFile arguments{.path = "a.txt", .old_text = {}, .new_text = {}, .replacements = replacements};
  EXPECT_EQ(retry_of([&] { answer<EditFile>(&edit_file, arguments); }),
            "replacement 2 does not occur in a.txt; the file is unchanged.");
  EXPECT_EQ(get("a.txt"), "one two three\n");
}

TEST_F(FileTools, ReadPagesALongFileWithoutGapsOrRepeats) {
  std::string content;
  for (int i = 1; i <= 20000; ++i) content += fmt::format("{}\n", i);
  put("many.txt", content);
  std::int64_t offset = 0;
  std::string together;
  for (int page = 0; page < 100; ++page) {
    std::string text = read("many.txt", offset);
    ASSERT_LE(text.size(), 50000U);
    std::size_t at = text.find('\n') + 1;
    while (at < text.size() && text[at] != '.') {
      std::size_t end = text.find('\n', at) + 1;
      together += text.substr(at + 7, end - at - 7);
      ++offset;
      at = end;
    }
    if (at >= text.size()) break;
  }
  EXPECT_EQ(together, content);
}

TEST_F(FileTools, FILES_27_OverLongLineIsNamedWithTheWayAround) {
  put("wide.txt", std::string(10'000'000, 'x') + "\nshort\n");
  EXPECT_EQ(
      read("wide.txt"),
      "[wide.txt | 2 lines]\n... (line 1 has 10,000,001 characters, too many to show; skip it with offset=1, "
      "or look at a part of it with a shell tool)\n");
  EXPECT_EQ(read("wide.txt", 1), "[wide.txt | 2 lines]\n     2\tshort\n");
}

TEST_F(FileTools, Utf16IsBinaryAndHugeOffsetsAreRefused) {
  put("u.txt", std::string("\xff\xfe"
                           "a\0b\0",
                           6));
  EXPECT_NE(read("u.txt").find("Binary; it starts with these bytes:\n00000000  ff fe 61 00 62 00\n"),
            std::string::npos);
  put("a.txt", "one\n");
  EXPECT_EQ(retry_of([&] { read("a.txt", INT64_MAX); }),
            "offset 9223372036854775807 is past the end of the file (1 lines).");
  EXPECT_EQ(retry_of([&] { read("a.txt", INT64_MIN); }), "offset must be 0 or more.");
}

TEST_F(FileTools, TooLargeFileIsNotRead) {
  std::ofstream(root_ / "sparse").close();
  std::filesystem::resize_file(root_ / "sparse", std::uintmax_t{1} << 40);
  EXPECT_EQ(read("sparse"),
            "[sparse | 1099511627776 bytes]\nToo large to read (at most 67108864 bytes); take a part of it "
            "with grep "
            "or a shell tool.");
}

TEST_F(FileTools, TooLargeFileIsNotEdited) {
  std::ofstream(root_ / "sparse").close();
  std::filesystem::resize_file(root_ / "sparse", std::uintmax_t{1} << 40);
  EXPECT_EQ(retry_of([&] { edit("sparse", "a", "b"); }), wording::read_too_large(std::size_t{64} << 20));
}

TEST_F(FileTools, LargePictureIsNotCutIntoText) {
  put("big.png", "\x89PNG\r\n\x1a\n" + std::string(100'000, '\1'));
  std::string text = read("big.png");
  EXPECT_NE(text.find("\"kind\":\"binary\""), std::string::npos);
  put("huge.png", "\x89PNG\r\n\x1a\n" + std::string(5'000'000, '\1'));
  EXPECT_EQ(read("huge.png"),
            "[huge.png | image/png | 5000008 bytes]\nToo large to show (at most 5000000 bytes).");
}

TEST_F(FileTools, PathsOfModelsAreTakenAsTheyAre) {
  put("~", "tilde\n");
  put("trailing ", "space\n");
  put("gl*b[1].txt", "glob\n");
  EXPECT_NE(read("~").find("tilde"), std::string::npos);
  EXPECT_NE(read("trailing ").find("space"), std::string::npos);
  EXPECT_NE(read("gl*b[1].txt").find("glob"), std::string::npos);
  EXPECT_EQ(read("trailing"), "Path not found: trailing");
  EXPECT_EQ(retry_of([&] { read(std::string(5000, 'x')); }), "Path name too long.");
  std::string deep;
  for (int i = 0; i < 600; ++i) deep += "directory/";
  EXPECT_EQ(retry_of([&] { read(deep + "x"); }), "Path name too long.");
  EXPECT_EQ(retry_of([&] { read(std::string("a\0b", 3)); }), "embedded null byte");
}

TEST_F(FileTools, EveryListedPathCanBeReadAndWritten) {
  std::filesystem::create_directories(root_ / "src/a b");
  put("src/a b/x.py", "x\n");
  put("-dash", "d\n");
  std::string listed = answer<ListFiles>(&list_files, {});
  EXPECT_EQ(listed, "-dash\nsrc/a b/x.py");
  EXPECT_TRUE(read("-dash").starts_with("[-dash | 1 lines]"));
  EXPECT_EQ(answer<WriteFile>(&write_file, {.path = "src/a b/x.py", .content = "y"}),
            "Wrote src/a b/x.py (1 chars, 1 lines).");
  EXPECT_EQ(search({.pattern = "d", .path = "-dash"}), "-dash:1:d");
}

TEST_F(FileTools, NothingOutsideTheRootIsToldOrTouched) {
  std::ofstream(root_.parent_path() / "outside.txt") << "outside\n";
  std::filesystem::create_directory_symlink("..", root_ / "up");
  std::filesystem::create_directory(root_ / "in");
  std::filesystem::create_directory_symlink("../..", root_ / "in" / "far");
  for (const char* path :
       {"up/outside.txt", "in/far/outside.txt", "in/../../outside.txt", "/etc/passwd", ".."}) {
    std::string text = retry_of([&] { read(path); });
    EXPECT_NE(text.find("the file tools do not leave it"), std::string::npos) << path << ": " << text;
    retry_of([&] { answer<WriteFile>(&write_file, {.path = path, .content = "x"}); });
    retry_of([&] { edit(path, "outside", "x"); });
    retry_of([&] { search({.pattern = "outside", .path = path}); });
    retry_of([&] { answer<ListFiles>(&list_files, {.path = path, .glob = {}}); });
  }
  EXPECT_EQ(search({.pattern = "outside"}), wording::k_no_matches)
      << "links are not followed while searching";
  EXPECT_EQ(holt::read_file(root_.parent_path() / "outside.txt", 100), "outside\n");
}

TEST_F(FileTools, ProtectionLooksAtAnyCaseAnyLevelAndThroughLinks) {
  std::filesystem::create_directories(root_ / ".git");
  put(".git/config", "[core]\n");
  put(".env", "S=1\n");
  std::filesystem::create_symlink(".env", root_ / "innocent");
  std::filesystem::create_directory_symlink(".git", root_ / "repo");
  for (const char* path : {".GIT/config", ".git/config", "innocent", "repo/config", "a/b/.ENV",
                           "x/.git/hooks/post", "Server.PEM", "deep/secrets/x", "repo/hooks"}) {
    std::string text = retry_of([&] { answer<WriteFile>(&write_file, {.path = path, .content = "x"}); });
    EXPECT_NE(text.find("is write-protected by the pattern"), std::string::npos) << path << ": " << text;
  }
  EXPECT_EQ(get(".git/config"), "[core]\n");
  EXPECT_NE(read(".env").find("S=1"), std::string::npos) << "reading is allowed";
}

TEST_F(FileTools, SpecialFilesNeitherBlockNorCount) {
  ::mkfifo((root_ / "pipe").c_str(), 0644);
  EXPECT_EQ(retry_of([&] { read("pipe"); }), wording::k_path_not_regular);
  EXPECT_EQ(retry_of([&] { search({.pattern = "x", .path = "pipe"}); }), wording::k_path_not_regular);
  EXPECT_EQ(retry_of([&] { edit("pipe", "a", "b"); }), wording::k_path_not_regular);
  EXPECT_EQ(answer<ListFiles>(&list_files, {}), wording::k_no_files);
}

TEST_F(FileTools, OddNamesAndTextsComeThroughASearch) {
  put("new\nline.txt", "needle a:1:b\n");
  put("colon:7:x.txt", "needle\r\n-- \n");
  put("dashes.txt", "--\nneedle\n--\n");
  std::string found = search({.pattern = "needle", .context = 1});
  EXPECT_NE(found.find("colon:7:x.txt:1:needle\r"), std::string::npos) << found;
  EXPECT_NE(found.find("dashes.txt-1---\ndashes.txt:2:needle\ndashes.txt-3---"), std::string::npos) << found;
  EXPECT_NE(found.find("new\nline.txt:1:needle a:1:b"), std::string::npos) << found;
  EXPECT_EQ(search({.pattern = "--files", .literal = true}), wording::k_no_matches)
      << "a pattern is no option";
}

TEST_F(FileTools, ReadOnlyWorkspaceIsSearchedInProcessAndWithinItsRoot) {
  put("a.txt", "needle one\n");
  std::ofstream(root_.parent_path() / "outside.txt") << "needle outside\n";
  std::filesystem::create_symlink("../outside.txt", root_ / "link.txt");
  std::filesystem::create_directory_symlink(".", root_ / "loop");
  workspace_ = Workspace(std::make_shared<ReadOnlyWorkspace>(workspace_));
  EXPECT_EQ(search({.pattern = "ne+dle"}), "a.txt:1:needle one");
  EXPECT_EQ(search({.pattern = "NEEDLE", .ignore_case = true, .literal = true}), "a.txt:1:needle one");
  EXPECT_EQ(answer<ListFiles>(&list_files, {}), "a.txt");
  EXPECT_TRUE(retry_of([&] { search({.pattern = "("}); }).starts_with("Bad regex: "));
  EXPECT_EQ(retry_of([&] { search({.pattern = "(x+)+y"}); }), wording::k_grep_nested_repeat);
  EXPECT_THROW(answer<WriteFile>(&write_file, {.path = "a.txt", .content = "x"}), ToolFailed);
}

/// Reading only; shows a directory of the wrapped workspace as the root of the file system.
class AtRoot final : public ReadOnlyWorkspace {
 public:
  AtRoot(Workspace wrapped, std::string directory)
      : ReadOnlyWorkspace(std::move(wrapped)), directory_(std::move(directory)) {}
  Task<std::string> working_dir() override { co_return "/"; }
  Task<std::string> read_bytes(std::string path) override {
    return ReadOnlyWorkspace::read_bytes(directory_ + path);
  }
  Task<FileEntry> stat(std::string path) override { return ReadOnlyWorkspace::stat(directory_ + path); }
  Task<std::vector<FileEntry>> list_dir(std::string path) override {
    auto entries = co_await ReadOnlyWorkspace::list_dir(directory_ + path);
    for (auto& entry : entries) entry.path.erase(0, directory_.size());
    co_return entries;
  }
  Task<std::string> realpath(std::string path) override {
    std::string real = co_await ReadOnlyWorkspace::realpath(directory_ + path);
    real.erase(0, directory_.size());
    co_return real.empty() ? "/" : real;
  }

 private:
  std::string directory_;
};

TEST_F(FileTools, WalkedSearchOfTheRootDirectoryFindsItsFiles) {
  std::filesystem::create_directories(root_ / "etc/deep");
  put("top.txt", "needle\n");
  put("etc/deep/low.txt", "needle\n");
  std::filesystem::create_symlink("top.txt", root_ / "link.txt");
  workspace_ = Workspace(std::make_shared<AtRoot>(workspace_, root_.string()));
  EXPECT_EQ(search({.pattern = "needle"}), "etc/deep/low.txt:1:needle\ntop.txt:1:needle");
  EXPECT_EQ(answer<ListFiles>(&list_files, {.path = "/"}), "etc/deep/low.txt\ntop.txt");
}

TEST_F(FileTools, BacktrackingRegexEndsInsteadOfHanging) {
  put("a.txt", std::string(5000, 'a') + "\n");
  workspace_ = Workspace(std::make_shared<ReadOnlyWorkspace>(workspace_));
  try {
    std::string text = search({.pattern = "(a|aa)*(a|aa)*(a|aa)*b"});
    EXPECT_EQ(text, wording::k_no_matches);
  } catch (const ModelRetry& retry) {
    EXPECT_TRUE(std::string(retry.what()).starts_with("Bad regex: ")) << retry.what();
  }
}

}  // namespace
}  // namespace holt::file_tools
