#include "launcher/cli/bisect/search.h"

namespace graphproof::cli {
namespace {

/// Ends the search where a probe gave no answer.
struct NoAnswer {
  Outcome outcome;
  std::set<std::string> at;
};

bool fails(const Probe& probe, const std::set<std::string>& of_b) {
  const Outcome outcome = probe(of_b);
  if (outcome == Outcome::unclear || outcome == Outcome::interrupted) throw NoAnswer{outcome, of_b};
  return outcome == Outcome::bad;
}

}  // namespace

Culprit search(const std::vector<std::string>& components, const Probe& probe) {
  const std::set<std::string> all(components.begin(), components.end());
  Culprit culprit;
  try {
    if (fails(probe, {})) return {.answer = Culprit::Answer::both_fail, .components = {}, .at = {}};
    if (!fails(probe, all))
      return {.answer = Culprit::Answer::both_pass, .components = {}, .at = {}};
    culprit.answer = Culprit::Answer::found;
    for (const std::string& one : components)
      if (fails(probe, {one})) culprit.components.push_back(one);
    if (!culprit.components.empty()) return culprit;
    culprit.together = true;
    std::set<std::string> needed = all;
    for (const std::string& one : components) {
      std::set<std::string> fewer = needed;
      fewer.erase(one);
      // One alone was tried already.
      if (fewer.size() > 1 && fails(probe, fewer)) needed = fewer;
    }
    for (const std::string& one : components)
      if (needed.contains(one)) culprit.components.push_back(one);
  } catch (const NoAnswer& none) {
    return {.answer = none.outcome == Outcome::interrupted ? Culprit::Answer::interrupted
                                                           : Culprit::Answer::unclear,
            .components = {},
            .at = none.at};
  }
  return culprit;
}

}  // namespace graphproof::cli
