// D27 in a watched run: either all ranks register the buffers of captured collectives with NCCL or
// none does. NCCL's log shows it; without the log, settings under which ranks can differ are found.
#include <algorithm>

#include "suites/checks/attempt/concat.h"
#include "suites/checks/watched/job/stack_facts.h"
#include "suites/checks/watched/job/watched_judgement.h"

namespace graphproof::checks::watched::d27 {
namespace {

const record::NcclRegistrationLine* log_of(const JobProcess& process) {
  const auto lines = process.of<record::NcclRegistrationLine>();
  return lines.empty() ? nullptr : &lines.front();
}

std::int64_t registrations(const record::NcclRegistrationLine& log) {
  return log.registered + log.ipc + log.nvls + log.network;
}

void compare(WatchedJudgement& judgement, const std::vector<const JobProcess*>& with_logs) {
  if (with_logs.empty()) return;
  const auto by_count = [](const JobProcess* process) { return registrations(*log_of(*process)); };
  const auto [fewest, most] = std::ranges::minmax_element(with_logs, {}, by_count);
  if (by_count(*fewest) > 0 || by_count(*most) == 0) return;
  judgement.defect(**fewest,
                   {.what = concat("NCCL registered no buffer here, but did in ", (*most)->title()),
                    .got = concat("0 registrations against ", by_count(*most)),
                    .want = "registrations on all ranks or on none",
                    .why = "a rank with registered buffers waits for an exchange of "
                           "addresses that the other never makes",
                    .next = "set NCCL_GRAPH_REGISTER=0, or allocate the buffers alike on "
                            "all ranks"});
}

}  // namespace

record::CheckResult registration_parity(WatchedJudgement& judgement, const WatchedJob& job) {
  std::vector<const JobProcess*> with_logs;
  int judged = 0;
  for (const JobProcess* process : judgement.all_ranks()) {
    if (!captured_communication(*process)) continue;
    ++judged;
    bool bad = false;
    for (const matrix::BadStack& row : job.bad_stacks.rows())
      if (row.reported_by == "D27.registration_parity")
        if (const auto got = meets(row, *process)) {
          bad = true;
          judgement.defect(*process, {.what = row.what,
                                      .got = *got,
                                      .want = concat("none of: ", row.conditions()),
                                      .why = concat(row.why, " (", row.source, ")"),
                                      .next = row.next});
        }
    if (log_of(*process)) {
      with_logs.push_back(process);
      judgement.confirm(*process);
    } else if (!registers_captured_buffers(*process)) {
      judgement.confirm(*process);  // NCCL registers nothing by itself
    } else if (!bad) {
      judgement.unexercised(concat(process->title(),
                                   " has no log of NCCL that shows registrations (NCCL_DEBUG=INFO, "
                                   "NCCL_DEBUG_SUBSYS=REG)"));
    }
  }
  compare(judgement, with_logs);
  for (const JobProcess& process : job.processes)
    if (process.has_graphs() && !captured_communication(process))
      judgement.excuse(process, "no graph of it holds calls of NCCL");
  return judgement.result(concat(judged, " ranks register alike"),
                          "registrations on all ranks or on none");
}

}  // namespace graphproof::checks::watched::d27
