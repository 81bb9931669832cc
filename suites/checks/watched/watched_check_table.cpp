#include "suites/checks/watched/watched_check_table.h"

#include <set>
#include <stdexcept>

#include "suites/checks/attempt/concat.h"
#include "suites/checks/watched/graph_table.h"

namespace graphproof::checks::watched {
namespace {

/// What the launcher could not see is in watched.json.
void add_notes(const WatchedJob& job, std::vector<std::string>& notes) {
  notes = job.notes;
  for (const std::string& note : job.unread) notes.push_back(note);
  if (job.processes.empty())
    notes.push_back("no process left evidence: none made a CUDA context under the probe");
  // Ranks have most of these in common.
  std::set<std::string> said;
  for (const JobProcess& process : job.processes) {
    for (const record::UnseenPart& part : process.line().unseen)
      if (said.insert(part.what + part.why).second)
        notes.push_back(concat(process.title(), ": ", part.what, " was not seen: ", part.why));
    for (const std::string& dropped : process.evidence.dropped)
      if (said.insert(dropped).second) notes.push_back(concat(process.title(), ": ", dropped));
  }
}

}  // namespace

record::WatchedChecks judge_watched(const WatchedJob& job, const matrix::CheckTable& table) {
  record::WatchedChecks checks;
  for (const WatchedCheck& check : all_watched_checks()) {
    const matrix::CheckEntry* entry = table.find(check.name);
    if (!entry || !entry->watched)
      throw std::logic_error(
          concat("check ", check.name, " has no watched form in matrix/tables/checks.json"));
    WatchedJudgement judgement(check.name, job, entry->watched->needs);
    record::CheckResult result = check.function(judgement, job);
    if (result.message.what.empty()) result.message.what = entry->watched->states;
    checks.checks.push_back(std::move(result));
  }
  add_notes(job, checks.notes);
  checks.graphs = graph_table(job, checks.notes);
  checks.figures = watched_figures(job);
  return checks;
}

}  // namespace graphproof::checks::watched
