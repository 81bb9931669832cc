// The documents hold what they promise: every path of the tree that a document, a comment or a
// build file names exists, links lead somewhere, and a newcomer finds four things from the README.
// That shown commands run is readme_test's.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "structure/tree.h"

namespace graphproof::structure {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostLinesOfTheReadme = 150;

std::vector<std::string> documents() {
  return files([](const fs::path& file) { return file.extension() == ".md"; });
}

/// A file whose text is written for people: a document, a source, a build file, a table, a script.
bool is_read_by_people(const fs::path& file) {
  static const std::set<std::string> kExtensions = {".md", ".h", ".cpp", ".cmake", ".json", ""};
  return kExtensions.contains(file.extension()) || file.filename() == "CMakeLists.txt";
}

/// The stem stands for any name: reports/record/schema/NAME.schema.json.
bool is_placeholder(const fs::path& path) {
  const std::string stem = path.filename().string().substr(0, path.filename().string().find('.'));
  return stem != "README" && std::ranges::all_of(stem, [](unsigned char letter) {
           return std::isupper(letter) != 0 || letter == '_';
         });
}

/// The names of the top folders and of those inside them.
const std::set<std::string>& folder_names() {
  static const std::set<std::string> names = [] {
    std::set<std::string> found;
    for (const std::string& file : files([](const fs::path&) { return true; })) {
      int depth = 0;
      for (const fs::path& part : fs::path(file).parent_path())
        if (depth++ < 2) found.insert(part);
    }
    return found;
  }();
  return names;
}

/// The paths in `text` that begin with a folder of the tree, whole or not: "matrix/case/axes.h",
/// "case/axes.h".
std::set<std::string> named_paths(const std::string& text) {
  static const std::regex path(
      "(^|[^A-Za-z0-9_./~<$-])"
      "(([A-Za-z0-9_-]+)/[A-Za-z0-9_./-]*\\.(h|cpp|cmake|json|jsonl|md|txt))(?![A-Za-z0-9_])");
  std::set<std::string> found;
  for (std::sregex_iterator match(text.begin(), text.end(), path), end; match != end; ++match)
    if (folder_names().contains((*match)[3]) && !is_placeholder((*match)[2].str()))
      found.insert((*match)[2]);
  return found;
}

/// What of a file is written for people; of C++ the comments alone.
std::string prose_of(const std::string& file) {
  const std::string text = text_of(root() / file);
  if (!file.ends_with(".h") && !file.ends_with(".cpp")) return text;
  std::string comments;
  for (const std::string& line : lines_of(text)) {
    const std::size_t comment = line.find("//");
    if (comment != std::string::npos) comments += line.substr(comment) + "\n";
  }
  return comments;
}

TEST(Documents, NameOnlyPathsThatExist) {
  const std::vector<std::string> all = files([](const fs::path&) { return true; });
  const auto exists = [&](const std::string& path) {
    return std::ranges::any_of(
        all, [&](const std::string& file) { return file == path || file.ends_with("/" + path); });
  };
  for (const std::string& file : files(is_read_by_people))
    for (const std::string& path : named_paths(prose_of(file)))
      EXPECT_TRUE(exists(path)) << file << " names " << path
                                << ", which does not exist; next: name what took its place";
}

TEST(Documents, ADanglingPathIsFound) {
  EXPECT_EQ(named_paths("see case/axes.h, (docs/gone.md) and `cmake/x.cmake`."),
            (std::set<std::string>{"case/axes.h", "cmake/x.cmake", "docs/gone.md"}));
  EXPECT_EQ(named_paths("upstream/docs/a.md, matrix/profiles/NAME.json, megatron/core/a.h"),
            std::set<std::string>{});
}

TEST(Documents, LinkToFilesThatExist) {
  static const std::regex link(R"(\]\(([^)#:]+)(#[^)]*)?\))");
  for (const std::string& document : documents()) {
    const std::string text = text_of(root() / document);
    for (std::sregex_iterator match(text.begin(), text.end(), link), end; match != end; ++match)
      EXPECT_TRUE(fs::exists(root() / fs::path(document).parent_path() / (*match)[1].str()))
          << document << " links to " << (*match)[1];
  }
}

TEST(Documents, AreAllReachedFromTheReadme) {
  static const std::regex link(R"(\]\(([^)#:]+\.md)(#[^)]*)?\))");
  std::set<std::string> reached;
  std::vector<fs::path> open = {"README.md"};
  while (!open.empty()) {
    const fs::path document = open.back();
    open.pop_back();
    if (!reached.insert(document).second) continue;
    const std::string text = text_of(root() / document);
    for (std::sregex_iterator match(text.begin(), text.end(), link), end; match != end; ++match)
      open.push_back((document.parent_path() / (*match)[1].str()).lexically_normal());
  }
  for (const std::string& document : documents())
    EXPECT_TRUE(reached.contains(document)) << document << " is linked from nowhere";
}

TEST(Documents, TheReadmeIsADoor) {
  EXPECT_LE(lines_of(text_of(root() / "README.md")).size(), kMostLinesOfTheReadme);
}

TEST(Documents, SayWhereANewcomerFindsFourThings) {
  const std::string page = "docs/guide/finding-your-way.md";
  EXPECT_NE(text_of(root() / "README.md").find(page), std::string::npos);
  const std::string text = text_of(root() / page);
  for (const std::string_view question :
       {"## Where does a check live?", "## Where does a new fault go?",
        "## What happens to an evidence line?", "## Why was a case skipped?"}) {
    const std::size_t begin = text.find(question);
    ASSERT_NE(begin, std::string::npos) << question;
    const std::string answer = text.substr(begin, text.find("\n## ", begin + 1) - begin);
    EXPECT_GE(named_paths(answer).size(), 2u) << question << " names no path of the tree";
  }
}

TEST(Documents, TheGlossaryIsSortedAndHasEachTermOnce) {
  static const std::regex row(R"(^\| \*\*([^*]+)\*\*.*\[[^\]]+\] \|$)");
  std::vector<std::string> terms;
  for (const std::string& line : lines_of(text_of(root() / "docs/glossary.md"))) {
    if (!line.starts_with("| **")) continue;
    std::smatch match;
    ASSERT_TRUE(std::regex_match(line, match, row)) << line << ": want its source in brackets";
    std::string term = match[1];
    std::ranges::transform(term, term.begin(),
                           [](unsigned char letter) { return std::tolower(letter); });
    terms.push_back(term);
  }
  ASSERT_FALSE(terms.empty());
  for (std::size_t i = 1; i < terms.size(); ++i) EXPECT_LT(terms[i - 1], terms[i]);
}

}  // namespace
}  // namespace graphproof::structure
