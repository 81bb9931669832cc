#include <algorithm>

#include "matrix/catalogue/catalogue.h"
#include "structure/pages/evidence_of_checks.h"
#include "structure/pages/markdown.h"
#include "structure/pages/pages.h"

namespace graphproof::structure {
namespace {

/// The faults that `detector` has to catch, each with its title; those of one device name it.
std::string caught_by(const matrix::Catalogue& catalogue, const std::string& detector) {
  std::string text;
  for (const matrix::FaultEntry& fault : catalogue.faults.faults()) {
    std::vector<std::string> devices;
    for (const std::string& device : fault.devices)
      if (fault.detector(device) == detector) devices.push_back(device);
    if (devices.empty()) continue;
    text += "- " + fault.fault + ": " + fault.title;
    if (devices != fault.devices) text += " (" + list_of(devices) + ")";
    text += "\n";
  }
  return text;
}

/// The form of the checks for watched runs, as a table.
std::string watched_part(const std::vector<matrix::CheckEntry>& checks) {
  std::string text =
      "\n## Watched runs\n\n"
      "What `./graphproof watch` sees of a program that runs as it is. These runs have no axes and "
      "no eager arm, so a check judges what the evidence shows by itself; what only a comparison "
      "with an eager run shows is in the last column. A check ends `unexercised` if a part that it "
      "needs was not seen in a process with graphs. The code is in `suites/checks/watched`.\n\n";
  text += table_head({"check", "what it states", "verdict if it fails", "what watching sees",
                      "needs", "what only an eager run shows"});
  for (const matrix::CheckEntry& check : checks) {
    if (!check.watched) continue;
    std::vector<std::string> needs;
    for (const std::string& need : check.watched->needs) needs.push_back(code(need));
    text += table_row({code(check.check), check.watched->states, code(check.verdict),
                       check.watched->sees, list_of(needs), check.watched->arms_only});
  }
  return text;
}

}  // namespace

std::string checks_page() {
  const matrix::Catalogue catalogue = matrix::load_catalogue();
  const std::vector<matrix::CheckEntry>& checks = catalogue.checks.checks();
  std::string text = page_head(
      "Checks",
      "What is asked of the evidence of every attempt. A check ends `pass`, `fail`, `unexercised` "
      "(what it looks at took no part) or `not_applicable`. A case for which \"required when\" "
      "holds must not leave it unexercised, on a device that can show it. A failing check gives "
      "the case its verdict; of several the most severe decides. \"Evidence\" names the kinds of "
      "lines whose loss changes what a check reports of a clean attempt; beyond these, checks read "
      "the launcher's facts and logs. The code is in `suites/checks`; "
      "a detector is a group of checks, and a [planted fault](faults.md) names the one that must "
      "catch it. [Watched runs](#watched-runs) have a table of their own.",
      "`matrix/tables/checks.json`");
  const auto read = evidence_of_checks(catalogue);
  const auto kinds_of = [&](const std::string& check) {
    std::vector<std::string> links;
    if (const auto found = read.find(check); found != read.end())
      for (const std::string& kind : found->second)
        links.push_back("[" + kind + "](evidence.md#" + kind + ")");
    return list_of(links);
  };
  std::string detector;
  for (const matrix::CheckEntry& check : checks) {
    if (!check.of_cases()) continue;
    if (check.detector != detector) {
      detector = check.detector;
      text += "\n## " + detector + "\n\n";
      const std::string caught = caught_by(catalogue, detector);
      text += caught.empty() ? "No planted fault reaches it; rows of changed evidence fail it.\n"
                             : "Must catch:\n\n" + caught;
      text += "\n" + table_head({"check", "what it states", "required when", "verdict if it fails",
                                 "devices", "evidence"});
    }
    std::string states = check.states;
    if (check.since > 1) states += "; needs evidence revision " + std::to_string(check.since);
    if (check.of_subjects) {
      states += "; also required of [other subjects](subjects.md)";
      if (check.of_subjects->text() != "true") states += " if " + code(check.of_subjects->text());
    }
    if (check.own_gpu) states += "; not asked where ranks share a GPU";
    text += table_row({code(check.check), states, code(check.required_when.text()),
                       code(check.verdict), list_of(check.devices), kinds_of(check.check)});
  }
  return text + watched_part(checks);
}

}  // namespace graphproof::structure
