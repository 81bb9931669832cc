#include "suites/checks/attempt/judgement.h"

#include <limits>
#include <tuple>

#include "suites/checks/attempt/concat.h"

namespace graphproof::checks {
namespace {

bool earlier(const Defect& left, const Defect& right) {
  constexpr std::int64_t kNoStep = std::numeric_limits<std::int64_t>::max();
  return std::make_tuple(left.step.value_or(kNoStep), left.rank) <
         std::make_tuple(right.step.value_or(kNoStep), right.rank);
}

std::string at_step(const std::optional<std::int64_t>& step) {
  return step ? concat(" at step ", *step) : std::string();
}

}  // namespace

Judgement::Judgement(std::string_view check, const Attempt& attempt)
    : check_(check),
      attempt_(attempt),
      expected_(checks::expected(attempt.axes)),
      of_first_stage_(checks::expected(attempt.axes, {.first = true, .last = false})),
      of_inner_stages_(checks::expected(attempt.axes, {.first = false, .last = false})),
      of_last_stage_(checks::expected(attempt.axes, {.first = false, .last = true})) {}

std::string Judgement::repro() const {
  return concat("./graphproof repro ", attempt_.context.run_id, "/", attempt_.context.case_id);
}

record::CheckResult Judgement::as(record::Result word, record::Message message,
                                  std::optional<int> rank) const {
  return {.check = check_, .result = word, .rank = rank, .message = std::move(message)};
}

bool Judgement::has_replays() {
  if (!settled() && !expected_.replays_fresh_inputs)
    settled_ =
        as(record::Result::unexercised,
           {.what = "",
            .got = concat("steps ", expected_.steps, ", warmup_steps ", expected_.warmup_steps),
            .want = "at least two steps after the warm-up",
            .why = "no replay would see fresh inputs",
            .next = "raise steps or lower warmup_steps"});
  return !settled();
}

void Judgement::not_applicable(std::string reason) {
  settled_ = as(record::Result::not_applicable, {.what = "",
                                                 .got = "nothing to judge",
                                                 .want = "",
                                                 .why = std::move(reason),
                                                 .next = "nothing to do"});
}

void Judgement::unexercised(std::string reason, std::string next) {
  if (unexercised_) return;
  unexercised_ = std::move(reason);
  unexercised_next_ = std::move(next);
}

void Judgement::defect(Defect defect) {
  if (!defect_ || earlier(defect, *defect_)) defect_ = std::move(defect);
}

void Judgement::damaged(const RankFiles& files, std::string_view kind) {
  if (!files.evidence || damage_) return;
  for (const record::DamagedLine& line : files.evidence->damaged) {
    if (line.kind != kind) continue;
    damage_ = Defect{.rank = files.rank,
                     .step = std::nullopt,
                     .what = concat("a `", kind, "` line of rank ", files.rank, " cannot be read"),
                     .got = record::to_text(line),
                     .want = "a line with all its fields",
                     .why = "what cannot be read may hold anything"};
    return;
  }
}

void Judgement::absent(const RankFiles& files, std::string thing,
                       std::optional<std::int64_t> step) {
  if (const std::string stopped = stopped_because(files); !stopped.empty()) {
    unexercised(concat(stopped, ", so there is no ", thing, at_step(step)));
    return;
  }
  Defect missing{.rank = files.rank,
                 .step = step,
                 .what = concat("rank ", files.rank, " left no ", thing, at_step(step)),
                 .got = "nothing, although the rank finished the case",
                 .want = concat("what the axes demand: steps ", expected_.steps, ", warmup_steps ",
                                expected_.warmup_steps, ", microbatches ", expected_.microbatches),
                 .why = "what left no evidence may not have happened"};
  if (!missing_ || earlier(missing, *missing_)) missing_ = std::move(missing);
}

std::optional<std::string> Judgement::unobserved() {
  for (const RankFiles& files : attempt_.ranks)
    for (const record::UnobservedLine& line : lines<record::UnobservedLine>(files))
      if (line.check == check_) return concat("rank ", files.rank, " cannot show it: ", line.why);
  return std::nullopt;
}

record::CheckResult Judgement::result(std::string summary, std::string want) {
  if (settled_ && !damage_) return *settled_;
  if (auto reason = unobserved(); reason && !defect_ && !damage_) {
    return as(record::Result::unexercised,
              {.what = "",
               .got = std::move(*reason),
               .want = std::move(want),
               .why = "a check without evidence neither passes nor fails",
               .next = "see docs/reference/evidence.md, kind `unobserved`"});
  }
  if (!defect_) {
    for (const RankFiles& files : attempt_.ranks)
      if (!confirmed_.contains(files.rank)) absent(files, "evidence for this check");
  }
  const std::optional<Defect>& found = defect_ ? defect_ : missing_ ? missing_ : damage_;
  if (found) {
    const std::string damage =
        damage_ && &found != &damage_ ? concat("; ", damage_->what, ": ", damage_->got) : "";
    return as(record::Result::fail,
              {found->what, found->got + damage, found->want, found->why, repro()}, found->rank);
  }
  if (unexercised_) {
    if (unexercised_next_.empty())
      unexercised_next_ =
          concat("./graphproof explain ", attempt_.context.run_id, "/", attempt_.context.case_id,
                 "; what ended the ranks is judged by D21, D22 and D26");
    return as(record::Result::unexercised,
              {.what = "",
               .got = std::move(*unexercised_),
               .want = std::move(want),
               .why = "a check without evidence neither passes nor fails",
               .next = unexercised_next_});
  }
  return as(
      record::Result::pass,
      {.what = "", .got = std::move(summary), .want = std::move(want), .why = "", .next = ""});
}

}  // namespace graphproof::checks
