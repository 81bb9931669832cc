// A run from its plan to its summary: starts batches on slots, judges every case that ends, keeps the journal, runs a
// failed batch case once more alone, and writes the reports. Whatever happens, each planned case has one verdict.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "reports/outcome.h"
#include "reports/record/batch.h"
#include "reports/record/plan.h"
#include "reports/record/record.h"
#include "reports/record/run.h"
#include "reports/run_result.h"
#include "reports/terminal.h"

namespace graphproof::launcher {

struct RunSetup {
  record::Run run;                         // becomes run.json
  std::string run_name;                    // what repro commands name: RunResult::run_name
  std::vector<record::PlanLine> plan;      // becomes plan.jsonl
  std::filesystem::path folder;            // exists; its own
  std::filesystem::path rank_program, judge_program;
  std::vector<std::string> gpus;           // one per slot on cuda, as CUDA_VISIBLE_DEVICES spells them
  record::Limits limits_ms;                // defaults, every phase
  reports::CheckEffects effects;
  std::int64_t budget_ms = 0;              // 0: none
};

/// Who looks on. Called from the run's own thread; may be empty.
struct RunListener {
  std::function<void(const record::Record&, const reports::Progress&)> finished;  // a case has its verdict
  std::function<void(const reports::Progress&)> progress;                         // at least every 200 ms
  std::function<void(const std::string&)> said;                                   // what the user should know
};

// Cases that fail alike at a run's start, before it is stopped: the machine or the build is broken, not a combination.
// Fewer hangs than other failures, because each of them costs minutes.
inline constexpr int kCircuitBreaker = 12, kCircuitBreakerHangs = 4;

/// Runs it. SIGINT, SIGTERM and SIGHUP: the first lets running cases end and starts no others, the second ends all at
/// once. Writes run.json, plan.jsonl and junit.xml before the first rank starts, and the summary at the end also of an
/// interrupted run. Throws record::WriteError when the folder can't be written at all.
reports::RunResult run(const RunSetup& setup, const RunListener& listener);

/// Writes summary.json, summary.md, junit.xml and faults.json of a run into `folder`.
void write_reports(const reports::RunResult& result, const std::filesystem::path& folder);

/// A run as its folder shows it: by the summary's ending and time if there is one, otherwise by the journal alone.
reports::RunResult read_run(const std::filesystem::path& folder);

}  // namespace graphproof::launcher
