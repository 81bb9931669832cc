#include "matrix/case/case.h"
#include "matrix/catalogue/catalogue.h"
#include "structure/pages/markdown.h"
#include "structure/pages/pages.h"

namespace graphproof::structure {
namespace {

/// "always" is not worth a word.
std::string condition(std::string_view when, std::string_view require) {
  return when == "true" ? code(require)
                        : code(std::string(when) + " implies " + std::string(require));
}

}  // namespace

std::string rules_page() {
  const matrix::Catalogue catalogue = matrix::load_catalogue();
  std::string text = page_head(
      "Rules",
      "Which cases are refused, and why. Ranks refuse in phase `validate`, before CUDA, NCCL or "
      "MPI is initialised, by the first rule of this order that a case breaks. Ids with R are "
      "Megatron-LM's, with B Megatron Bridge's, in the order in which upstream evaluates them; "
      "those with G are graphproof's own, with P PyTorch's. A rule binds the subject reference and "
      "[those](subjects.md) that run the code of its source. The rules of the other dialects, for "
      "configurations of "
      "users, are printed by `./graphproof rules --dialect megatron-lm`.",
      "`matrix/rules/graphproof.json`");
  for (const matrix::Rule& rule : catalogue.rules.rules()) {
    text += "\n## " + rule.id + ": " + rule.what + "\n\n";
    text += "- " + rule.severity + ", stage " + rule.stage + ", " + rule.status + "\n";
    if (rule.subjects != std::vector<std::string>{std::string(matrix::kReference)})
      text += "- binds the subjects " + list_of(rule.subjects) + "\n";
    if (rule.when.text() != "true") text += "- applies when " + code(rule.when.text()) + "\n";
    for (const matrix::RulePart& part : rule.parts)
      text += "- requires " + condition(part.when.text(), part.require.text()) + "\n";
    text += "- why: " + rule.why + "\n- next: " + rule.next + "\n- source: " + rule.source + "\n";
    std::vector<std::string> broken;
    for (const matrix::Case& test_case : rule.breaks)
      broken.push_back(code(case_name(catalogue.axes, test_case)));
    if (!broken.empty()) text += "- negative cases: " + list_of(broken) + "\n";
  }
  return text;
}

}  // namespace graphproof::structure
