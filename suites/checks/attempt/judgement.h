// Collects what one check finds and turns it into a result. A defect takes precedence over missing
// evidence. Missing evidence is a failure if the rank finished the case; otherwise the check is
// unexercised. A pass needs confirmed evidence of every rank, so that no check passes by reading
// nothing. If a rank says that it leaves no evidence for the check, the check cannot pass.
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

/// What is wrong and where. The texts are sentences without a full stop; `why` says what the defect
/// does to a training run.
struct Defect {
  int rank = 0;
  std::optional<std::int64_t> step;
  std::string what, got, want, why;
};

/// The findings of one check on one attempt, which it refers to.
class Judgement {
 public:
  Judgement(std::string_view check, const Attempt& attempt);

  /// Whether the case has at least one replay with fresh inputs. If not, this makes the check
  /// unexercised.
  bool has_replays();
  /// Whether the result is already certain, by has_replays() or not_applicable().
  bool settled() const { return settled_.has_value(); }

  /// What is expected of every rank, and what of one: with a vision encoder or multi-token
  /// prediction its layers and launches depend on the stage.
  const Expected& expected() const { return expected_; }
  const Expected& expected_of(const RankFiles& files) const {
    const StageEnds ends = ends_of(attempt_.axes, files.rank);
    return ends.first && ends.last ? expected_
           : ends.first            ? of_first_stage_
           : ends.last             ? of_last_stage_
                                   : of_inner_stages_;
  }
  const Attempt& attempt() const { return attempt_; }

  /// A rank's lines of a kind, in file order: all, those of an arm, or those of a step of an arm.
  /// If a line of that kind is damaged, the check cannot pass, because the line may have held
  /// anything.
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
  /// The first of those lines, or null.
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
  /// The feature was not used, or this device or evidence cannot show it. `next`: what the user can
  /// do about it, if it is not the end of a rank.
  void unexercised(std::string reason, std::string next = "");
  /// The defect of the earliest step is kept, and of the lowest rank among several, because later
  /// ones usually follow from it.
  void defect(Defect defect);
  /// Evidence is missing: `thing`, such as "comparison `lockstep`", should be in that of `files`.
  void absent(const RankFiles& files, std::string thing,
              std::optional<std::int64_t> step = std::nullopt);
  /// A line of kind T is missing: `of` says which one, "of arm lockstep_graph".
  template <record::LineKind T>
  void absent(const RankFiles& files, std::string_view of,
              std::optional<std::int64_t> step = std::nullopt) {
    absent(files,
           "`" + std::string(T::kKind) + "` line" + (of.empty() ? "" : " ") + std::string(of),
           step);
  }
  /// Evidence of `rank` was judged and is in order.
  void confirm(int rank) { ++confirmed_[rank]; }

  /// `summary` and `want` are the got and want of a pass.
  record::CheckResult result(std::string summary, std::string want);

 private:
  void damaged(const RankFiles& files, std::string_view kind);
  /// Why a rank says that it leaves no evidence for this check; nothing if none does.
  std::optional<std::string> unobserved();
  record::CheckResult as(record::Result word, record::Message message,
                         std::optional<int> rank = std::nullopt) const;
  std::string repro() const;

  std::string check_;
  const Attempt& attempt_;
  Expected expected_, of_first_stage_, of_inner_stages_, of_last_stage_;
  std::optional<record::CheckResult> settled_;
  std::optional<Defect> defect_, missing_;
  std::optional<Defect> damage_;  // of a line whose kind the check asked for
  std::optional<std::string> unexercised_;
  std::string unexercised_next_;
  std::map<int, int> confirmed_;
};

}  // namespace graphproof::checks
