#include "reports/outcome/outcome.h"

#include <algorithm>
#include <array>

namespace graphproof::reports {
namespace {

using record::CheckResult;
using record::Checks;
using record::Context;
using record::ExitCode;
using record::Failing;
using record::Message;
using record::Phase;
using record::RankError;
using record::RankEvidence;
using record::Result;
using record::Verdict;
using record::operator""_verdict;

// The first rule that applies decides. Within each part the numbers follow that order. They are
// written into every journal, so a rule keeps its number for ever.
constexpr Rule kRules[] = {
    // The case was not run.
    {10, "the plan skips the case", {}},
    {11, "the plan says that this device cannot show the fault", ExitCode::ok},
    {12, "not run: interrupted, or the budget is spent", ExitCode::interrupted},
    {13, "not run: the circuit breaker or --max-fail ended the run", ExitCode::coverage},
    {14, "not run: the run folder can no longer be written", {}},
    // The product did not cause it.
    {20, "infrastructure failed", {}},
    {21, "the run was interrupted while the case ran", ExitCode::interrupted},
    // Refusals decide before the failures that follow from them.
    {30, "every rank refused by the expected rule before device work", {}},
    {31,
     "refused, but not by every rank, the expected rule, in phase validate and before device work",
     {}},
    {32, "a rank accepted what the expected rule must refuse", {}},
    {33, "refused, although the plan expects no refusal", {}},
    {34,
     "the subject's own code refused on every rank, before a replay and in the rule's words",
     {}},
    {35, "the subject's own code refused otherwise than the expected rule states", {}},
    // A rank hung, failed or died.
    {40, "a rank was silent beyond its phase's limit", {}},
    {41, "a rank met an error in phase capture", {}},
    {42, "a rank ran out of device memory", {}},
    {43, "a rank met a device, communication or program error", {}},
    {44, "a rank died by a signal", {}},
    {45, "a rank ended with a status other than 0", {}},
    {46, "no failure was reported, but a rank left no complete result", {}},
    // What the checks found.
    {60, "a check failed", {}},
    {61, "the case left something behind on the machine", {}},
    {65, "a required check was unexercised", {}},
    {66, "no check passed and none failed", {}},
    // Several attempts of one case.
    {70, "fails in a batch and passes alone", {}},
    {71, "only some confirmations failed", {}},
    // What the plan expected.
    {80, "this device cannot show the planted fault", ExitCode::ok},
    {81, "the planted fault was caught by its detector", {}},
    {82, "the planted fault is harmless on this stack, with evidence", {}},
    {83, "the planted fault was not caught by its detector", {}},
    {84, "the hazard behaved as expected", {}},
    {85, "the hazard did not occur", {}},
    {86, "the known issue failed as expected", {}},
    {87, "the known issue still fails, and its excuse has expired", {}},
    {88, "the known issue no longer fails", {}},
    {89, "the eager arm itself fails", {}},
    {90, "every required check passed", {}},
};

// cudaErrorMemoryAllocation; the simulated device uses the same number.
constexpr std::int64_t kOutOfMemoryCode = 2;

/// The result of one rule.
struct Finding {
  Verdict verdict;
  int rule = 0;
  std::string reason;
  std::optional<Failing> fact;  // shown before the failing checks
  std::optional<Phase> phase;
};

/// The input, and questions about it that several rules ask.
struct Facts {
  const OutcomeInput& input;
  const CheckEffects& effects;

  const record::PlanLine& plan() const { return input.plan; }
  const Context& context() const { return *input.context; }
  const std::string& expects() const { return input.plan.expect.kind; }

  const std::vector<RankEvidence>& ranks() const {
    static const std::vector<RankEvidence> kNone;
    return input.checks ? input.checks->ranks : kNone;
  }
  const RankEvidence* rank(int number) const {
    for (const RankEvidence& one : ranks())
      if (one.rank == number) return &one;
    return nullptr;
  }
  /// The first rank that died without being ended by the launcher; null if there is none.
  const record::FirstDead* dead() const {
    const auto& first = context().first_dead;
    return first && first->exit.kind != "killed" ? &*first : nullptr;
  }
  bool met_error(int number) const {
    return rank(number) != nullptr && rank(number)->error.has_value();
  }

