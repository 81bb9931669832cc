// An attempt as the checks see it: the launcher's facts, the case's effective axis values, and for
// each rank its evidence and the text of its log slice. suites/judge reads the files.
#pragma once

#include <concepts>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reports/record/evidence/evidence.h"
#include "reports/record/job/context.h"
#include "reports/record/run/checks.h"

namespace graphproof::checks {

/// The effective axis values of a case. Every function throws std::invalid_argument, naming the
/// axis, when it is absent or of another type, so that no check guesses what to expect.
class Axes {
 public:
  Axes() = default;
  explicit Axes(nlohmann::json effective) : values_(std::move(effective)) {}
  /// Whose code ran: reference also for cases from before this axis.
  std::string subject() const;
  std::string text(std::string_view axis) const;
  std::int64_t integer(std::string_view axis) const;
  bool flag(std::string_view axis) const;
  std::int64_t size(std::string_view axis) const;  // number of words in an axis that is a set
  bool holds(std::string_view axis, std::string_view word) const;  // for an axis that is a set
  std::vector<std::string> words(std::string_view axis) const;     // of an axis that is a set

 private:
  const nlohmann::json& at(std::string_view axis) const;
  nlohmann::json values_;
};

/// A kind of line that belongs to an arm, or to a step of one.
template <class T>
concept LineOfArm = record::LineKind<T> && requires(const T& line) {
  { line.arm } -> std::same_as<const std::string&>;
};
template <class T>
concept LineOfStep = LineOfArm<T> && requires(const T& line) {
  { line.step } -> std::same_as<const std::int64_t&>;
};

/// The files that one rank wrote. An absent evidence or log means that there is no such file.
///
/// A check reads lines through its Judgement, which does not let it pass when a line that it needs
/// is damaged. The functions here are for all other code.
struct RankFiles {
  int rank = 0;
  std::optional<record::Evidence> evidence;
  std::optional<std::string> log;

  /// The lines of a kind, in file order.
  template <record::LineKind T>
  std::span<const T> lines() const {
    return evidence ? evidence->of<T>() : std::span<const T>();
  }
  /// The lines of a kind that belong to an arm, in file order.
  template <LineOfArm T>
  std::vector<const T*> find(std::string_view arm) const {
    std::vector<const T*> found;
    for (const T& line : lines<T>())
      if (line.arm == arm) found.push_back(&line);
    return found;
  }
  /// The lines of a kind that belong to a step of an arm, in file order.
  template <LineOfStep T>
  std::vector<const T*> find(std::string_view arm, std::int64_t step) const {
    std::vector<const T*> found;
    for (const T& line : lines<T>())
      if (line.arm == arm && line.step == step) found.push_back(&line);
    return found;
  }
};

/// An attempt at a case: everything that a check may read.
struct Attempt {
  /// The names of the checks that apply to the case by its axes, on any device. The others end
  /// not_applicable.
  std::set<std::string, std::less<>> asked;
  record::Context context;
  Axes axes;
  std::vector<RankFiles> ranks;              // context.world_size of them, ranks[r].rank == r
  std::optional<std::string> sanitizer_log;  // of compute-sanitizer, in a case of that axis
  std::vector<int> foreign_ranks;            // evidence files of ranks outside the world
};

/// How far a rank came by its evidence, and whether it refused the case or met an error.
record::RankEvidence rank_progress(const RankFiles& files);

/// Why a rank did not finish the case: its error, a vote that ended the case early, or evidence
/// that ends early. Empty when it finished; then every line that the axes demand should be there.
std::string stopped_because(const RankFiles& files);

/// The lowest revision of the ranks' evidence. A start line that names none counts as 1. Today's
/// revision if no rank has a start line.
std::int64_t evidence_revision(const Attempt& attempt);

/// Whether ranks shared GPUs. The driver's memory counters of a GPU are then not one rank's own.
bool shared_gpus(const Attempt& attempt);

/// The refusal by the lowest rank that refused the case.
std::optional<record::Refusal> refusal_of(const Attempt& attempt);

}  // namespace graphproof::checks
