#include "reports/outcome/faults.h"

#include <algorithm>
#include <map>

namespace graphproof::reports {
namespace {

using record::FaultStatus;
using record::operator""_verdict;

// Rules of outcome.cpp that distinguish cases of one verdict.
constexpr int kHarmlessRule = 82;
constexpr int kEagerRule = 89;

}  // namespace

bool of_detector(const std::string& check, const std::string& detector) {
  return check.starts_with(detector + ".");
}

record::FaultStatus fault_status(const record::Expect& expect, const record::Record& record) {
  const auto& failing = record.failing;
  const auto by_detector = [&expect](const record::Failing& one) {
    return of_detector(one.check, expect.detector);
  };
  if (record.verdict == "pass.killed"_verdict)
    return record.rule == kHarmlessRule ? FaultStatus::harmless : FaultStatus::killed;
  // If the eager arm failed or no rank reached the arms, the fault was never tested.
  if (record.rule == kEagerRule || (record.phase && *record.phase < record::Phase::eager))
    return FaultStatus::unexercised;
  if (record.verdict == "fail.survived"_verdict)
    return record.observed.exit_code() == record::ExitCode::product ? FaultStatus::killed_elsewhere
                                                                    : FaultStatus::survived;
  // The fault was caught, but the case left the machine unclean. The verdict reports the machine;
  // the status reports the fault.
  if (record.verdict.in("fail") && std::any_of(failing.begin(), failing.end(), by_detector))
    return FaultStatus::killed;
  return FaultStatus::unexercised;
}

std::vector<record::FaultResult> faults(const RunResult& run) {
  std::map<std::string, record::Verdict> verdicts;
  for (const CaseResult& one : run.cases) verdicts[one.plan.id] = one.record.verdict;

  std::vector<record::FaultResult> rows;
  for (const CaseResult& one : run.cases) {
    const record::Expect& expect = one.plan.expect;
    if (expect.kind != "fault") continue;
    record::FaultResult row{.fault = expect.fault,
                            .detector = expect.detector,
                            .killed_by = {},
                            .status = fault_status(expect, one.record),
                            .clean_twin = "not_run"_verdict};
    for (const auto& [check, result] : one.checks)
      if (result == record::Result::fail) row.killed_by.push_back(check);
    // The named detector comes first, because it is the one that has to fail.
    std::stable_partition(
        row.killed_by.begin(), row.killed_by.end(),
        [&expect](const std::string& check) { return of_detector(check, expect.detector); });
    if (const auto twin = verdicts.find(expect.clean_twin); twin != verdicts.end())
      row.clean_twin = twin->second;
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace graphproof::reports
