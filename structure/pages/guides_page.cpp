#include <fmt/format.h>

#include <string>
#include <vector>

#include "matrix/catalogue/catalogue.h"
#include "matrix/catalogue/guidance.h"
#include "matrix/guidance/guidance_plans.h"
#include "structure/pages/markdown.h"
#include "structure/pages/pages.h"

namespace graphproof::structure {
namespace {

/// "pairwise 34, subjects 5 on GPUs": how many cases of each profile run.
std::string counts_of(const matrix::GuidanceCases& cases, matrix::GuidancePlans& plans) {
  std::vector<std::string> counts;
  for (const std::string& profile : cases.profiles)
    counts.push_back(fmt::format("{} {}{}", profile, plans.running(cases, profile).size(),
                                 cases.device == "cuda" ? " on GPUs" : ""));
  return list_of(counts);
}

std::string answer(const matrix::GuidanceRow& row, matrix::GuidancePlans& plans) {
  if (!row.open.empty()) return "**open**: " + row.open;
  if (!row.why_not.empty()) return "not tested: " + row.why_not;
  std::vector<std::string> parts;
  const auto add = [&](const char* what, const std::vector<std::string>& names) {
    if (!names.empty()) parts.push_back(std::string(what) + " " + list_of(names));
  };
  for (const matrix::GuidanceCases& cases : row.cases)
    parts.push_back("cases " + code(cases.where.text()) + ": " + counts_of(cases, plans));
  if (!row.rules.empty())
    parts.push_back("refused by " + list_of(row.rules) + ": " + code(row.refused.text()));
  add("configurations refused or reported by", row.configuration_rules);
  add("checks", row.checks);
  add("faults", row.faults);
  add("watched programs", row.programs);
  std::vector<std::string> tests;
  for (const std::string& test : row.tests) tests.push_back(code(test));
  add("tests", tests);
  return fmt::format("{}", fmt::join(parts, "; "));
}

}  // namespace

std::string guides_page() {
  const matrix::Catalogue catalogue = matrix::load_catalogue();
  const matrix::GuidanceTable table = matrix::load_guidance(catalogue.axes);
  matrix::GuidancePlans plans(catalogue);
  std::string text = page_head(
      "What guides of CUDA graphs say, and what answers it",
      "Each row is something that a public guide of CUDA graphs states, recommends or forbids, in "
      "our words, with what answers it: cases of shipped profiles, with how many of them run on "
      "the simulated device, or on four GPUs of architecture sm_90 with every "
      "[subject](subjects.md) installed; [rules](rules.md) that refuse planned cases; rules of "
      "users' configurations, which `./graphproof check` applies; "
      "[checks](checks.md); planted [faults](faults.md) that break what is asked for and are "
      "caught; programs of [watched runs](../guide/watch.md); tests of this tree, of which those "
      "of `CaptureErrors` need a GPU. A condition is one for `--where`, as in `./graphproof plan "
      "--profile pairwise --where CONDITION`. What nothing answers yet is **open**.",
      "`matrix/tables/guidance.json`");
  text += "\n" + table_head({"document", "statements", "answered", "not tested", "open"});
  for (const matrix::GuidanceDocument& document : table.documents()) {
    std::size_t answered = 0, open = 0;
    for (const matrix::GuidanceRow& row : document.rows) {
      answered += row.answered();
      open += !row.open.empty();
    }
    const std::size_t all = document.rows.size();
    text += table_row({document.title, std::to_string(all), std::to_string(answered),
                       std::to_string(all - answered - open), std::to_string(open)});
  }
  for (const matrix::GuidanceDocument& document : table.documents()) {
    text += "\n## " + document.title + "\n\n" + document.about + "\n\n";
    text += table_head({"row", "section", "what it says", "what answers it"});
    for (const matrix::GuidanceRow& row : document.rows)
      text += table_row({std::to_string(row.row), row.section, row.states, answer(row, plans)});
  }
  return text;
}

}  // namespace graphproof::structure
