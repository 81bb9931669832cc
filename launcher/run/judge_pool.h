// Runs graphproof-judge over attempt folders, a few at the same time, each with a deadline. The
// judge is a program of its own, so that evidence which breaks it costs one case its checks and not
// the run its launcher. Attempts that wait share one judge, whose start takes longer than to judge
// them; those that it leaves unjudged get a judge of their own.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "launcher/host/child.h"
#include "launcher/host/memory_file.h"
#include "reports/record/run/checks.h"

namespace graphproof::launcher {

/// The judges of one run. No method waits. For one thread.
class JudgePool {
 public:
  // Judging 200 KiB of evidence takes milliseconds; a minute means that it will not end.
  static constexpr std::int64_t kDeadline_ms = 60000;
  static constexpr std::size_t kAtOnce = 2;
  // So many attempts share a judge at most, because none of them has a record before it ends.
  static constexpr std::size_t kShared = 16;

  /// `dropped`: checks that the judge leaves out.
  explicit JudgePool(std::filesystem::path judge_program, std::vector<std::string> dropped = {});
  JudgePool(const JudgePool&) = delete;
  JudgePool& operator=(const JudgePool&) = delete;

  void add(std::filesystem::path attempt_folder);

  /// The result for one attempt.
  struct Judged {
    std::filesystem::path attempt_folder;
    std::optional<record::Checks> checks;  // nothing: the judge left none that can be read
    std::string
        trouble;  // why not; what the judge printed is then in judge.log next to the evidence
  };
  /// Starts what may start and returns what has ended. Never waits.
  std::vector<Judged> step(std::int64_t now_ms);

  bool idle() const { return waiting_.empty() && alone_.empty() && running_.empty(); }

 private:
  /// A judge at work.
  struct Running {
    std::vector<std::filesystem::path> attempt_folders;
    MemoryFile output;  // kept as judge.log only where there was trouble
    Child child;
    std::int64_t deadline_ms;
  };
  /// The attempts that the next judge gets.
  std::vector<std::filesystem::path> next();
  void start(std::vector<std::filesystem::path> folders, std::int64_t now_ms,
             std::vector<Judged>& ended);
  void end(const Running& judge, const std::string& why, std::vector<Judged>& ended);

  Command command_;  // without the folders
  std::deque<std::filesystem::path> waiting_, alone_;
  std::list<Running> running_;
};

/// The checks.json that a judge left in an attempt folder. Throws ReadError if it can't be read.
record::Checks read_checks(const std::filesystem::path& attempt_folder);

}  // namespace graphproof::launcher
