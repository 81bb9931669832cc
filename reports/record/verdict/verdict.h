// The verdict of a case: a value of a closed table, spelled with dots as in every file and report.
// A literal such as `"fail.hang.replay"_verdict` does not compile if it is misspelt.
#pragma once

#include <array>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "reports/record/verdict/exit_code.h"
#include "reports/record/verdict/phase.h"

namespace graphproof::record {

/// A row of the table of verdicts.
struct VerdictRow {
  std::string_view text;
  ExitCode exit_code;
};

/// All verdicts, with failures in order of severity. Of several failing checks, the one whose
/// verdict comes first determines the verdict of the case. A failure comes before those that it
/// makes meaningless: a dead or silent rank before wrong numbers, the eager arm before the graph
/// arms, and a refused capture before the error texts and missing replays that follow from it.
inline constexpr VerdictRow kVerdicts[] = {
    {"fail.hang.validate", ExitCode::product},
    {"fail.hang.init", ExitCode::product},
    {"fail.hang.build", ExitCode::product},
    {"fail.hang.eager", ExitCode::product},
    {"fail.hang.warmup", ExitCode::product},
    {"fail.hang.capture", ExitCode::product},
    {"fail.hang.replay", ExitCode::product},
    {"fail.hang.compare", ExitCode::product},
    {"fail.hang.teardown_graph", ExitCode::product},
    {"fail.hang.teardown_comm", ExitCode::product},
    {"fail.hang.teardown_process", ExitCode::product},
    {"fail.crash.signal", ExitCode::product},
    {"fail.silent", ExitCode::product},
    {"fail.constraint", ExitCode::product},
    {"fail.sanitizer", ExitCode::product},
    {"fail.eager", ExitCode::product},
    {"fail.capture", ExitCode::product},
    {"fail.crash.cuda", ExitCode::product},
    {"fail.crash.nccl", ExitCode::product},
    {"fail.crash.mpi", ExitCode::product},
    {"fail.crash.exception", ExitCode::product},
    {"fail.not_replayed", ExitCode::product},
    {"fail.numerics", ExitCode::product},
    {"fail.memory.oom", ExitCode::product},
    {"fail.memory.growth", ExitCode::product},
    {"fail.memory.leak", ExitCode::product},
    {"fail.cleanup.process", ExitCode::product},
    {"fail.cleanup.gpu_memory", ExitCode::product},
    {"fail.cleanup.shm", ExitCode::product},
    {"fail.cleanup.port", ExitCode::product},
    {"fail.cleanup.file", ExitCode::product},
    {"fail.perf", ExitCode::product},
    {"fail.survived", ExitCode::product},
    {"fail.isolation", ExitCode::product},
    {"flaky", ExitCode::product},
    {"xpass", ExitCode::product},
    {"infra.node", ExitCode::infrastructure},
    {"infra.gpu", ExitCode::infrastructure},
    {"infra.launch", ExitCode::infrastructure},
    {"infra.scheduler", ExitCode::infrastructure},
    {"infra.container", ExitCode::infrastructure},
    {"infra.disk", ExitCode::infrastructure},
    {"infra.network", ExitCode::infrastructure},
    {"infra.preempted", ExitCode::infrastructure},
    {"unexercised", ExitCode::coverage},
    {"not_run", ExitCode::interrupted},
    {"skipped.gpus", ExitCode::ok},
    {"skipped.arch", ExitCode::ok},
    {"skipped.capability", ExitCode::ok},
    {"xfail", ExitCode::ok},
    {"pass.killed", ExitCode::ok},
    {"pass.rejected", ExitCode::ok},
    {"pass", ExitCode::ok},
};

inline constexpr std::size_t kVerdictCount = std::size(kVerdicts);

/// One verdict of the table.
class Verdict {
 public:
  /// The default is never `pass`: a verdict that was not set is `not_run`.
  constexpr Verdict() : Verdict(index_of("not_run")) {}

  /// The verdict spelled `text`; empty if the table has none.
  static constexpr std::optional<Verdict> from(std::string_view text) {
    for (std::size_t i = 0; i < kVerdictCount; ++i)
      if (kVerdicts[i].text == text) return Verdict(i);
    return std::nullopt;
  }

  /// fail.hang.PHASE.
  static constexpr Verdict hang(Phase phase) { return Verdict(static_cast<std::size_t>(phase)); }

  constexpr std::string_view text() const { return kVerdicts[index_].text; }

  /// The exit code of the table. Two outcome rules change it: see reports/outcome/outcome.h.
  constexpr ExitCode exit_code() const { return kVerdicts[index_].exit_code; }

  /// Whether `family` is the verdict or a dotted prefix of it: fail.hang.replay is in "fail" and
  /// "fail.hang".
  constexpr bool in(std::string_view family) const {
    const std::string_view own = text();
    return own.starts_with(family) && (own.size() == family.size() || own[family.size()] == '.');
  }

  /// Its position in kVerdicts: smaller is worse.
  constexpr std::size_t severity() const { return index_; }

  constexpr bool operator==(const Verdict&) const = default;

 private:
  constexpr explicit Verdict(std::size_t index) : index_(index) {}
  static constexpr std::size_t index_of(std::string_view text) {
    for (std::size_t i = 0; i < kVerdictCount; ++i)
      if (kVerdicts[i].text == text) return i;
    throw std::logic_error("no such verdict");
  }

  std::size_t index_;
};

static_assert(Verdict::hang(Phase::validate).text() == "fail.hang.validate");
static_assert(Verdict::hang(Phase::teardown_process).text() == "fail.hang.teardown_process");

/// A verdict literal. An unknown text does not compile.
consteval Verdict operator""_verdict(const char* text, std::size_t size) {
  const std::optional<Verdict> verdict = Verdict::from(std::string_view(text, size));
  if (!verdict) throw std::logic_error("no such verdict");
  return *verdict;
}

}  // namespace graphproof::record
