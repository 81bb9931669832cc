// A run from its plan to its summary: starts batches on slots, judges every case that ends, keeps
// the journal, runs a failed batch case once more alone, and writes the reports. Whatever happens,
// each planned case has one verdict, and a case with a final record is never run again: a run whose
// launcher was killed goes on with resume().
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "launcher/host/disk_floor.h"
#include "launcher/host/processes.h"
#include "launcher/run/run_reports.h"
#include "reports/outcome/outcome.h"
#include "reports/outcome/run_result.h"
#include "reports/print/terminal.h"
#include "reports/record/job/batch.h"
#include "reports/record/job/plan.h"
#include "reports/record/run/record.h"
#include "reports/record/run/run.h"

namespace graphproof::launcher {

class Allocation;

/// What a run needs before it starts.
struct RunSetup {
  record::Run run;                     // becomes run.json
  std::string run_name;                // the name that repro commands use: RunResult::run_name
  std::vector<record::PlanLine> plan;  // becomes plan.jsonl
  std::filesystem::path folder;        // exists; of this run only
  std::filesystem::path rank_program, judge_program;
  std::vector<std::string> gpus;  // of this host, on cuda, as CUDA_VISIBLE_DEVICES spells them
  reports::CheckEffects effects;
  std::int64_t disk_floor_bytes = kDiskFloor_bytes;
  const ProcessTable* processes = nullptr;  // null: those of the host
  std::shared_ptr<Allocation> allocation =
      nullptr;           // null: this host; otherwise run.slots are those of one of its nodes
  bool prestart = true;  // ranks may be started while the slots that they wait for are still leased
};

/// The observer of a run. Its functions are called from the run's thread; each may be empty.
struct RunListener {
  std::function<void(const record::Record&, const reports::Progress&)>
      finished;                                            // a case has its final record
  std::function<void(const reports::Progress&)> progress;  // at least every 200 ms
  std::function<void(const std::string&)> notice;          // what the user should know
};

/// Runs the plan. SIGINT, SIGTERM and SIGHUP: the first lets running cases end and starts no
/// others, the second ends all at once. Writes plan.jsonl, run.json and junit.xml before the first
/// rank starts, and the summary at the end, also of an interrupted run. When the folder can't be
/// written any more, the run stops with reports::Ending::disk. Throws record::WriteError when it
/// can't be written at all, and matrix::InputError when another launcher runs in it.
reports::RunResult run(const RunSetup& setup, const RunListener& listener);

/// Goes on with the run in `setup.folder`, which `setup` describes as it is recorded. First ends
/// the processes that a killed launcher left and removes its folders on this host. Cases with a
/// final record are not run again; one that was running is, as a new attempt that says so. Throws
/// as run() does, record::ReadError for a damaged journal, and matrix::InputError when an earlier
/// process can't be ended.
reports::RunResult resume(const RunSetup& setup, const RunListener& listener);

/// The hash of a plan that run.json contains.
std::string plan_sha256(const std::vector<record::PlanLine>& plan);

}  // namespace graphproof::launcher
