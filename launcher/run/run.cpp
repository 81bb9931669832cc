#include "launcher/run/run.h"

#include <chrono>
#include <map>
#include <system_error>
#include <thread>
#include <utility>

#include "launcher/doctor/doctor.h"
#include "launcher/host/cgroup.h"
#include "launcher/host/clocks.h"
#include "launcher/host/ending.h"
#include "launcher/host/host_folders.h"
#include "launcher/host/leftovers.h"
#include "launcher/host/run_lock.h"
#include "launcher/run/pending_work.h"
#include "launcher/run/runner.h"
#include "matrix/case/case.h"
#include "matrix/input/input_error.h"
#include "reports/record/job/live.h"
#include "reports/record/run/journal.h"
#include "reports/record/run/summary.h"
#include "reports/record/text/file.h"

namespace graphproof::launcher {
namespace {

namespace fs = std::filesystem;

std::string plan_text(const std::vector<record::PlanLine>& plan) {
  std::string lines;
  for (const record::PlanLine& line : plan) lines += record::to_line(line);
  return lines;
}

reports::RunResult go(const RunSetup& setup, const RunListener& listener, PendingWork pending,
                      const std::vector<record::Record>& earlier, double earlier_seconds) {
  reports::Ending ending;
  double wall_seconds;
  {
    Runner runner(setup, listener, earlier, earlier_seconds);
    ending = runner.run(std::move(pending));
    wall_seconds = runner.wall_seconds();
  }
  reports::RunResult result = reports::read_run_result(setup.folder, ending, wall_seconds);
  result.run_name = setup.run_name;
  try {
    write_reports(result, setup.folder);
  } catch (const record::WriteError& error) {
    if (ending != reports::Ending::disk) throw;
    if (listener.notice) listener.notice(error.what());
  }
  return result;
}

/// Ends every process with the run's mark. Its launcher is dead, because this one has the lock.
void end_left_behind(const RunSetup& setup, const RunListener& listener) {
  const ProcessTable host;
  const ProcessTable& processes = setup.processes ? *setup.processes : host;
  const std::string mark = setup.run.run_id + ".";
  const std::vector<Process> left = processes.of(0, mark, 0);
  if (left.empty()) return;
  if (listener.notice)
    for (const std::string& process : named(left))
      listener.notice("ending " + process + ", which the earlier launcher left");
  Ending ending(processes, 0, mark, false, steady_ms());
  while (!ending.step(steady_ms())) std::this_thread::sleep_for(std::chrono::milliseconds(25));
  if (ending.unkillable().empty()) return;
  throw matrix::InputError({"processes of the earlier launcher can't be ended",
                            matrix::listed(named(ending.unkillable())), "none of this run",
                            "even SIGKILL does not end them: they use what the next cases need",
                            "restart the machine, or its driver, then resume again"});
}

/// How long the earlier launchers took, as far as they recorded it.
double seconds_so_far(const fs::path& folder) {
  std::error_code absent;
  if (const fs::path file = folder / "live.json"; fs::exists(file, absent))
    return record::live_from(record::read_json(file), file).elapsed_seconds;
  if (const fs::path file = folder / "summary.json"; fs::exists(file, absent))
    return record::read_summary_head(file).wall_seconds;
  return 0;
}

/// Removes the files that say how the earlier launcher ended, and what it was writing when it was
/// killed.
void remove_stale_files(const fs::path& folder) {
  std::error_code ignored;
  for (const char* name : {"summary.json", "live.json"}) fs::remove(folder / name, ignored);
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    if (const std::string name = entry.path().filename();
        name.find(".writing-") != name.npos || name.starts_with(kFolderProbe))
      fs::remove(entry.path(), ignored);
}

}  // namespace

std::string plan_sha256(const std::vector<record::PlanLine>& plan) {
  return matrix::sha256_hex(plan_text(plan));
}

reports::RunResult run(const RunSetup& setup, const RunListener& listener) {
  const RunLock lock(setup.folder);
  // Stale files are of a start that was cut off before the run had its plan.
  remove_stale_files(setup.folder);
  // run.json comes last: a folder with it is a run whose plan is whole.
  const std::string plan = plan_text(setup.plan);
  record::write_atomically(setup.folder / "plan.jsonl", plan);
  record::Run run = setup.run;
  run.plan_sha256 = matrix::sha256_hex(plan);
  record::write_json(setup.folder / "run.json", record::to_json(run));
  return go(setup, listener, pending_work(setup.folder, setup.plan, {}), {}, 0);
}

reports::RunResult resume(const RunSetup& setup, const RunListener& listener) {
  const RunLock lock(setup.folder);
  end_left_behind(setup, listener);
  remove_abandoned_host_folders(setup.run.run_id);
  remove_cgroups(setup.run.run_id + ".");
  const record::JournalContent journal = record::read_journal(setup.folder / "journal.jsonl");
  if (!journal.dropped.empty() && listener.notice) listener.notice(journal.dropped);
  const double seconds = seconds_so_far(setup.folder);
  remove_stale_files(setup.folder);
  return go(setup, listener, pending_work(setup.folder, setup.plan, journal.records),
            journal.records, seconds);
}

}  // namespace graphproof::launcher
