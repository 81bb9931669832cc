#include "suites/judge/watched_folder.h"

#include <algorithm>
#include <fstream>
#include <iterator>

#include "matrix/catalogue/catalogue.h"
#include "reports/record/probe_file/probe_file.h"
#include "reports/record/text/file.h"
#include "reports/record/watched/nccl_log.h"

namespace graphproof::judge {
namespace {

namespace fs = std::filesystem;
using checks::watched::JobProcess;
using checks::watched::WatchedJob;

// What a log of NCCL says of registrations is at its beginning; more than this is not read.
constexpr std::streamsize kMostOfALog = std::streamsize{64} << 20;

fs::path evidence_folder(const fs::path& folder) { return folder / "evidence"; }

void read_process(const fs::path& file, WatchedJob& job) {
  try {
    job.processes.push_back({.name = file.stem().string(),
                             .evidence = record::watched_process(record::probe_file::read(file))});
  } catch (const record::Error& error) {
    job.unread.push_back("a process left a file that cannot be used: " +
                         record::to_text(error.message()));
  }
}

std::string beginning_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::string text;
  char block[65536];
  while (in && static_cast<std::streamsize>(text.size()) < kMostOfALog) {
    in.read(block, sizeof block);
    text.append(block, static_cast<std::size_t>(in.gcount()));
  }
  return text;
}

/// The launcher lets NCCL name its logs %h.%p.log: the host without its domain, and the process.
JobProcess* owner_of(const std::string& log, WatchedJob& job) {
  const auto found = std::ranges::find_if(job.processes, [&](const JobProcess& process) {
    const std::string& host = process.line().host;
    return log ==
           host.substr(0, host.find('.')) + "." + std::to_string(process.line().pid) + ".log";
  });
  return found == job.processes.end() ? nullptr : &*found;
}

void read_nccl_logs(const fs::path& folder, WatchedJob& job) {
  std::vector<fs::path> logs;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder / "nccl", error))
    if (entry.is_regular_file(error)) logs.push_back(entry.path());
  std::ranges::sort(logs);
  for (const fs::path& log : logs) {
    const std::string name = log.filename().string();
    if (JobProcess* process = owner_of(name, job))
      process->evidence.lines<record::NcclRegistrationLine>().push_back(
          record::registrations_in(beginning_of(log), name));
    else
      job.notes.push_back("nccl/" + name + " belongs to no process that was watched");
  }
}

}  // namespace

WatchedJob load_watched_job(const fs::path& folder) {
  const fs::path file = folder / record::kWatchedRunFile;
  WatchedJob job{.run = record::watched_run_from(record::read_json(file), file.string()),
                 .processes = {},
                 .bad_stacks = matrix::load_bad_stacks(),
                 .unread = {},
                 .notes = {}};
  for (const fs::path& probe : record::probe_file::files_of(folder / record::kProbeFolder))
    read_process(probe, job);
  std::ranges::stable_sort(job.processes, {}, [](const JobProcess& process) {
    return process.line().rank.value_or(-1);
  });
  read_nccl_logs(folder, job);
  return job;
}

void write_watched_evidence(const fs::path& folder, const WatchedJob& job) {
  fs::create_directories(evidence_folder(folder));
  for (const JobProcess& process : job.processes) {
    std::string text;
    for (const record::Json& line : process.evidence.json()) text += line.dump() + "\n";
    record::write_atomically(evidence_folder(folder) / (process.name + ".jsonl"), text,
                             record::Survives::kill);
  }
}

}  // namespace graphproof::judge
