// The tree's own rules: a folder includes only what the table allows, and every source file is
// named by the CMakeLists.txt of its folder. The table is the one place that says who may know
// whom.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

/// A row of the table: a folder, and the folders of ours that its files may include beside itself.
/// The longest prefix of a file's path finds its row, and of an included path what is included;
/// nothing is transitive.
struct Row {
  std::string folder;
  std::vector<std::string> may_include;
};

const std::vector<Row>& rows() {
  static const std::vector<Row> table = {
      {"cmake", {}},
      {"matrix", {}},
      {"reports/record", {}},
      {"workloads/order", {}},
      {"suites/checks", {"reports/record", "matrix", "workloads/order"}},
      {"suites/judge", {"suites/checks", "reports/record", "matrix"}},
      {"suites/recorded",
       {"launcher", "suites/judge", "suites/checks", "reports", "reports/record", "matrix"}},
      {"launcher", {"matrix", "reports", "reports/record", "workloads/order"}},
      {"launcher/cluster", {"launcher", "matrix", "reports", "reports/record"}},
      {"launcher/cli",
       {"launcher", "launcher/cluster", "matrix", "reports", "reports/record", "workloads/order"}},
      {"reports", {"matrix", "reports/record"}},
      {"fixtures", {"reports/record", "fixtures/capture", "fixtures/comm"}},
      {"fixtures/capture", {"fixtures", "reports/record"}},
      {"fixtures/comm", {"fixtures", "fixtures/capture", "reports/record"}},
      {"fixtures/sim", {"fixtures", "fixtures/capture", "reports/record"}},
      {"fixtures/cuda", {"fixtures", "fixtures/capture", "reports/record"}},
      {"workloads", {"fixtures", "fixtures/capture", "fixtures/comm", "workloads/order"}},
      {"workloads/engines",
       {"workloads", "fixtures", "fixtures/capture", "fixtures/comm", "workloads/order"}},
      {"workloads/engines/speed",
       {"workloads", "workloads/engines", "fixtures", "fixtures/capture", "fixtures/comm",
        "workloads/order"}},
      {"suites",
       {"workloads", "workloads/engines", "workloads/order", "fixtures", "fixtures/capture",
        "fixtures/comm", "matrix", "reports/record"}},
      {"bench",
       {"matrix", "reports", "reports/record", "launcher", "launcher/cluster", "suites/checks"}},
      {"structure", {}},
  };
  return table;
}

const fs::path& source() {
  static const fs::path root = [] {
    const char* text = std::getenv("GRAPHPROOF_SOURCE");
    return fs::path(text != nullptr ? text : ".");
  }();
  return root;
}

bool below(const std::string& path, const std::string& folder) {
  return path.rfind(folder + "/", 0) == 0;
}

/// The row of a path relative to the root; null where no row's folder holds it.
const Row* row_of(const std::string& path) {
  const Row* best = nullptr;
  for (const Row& row : rows())
    if (below(path, row.folder) && (best == nullptr || row.folder.size() > best->folder.size()))
      best = &row;
  return best;
}

std::string text_of(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Every .h and .cpp below the rows' folders, relative to the root.
std::vector<std::string> sources() {
  std::vector<std::string> found;
  for (const fs::directory_entry& top : fs::directory_iterator(source())) {
    const std::string name = top.path().filename();
    if (!top.is_directory() || name == "build" || name.front() == '.') continue;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(top)) {
      const std::string extension = entry.path().extension();
      if (entry.is_regular_file() &&
          (extension == ".h" || extension == ".cpp" || extension == ".cu"))
        found.push_back(fs::relative(entry.path(), source()));
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

/// What one include of `file` breaks, or empty. Includes of packages, in angle brackets or of no
/// folder of ours, pass.
std::string violation(const std::string& file, const std::string& included) {
  const Row* from = row_of(file);
  const Row* to = row_of(included);
  if (from == nullptr || to == nullptr || from == to) return {};
  const auto& allowed = from->may_include;
  if (std::find(allowed.begin(), allowed.end(), to->folder) != allowed.end()) return {};
  return file + " includes \"" + included + "\": " + from->folder + " may not know " + to->folder;
}

TEST(StructureTest, AFolderIncludesOnlyWhatTheTableAllows) {
  static const std::regex include("^\\s*#\\s*include\\s*\"([^\"]+)\"");
  const std::vector<std::string> files = sources();
  ASSERT_GT(files.size(), 50u) << "the source folder was not found: " << source();
  for (const std::string& file : files) {
    EXPECT_NE(row_of(file), nullptr) << file << " lies in a folder without a row in this test";
    std::istringstream lines(text_of(source() / file));
    std::smatch match;
    for (std::string line; std::getline(lines, line);)
      if (std::regex_search(line, match, include)) {
        EXPECT_EQ(violation(file, match[1]), "");
        EXPECT_TRUE(match[1].str().find('/') != std::string::npos)
            << file << ": write the full path of " << match[1];
      }
  }
}

TEST(StructureTest, ATurnedArrowIsNamed) {
  EXPECT_EQ(violation("matrix/axes.cpp", "launcher/child.h"),
            "matrix/axes.cpp includes \"launcher/child.h\": matrix may not know launcher");
  EXPECT_EQ(violation("suites/checks/masks.cpp", "fixtures/probes.h"),
            "suites/checks/masks.cpp includes \"fixtures/probes.h\": suites/checks may not know "
            "fixtures");
  EXPECT_EQ(violation("reports/outcome.cpp", "matrix/checks.h"), "");
}

/// True if the folder's own CMakeLists.txt names the file, or another one does by its folder: a
/// test that is built once for each device belongs to the devices.
bool belongs_to_a_target(const fs::path& file) {
  // The precompiled headers: cmake/*.cmake.
  if (file == "fixtures/torch.cpp" || file == "cmake/precompiled.cpp") return true;
  if (text_of(source() / file.parent_path() / "CMakeLists.txt").find(file.filename()) !=
      std::string::npos)
    return true;
  const std::string named = (file.parent_path().filename() / file.filename()).string();
  for (const fs::directory_entry& other :
       fs::recursive_directory_iterator(source() / file.begin()->string()))
    if (other.path().filename() == "CMakeLists.txt" &&
        text_of(other.path()).find(named) != std::string::npos)
      return true;
  return false;
}

TEST(StructureTest, EverySourceFileBelongsToATarget) {
  for (const std::string& file : sources())
    if (fs::path(file).extension() != ".h") {
      EXPECT_TRUE(belongs_to_a_target(file)) << file << " is compiled by nobody";
    }
}

TEST(StructureTest, FileNamesSayWhatIsInside) {
  static const std::regex says_little("(utils?|common|helpers?|misc|manager|base)\\.(h|cpp|cu)$");
  for (const std::string& file : sources())
    EXPECT_FALSE(std::regex_search(file, says_little)) << file;
}

}  // namespace
