// D67: versions that are known to be bad for what the process does (matrix/tables/bad_stacks.json).
#include "suites/checks/attempt/concat.h"
#include "suites/checks/watched/job/stack_facts.h"
#include "suites/checks/watched/job/watched_judgement.h"

namespace graphproof::checks::watched::d67 {

record::CheckResult bad_stack(WatchedJudgement& judgement, const WatchedJob& job) {
  int rows = 0;
  for (const matrix::BadStack& row : job.bad_stacks.rows())
    if (row.reported_by == "D67.bad_stack") ++rows;
  for (const JobProcess& process : job.processes) {
    if (!process.has_graphs()) continue;
    for (const matrix::BadStack& row : job.bad_stacks.rows())
      if (row.reported_by == "D67.bad_stack")
        if (const auto got = meets(row, process))
          judgement.defect(process, {.what = row.what,
                                     .got = *got,
                                     .want = concat("none of: ", row.conditions()),
                                     .why = concat(row.why, " (", row.source, ")"),
                                     .next = row.next});
    judgement.confirm(process);
  }
  return judgement.result(concat("none of ", rows, " combinations that are known to be bad"),
                          "a software stack without known defects for this use");
}

}  // namespace graphproof::checks::watched::d67
