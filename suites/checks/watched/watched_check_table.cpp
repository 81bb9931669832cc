#include "suites/checks/watched/watched_check_table.h"

#include <algorithm>
#include <map>
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

/// Launchers of ranks end the others by a signal when one has failed, so an exit status tells more
/// than none.
std::vector<record::FailedProcess> failed_processes(const WatchedJob& job) {
  std::vector<record::FailedProcess> by_status, without;
  if (!job.run.command_failed()) return without;
  for (const JobProcess& process : job.processes) {
    const record::WatchedProcessLine& line = process.line();
    const record::FailedProcess failed{.process = process.name,
                                       .host = line.host,
                                       .rank = line.rank,
                                       .exit_status = line.exit_status};
    if (line.exit_status.value_or(0) != 0)
      by_status.push_back(failed);
    else if (!line.exit_status && line.state == "cut_short")
      without.push_back(failed);
  }
  std::vector<record::FailedProcess>& failed = by_status.empty() ? without : by_status;
  // A launcher that uses CUDA itself fails because of its ranks.
  std::ranges::stable_partition(failed, [](const auto& one) { return one.rank.has_value(); });
  return failed;
}

/// Ranks of which no process left evidence, although others belong to a job of so many. Slurm's
/// variables do not count: a single process in a job script has those of the whole job.
std::int64_t ranks_without_evidence(const WatchedJob& job) {
  std::map<std::int64_t, std::set<std::int64_t>> ranks;  // by the size of their job
  for (const JobProcess& process : job.processes) {
    const record::WatchedProcessLine& line = process.line();
    const bool of_a_launcher =
        !process.setting("WORLD_SIZE").empty() || !process.setting("OMPI_COMM_WORLD_SIZE").empty();
    if (of_a_launcher && line.rank && line.world_size) ranks[*line.world_size].insert(*line.rank);
  }
  std::int64_t missing = 0;
  for (const auto& [size, seen] : ranks)
    missing += std::max<std::int64_t>(size - static_cast<std::int64_t>(seen.size()), 0);
  return missing;
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
  if (const std::int64_t missing = ranks_without_evidence(job); missing > 0)
    checks.figures["ranks_without_evidence"] = static_cast<double>(missing);
  if (const auto unseen = std::ranges::count_if(
          job.processes, [](const JobProcess& one) { return one.calls_unseen().has_value(); });
      unseen > 0)
    checks.figures["processes_without_driver_calls"] = static_cast<double>(unseen);
  checks.failed_processes = failed_processes(job);
  return checks;
}

}  // namespace graphproof::checks::watched