  std::string next() const {
    return "./graphproof repro " + (input.context ? context().run_id : std::string("latest")) +
           "/" + plan().id;
  }
  Failing fact(std::optional<int> rank, std::string what, std::string got, std::string want,
               std::string why = "") const {
    return {.check = "",
            .rank = rank,
            .message = {.what = std::move(what),
                        .got = std::move(got),
                        .want = std::move(want),
                        .why = std::move(why),
                        .next = next()}};
  }
};

std::string text(Phase phase) { return std::string(name(phase)); }
std::string rank_text(int rank) { return "rank " + std::to_string(rank); }

std::string join(const std::vector<std::string>& parts) {
  std::string all;
  for (const std::string& part : parts) all += (all.empty() ? "" : ", ") + part;
  return all;
}

/// "replay, arm lockstep, step 3, last collective 17 all_reduce in tp"
std::string place(const record::RankContext& rank) {
  std::string all = rank.phase ? "phase " + text(*rank.phase) : "no phase yet";
  if (!rank.arm.empty()) all += ", arm " + rank.arm + ", step " + std::to_string(rank.step);
  if (rank.collective)
    all += ", last collective " + std::to_string(rank.collective->sequence) + " " +
           rank.collective->op + " in " + rank.collective->group;
  return all;
}

// ---- Rules below 80: what happened.

std::optional<Finding> never_started(const Facts& facts) {
  if (facts.plan().skip) {
    const bool unshown = facts.plan().skip->verdict == "unexercised"_verdict;
    return Finding{.verdict = facts.plan().skip->verdict,
                   .rule = unshown ? 11 : 10,
                   .reason = facts.plan().skip->why};
  }
  if (facts.input.context) return std::nullopt;
  constexpr std::array<std::string_view, 4> kWhy = {
      "the run was interrupted", "the run's budget was spent", "the circuit breaker ended the run",
      "--max-fail ended the run"};
  const NotRun cause = facts.input.not_run;
  if (cause == NotRun::disk)
    return Finding{.verdict = "infra.disk"_verdict,
                   .rule = 14,
                   .reason =
                       "the run folder could no longer be written before the verdict of this case "
                       "was recorded"};
  const bool resumable = cause == NotRun::interrupted || cause == NotRun::budget;
  return Finding{
      .verdict = "not_run"_verdict,
      .rule = resumable ? 12 : 13,
      .reason = std::string(kWhy[static_cast<std::size_t>(cause)]) + " before this case"};
}

std::optional<Finding> infrastructure(const Facts& facts) {
  if (!facts.context().infra) return std::nullopt;
  const record::Infra& infra = *facts.context().infra;
  const auto verdict = Verdict::from("infra." + infra.kind);
  // An unknown kind must not fall through to a verdict about the product.
  return Finding{.verdict = verdict.value_or("infra.node"_verdict),
                 .rule = 20,
                 .reason = infra.why,
                 .fact = facts.fact({}, "infrastructure failed (" + infra.kind + ")", infra.why,
                                    "a machine that can run the case",
                                    "this is not a result about the product")};
}

std::optional<Finding> interrupted(const Facts& facts) {
  if (facts.context().ended != "interrupted") return std::nullopt;
  return Finding{.verdict = "not_run"_verdict,
                 .rule = 21,
                 .reason = "the run was interrupted while this case ran"};
}

/// Whether the case tests code of others, which refuses where and how it does.
bool of_other_code(const Facts& facts) {
  const auto found = facts.plan().axes.find("subject");
  return found != facts.plan().axes.end() && *found != matrix::kReference;
}

/// The rule, the phase and the time (before any device work) all have to be the expected ones. The
/// code of other subjects refuses while it is set up or captured, and says why in its own words:
/// without them, an exception for any other reason would count as the refusal.
bool as_expected(const Facts& facts, const record::Refusal& refusal) {
  const record::Expect& expect = facts.plan().expect;
  if (refusal.rule != expect.rule) return false;
  if (of_other_code(facts))
    return refusal.phase < Phase::replay && !expect.says.empty() &&
           record::to_text(refusal.message).find(expect.says) != std::string::npos;
  return refusal.phase == Phase::validate && !refusal.device_initialised;
}

/// How a refusal by the expected rule has to be, for people.
std::string wanted_refusal(const Facts& facts) {
  const record::Expect& expect = facts.plan().expect;
  return of_other_code(facts)
             ? "every rank's own code refused before a replay, saying \"" + expect.says + "\""
             : "every rank refused by " + expect.rule + " in phase validate, before device work";
}

std::optional<Finding> refusals(const Facts& facts) {
  const auto& ranks = facts.ranks();
  const auto refused = [](const RankEvidence& rank) { return rank.refused.has_value(); };
  const auto first = std::find_if(ranks.begin(), ranks.end(), refused);
  const std::string& rule = facts.plan().expect.rule;
  const bool must_refuse = facts.expects() == "rejected";

  if (first == ranks.end()) {
    const Phase last = of_other_code(facts) ? Phase::capture : Phase::validate;
    const auto accepted = [last](const RankEvidence& rank) {
      return rank.last_phase && *rank.last_phase > last;
    };
    const auto acceptor = std::find_if(ranks.begin(), ranks.end(), accepted);
    if (!must_refuse || acceptor == ranks.end()) return std::nullopt;
    return Finding{.verdict = "fail.constraint"_verdict,
                   .rule = 32,
                   .reason = rank_text(acceptor->rank) + " accepted what " + rule + " forbids",
                   .fact = facts.fact(
                       acceptor->rank, rule + " did not refuse this case",
                       "phase " + text(*acceptor->last_phase) + " reached", wanted_refusal(facts),
                       "a forbidden combination that is not refused runs with unknown results"),
                   .phase = acceptor->last_phase};
  }
  const record::Refusal& refusal = *first->refused;
  if (!must_refuse && facts.expects() != "hazard")
    return Finding{.verdict = "fail.constraint"_verdict,
                   .rule = 33,
                   .reason = rank_text(first->rank) + " refused by " + refusal.rule +
                             ", and the plan expects no refusal",
                   .fact = Failing{.check = "", .rank = first->rank, .message = refusal.message},
                   .phase = refusal.phase};

  // A rank that left no evidence at all did not refuse.
  const bool whole_world = static_cast<int>(ranks.size()) == facts.context().world_size;
  for (const RankEvidence& rank : ranks)
    if (!rank.refused || !as_expected(facts, *rank.refused)) {
      const std::string got = !rank.refused
                                  ? "no refusal"
                                  : "refused by " + rank.refused->rule + " in phase " +
                                        text(rank.refused->phase) +
                                        (rank.refused->device_initialised ? ", device initialised"
                                                                          : ", before device work");
      return Finding{
          .verdict = "fail.constraint"_verdict,
          .rule = of_other_code(facts) ? 35 : 31,
          .reason = rank_text(rank.rank) + ": " + got,
          .fact = facts.fact(
              rank.rank, "the refusal is not the expected one",
              of_other_code(facts) && rank.refused
                  ? got + ", saying: " + record::to_text(rank.refused->message)
                  : got,
              wanted_refusal(facts),
              "ranks that disagree wait for each other, and a late refusal leaves device state"),
          .phase = Phase::validate};
    }
  const auto died = [](const record::RankContext& rank) {
    return rank.exit && rank.exit->kind == "signal";
  };
  const bool ended_normally =
      facts.context().ended == "finished" && !facts.context().hang && !facts.context().first_dead &&
      std::none_of(facts.context().ranks.begin(), facts.context().ranks.end(), died);
  const bool all_complete = std::all_of(ranks.begin(), ranks.end(),
                                        [](const RankEvidence& rank) { return rank.complete; });
  if (!whole_world || !ended_normally || !all_complete) return std::nullopt;
  const std::string all = "all " + std::to_string(ranks.size()) + " ranks refused by " + rule;
  if (of_other_code(facts))
    return Finding{.verdict = "pass.rejected"_verdict,
                   .rule = 34,
                   .reason = all + " in their own words",
                   .phase = refusal.phase};
  return Finding{.verdict = "pass.rejected"_verdict,
                 .rule = 30,
                 .reason = all + " before device work",
                 .phase = Phase::validate};
}

std::optional<Finding> hang(const Facts& facts) {
  if (!facts.context().hang) return std::nullopt;
  const record::Hang& hang = *facts.context().hang;
  // If a rank died, or the missing rank met an error before it fell silent, that is the cause, and
  // a rule below names it. An error of a waiting rank is a consequence of the hang.
  if (facts.dead() || facts.met_error(hang.missing_rank)) return std::nullopt;
  std::string got = "silent for longer than " + std::to_string(hang.limit_ms) + " ms in phase " +
                    text(hang.phase);
  for (const record::RankContext& rank : facts.context().ranks)
    if (rank.rank == hang.missing_rank)
      got = "silent for " + std::to_string(hang.silent_ms.value_or(rank.silent_ms)) + " ms in " +
            place(rank);
  std::vector<std::string> waiting;
  for (const int rank : hang.waiting_ranks) waiting.push_back(std::to_string(rank));
  return Finding{
      .verdict = Verdict::hang(hang.phase),
      .rule = 40,
      .reason = rank_text(hang.missing_rank) + " stopped in phase " + text(hang.phase),
      .fact = facts.fact(hang.missing_rank, rank_text(hang.missing_rank) + " is missing", got,
                         "a sign of life within " + std::to_string(hang.limit_ms) + " ms",
                         waiting.empty() ? "" : "ranks " + join(waiting) + " wait for it"),
      .phase = hang.phase};
}

/// The rank whose error is the cause: the one that died first, then the missing one, then the one
/// whose error came in the earliest phase. If a rank died by a signal and left no error, there is
/// no such rank: the errors of its peers only say that it is gone.
const RankEvidence* first_error(const Facts& facts) {
  if (const record::FirstDead* dead = facts.dead()) {
    if (facts.met_error(dead->rank)) return facts.rank(dead->rank);
    if (dead->exit.kind == "signal") return nullptr;
  }
  if (facts.context().hang && facts.met_error(facts.context().hang->missing_rank))
    return facts.rank(facts.context().hang->missing_rank);
  const RankEvidence* earliest = nullptr;
  for (const RankEvidence& rank : facts.ranks())
    if (rank.error && (earliest == nullptr || rank.error->phase < earliest->error->phase))
      earliest = &rank;
  return earliest;
}

std::optional<Finding> errors(const Facts& facts) {
  const RankEvidence* rank = first_error(facts);
  if (rank == nullptr) return std::nullopt;
  const RankError& error = *rank->error;
  const std::string got =
      error.type + " " + std::to_string(error.code) + " from " + error.call + ": " + error.message;
  const auto finding = [&](Verdict verdict, int rule) {
    return Finding{
        .verdict = verdict,
        .rule = rule,
        .reason = rank_text(rank->rank) + " met " + error.type + " error " +
                  std::to_string(error.code) + " in phase " + text(error.phase),
        .fact = facts.fact(rank->rank,
                           rank_text(rank->rank) + " met an error in phase " + text(error.phase) +
                               (error.arm.empty() ? "" : ", arm " + error.arm),
                           got, "no error"),
        .phase = error.phase};
  };
  // In a capture too: the remedy is more memory, not a different capture.
  if (error.type == "cuda" && error.code == kOutOfMemoryCode)
    return finding("fail.memory.oom"_verdict, 42);
  if (error.phase == Phase::capture) return finding("fail.capture"_verdict, 41);
  return finding(Verdict::from("fail.crash." + error.type).value_or("fail.crash.exception"_verdict),
                 43);
}

std::optional<Finding> deaths(const Facts& facts) {
  const Context& context = facts.context();
  // A rank that finished the case and then died in the teardown of its process is not first_dead,
  // but it crashed all the same.
  std::optional<record::FirstDead> dead = facts.dead() ? context.first_dead : std::nullopt;
  for (const record::RankContext& rank : context.ranks)
    if (!dead && rank.exit &&
        (rank.exit->kind == "signal" || (rank.exit->kind == "exited" && rank.exit->value != 0)))
      dead = record::FirstDead{.rank = rank.rank,
                               .exit = *rank.exit,
                               .phase = rank.case_ended ? Phase::teardown_process : rank.phase};
  if (!dead) return std::nullopt;
  const std::string where =
      dead->phase ? "in phase " + text(*dead->phase) : "before its first phase";
  const auto finding = [&](Verdict verdict, int rule, const std::string& got) {
    return Finding{.verdict = verdict,
                   .rule = rule,
                   .reason = rank_text(dead->rank) + ": " + got + " " + where,
                   .fact = facts.fact(dead->rank, rank_text(dead->rank) + " died " + where, got,
                                      "every rank alive to the end of the case"),
                   .phase = dead->phase};
  };
  if (dead->exit.kind == "signal")
    return finding("fail.crash.signal"_verdict, 44, "signal " + std::to_string(dead->exit.value));
  if (dead->exit.kind == "exited" && dead->exit.value != 0)
    return finding("fail.crash.exception"_verdict, 45,
                   "exit status " + std::to_string(dead->exit.value));
  return finding("fail.silent"_verdict, 46, "ended with status 0 before the case did");
}

/// A case that looks finished although a rank, the judge or the launcher reported nothing.
std::optional<Finding> silence(const Facts& facts) {
  const Context& context = facts.context();
  const auto finding = [&](std::optional<int> rank, const std::string& what, const std::string& got,
                           const std::string& want) {
    return Finding{.verdict = "fail.silent"_verdict,
                   .rule = 46,
                   .reason = what + ": " + got,
                   .fact = facts.fact(rank, what, got, want,
                                      "a case without a complete report must not count as a pass")};
  };
  // A hang whose cause no rule above found must not end as a pass.
  if (context.hang)
    return finding(context.hang->missing_rank, "a rank hung, and no cause was found",
                   "the rank was silent", "a cause");
  if (context.ended != "finished")
    return finding({}, "the batch was ended early (" + context.ended + ")",
                   "neither a hang nor a dead rank was reported", "the reason why it was ended");
  if (!facts.input.checks)
    return finding({}, "the judge left no checks.json", "nothing", "a result of every check");
  const int judged = static_cast<int>(facts.ranks().size());
  if (judged != context.world_size)
    return finding({}, "ranks are missing from checks.json", std::to_string(judged) + " ranks",
                   std::to_string(context.world_size) + " ranks");
  for (const RankEvidence& rank : facts.ranks())
    if (!rank.complete)
      return finding(
          rank.rank, rank_text(rank.rank) + " left no complete evidence",
          rank.last_phase ? "evidence up to phase " + text(*rank.last_phase) : "no evidence",
          "evidence from start to end");
  for (const record::RankContext& rank : context.ranks)
    if (!rank.case_ended)
      return finding(rank.rank, rank_text(rank.rank) + " never reported the end of the case",
                     place(rank), "its heartbeat case_end");
  if (static_cast<int>(context.ranks.size()) != context.world_size)
    return finding({}, "the launcher did not see every rank",
                   std::to_string(context.ranks.size()) + " ranks",
                   std::to_string(context.world_size) + " ranks");
  return std::nullopt;
}

Verdict verdict_of_check(const Facts& facts, const CheckResult& result) {
  const auto effect = facts.effects.find(result.check);
  // The failure of a check that the table does not have counts as one whose kind is unknown.
  if (effect == facts.effects.end()) return "fail.silent"_verdict;
  if (effect->second.verdict == "fail.hang") {
    Phase phase = Phase::validate;
    for (const record::RankContext& rank : facts.context().ranks)
      if (rank.phase && (!result.rank || *result.rank == rank.rank))
        phase = std::max(phase, *rank.phase);
    return Verdict::hang(phase);
  }
  return Verdict::from(effect->second.verdict).value_or("fail.silent"_verdict);
}

std::optional<Finding> failing_checks(const Facts& facts) {
  if (!facts.input.checks) return std::nullopt;
  const CheckResult* worst = nullptr;
  for (const CheckResult& result : facts.input.checks->checks) {
    if (result.result != Result::fail) continue;
    if (worst == nullptr ||
        verdict_of_check(facts, result).severity() < verdict_of_check(facts, *worst).severity())
      worst = &result;
  }
  if (worst == nullptr) return std::nullopt;
  Finding finding{.verdict = verdict_of_check(facts, *worst),
                  .rule = 60,
                  .reason = worst->check + ": " + worst->message.what};
  // Checks of the eager arm compare numbers. Rule 89 turns this failure into fail.eager.
  if (finding.verdict == "fail.eager"_verdict) {
    finding.verdict = "fail.numerics"_verdict;
    finding.phase = Phase::eager;
  }
  return finding;
}

std::optional<Finding> left_behind(const Facts& facts) {
  const record::Cleanup& cleanup = facts.context().cleanup;
  const auto finding = [&](Verdict verdict, const std::string& what, const std::string& got) {
    return Finding{.verdict = verdict,
                   .rule = 61,
                   .reason = what + " left behind: " + got,
                   .fact = facts.fact({}, "the case left " + what + " behind", got,
                                      "nothing that was not there before",
                                      "the next case would start on a machine that is not clean"),
                   .phase = Phase::teardown_process};
  };
  if (!cleanup.processes.empty())
    return finding("fail.cleanup.process"_verdict, "processes", join(cleanup.processes));
  if (cleanup.gpu_memory && !cleanup.gpu_memory->empty()) {
    std::vector<std::string> parts;
    for (const auto& left : *cleanup.gpu_memory)
      parts.push_back(std::to_string(left.bytes) + " bytes on GPU " + std::to_string(left.gpu));
    return finding("fail.cleanup.gpu_memory"_verdict, "GPU memory", join(parts));
  }
  if (!cleanup.shm.empty())
    return finding("fail.cleanup.shm"_verdict, "shared memory", join(cleanup.shm));
  if (!cleanup.ports.empty()) {
    std::vector<std::string> parts;
    for (const int port : cleanup.ports) parts.push_back(std::to_string(port));
    return finding("fail.cleanup.port"_verdict, "open ports", join(parts));
  }
  if (!cleanup.files.empty())
    return finding("fail.cleanup.file"_verdict, "files", join(cleanup.files));
  return std::nullopt;
}

const CheckResult* result_of(const Facts& facts, const std::string& check) {
  if (!facts.input.checks) return nullptr;
  for (const CheckResult& result : facts.input.checks->checks)
    if (result.check == check) return &result;
  return nullptr;
}

bool listed_for(const Facts& facts, const std::string& check) {
  const auto effect = facts.effects.find(check);
  if (effect == facts.effects.end()) return true;
  const auto& devices = effect->second.devices;
  return std::find(devices.begin(), devices.end(), facts.context().device) != devices.end();
}

std::optional<Finding> not_shown(const Facts& facts) {
  for (const std::string& check : facts.plan().required_checks) {
    const CheckResult* result = result_of(facts, check);
    if (result != nullptr && result->result == Result::pass) continue;
    if (!listed_for(facts, check)) continue;
    const std::string got = result == nullptr ? "no result" : std::string(name(result->result));
    return Finding{.verdict = "unexercised"_verdict,
                   .rule = 65,
                   .reason = check + " is required and was not exercised: " + got,
                   .fact = Failing{.check = check,
                                   .rank = {},
                                   .message = {.what = result == nullptr ? check + " has no result"
                                                                         : result->message.what,
                                               .got = got,
                                               .want = "pass or fail",
                                               .why = result == nullptr ? "" : result->message.why,
                                               .next = facts.next()}}};
  }
  const auto passed = [](const CheckResult& result) { return result.result == Result::pass; };
  if (std::any_of(facts.input.checks->checks.begin(), facts.input.checks->checks.end(), passed))
    return std::nullopt;
  return Finding{.verdict = "unexercised"_verdict,
                 .rule = 66,
                 .reason = "no check passed and none failed",
                 .fact = facts.fact({}, "nothing was tested", "no check passed and none failed",
                                    "at least one check that passes",
                                    "a case that no check looked at must not pass")};
}

Finding observe(const Facts& facts) {
  if (const auto finding = never_started(facts)) return *finding;
  using Look = std::optional<Finding> (*)(const Facts&);
  constexpr Look kLooks[] = {infrastructure, interrupted, refusals,       hang,        errors,
                             deaths,         silence,     failing_checks, left_behind, not_shown};
  for (const Look look : kLooks)
    if (const auto finding = look(facts)) return *finding;
  return {.verdict = "pass"_verdict, .rule = 90, .reason = "every required check passed"};
}

// ---- Rules from 80: what the plan expected.

bool acceptable(Verdict observed) { return observed.in("pass"); }
bool product_failure(Verdict observed) { return observed.exit_code() == ExitCode::product; }

/// If the eager arm fails, the graph arms are not judged, because there is nothing to compare with.
bool eager_failure(const Finding& seen) {
  return product_failure(seen.verdict) &&
         (seen.phase == Phase::eager || seen.verdict == "fail.eager"_verdict);
}

Finding eager(const Finding& seen) {
  return {.verdict = "fail.eager"_verdict,
          .rule = 89,
          .reason = "the eager arm itself fails: " + seen.reason,
          .fact = seen.fact,
          .phase = Phase::eager};
}

std::vector<const CheckResult*> of_named_detector(const Facts& facts) {
  std::vector<const CheckResult*> results;
  if (!facts.input.checks) return results;
  for (const CheckResult& result : facts.input.checks->checks)
    if (result.check.starts_with(facts.plan().expect.detector + ".")) results.push_back(&result);
  return results;
}

Finding expect_fault(const Facts& facts, const Finding& seen) {
  const record::Expect& expect = facts.plan().expect;
  if (!facts.input.context || seen.rule == 20 || seen.rule == 21) return seen;
  const auto results = of_named_detector(facts);
  const auto is = [](Result wanted) {
    return [wanted](const CheckResult* result) { return result->result == wanted; };
  };
  const auto failed = std::find_if(results.begin(), results.end(), is(Result::fail));

  // A fault planted in the graph arms cannot have broken the eager arm, unless its detector is a
  // check of the eager arm, or the fault is known to act there too.
  const bool acts_in_eager =
      failed != results.end() &&
      (expect.verdict == "fail.eager" || verdict_of_check(facts, **failed) == "fail.eager"_verdict);
  if (eager_failure(seen) && !acts_in_eager) return eager(seen);
  // Faults act in the arms. A failure before the arms is another defect, whichever check found it.
  const bool before_arms =
      seen.rule >= 31 && seen.rule <= 46 && seen.phase && *seen.phase < Phase::eager;
  if (before_arms) return seen;

  if (failed != results.end()) {
    // The fault is caught, but no planted fault may leave the machine unclean.
    if (const auto left = left_behind(facts)) return *left;
    return {.verdict = "pass.killed"_verdict,
            .rule = 81,
            .reason = "fault " + expect.fault + " was caught by its detector " + expect.detector,
            .fact = seen.fact,
            .phase = seen.phase};
  }
  const bool shown_here =
      std::any_of(results.begin(), results.end(),
                  [&](const CheckResult* result) { return listed_for(facts, result->check); });
  if (!results.empty() && !shown_here && !product_failure(seen.verdict))
    return {.verdict = "unexercised"_verdict,
            .rule = 80,
            .reason = "device " + facts.context().device + " cannot show fault " + expect.fault};
  if (acceptable(seen.verdict) && facts.input.checks &&
      !facts.input.checks->harmless_because.empty())
    return {.verdict = "pass.killed"_verdict,
            .rule = 82,
            .reason = "fault " + expect.fault +
                      " is harmless here: " + facts.input.checks->harmless_because};
  // A detector that was not exercised has neither caught the fault nor missed it. A detector
  // without any result has missed it: a check that is dropped catches nothing.
  const bool blind =
      !results.empty() && std::none_of(results.begin(), results.end(), is(Result::pass));
  if (blind && !product_failure(seen.verdict)) {
    const CheckResult& first = *results.front();
    return {.verdict = "unexercised"_verdict,
            .rule = 65,
            .reason = first.check +
                      " is required and was not exercised: " + std::string(name(first.result)),
            .fact = Failing{.check = first.check,
                            .rank = {},
                            .message = {.what = first.message.what,
                                        .got = std::string(name(first.result)),
                                        .want = "pass or fail",
                                        .why = first.message.why,
                                        .next = facts.next()}}};
  }
  const bool elsewhere = product_failure(seen.verdict);
  return {
      .verdict = "fail.survived"_verdict,
      .rule = 83,
      .reason = "fault " + expect.fault + " was not caught by its detector " + expect.detector +
                (elsewhere ? "; it ended " + std::string(seen.verdict.text()) + " otherwise" : ""),
      .fact =
          facts.fact({}, "planted fault " + expect.fault + " was not caught by " + expect.detector,
                     elsewhere ? std::string(seen.verdict.text()) + ", " + seen.reason
                               : "no check of " + expect.detector + " failed",
                     "a failing check of " + expect.detector,
                     "a detector that misses its own fault misses real ones"),
      .phase = seen.phase};
}

/// Whether what happened is what was expected. Numbers that differ in the eager arm do not count
/// for an expected failure of graphs.
bool shows(const Finding& seen, const std::string& expected) {
  if (seen.phase == Phase::eager && expected == "fail.eager") return true;
  return seen.verdict.in(expected) && !(seen.phase == Phase::eager && seen.rule == 60);
}

Finding expect_hazard(const Facts& facts, const Finding& seen) {
  const record::Expect& expect = facts.plan().expect;
  const bool judged = acceptable(seen.verdict) || product_failure(seen.verdict);
  if (!judged) return seen;
  const bool met = shows(seen, expect.verdict);
  if (met)
    return {.verdict = acceptable(seen.verdict) ? "pass"_verdict : "xfail"_verdict,
            .rule = 84,
            .reason =
                "hazard " + expect.rule + " ended as expected, " + std::string(seen.verdict.text()),
            .fact = seen.fact,
            .phase = seen.phase};
  if (acceptable(seen.verdict))
    return {.verdict = "xpass"_verdict,
            .rule = 85,
            .reason = "hazard " + expect.rule + " ended " + std::string(seen.verdict.text()) +
                      ", expected " + expect.verdict,
            .fact = facts.fact({}, "hazard " + expect.rule + " did not occur",
                               std::string(seen.verdict.text()), expect.verdict,
                               "a rule that forbids a working combination keeps users from it")};
  return eager_failure(seen) ? eager(seen) : seen;
}

Finding expect_known_issue(const Facts& facts, const Finding& seen) {
  const record::Expect& expect = facts.plan().expect;
  const bool still = product_failure(seen.verdict) && shows(seen, expect.verdict);
  if (still && facts.input.today <= expect.until)
    return {.verdict = "xfail"_verdict,
            .rule = 86,
            .reason = "known issue " + expect.issue + " of " + expect.owner + ", excused until " +
                      expect.until,
            .fact = seen.fact,
            .phase = seen.phase};
  if (still)
    return {.verdict = eager_failure(seen) ? "fail.eager"_verdict : seen.verdict,
            .rule = 87,
            .reason = "known issue " + expect.issue + " of " + expect.owner + " has expired on " +
                      expect.until + " and still fails: " + seen.reason,
            .fact = seen.fact,
            .phase = seen.phase};
  if (acceptable(seen.verdict))
    return {.verdict = "xpass"_verdict,
            .rule = 88,
            .reason = "known issue " + expect.issue + " no longer fails",
            .fact = facts.fact({}, "known issue " + expect.issue + " no longer fails",
                               std::string(seen.verdict.text()), expect.verdict,
                               "remove it from the matrix, so that it cannot come back unseen")};
  return eager_failure(seen) ? eager(seen) : seen;
}

Finding expect_rejected(const Facts& facts, const Finding& seen) {
  // Only a complete refusal (rules 30 and 34) passes.
  if (seen.rule == 30 || seen.rule == 34 || product_failure(seen.verdict) || seen.rule == 20 ||
      seen.rule == 21)
    return seen;
  return {.verdict = "fail.constraint"_verdict,
          .rule = 32,
          .reason = facts.plan().expect.rule + " did not refuse this case",
          .fact = facts.fact({}, facts.plan().expect.rule + " did not refuse this case",
                             seen.reason, wanted_refusal(facts)),
          .phase = seen.phase};
}

Finding expect_pass(const Facts&, const Finding& seen) {
  return eager_failure(seen) ? eager(seen) : seen;
}

Finding expected(const Facts& facts, const Finding& seen) {
  if (facts.plan().skip || !facts.input.context) return seen;
  if (facts.expects() == "fault") return expect_fault(facts, seen);
  if (facts.expects() == "rejected") return expect_rejected(facts, seen);
  if (facts.expects() == "hazard") return expect_hazard(facts, seen);
  if (facts.expects() == "known_issue") return expect_known_issue(facts, seen);
  return expect_pass(facts, seen);
}

std::optional<Phase> furthest(const OutcomeInput& input) {
  std::optional<Phase> phase;
  const auto reach = [&phase](std::optional<Phase> other) {
    if (other && (!phase || *phase < *other)) phase = other;
  };
  if (input.context)
    for (const record::RankContext& rank : input.context->ranks) reach(rank.phase);
  if (input.checks)
    for (const RankEvidence& rank : input.checks->ranks) reach(rank.last_phase);
  return phase;
}

}  // namespace

CheckEffects check_effects(const matrix::CheckTable& table) {
  CheckEffects effects;
  for (const matrix::CheckEntry& entry : table.checks())
    effects[entry.check] = {.verdict = entry.verdict, .devices = entry.devices};
  return effects;
}

std::span<const Rule> rules() { return kRules; }

Outcome outcome(const OutcomeInput& input, const CheckEffects& effects) {
  const Facts facts{input, effects};
  const Finding seen = observe(facts);
  const Finding decided = expected(facts, seen);

  Outcome outcome{.verdict = decided.verdict,
                  .observed = seen.verdict,
                  .rule = decided.rule,
                  .reason = decided.reason,
                  .failing = {},
                  .counts = {},
                  .phase = decided.phase ? decided.phase : furthest(input)};
  if (decided.fact) outcome.failing.push_back(*decided.fact);
  // What was left behind is reported whatever decided: a rank that could not be ended keeps its
  // slot, for example.
  if (input.context && decided.rule != 61)
    if (const auto left = left_behind(facts)) outcome.failing.push_back(*left->fact);
  if (!input.checks) return outcome;
  for (const CheckResult& result : input.checks->checks) {
    switch (result.result) {
      case Result::pass:
        ++outcome.counts.pass;
        break;
      case Result::unexercised:
        ++outcome.counts.unexercised;
        break;
      case Result::not_applicable:
        ++outcome.counts.not_applicable;
        break;
      case Result::fail:
        ++outcome.counts.fail;
        outcome.failing.push_back(
            {.check = result.check, .rank = result.rank, .message = result.message});
    }
  }
  return outcome;
}

record::ExitCode exit_code(record::Verdict verdict, int rule) {
  for (const Rule& row : kRules)
    if (row.number == rule && row.exit_code) return *row.exit_code;
  return verdict.exit_code();
}

Outcome fold(const Outcome& first, const Outcome& alone) {
  const ExitCode code = exit_code(alone.verdict, alone.rule);
  if (code == ExitCode::product) return alone;
  Outcome folded = first;
  if (code != ExitCode::ok || alone.verdict == "unexercised"_verdict) {
    folded.reason += "; alone it gave no result (" + std::string(alone.verdict.text()) + ")";
    return folded;
  }
  folded.verdict = "fail.isolation"_verdict;
  folded.rule = 70;
  folded.reason = "ends " + std::string(first.verdict.text()) + " in its batch and " +
                  std::string(alone.verdict.text()) +
                  " alone: state leaked between cases; in the batch: " + first.reason;
  return folded;
}

Outcome confirm(const Outcome& first, std::span<const Outcome> confirmations) {
  const auto failed = [](const Outcome& one) {
    return exit_code(one.verdict, one.rule) == ExitCode::product;
  };
  const auto count = std::count_if(confirmations.begin(), confirmations.end(), failed);
  if (count == static_cast<std::ptrdiff_t>(confirmations.size())) return first;
  Outcome folded = first;
  folded.verdict = "flaky"_verdict;
  folded.rule = 71;
  folded.reason = std::to_string(count) + " of " + std::to_string(confirmations.size()) +
                  " confirmations failed; first: " + first.reason;
  return folded;
}

record::Record make_record(const OutcomeInput& input, const Outcome& outcome,
                           const std::string& run_id, const std::string& artefacts) {
  record::Record result{.run_id = run_id,
                        .case_id = input.plan.id,
                        .name = input.plan.name,
                        .attempt = 1,
                        .context = {.device = "",
                                    .isolation = input.plan.isolation,
                                    .engine = "",
                                    .start = "",
                                    .batch = ""},
                        .ranks = input.plan.ranks,
                        .phase = outcome.phase,
                        .verdict = outcome.verdict,
                        .observed = outcome.observed,
                        .rule = outcome.rule,
                        .reason = outcome.reason,
                        .checks = outcome.counts,
                        .failing = outcome.failing,
                        .figures = {},
                        .seconds = 0,
                        .artefacts = artefacts};
  if (input.context) {
    const Context& context = *input.context;
    result.attempt = context.attempt;
    result.again = context.again;
    result.context = {.device = context.device,
                      .isolation = context.isolation,
                      .engine = context.engine,
                      .start = context.start,
                      .batch = context.batch};
    result.seconds = context.seconds;
  }
  if (input.checks) result.figures = input.checks->figures;
  return result;
}

}  // namespace graphproof::reports
