#include <algorithm>
#include <cctype>
#include <utility>

#include "matrix/catalogue/catalogue.h"
#include "reports/record/text/fields.h"
#include "structure/pages/markdown.h"
#include "structure/pages/pages.h"

namespace graphproof::structure {
namespace {

/// The live rules that bind `subject`.
std::string rules_of(const matrix::Catalogue& catalogue, const std::string& subject) {
  std::vector<std::string> ids;
  for (const matrix::Rule& rule : catalogue.rules.rules())
    if (rule.status == "live" && rule.severity == "error" && rule.binds(subject))
      ids.push_back(rule.id);
  return ids.empty() ? "none" : list_of(ids);
}

/// Axes without a choice, those with the same reason together.
std::string fixed_axes(const matrix::AxisTable& axes, const matrix::Subject& subject) {
  std::vector<std::pair<std::string, std::vector<std::string>>> reasons;
  for (const matrix::Axis& axis : axes.axes()) {
    const auto found = subject.axes.find(axis.name);
    if (found == subject.axes.end() || !found->second.means.empty()) continue;
    const std::string& why = found->second.missing;
    auto row = std::find_if(reasons.begin(), reasons.end(),
                            [&](const auto& one) { return one.first == why; });
    if (row == reasons.end()) row = reasons.insert(row, {why, {}});
    row->second.push_back(code(axis.name));
  }
  if (reasons.empty()) return "";
  std::string text = "\n" + table_head({"axes that keep their default", "why"});
  for (const auto& [why, names] : reasons) text += table_row({list_of(names), why});
  return text;
}

std::string chosen_axes(const matrix::AxisTable& axes, const matrix::Subject& subject) {
  std::string text =
      "\n" + table_head({"axis", "what it means", "what must hold", "why only then"});
  for (const matrix::Axis& axis : axes.axes()) {
    const auto found = subject.axes.find(axis.name);
    if (found == subject.axes.end() || found->second.means.empty()) continue;
    const matrix::AxisMeaning& meaning = found->second;
    text += table_row({code(axis.name), meaning.means,
                       meaning.can ? code(meaning.can->text()) : std::string(), meaning.missing});
  }
  return text;
}

/// What must hold for several axes together, or for the machine.
std::string needs_of(const matrix::SubjectTable& table, const std::string& subject) {
  std::string text;
  for (const matrix::Capability& need : table.needs())
    if (std::find(need.subjects.begin(), need.subjects.end(), subject) != need.subjects.end())
      text += "- " + code(need.require.text()) + ": " + need.missing + "\n";
  return text.empty() ? "" : "\nIt also needs:\n\n" + text;
}

std::string limits_of(const matrix::Subject& subject) {
  std::vector<std::string> limits;
  for (const auto& [phase, limit_ms] : subject.limits)
    limits.push_back(code(record::name(phase)) + " " + std::to_string(limit_ms / 1000) + " s");
  return limits.empty() ? "" : " Limits of silence of its own: " + list_of(limits) + ".";
}

}  // namespace

std::string refusals_of_subjects() {
  const matrix::Catalogue catalogue = matrix::load_catalogue();
  record::Json words = record::Json::object();
  for (const matrix::Rule& rule : catalogue.rules.rules())
    if (!rule.says.empty()) words[rule.id] = rule.says;
  return words.dump(2) + "\n";
}

std::string subjects_page() {
  const matrix::Catalogue catalogue = matrix::load_catalogue();
  const std::vector<matrix::Subject>& subjects = catalogue.subjects.subjects();
  std::string text = page_head(
      "Subjects",
      "Whose code a case tests (axis `subject`), and what each axis means for that code. "
      "`reference` is graphproof's own, and [axes.md](axes.md) says what an axis means for it; the "
      "others are installed packages, or a script of the user. A case that asks for what its "
      "subject cannot do is `skipped.capability` with the reason below, and so is every case of a "
      "subject whose package is not installed, or of a version that is not supported. A rule binds "
      "a subject that runs the code of the "
      "rule's source.",
      "`matrix/tables/subjects.json`");
  for (const matrix::Subject& subject : subjects) {
    std::string meaning = subject.meaning;
    meaning.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(meaning.front())));
    text += "\n## " + subject.name + "\n\n" + meaning +
            ". Rules that bind it: " + rules_of(catalogue, subject.name) + "." +
            limits_of(subject) + "\n";
    if (subject.name != matrix::kReference) text += chosen_axes(catalogue.axes, subject);
    text += fixed_axes(catalogue.axes, subject) + needs_of(catalogue.subjects, subject.name);
  }
  return text;
}

}  // namespace graphproof::structure
