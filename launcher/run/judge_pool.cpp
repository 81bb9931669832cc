#include "launcher/run/judge_pool.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "reports/record/text/file.h"

namespace graphproof::launcher {
namespace {

std::string ended_badly(const Exit& exit) {
  return std::string("graphproof-judge ended with ") + (exit.signalled ? "signal " : "exit code ") +
         std::to_string(exit.value) + "; its output is in judge.log";
}

// A judge that prints more than this is broken, and its first lines explain why.
constexpr std::size_t kKept_bytes = 1 << 16;

/// Writes judge.log. Throws record::WriteError.
void keep_output(const MemoryFile& output, const std::filesystem::path& folder) {
  record::write_atomically(folder / "judge.log", output.first(kKept_bytes));
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
    : command_{{std::move(judge_program)}, own_environment()} {
  for (std::string& check : dropped)
    command_.arguments.insert(command_.arguments.end(), {"--drop", std::move(check)});
}

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
    end(*next,
        exit ? ended_badly(*exit)
             : "graphproof-judge did not end in " + std::to_string(kDeadline_ms / 1000) + " s",
        ended);
    next = running_.erase(next);
  }
  while (running_.size() < kAtOnce && !(waiting_.empty() && alone_.empty()))
    start(next(), now_ms, ended);
  return ended;
}

void JudgePool::end(const Running& judge, const std::string& why, std::vector<Judged>& ended) {
  for (const std::filesystem::path& folder : judge.attempt_folders) {
    Judged judged = read(folder, why);
    if (!judged.checks && judge.attempt_folders.size() > 1) {
      // It is not known which of them broke the judge.
      alone_.push_back(folder);
      continue;
    }
    if (!judged.checks) keep_output(judge.output, folder);
    ended.push_back(std::move(judged));
  }
}

std::vector<std::filesystem::path> JudgePool::next() {
  std::deque<std::filesystem::path>& from = alone_.empty() ? waiting_ : alone_;
  // The attempts are divided, so that judges that may run at the same time do.
  const std::size_t judges = kAtOnce - running_.size(), fair = (from.size() + judges - 1) / judges;
  std::vector<std::filesystem::path> folders;
  for (std::size_t left = alone_.empty() ? std::min(fair, kShared) : 1; left > 0; --left) {
    folders.push_back(std::move(from.front()));
    from.pop_front();
  }
  return folders;
}

void JudgePool::start(std::vector<std::filesystem::path> folders, std::int64_t now_ms,
                      std::vector<Judged>& ended) {
  const std::size_t words = command_.arguments.size();
  command_.arguments.insert(command_.arguments.end(), folders.begin(), folders.end());
  try {
    MemoryFile output;
    Child child(command_, output.descriptor(), output.descriptor());
    running_.push_back(
        {std::move(folders), std::move(output), std::move(child), now_ms + kDeadline_ms});
  } catch (const std::system_error& error) {
    for (std::filesystem::path& folder : folders)
      ended.push_back({std::move(folder), std::nullopt, error.what()});
  }
  command_.arguments.resize(words);
}

}  // namespace graphproof::launcher
