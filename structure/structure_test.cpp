// The tree's own rules: a folder includes only what its row of the map allows, the map has no
// cycle, a folder stays small enough to be read, every source file is built, and lines end at 100
// columns.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "structure/folders.h"
#include "structure/tree.h"
#include "workloads/engine_traits/engine_traits.h"

namespace graphproof::structure {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostFilesOfAFolder = 40;
constexpr std::size_t kWidestLine = 100;
// Every clone carries the recorded runs, in all their versions.
constexpr std::uintmax_t kMostBytesOfRecordedRuns = std::uintmax_t{12} << 20;
constexpr std::uintmax_t kMostBytesOfAnArchive = std::uintmax_t{2} << 20;

bool is_test(const std::string& file) { return file.ends_with("_test.cpp"); }

bool for_tests(const std::string& folder) {
  return folder.ends_with("/testing") || folder == "bench" || folder == "suites/recorded" ||
         folder.starts_with("structure");
}

const Folder* row_of(const std::string& folder) {
  const auto found = std::ranges::find(folders(), folder, &Folder::path);
  return found == folders().end() ? nullptr : &*found;
}

/// The folders that can be reached from `starts` over the rows of the map, `starts` among them.
std::set<std::string> reachable(const std::vector<std::string>& starts) {
  std::set<std::string> seen;
  std::vector<std::string> open = starts;
  while (!open.empty()) {
    const std::string folder = open.back();
    open.pop_back();
    if (!seen.insert(folder).second) continue;
    if (const Folder* row = row_of(folder))
      open.insert(open.end(), row->may_include.begin(), row->may_include.end());
  }
  return seen;
}

/// What one include of `file` breaks, or empty. Includes of packages pass: their folders are not
/// ours.
std::string violation(const std::string& file, const std::string& included) {
  const std::string from = fs::path(file).parent_path(), to = fs::path(included).parent_path();
  const Folder* row = row_of(from);
  if (row == nullptr || row_of(to) == nullptr || from == to) return {};
  std::vector<std::string> allowed = row->may_include;
  if (is_test(file))
    allowed.insert(allowed.end(), row->tests_may_include.begin(), row->tests_may_include.end());
  if (reachable(allowed).contains(to)) return {};
  return file + " includes \"" + included + "\": " + from + " may not include " + to;
}

TEST(StructureTest, AFolderIncludesOnlyWhatItsRowAllows) {
  static const std::regex include("^\\s*#\\s*include\\s*\"([^\"]+)\"");
  const std::vector<std::string> all = sources();
  ASSERT_GT(all.size(), 50u) << "the source folder was not found: " << root();
  for (const std::string& file : all) {
    EXPECT_NE(row_of(fs::path(file).parent_path()), nullptr)
        << file << " lies in a folder without a row in structure/folders.cpp";
    std::smatch match;
    for (const std::string& line : lines_of(text_of(root() / file)))
      if (std::regex_search(line, match, include)) {
        EXPECT_EQ(violation(file, match[1]), "");
        EXPECT_TRUE(match[1].str().find('/') != std::string::npos)
            << file << ": write the full path of " << match[1];
      }
  }
}

TEST(StructureTest, ATurnedArrowIsNamed) {
  EXPECT_EQ(violation("matrix/case/axes.cpp", "launcher/host/child.h"),
            "matrix/case/axes.cpp includes \"launcher/host/child.h\": matrix/case may not include "
            "launcher/host");
  EXPECT_EQ(violation("reports/outcome/outcome.cpp", "reports/testing/healthy_case.h"),
            "reports/outcome/outcome.cpp includes \"reports/testing/healthy_case.h\": "
            "reports/outcome may not include reports/testing");
  EXPECT_EQ(violation("reports/outcome/outcome_test.cpp", "reports/testing/healthy_case.h"), "");
  EXPECT_EQ(violation("reports/outcome/outcome.cpp", "matrix/catalogue/checks.h"), "");
}

TEST(StructureTest, TheMapHasNoCycle) {
  for (const Folder& folder : folders())
    EXPECT_FALSE(reachable(folder.may_include).contains(folder.path))
        << folder.path << " can be reached from itself";
}

TEST(StructureTest, EveryRowIsAFolderAndSaysWhatItIs) {
  std::map<std::string, int> sources_of;
  for (const std::string& file : sources()) ++sources_of[fs::path(file).parent_path()];
  for (const Folder& folder : folders()) {
    EXPECT_GT(sources_of[folder.path], 0) << folder.path << " has no source file";
    EXPECT_TRUE(folder.purpose.ends_with('.')) << folder.path << ": " << folder.purpose;
    for (const auto& list : {folder.may_include, folder.tests_may_include})
      for (const std::string& other : list)
        EXPECT_NE(row_of(other), nullptr) << folder.path << " may include " << other;
  }
}

TEST(StructureTest, OnlyTestsIncludeWhatIsForTests) {
  for (const Folder& folder : folders()) {
    if (for_tests(folder.path)) continue;
    for (const std::string& other : folder.may_include)
      EXPECT_FALSE(for_tests(other)) << folder.path << " may include " << other;
  }
}

TEST(StructureTest, AFolderIsSmallEnoughToBeRead) {
  std::map<std::string, std::size_t> count;
  for (const std::string& file : files([](const fs::path&) { return true; }))
    ++count[fs::path(file).parent_path()];
  for (const auto& [folder, files] : count) EXPECT_LE(files, kMostFilesOfAFolder) << folder;
}

TEST(StructureTest, RecordedRunsAreSmallEnoughForEveryClone) {
  std::uintmax_t bytes = 0;
  for (const fs::directory_entry& entry :
       fs::recursive_directory_iterator(root() / "suites/recorded")) {
    if (!entry.is_regular_file()) continue;
    bytes += entry.file_size();
    EXPECT_LE(entry.file_size(), kMostBytesOfAnArchive) << entry.path();
  }
  EXPECT_LE(bytes, kMostBytesOfRecordedRuns);
}

/// Whether a text contains the name of an engine as a string literal, and hence may compare names.
bool spells_engine(const std::string& text, std::string_view impl) {
  return text.find("\"" + std::string(impl) + "\"") != std::string::npos;
}

/// True if a file may spell the name of an engine: the traits, the table that makes engines by
/// name, and the translation of Megatron-LM's options, whose values have the same names.
bool may_spell_engines(const std::string& file) {
  static const std::set<std::string> kFiles = {
      "workloads/engines/engine.cpp", "matrix/dialect/dialect.cpp", "matrix/dialect/migrate.cpp",
      "matrix/plan/nearest_case.cpp"};
  const std::string folder = fs::path(file).parent_path();
  return is_test(file) || for_tests(folder) || folder == "workloads/engine_traits" ||
         kFiles.contains(file);
}

TEST(StructureTest, OnlyTheTraitsCompareEngineNames) {
  for (const engines::EngineTraits& engine : engines::kEngineTraits) {
    if (!engine.captures()) continue;
    for (const std::string& file : sources()) {
      // One launcher backend is called local too.
      const bool only_engines = file.starts_with("workloads/") || file.starts_with("suites/");
      if (may_spell_engines(file) || (!only_engines && engine.impl == "local")) continue;
      EXPECT_FALSE(spells_engine(text_of(root() / file), engine.impl))
          << file << " spells \"" << engine.impl
          << "\": add what it decides to workloads/engine_traits/engine_traits.h";
    }
  }
}

TEST(StructureTest, AComparisonOfAnEngineNameIsFound) {
  EXPECT_TRUE(spells_engine("if (config.impl == \"local\") return;\n", "local"));
  EXPECT_FALSE(spells_engine("return traits_of(config.impl).captures();  // not local\n", "local"));
  EXPECT_TRUE(may_spell_engines("workloads/engine_traits/engine_traits.h"));
  EXPECT_FALSE(may_spell_engines("workloads/engines/shape_buckets.cpp"));
}

/// The largest number of fault sites in the product code.
constexpr std::size_t kMostFaultSites = 46;

/// The fault sites in the text of a file, as "FILE:LINE MATCH": calls of fault hooks (the object is
/// named faults or planted) and comparisons with a particular fault.
std::vector<std::string> fault_sites(const std::string& file, const std::string& text) {
  static const std::regex site(
      "\\b(faults|planted)_?(\\(\\))?(\\.|->)[a-z_]+\\(|\\bFault::(?!none\\b)[a-z]");
  std::vector<std::string> sites;
  std::istringstream lines(text);
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    for (std::sregex_iterator at(line.begin(), line.end(), site), end; at != end; ++at)
      sites.push_back(file + ":" + std::to_string(number) + " " + at->str());
  }
  return sites;
}

