// An attempt as the checks see it: the launcher's facts, the case's effective axis values, and per
// rank the evidence and the text of its log slice. Reading the files is left to suites/judge.
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

/// Effective axis values. Throws std::invalid_argument naming the axis that is absent or of another
/// type: an expectation is never guessed.
class Axes {
 public:
  Axes() = default;
  explicit Axes(nlohmann::json effective) : values_(std::move(effective)) {}
  std::string text(std::string_view axis) const;
  std::int64_t integer(std::string_view axis) const;
  bool flag(std::string_view axis) const;
  std::int64_t size(std::string_view axis) const;                  // of a set
  bool holds(std::string_view axis, std::string_view word) const;  // a set

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

/// What one rank left behind. Absent evidence or log: there is no such file.
///
/// A check reads lines through its Judgement, which counts damaged ones against it; these functions
/// are for everything that is no check.
struct RankFiles {
  int rank = 0;
  std::optional<record::Evidence> evidence;
  std::optional<std::string> log;

  /// The lines of a kind, in file order.
  template <record::LineKind T>
  std::span<const T> lines() const {
    return evidence ? evidence->of<T>() : std::span<const T>();
  }
  /// Those of an arm, in file order.
  template <LineOfArm T>
  std::vector<const T*> find(std::string_view arm) const {
    std::vector<const T*> found;
    for (const T& line : lines<T>())
      if (line.arm == arm) found.push_back(&line);
    return found;
  }
  /// Those of a step of an arm, in file order.
  template <LineOfStep T>
  std::vector<const T*> find(std::string_view arm, std::int64_t step) const {
    std::vector<const T*> found;
    for (const T& line : lines<T>())
      if (line.arm == arm && line.step == step) found.push_back(&line);
    return found;
  }
};

/// An attempt at a case: everything that a check may look at.
struct Attempt {
  /// The checks that the case asks for by its axes, on whatever device. The others are not
  /// applicable to it.
  std::set<std::string, std::less<>> asked;
  record::Context context;
  Axes axes;
  std::vector<RankFiles> ranks;    // context.world_size of them, ranks[r].rank == r
  std::vector<int> foreign_ranks;  // evidence files of ranks outside the world
};

/// What a rank's evidence says of its progress: how far it came, whether it refused the case or met
/// an error.
record::RankEvidence rank_progress(const RankFiles& files);

/// Why a rank left less than a whole case: its error, a vote that ended the case early, or that its
/// evidence just ends. Empty when it finished: then whatever is missing should be there.
std::string stopped_because(const RankFiles& files);

/// The lowest revision that a rank's start line names, 1 where one names none; today's where no
/// rank left a start line.
std::int64_t evidence_revision(const Attempt& attempt);

/// Whether its ranks shared GPUs, so that what the driver counts on one is not a rank's own.
bool shared_gpus(const Attempt& attempt);

/// The first refusal, if any rank refused the case.
std::optional<record::Refusal> refusal_of(const Attempt& attempt);

}  // namespace graphproof::checks
