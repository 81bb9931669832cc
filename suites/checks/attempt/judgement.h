// Collects what one check finds and weighs it: a defect beats missing evidence, missing evidence of
// a rank that finished is a failure, of a rank that did not it leaves the check unexercised, and a
// pass needs a sighting on every rank. So no check can pass by looking at nothing.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "suites/checks/attempt/attempt.h"
#include "suites/checks/attempt/expected.h"

namespace graphproof::checks {

/// What is wrong and where. Sentences without a full stop; `why` says what the defect does to a
/// training run.
struct Defect {
  int rank = 0;
  std::optional<std::int64_t> step;
  std::string what, got, want, why;
};

class Judgement {
 public:
  Judgement(std::string_view check, const Attempt& attempt);

  /// Whether the case has at least one replay with fresh inputs; otherwise the check is
  /// unexercised.
  bool has_replays();
  bool settled() const { return settled_.has_value(); }

  const Expected& expected() const { return expected_; }

  /// The lines of a kind that a rank left, in file order; of an arm; of a step of an arm. A damaged
  /// line of that kind counts as missing evidence, because it may have held anything.
  template <record::LineKind T>
  std::span<const T> lines(const RankFiles& files) {
    damaged(files, T::kKind);
    return files.lines<T>();
  }
  template <LineOfArm T>
  std::vector<const T*> find(const RankFiles& files, std::string_view arm) {
    damaged(files, T::kKind);
    return files.find<T>(arm);
  }
  template <LineOfStep T>
  std::vector<const T*> find(const RankFiles& files, std::string_view arm, std::int64_t step) {
    damaged(files, T::kKind);
    return files.find<T>(arm, step);
  }
  /// The first of them, or null.
  template <record::LineKind T>
  const T* first(const RankFiles& files) {
    const std::span<const T> found = lines<T>(files);
    return found.empty() ? nullptr : &found.front();
  }
  template <LineOfArm T>
  const T* first(const RankFiles& files, std::string_view arm) {
    const std::vector<const T*> found = find<T>(files, arm);
    return found.empty() ? nullptr : found.front();
  }
  template <LineOfStep T>
  const T* first(const RankFiles& files, std::string_view arm, std::int64_t step) {
    const std::vector<const T*> found = find<T>(files, arm, step);
    return found.empty() ? nullptr : found.front();
  }

  void not_applicable(std::string reason);
  /// The feature took no part, or this device or evidence cannot show it.
  void unexercised(std::string reason);
  /// A defect of the earliest step is kept, of the lowest rank among equals: what comes later
  /// follows from it.
  void defect(Defect defect);
  /// `thing` should be in the evidence of `files`: "comparison `lockstep`".
  void absent(const RankFiles& files, std::string thing,
              std::optional<std::int64_t> step = std::nullopt);
  /// A line of kind T should be there: `of` says which one, "of arm lockstep_graph".
  template <record::LineKind T>
  void absent(const RankFiles& files, std::string_view of,
              std::optional<std::int64_t> step = std::nullopt) {
    absent(files,
           "`" + std::string(T::kKind) + "` line" + (of.empty() ? "" : " ") + std::string(of),
           step);
  }
  /// Evidence of `rank` that was judged and found in order.
  void confirm(int rank) { ++confirmed_[rank]; }

  /// `summary` and `want` are the got and want of a pass.
  record::CheckResult result(std::string summary, std::string want);

 private:
  void damaged(const RankFiles& files, std::string_view kind);
  record::CheckResult as(record::Result word, record::Message message,
                         std::optional<int> rank = std::nullopt) const;
  std::string repro() const;

  std::string check_;
  const Attempt& attempt_;
  Expected expected_;
  std::optional<record::CheckResult> settled_;
  std::optional<Defect> defect_, missing_;
  std::optional<Defect> damage_;  // of a line whose kind the check asked for
  std::optional<std::string> unexercised_;
  std::map<int, int> confirmed_;
};

}  // namespace graphproof::checks
