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

// A judge that says more than this is broken, and its first words tell why.
constexpr std::size_t kKept_bytes = 1 << 16;

/// Throws record::WriteError.
void keep_words(const MemoryFile& said, const std::filesystem::path& folder) {
  record::write_atomically(folder / "judge.log", said.first(kKept_bytes));
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
    if (!ended.back().trouble.empty()) keep_words(next->said, next->attempt_folder);
    next = running_.erase(next);
  }
  while (running_.size() < kSideBySide && !waiting_.empty()) {
    start(std::move(waiting_.front()), now_ms, ended);
    waiting_.pop_front();
  }
  return ended;
}

void JudgePool::start(std::filesystem::path folder, std::int64_t now_ms, std::vector<Judged>& ended) {
  Command command{{program_, folder}, own_environment()};
  for (const std::string& check : dropped_) command.arguments.insert(command.arguments.end(), {"--drop", check});
  try {
    MemoryFile said;
    Child child(command, said.descriptor(), said.descriptor());
    running_.push_back({folder, std::move(said), std::move(child), now_ms + kDeadline_ms});
  } catch (const std::system_error& error) {
    ended.push_back({folder, std::nullopt, error.what()});
  }
}

}  // namespace graphproof::launcher
