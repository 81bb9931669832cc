#include "launcher/judge_pool.h"

#include <system_error>
#include <utility>

#include "reports/record/file.h"

namespace graphproof::launcher {
namespace {

std::string ended_badly(const Exit& exit) {
  return std::string("graphproof-judge ended with ") + (exit.signalled ? "signal " : "exit code ") +
         std::to_string(exit.value) + "; its output is in judge.log";
}

JudgePool::Judged read(const std::filesystem::path& folder, const std::string& otherwise) {
  JudgePool::Judged judged{folder, std::nullopt, {}};
  try {
    judged.checks = read_checks(folder);
  } catch (const record::ReadError& error) {
    judged.trouble = otherwise + ": " + error.what();
  }
  return judged;
}

}  // namespace

record::Checks read_checks(const std::filesystem::path& attempt_folder) {
  const std::filesystem::path file = attempt_folder / "checks.json";
  return record::checks_from(record::read_json(file), file);
}

JudgePool::JudgePool(std::filesystem::path judge_program, std::vector<std::string> dropped)
    : program_(std::move(judge_program)), dropped_(std::move(dropped)) {}

void JudgePool::add(std::filesystem::path attempt_folder) {
  std::error_code absent;
  // An older judgement must not be taken for this one.
  std::filesystem::remove(attempt_folder / "checks.json", absent);
  waiting_.push_back(std::move(attempt_folder));
}

std::vector<JudgePool::Judged> JudgePool::step(std::int64_t now_ms) {
  std::vector<Judged> ended;
  for (auto next = running_.begin(); next != running_.end();) {
    const std::optional<Exit> exit = next->child.poll();
    if (!exit && now_ms < next->deadline_ms) {
      ++next;
      continue;
    }
    if (exit)
      ended.push_back(read(next->attempt_folder, ended_badly(*exit)));
    else
      ended.push_back({next->attempt_folder, std::nullopt,
                       "graphproof-judge did not end in " + std::to_string(kDeadline_ms / 1000) + " s"});
    next = running_.erase(next);
  }
  while (running_.size() < kSideBySide && !waiting_.empty()) {
    const std::filesystem::path folder = std::move(waiting_.front());
    waiting_.pop_front();
    Command command{{program_, folder}, own_environment()};
    for (const std::string& check : dropped_) command.arguments.insert(command.arguments.end(), {"--drop", check});
    try {
      running_.push_back({folder, Child(command, folder / "judge.log"), now_ms + kDeadline_ms});
    } catch (const std::system_error& error) {
      ended.push_back({folder, std::nullopt, error.what()});
    }
  }
  return ended;
}

}  // namespace graphproof::launcher
