// The recipes of docs/guide/extending.md are short, and their examples are what they say: a recipe
// has no more steps than it may have, each step names one file or one folder, and the example
// changes a file for a step at most and none that the recipe does not name. That the examples work
// was tried once, on the commit that each of them names.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "structure/tree.h"

namespace graphproof::structure {
namespace {

constexpr std::string_view kGuide = "docs/guide/extending.md";

struct Recipe {
  std::string_view title, example;  // a heading of the guide; docs/guide/examples/EXAMPLE.patch
  std::size_t most_steps;
  std::string_view apart = {};  // files under this path are not counted: they differ too much
};
constexpr std::array kRecipes = {
    Recipe{"A rule", "rule", 1},
    Recipe{"A profile", "profile", 2},
    Recipe{"A fault", "fault", 3},
    Recipe{"A check on existing evidence", "check", 4},
    Recipe{"A check with a new kind of evidence line", "check-with-line", 6},
    Recipe{"An axis value", "axis-value", 4, "workloads/"},
    Recipe{"An engine", "engine", 6}};

/// The text of the guide from a heading to the next one; empty if there is no such heading.
std::string section(const std::string& guide, std::string_view title) {
  const std::string heading = "\n## " + std::string(title) + "\n";
  const std::size_t begin = guide.find(heading);
  if (begin == std::string::npos) return {};
  return guide.substr(begin, guide.find("\n## ", begin + 1) - begin);
}

/// What the last column of a step names: a path, or the folders of which one has the file.
using Places = std::vector<std::string>;

std::vector<Places> steps_of(const std::string& section) {
  static const std::regex step(R"(^\| [0-9]+\. .* \| ([^|]*) \|$)"), path("`([^`]+)`");
  std::vector<Places> steps;
  for (const std::string& line : lines_of(section)) {
    std::smatch match;
    if (!std::regex_match(line, match, step)) continue;
    const std::string cell = match[1];
    Places places;
    for (std::sregex_iterator at(cell.begin(), cell.end(), path), end; at != end; ++at)
      places.push_back((*at)[1]);
    steps.push_back(places);
  }
  return steps;
}

std::vector<std::string> files_of(const std::string& patch) {
  constexpr std::string_view kBegin = "diff --git a/", kMiddle = " b/";
  std::vector<std::string> files;
  for (const std::string& line : lines_of(patch))
    if (line.starts_with(kBegin)) files.push_back(line.substr(line.find(kMiddle) + kMiddle.size()));
  return files;
}

bool is_file(const std::string& place) { return place.find('.') != std::string::npos; }

/// Whether the step's file can be `file`; NAME in a path stands for any name.
bool takes(const Places& places, const std::string& file) {
  return std::ranges::any_of(places, [&](const std::string& place) {
    if (!is_file(place)) return file.starts_with(place + "/");
    const std::size_t name = place.find("NAME");
    if (name == std::string::npos) return file == place;
    return file.starts_with(place.substr(0, name)) && file.ends_with(place.substr(name + 4));
  });
}

/// What is wrong with a recipe and its example, a sentence each.
std::vector<std::string> complaints(const Recipe& recipe, const std::string& guide,
                                    const std::string& patch) {
  const std::string text = section(guide, recipe.title), name(recipe.title);
  std::vector<Places> steps = steps_of(text);
  std::vector<std::string> found;
  if (steps.empty()) found.push_back(name + " has no steps");
  if (steps.size() > recipe.most_steps)
    found.push_back(name + " has " + std::to_string(steps.size()) + " steps");
  for (const Places& places : steps)
    if (places.empty() || (places.size() > 1 && std::ranges::any_of(places, is_file)))
      found.push_back("a step of " + name + " does not name one file");
  if (text.find("(examples/" + std::string(recipe.example) + ".patch)") == std::string::npos)
    found.push_back(name + " does not link to its example");
  const std::vector<std::string> files = files_of(patch);
  if (files.empty()) found.push_back("the example of " + name + " changes nothing");
  // A step that names a file takes that one; what is left goes to the steps that name a folder.
  std::ranges::stable_partition(
      steps, [](const Places& places) { return !places.empty() && is_file(places.front()); });
  for (const std::string& file : files) {
    if (!recipe.apart.empty() && file.starts_with(recipe.apart)) continue;
    const auto step =
        std::ranges::find_if(steps, [&](const Places& places) { return takes(places, file); });
    if (step == steps.end())
      found.push_back("no step of " + name + " is left for " + file);
    else
      steps.erase(step);
  }
  return found;
}

std::string joined(const std::vector<std::string>& sentences) {
  std::string text;
  for (const std::string& one : sentences) text += one + "\n";
  return text;
}

TEST(Recipes, AreShortAndTheirExamplesChangeAFileForAStep) {
  const std::string guide = text_of(root() / kGuide);
  for (const Recipe& recipe : kRecipes) {
    const std::string patch =
        text_of(root() / "docs/guide/examples" / (std::string(recipe.example) + ".patch"));
    EXPECT_EQ(joined(complaints(recipe, guide, patch)), "");
  }
}

TEST(Recipes, AWrongExampleIsFound) {
  const Recipe recipe{"A fault", "fault", 2};
  const std::string guide =
      "# Guide\n\n## A fault\n\n| step | file |\n| --- | --- |\n"
      "| 1. Add a row. | `matrix/tables/faults.json` |\n"
      "| 2. Write it. | a file in `workloads/faults` or `fixtures/faults` |\n\n"
      "[Example](examples/fault.patch).\n\n## Other\n\n| 3. More. | `a.json` |\n";
  const std::string row =
      "diff --git a/matrix/tables/faults.json b/matrix/tables/faults.json\n+x\n";
  const std::string code = "diff --git a/workloads/faults/a.cpp b/workloads/faults/a.cpp\n+x\n";
  const std::string more = "diff --git a/workloads/faults/b.cpp b/workloads/faults/b.cpp\n+x\n";
  EXPECT_EQ(joined(complaints(recipe, guide, row + code)), "");
  EXPECT_EQ(joined(complaints(recipe, guide, row + code + more)),
            "no step of A fault is left for workloads/faults/b.cpp\n");
  EXPECT_EQ(joined(complaints(recipe, guide, row + "diff --git a/x.cpp b/x.cpp\n")),
            "no step of A fault is left for x.cpp\n");
  EXPECT_EQ(joined(complaints(recipe, guide, "")), "the example of A fault changes nothing\n");
  EXPECT_EQ(joined(complaints({"A fault", "fault", 1}, guide, row + code)),
            "A fault has 2 steps\n");
  EXPECT_EQ(joined(complaints({"A fault", "other", 2}, guide, row)),
            "A fault does not link to its example\n");
  EXPECT_EQ(joined(complaints({"A fault", "fault", 1, "workloads/"},
                              "\n## A fault\n| 1. Row. | `matrix/a.json` and `b.json` |\n"
                              "(examples/fault.patch)\n",
                              code)),
            "a step of A fault does not name one file\n");
}

}  // namespace
}  // namespace graphproof::structure
