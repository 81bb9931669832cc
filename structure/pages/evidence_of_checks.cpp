#include "structure/pages/evidence_of_checks.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>
#include <vector>

#include "suites/checks/check_table.h"
#include "suites/checks/testing/clean_attempt.h"

namespace graphproof::structure {
namespace {

using Results = std::map<std::string, record::CheckResult>;

Results judged(const checks::Attempt& attempt, const matrix::CheckTable& table) {
  Results results;
  for (record::CheckResult& result : checks::judge(attempt, table).checks)
    results.emplace(result.check, std::move(result));
  return results;
}

bool same(const record::CheckResult& left, const record::CheckResult& right) {
  return left.result == right.result && left.message == right.message;
}

/// Calls `look` with the name of each kind while no rank of `attempt` has lines of it.
template <class Look, class... Lines>
void without_each_kind(checks::Attempt& attempt, const Look& look, record::Kinds<Lines...>) {
  const auto without = [&]<class Line>(std::in_place_type_t<Line>) {
    std::vector<std::vector<Line>> taken;
    for (checks::RankFiles& files : attempt.ranks)
      taken.push_back(std::exchange(std::get<std::vector<Line>>(files.evidence->typed.lines), {}));
    const bool any = std::ranges::any_of(taken, [](const auto& lines) { return !lines.empty(); });
    if (any) look(std::string(Line::kKind));
    for (std::size_t rank = 0; rank < taken.size(); ++rank)
      std::get<std::vector<Line>>(attempt.ranks[rank].evidence->typed.lines) =
          std::move(taken[rank]);
  };
  (without(std::in_place_type<Lines>), ...);
}

}  // namespace

std::map<std::string, std::set<std::string>> evidence_of_checks(
    const matrix::Catalogue& catalogue) {
  std::map<std::string, std::set<std::string>> read;
  // The clean twins of the planted faults exercise every check; one attempt is enough for each.
  for (const matrix::FaultEntry& fault : catalogue.faults.faults())
    for (const std::string& device : fault.devices) {
      checks::Attempt attempt = checks::clean_attempt(
          catalogue, nlohmann::json::parse(canonical_text(fault.twin)), device);
      const Results whole = judged(attempt, catalogue.checks);
      std::set<std::string> asked;
      for (const auto& [check, result] : whole)
        if (result.result == record::Result::pass && !read.contains(check)) asked.insert(check);
      if (asked.empty()) continue;
      for (const std::string& check : asked) read[check];
      without_each_kind(
          attempt,
          [&](const std::string& kind) {
            const Results less = judged(attempt, catalogue.checks);
            for (const std::string& check : asked)
              if (!same(whole.at(check), less.at(check))) read[check].insert(kind);
          },
          record::LineKinds{});
    }
  return read;
}

}  // namespace graphproof::structure
