// For tests and measurements: a run of many cases, made of those of a recorded run.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "reports/record/job/plan.h"
#include "reports/record/run/journal.h"
#include "reports/record/text/file.h"

namespace graphproof::reports {

/// The id of case `index` of a large run.
inline std::string large_run_id(int index) { return fmt::format("{:016x}", index); }

/// Writes a run of `cases` cases into `folder`: those of the run folder `source`, each many times
/// with an id of its own and hard links to its evidence, so both must be on one file system. `edit`
/// may change the record of a case; if it returns false, the case gets none.
inline void write_large_run(const std::filesystem::path& source,
                            const std::filesystem::path& folder, int cases,
                            const std::function<bool(int, record::Record&)>& edit) {
  namespace fs = std::filesystem;
  fs::create_directories(folder);
  fs::copy(source / "run.json", folder / "run.json");
  const auto plan = record::plan_from(record::read_text(source / "plan.jsonl"), "plan.jsonl");
  const auto records = record::last_records(record::read_journal(source / "journal.jsonl").records);
  std::ofstream plan_out(folder / "plan.jsonl"), journal_out(folder / "journal.jsonl");
  for (int i = 0; i < cases; ++i) {
    record::PlanLine line = plan[static_cast<std::size_t>(i) % plan.size()];
    const auto found = records.find(line.id);
    line.id = large_run_id(i);
    line.name += fmt::format(",seq_length={}", i);
    plan_out << record::to_line(line);
    if (found == records.end()) continue;
    record::Record record = found->second;
    const fs::path attempt = source / record.artefacts;
    record.case_id = line.id;
    record.name = line.name;
    record.artefacts = "cases/" + line.id + "/attempt-1";
    if (!edit(i, record)) continue;
    journal_out << record::to_line(record);
    fs::create_directories(folder / record.artefacts);
    for (const auto& entry : fs::directory_iterator(attempt))
      fs::create_hard_link(entry.path(), folder / record.artefacts / entry.path().filename());
  }
}

}  // namespace graphproof::reports