/// True for product code that a fault may change: not for the faults themselves and for tests.
bool may_have_fault_sites(const std::string& file) {
  const std::string folder = fs::path(file).parent_path();
  const bool product = file.starts_with("workloads/") || file.starts_with("suites/") ||
                       file.starts_with("fixtures/");
  return product && !is_test(file) && !for_tests(folder) &&
         !folder.starts_with("workloads/faults") && folder != "fixtures/device/faults";
}

TEST(StructureTest, FaultsTouchTheProductCodeAtFewSites) {
  std::vector<std::string> sites;
  for (const std::string& file : sources()) {
    if (!may_have_fault_sites(file)) continue;
    for (std::string& one : fault_sites(file, text_of(root() / file)))
      sites.push_back(std::move(one));
  }
  std::string all;
  for (const std::string& one : sites) all += "\n" + one;
  EXPECT_GT(sites.size(), 20u) << "the sites were not found" << all;
  EXPECT_LE(sites.size(), kMostFaultSites) << all;
}

TEST(StructureTest, APlantedFaultSiteIsCounted) {
  const auto count = [](const std::string& line) { return fault_sites("a.cpp", line).size(); };
  EXPECT_EQ(fault_sites("a.cpp", "int x;\nif (pass.faults.evicts(engine)) return;\n"),
            std::vector<std::string>{"a.cpp:2 faults.evicts("});
  EXPECT_EQ(count("step.faults().bucket(found); faults_.scalar(which, value);"), 2u);
  EXPECT_EQ(count("planted->plan_step(plan);"), 1u);
  EXPECT_EQ(count("if (fault_ == fixtures::Fault::graph_leaked) keep();"), 1u);
  EXPECT_EQ(count("fixtures::Fault fault = fixtures::Fault::none; make(step.faults());"), 0u);
  EXPECT_TRUE(may_have_fault_sites("workloads/layers/moe.cpp"));
  EXPECT_FALSE(may_have_fault_sites("workloads/faults/memory.cpp"));
  EXPECT_FALSE(may_have_fault_sites("workloads/layers/moe_test.cpp"));
}

