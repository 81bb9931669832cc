#include "launcher/run/merge.h"

#include <algorithm>
#include <map>
#include <system_error>
#include <utility>

#include "launcher/run/run.h"
#include "launcher/run/run_reports.h"
#include "matrix/input/input_error.h"
#include "reports/record/job/context.h"
#include "reports/record/run/journal.h"
#include "reports/record/run/run.h"
#include "reports/record/run/summary.h"
#include "reports/record/text/file.h"

namespace graphproof::launcher {
namespace {

namespace fs = std::filesystem;

struct Part {
  fs::path folder;
  record::Shard shard;
  record::Run run;
  std::vector<record::PlanLine> plan;
};

[[noreturn]] void refuse(const std::string& what, const std::string& got, const std::string& want,
                         const std::string& why, const std::string& next) {
  throw matrix::InputError({what, got, want, why, next});
}

std::string name_of(const record::Shard& shard) {
  return std::to_string(shard.number) + "/" + std::to_string(shard.count);
}

Part read_part(const fs::path& folder) {
  std::error_code absent;
  if (!fs::exists(folder / "shard.json", absent))
    refuse(folder.string() + " is no shard", "a run without shard.json",
           "a run of graphproof run --shard I/N", "only parts of one plan make one run",
           "leave it out, or compare it: graphproof compare");
  return {folder,
          record::shard_from(record::read_json(folder / "shard.json"), folder / "shard.json"),
          record::run_from(record::read_json(folder / "run.json"), folder / "run.json"),
          record::plan_from(record::read_text(folder / "plan.jsonl"), folder / "plan.jsonl")};
}

/// What has to be the same in all parts, because one run is a result about one stack.
std::vector<std::pair<std::string, std::string>> identity(const Part& part) {
  const record::Stack& stack = part.run.stack;
  return {{"plan", part.shard.plan_sha256},
          {"count of shards", std::to_string(part.shard.count)},
          {"profile", part.run.profile},
          {"matrix", part.run.matrix.sha256},
          {"seed", std::to_string(part.run.seed)},
          {"device", part.run.device},
          {"torch", stack.torch_version},
          {"cuda", stack.cuda_version},
          {"nccl", stack.nccl_version},
          {"driver", stack.driver},
          {"cudnn", stack.cudnn_version},
          {"mpi", stack.mpi},
          {"gpus", nlohmann::json(stack.gpus).dump()},
          {"slots", std::to_string(part.run.slots)}};
}

/// The parts in the order of their numbers.
std::vector<Part> read_parts(const std::vector<fs::path>& folders) {
  std::vector<Part> parts;
  for (const fs::path& folder : folders) parts.push_back(read_part(folder));
  if (parts.empty())
    refuse("nothing to merge", "no run", "the runs of all shards", "",
           "graphproof merge RUN RUN ...");
  const auto first = identity(parts.front());
  for (const Part& part : parts) {
    const auto other = identity(part);
    for (std::size_t i = 0; i < first.size(); ++i)
      if (first[i] != other[i])
        refuse("the runs are not parts of one run",
               part.folder.string() + ": " + other[i].first + " " + other[i].second,
               first[i].first + " " + first[i].second + ", as in " + parts.front().folder.string(),
               "one run is a result about one plan and one stack",
               "run the shards with the same command on the same stack, or compare them");
  }
  std::sort(parts.begin(), parts.end(), [](const Part& left, const Part& right) {
    return left.shard.number < right.shard.number;
  });
  for (std::size_t i = 1; i < parts.size(); ++i)
    if (parts[i].shard.number == parts[i - 1].shard.number)
      refuse("shard " + name_of(parts[i].shard) + " is there twice",
             parts[i - 1].folder.string() + " and " + parts[i].folder.string(), "each shard once",
             "it is not known which of two verdicts counts", "leave one out");
  for (int number = 1; number <= parts.front().shard.count; ++number)
    if (std::none_of(parts.begin(), parts.end(),
                     [&](const Part& part) { return part.shard.number == number; }))
      refuse("shard " + name_of({number, parts.front().shard.count, ""}) + " is missing",
             std::to_string(parts.size()) + " of " + std::to_string(parts.front().shard.count) +
                 " shards",
             "all of them", "a case that was never run must not look as if it had not been planned",
             "run it: the same command with --shard " +
                 name_of({number, parts.front().shard.count, ""}));
  return parts;
}

std::vector<record::PlanLine> whole_plan(const std::vector<Part>& parts) {
  std::vector<record::PlanLine> plan;
  std::size_t lines = 0;
  for (const Part& part : parts) lines += part.plan.size();
  for (std::size_t line = 0; plan.size() < lines; ++line) {
    const Part& part = parts[line % parts.size()];
    if (line / parts.size() >= part.plan.size()) break;
    plan.push_back(part.plan[line / parts.size()]);
  }
  const std::string sha256 = sharded_plan_sha256(plan);
  if (plan.size() != lines || sha256 != parts.front().shard.plan_sha256)
    refuse("the shards' plans do not make the plan that they are parts of", "SHA-256 " + sha256,
           "SHA-256 " + parts.front().shard.plan_sha256,
           "a plan.jsonl was changed after its run began", "restore it, or run that shard again");
  return plan;
}

/// A name of its own, because batches of several runs have the same names.
std::string batch_of(const std::string& batch, const Part& part) {
  return batch + "-s" + std::to_string(part.shard.number);
}

void copy_folder(const fs::path& from, const fs::path& to) {
  std::error_code absent;
  if (!fs::exists(from, absent)) return;
  fs::create_directories(to.parent_path());
  // Evidence is never written again, so a link costs no disk. Another file system gets a copy.
  std::error_code failed;
  fs::copy(from, to, fs::copy_options::recursive | fs::copy_options::create_hard_links, failed);
  if (!failed) return;
  fs::remove_all(to);
  fs::copy(from, to, fs::copy_options::recursive);
}

void copy_attempts(const Part& part, const MergeInto& into) {
  for (const record::PlanLine& line : part.plan) {
    const fs::path to = into.folder / "cases" / line.id;
    copy_folder(part.folder / "cases" / line.id, to);
    std::error_code absent;
    for (const auto& attempt : fs::directory_iterator(to, absent)) {
      const fs::path file = attempt.path() / "context.json";
      if (!fs::exists(file, absent)) continue;
      record::Context context = record::context_from(record::read_json(file), file);
      context.run_id = into.run_id;
      context.batch = batch_of(context.batch, part);
      for (record::RankContext& rank : context.ranks)
        rank.log.file =
            "batches/" + context.batch + "/" + fs::path(rank.log.file).filename().string();
      // This replaces the link, and leaves the file to which it linked.
      record::write_json(file, record::to_json(context));
    }
  }
  std::error_code absent;
  for (const auto& batch : fs::directory_iterator(part.folder / "batches", absent))
    copy_folder(batch.path(), into.folder / "batches" / batch_of(batch.path().filename(), part));
}

}  // namespace

std::string sharded_plan_sha256(std::vector<record::PlanLine> plan) {
  for (record::PlanLine& line : plan) line.expected_seconds = 0;
  return plan_sha256(plan);
}

std::vector<record::PlanLine> lines_of(const record::Shard& shard,
                                       const std::vector<record::PlanLine>& plan) {
  std::vector<record::PlanLine> lines;
  for (std::size_t line = static_cast<std::size_t>(shard.number) - 1; line < plan.size();
       line += static_cast<std::size_t>(shard.count))
    lines.push_back(plan[line]);
  return lines;
}

void expect_mergeable(const std::vector<fs::path>& shards) { whole_plan(read_parts(shards)); }

reports::RunResult merge(const std::vector<fs::path>& shards, const MergeInto& into) {
  const std::vector<Part> parts = read_parts(shards);
  const std::vector<record::PlanLine> plan = whole_plan(parts);
  record::Run run = parts.front().run;
  run.run_id = into.run_id;
  run.command = into.command;
  run.plan_sha256 = plan_sha256(plan);
  reports::Ending ending = reports::Ending::finished;
  double wall_seconds = 0;
  std::string text;
  for (const record::PlanLine& line : plan) text += record::to_line(line);
  record::write_atomically(into.folder / "plan.jsonl", text);
  {
    record::JournalWriter journal(into.folder / "journal.jsonl");
    for (const Part& part : parts) {
      run.started = std::min(run.started, part.run.started);
      const reports::RunResult result = read_run(part.folder);
      if (ending == reports::Ending::finished) ending = result.ending;
      wall_seconds = std::max(wall_seconds, result.wall_seconds);  // shards run at the same time
      copy_attempts(part, into);
      record::JournalContent recorded = record::read_journal(part.folder / "journal.jsonl");
      for (record::Record& record : recorded.records) {
        record.run_id = into.run_id;
        record.context.batch = batch_of(record.context.batch, part);
        journal.append(record);
      }
    }
  }
  record::write_json(into.folder / "run.json", record::to_json(run));
  reports::RunResult result = reports::read_run_result(into.folder, ending, wall_seconds);
  write_reports(result, into.folder);
  return result;
}

}  // namespace graphproof::launcher
