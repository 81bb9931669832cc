#include "reports/record/text/file.h"

#include <gtest/gtest.h>

#include "reports/record/testing/scratch_folder.h"

namespace graphproof::record {
namespace {

TEST(File, IsReplacedWhole) {
  const ScratchFolder folder;
  const auto file = folder.path() / "a.json";
  write_atomically(file, "old");
  write_atomically(file, "new text");
  EXPECT_EQ(read_text(file), "new text");
  EXPECT_EQ(folder.names(), std::vector<std::string>{"a.json"});
}

TEST(File, WrittenJsonIsReadBack) {
  const ScratchFolder folder;
  write_json(folder.path() / "a.json", {{"b", 1}, {"a", {2, 3}}});
  EXPECT_EQ(read_json(folder.path() / "a.json"), nlohmann::json({{"a", {2, 3}}, {"b", 1}}));
  EXPECT_EQ(read_text(folder.path() / "a.json").substr(0, 10), "{\n  \"b\": 1");
}

TEST(File, AFullDiskLeavesTheOldContentAndNamesTheFile) {
  const ScratchFolder folder;
  const auto file = folder.path() / "summary.json";
  write_atomically(file, "old");
  std::string message;
  {
    const FullDisk full(4096);
    try {
      write_atomically(file, std::string(10000, 'x'));
    } catch (const WriteError& error) {
      message = error.what();
    }
  }
  EXPECT_NE(message.find("cannot write " + file.string() + "; got File too large"),
            std::string::npos)
      << message;
  EXPECT_EQ(read_text(file), "old");
  EXPECT_EQ(folder.names(), std::vector<std::string>{"summary.json"});
}

TEST(File, AFolderThatCannotHoldItIsNamed) {
  std::string message;
  try {
    write_atomically("/proc/no-such-folder/summary.json", "x");
  } catch (const WriteError& error) {
    message = error.what();
  }
  EXPECT_NE(message.find("cannot write /proc/no-such-folder/summary.json"), std::string::npos)
      << message;
}

TEST(File, AMissingFileIsNamed) {
  try {
    read_text("/no/such/run.json");
    FAIL() << "no error";
  } catch (const ReadError& error) {
    EXPECT_EQ(error.message().what, "cannot read /no/such/run.json");
    EXPECT_EQ(error.message().got, "No such file or directory");
  }
}

TEST(File, AMistakeInJsonHasLineAndColumn) {
  try {
    parse_json("{\n  \"a\": 1,\n  \"b\": nul\n}", "run.json");
    FAIL() << "no error";
  } catch (const ReadError& error) {
    EXPECT_EQ(error.message().what.substr(0, 31), "run.json is not JSON, line 3, c")
        << error.what();
  }
}

TEST(Lines, ATornLastLineIsCountedAndNotReturned) {
  const Lines lines = split_lines("one\ntwo\nthr");
  EXPECT_EQ(lines.lines, (std::vector<std::string>{"one", "two"}));
  EXPECT_EQ(lines.whole_bytes, 8u);
  EXPECT_EQ(lines.torn_bytes, 3u);
  EXPECT_EQ(split_lines("").torn_bytes, 0u);
}

}  // namespace
}  // namespace graphproof::record