/// Characters, not bytes: a multiplication sign is one column.
std::size_t columns(const std::string& line) {
  return static_cast<std::size_t>(std::ranges::count_if(
      line, [](char byte) { return (static_cast<unsigned char>(byte) & 0xc0) != 0x80; }));
}

TEST(StructureTest, LinesEndAtAHundredColumns) {
  const auto code = [](const fs::path& file) {
    static const std::set<std::string> kExtensions = {".h", ".cpp", ".py", ".sh", ".cmake"};
    return kExtensions.contains(file.extension()) || file.filename() == "CMakeLists.txt" ||
           file.filename() == "graphproof";
  };
  for (const std::string& file : files(code)) {
    const std::vector<std::string> lines = lines_of(text_of(root() / file));
    for (std::size_t i = 0; i < lines.size(); ++i)
      EXPECT_LE(columns(lines[i]), kWidestLine) << file << ":" << i + 1;
  }
}

/// True if the folder's own CMakeLists.txt names the file, or another one does by its folder: a
/// test that is built once for each device belongs to the devices.
bool belongs_to_a_target(const fs::path& file) {
  // The precompiled headers: cmake/*.cmake.
  if (file == "fixtures/tensors/torch.cpp" || file == "cmake/precompiled.cpp") return true;
  if (text_of(root() / file.parent_path() / "CMakeLists.txt").find(file.filename()) !=
      std::string::npos)
    return true;
  const std::string named = (file.parent_path().filename() / file.filename()).string();
  // The code of a check and its test: the row of the check names the file.
  const std::string code = std::regex_replace(named, std::regex("_test\\.cpp$"), ".cpp");
  if (text_of(root() / "matrix/tables/checks.json").find("\"code\": \"" + code + "\"") !=
      std::string::npos)
    return true;
  const fs::path top = root() / file.begin()->string();
  for (const fs::directory_entry& other : fs::recursive_directory_iterator(top))
    if (other.path().filename() == "CMakeLists.txt" &&
        text_of(other.path()).find(named) != std::string::npos)
      return true;
  return false;
}

TEST(StructureTest, EverySourceFileBelongsToATarget) {
  for (const std::string& file : sources()) {
    if (fs::path(file).extension() == ".h") continue;
    EXPECT_TRUE(belongs_to_a_target(file)) << file << " belongs to no target";
  }
}

TEST(StructureTest, FileNamesSayWhatIsInside) {
  static const std::regex says_little("(utils?|common|helpers?|misc|manager|base)\\.(h|cpp|cu)$");
  for (const std::string& file : sources())
    EXPECT_FALSE(std::regex_search(file, says_little)) << file;
}

}  // namespace
}  // namespace graphproof::structure
