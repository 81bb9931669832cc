// One row per situation in which a case can be when an attempt of it has been judged. Every attempt
// ran in batch b003.
#include "launcher/policy/case_policy.h"

#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>
#include <vector>

namespace graphproof::launcher {
namespace {

using enum NextAttempt;
using reports::Ending;

reports::Outcome outcome(const std::string& verdict, const std::string& check = "") {
  reports::Outcome outcome;
  outcome.verdict = outcome.observed = *record::Verdict::from(verdict);
  outcome.rule = outcome.verdict.in("pass") ? 90 : outcome.verdict.in("infra") ? 20 : 60;
  outcome.reason = "a test";
  if (!check.empty()) outcome.failing = {{.check = check}};
  return outcome;
}

CaseHistory after_failure_in_batch(const std::string& verdict, const std::string& check = "") {
  CaseHistory history;
  history.failed_in_batch = outcome(verdict, check);
  return history;
}

/// A failure whose rate is being measured; `seen`: the confirmations so far.
CaseHistory confirming(const std::string& verdict, const std::vector<std::string>& seen,
                       const std::string& check = "") {
  CaseHistory history;
  history.confirmation = Confirmation{outcome(verdict, check), {}};
  for (const std::string& one : seen) history.confirmation->seen.push_back(outcome(one));
  return history;
}

CaseHistory after_infra(int attempts) {
  CaseHistory history;
  history.infra_attempts = attempts;
  return history;
}

struct Given {
  std::string verdict = "pass";
  std::string check = "";  // the one that failed
  std::string isolation = "batch";
  std::string expects = "pass";
  const char* deterministic_algorithms = "on";
  int attempt = 1;
  CaseHistory history = {};
  PolicyOptions options = {};
  RunStanding standing = {};
};

struct Expected {
  std::string verdict = "pass";  // of the record
  NextAttempt next = none;
  std::string again = "";
  bool end_batch = false;
  bool search = false;
  std::optional<Ending> ending = {};
  bool failed_in_batch = false;    // in the history afterwards
  std::optional<int> confirmed{};  // confirmations seen, in the history afterwards
  int infra_attempts = 0;
};

struct Situation {
  std::string name;
  Given given;
  Expected expected;
};

const Situation kSituations[] = {
    // The verdict stands at once.
    {"a pass in a batch", {}, {}},
    {"a pass in processes of its own", {.isolation = "process"}, {}},
    {"nothing was shown", {.verdict = "unexercised"}, {.verdict = "unexercised"}},
    {"a failure in processes of its own",
     {.verdict = "fail.eager", .isolation = "process"},
     {.verdict = "fail.eager", .end_batch = true}},
    {"a planted fault that survived its batch is run once",
     {.verdict = "fail.survived", .expects = "fault"},
     {.verdict = "fail.survived", .end_batch = true}},

    // A failure in a batch is run alone, to tell whether the batch caused it.
    {"a failure in a batch",
     {.verdict = "fail.numerics"},
     {.verdict = "fail.numerics",
      .next = alone,
      .again = "failed in batch b003 (fail.numerics)",
      .end_batch = true,
      .failed_in_batch = true}},
    {"a failure in a batch of a forbidden configuration",
     {.verdict = "fail.constraint", .expects = "rejected"},
     {.verdict = "fail.constraint",
      .next = alone,
      .again = "failed in batch b003 (fail.constraint)",
      .end_batch = true,
      .failed_in_batch = true}},
    {"a failure in a batch while the run ends",
     {.verdict = "fail.numerics", .standing = {.ending = true}},
     {.verdict = "fail.numerics", .end_batch = true}},
    {"a failure in a batch that passes alone",
     {.isolation = "process", .attempt = 2, .history = after_failure_in_batch("fail.eager")},
     {.verdict = "fail.isolation"}},
    {"a failure in a batch that fails alone too",
     {.verdict = "fail.crash.signal",
      .isolation = "process",
      .attempt = 2,
      .history = after_failure_in_batch("fail.eager")},
     {.verdict = "fail.crash.signal"}},
    {"a failure in a batch, and trouble of the infrastructure alone: the failure stands",
     {.verdict = "infra.gpu",
      .isolation = "process",
      .attempt = 2,
      .history = after_failure_in_batch("fail.eager"),
      .standing = {.fits_elsewhere = true}},
     {.verdict = "fail.eager"}},
    {"a failure in a batch that passes alone while the run ends",
     {.isolation = "process",
      .attempt = 2,
      .history = after_failure_in_batch("fail.eager"),
      .standing = {.ending = true}},
     {.verdict = "fail.isolation"}},

    // Trouble of the infrastructure is tried once more, elsewhere.
    {"trouble of the infrastructure where there is another place",
     {.verdict = "infra.gpu", .standing = {.fits_elsewhere = true}},
     {.verdict = "infra.gpu",
      .next = elsewhere,
      .again = "attempt 1 ended infra.gpu",
      .infra_attempts = 1}},
    {"trouble of the infrastructure without another place",
     {.verdict = "infra.gpu"},
     {.verdict = "infra.gpu", .infra_attempts = 1}},
    {"trouble of the infrastructure while the run ends",
     {.verdict = "infra.node", .standing = {.ending = true, .fits_elsewhere = true}},
     {.verdict = "infra.node", .infra_attempts = 1}},
    {"trouble of the infrastructure for the second time",
     {.verdict = "infra.node",
      .attempt = 2,
      .history = after_infra(1),
      .standing = {.fits_elsewhere = true}},
     {.verdict = "infra.node", .infra_attempts = 2}},
    {"the same, after a resumed run has counted both attempts of its earlier launcher",
     {.verdict = "infra.node",
      .attempt = 3,
      .history = after_infra(2),
      .standing = {.fits_elsewhere = true}},
     {.verdict = "infra.node", .infra_attempts = 3}},
    {"trouble of the infrastructure, then a pass",
     {.attempt = 2, .history = after_infra(1)},
     {.infra_attempts = 1}},
    {"trouble of the infrastructure, then a failure in a batch",
     {.verdict = "fail.numerics", .attempt = 2, .history = after_infra(1)},
     {.verdict = "fail.numerics",
      .next = alone,
      .again = "failed in batch b003 (fail.numerics)",
      .end_batch = true,
      .failed_in_batch = true,
      .infra_attempts = 1}},

    // The rate of a failure is measured, if that is asked for.
    {"a pass has no rate", {.isolation = "process", .options = {.confirmations = 3}}, {}},
    {"a failure in processes of its own, to be confirmed",
     {.verdict = "fail.numerics", .isolation = "process", .options = {.confirmations = 3}},
     {.verdict = "fail.numerics",
      .next = confirmation,
      .again = "confirmation 1 of 3 of fail.numerics",
      .end_batch = true,
      .confirmed = 0}},
    {"a failure in a batch, to be confirmed, is first run alone",
     {.verdict = "fail.numerics", .options = {.confirmations = 3}},
     {.verdict = "fail.numerics",
      .next = alone,
      .again = "failed in batch b003 (fail.numerics)",
      .end_batch = true,
      .failed_in_batch = true}},
    {"a failure in a batch that fails alone too, to be confirmed",
     {.verdict = "fail.numerics",
      .isolation = "process",
      .attempt = 2,
      .history = after_failure_in_batch("fail.numerics"),
      .options = {.confirmations = 3}},
     {.verdict = "fail.numerics",
      .next = confirmation,
      .again = "confirmation 1 of 3 of fail.numerics",
      .confirmed = 0}},
    {"a failure in a batch that passes alone, to be confirmed",
     {.isolation = "process",
      .attempt = 2,
      .history = after_failure_in_batch("fail.numerics"),
      .options = {.confirmations = 3}},
     {.verdict = "fail.isolation",
      .next = confirmation,
      .again = "confirmation 1 of 3 of fail.isolation",
      .confirmed = 0}},
    {"a failed confirmation that is not the last",
     {.verdict = "fail.numerics",
      .isolation = "process",
      .attempt = 3,
      .history = confirming("fail.numerics", {"fail.numerics"}),
      .options = {.confirmations = 3}},
     {.verdict = "fail.numerics",
      .next = confirmation,
      .again = "confirmation 3 of 3 of fail.numerics",
      .confirmed = 2}},
    {"a passed confirmation that is not the last",
     {.isolation = "process",
      .attempt = 2,
      .history = confirming("fail.numerics", {}),
      .options = {.confirmations = 2}},
     {.verdict = "flaky",
      .next = confirmation,
      .again = "confirmation 2 of 2 of fail.numerics",
      .confirmed = 1}},
    {"the last confirmation, and all failed",
     {.verdict = "fail.numerics",
      .isolation = "process",
      .attempt = 3,
      .history = confirming("fail.numerics", {"fail.numerics"}),
      .options = {.confirmations = 2}},
     {.verdict = "fail.numerics"}},
    {"the last confirmation, and one of them passed",
     {.verdict = "fail.numerics",
      .isolation = "process",
      .attempt = 3,
      .history = confirming("fail.numerics", {"pass"}),
      .options = {.confirmations = 2}},
     {.verdict = "flaky"}},
    {"a confirmation that meets trouble of the infrastructure counts as one that did not fail",
     {.verdict = "infra.gpu",
      .isolation = "process",
      .attempt = 2,
      .history = confirming("fail.numerics", {}),
      .options = {.confirmations = 1},
      .standing = {.fits_elsewhere = true}},
     {.verdict = "flaky"}},
    {"a failure to be confirmed while the run ends",
     {.verdict = "fail.numerics",
      .isolation = "process",
      .options = {.confirmations = 3},
      .standing = {.ending = true}},
     {.verdict = "fail.numerics", .end_batch = true}},
    {"a confirmation while the run ends: what is known by then stands",
     {.verdict = "fail.numerics",
      .isolation = "process",
      .attempt = 2,
      .history = confirming("fail.numerics", {}),
      .options = {.confirmations = 3},
      .standing = {.ending = true}},
     {.verdict = "fail.numerics"}},
    {"a planted fault has no rate",
     {.verdict = "fail.survived",
      .isolation = "process",
      .expects = "fault",
      .options = {.confirmations = 3}},
     {.verdict = "fail.survived", .end_batch = true}},
    {"a planted hazard has no rate",
     {.verdict = "fail.numerics",
      .isolation = "process",
      .expects = "hazard",
      .options = {.confirmations = 3}},
     {.verdict = "fail.numerics", .end_batch = true}},
    {"a forbidden configuration has no rate",
     {.verdict = "fail.constraint",
      .isolation = "process",
      .expects = "rejected",
      .options = {.confirmations = 3}},
     {.verdict = "fail.constraint", .end_batch = true}},
    {"a known issue has a rate",
     {.verdict = "xpass",
      .isolation = "process",
      .expects = "known_issue",
      .options = {.confirmations = 3}},
     {.verdict = "xpass",
      .next = confirmation,
      .again = "confirmation 1 of 3 of xpass",
      .end_batch = true,
      .confirmed = 0}},

    // The first divergent tensor of a mismatch is searched once its verdict stands.
    {"a mismatch in processes of its own",
     {.verdict = "fail.numerics", .check = "D01.lockstep", .isolation = "process"},
     {.verdict = "fail.numerics", .end_batch = true, .search = true}},
    {"a mismatch in a batch is not searched before the case has run alone",
     {.verdict = "fail.numerics", .check = "D01.lockstep"},
     {.verdict = "fail.numerics",
      .next = alone,
      .again = "failed in batch b003 (fail.numerics)",
      .end_batch = true,
      .failed_in_batch = true}},
    {"a mismatch that shows alone too",
     {.verdict = "fail.numerics",
      .check = "D01.lockstep",
      .isolation = "process",
      .attempt = 2,
      .history = after_failure_in_batch("fail.numerics", "D01.lockstep")},
     {.verdict = "fail.numerics", .search = true}},
    {"a mismatch that shows in its batch alone",
     {.isolation = "process",
      .attempt = 2,
      .history = after_failure_in_batch("fail.numerics", "D01.lockstep")},
     {.verdict = "fail.isolation", .search = true}},
    {"a mismatch that is not confirmed yet",
     {.verdict = "fail.numerics",
      .check = "D01.lockstep",
      .isolation = "process",
      .options = {.confirmations = 1}},
     {.verdict = "fail.numerics",
      .next = confirmation,
      .again = "confirmation 1 of 1 of fail.numerics",
      .end_batch = true,
      .confirmed = 0}},
    {"a mismatch that is confirmed",
     {.verdict = "fail.numerics",
      .check = "D01.lockstep",
      .isolation = "process",
      .attempt = 2,
      .history = confirming("fail.numerics", {}, "D01.lockstep"),
      .options = {.confirmations = 1}},
     {.verdict = "fail.numerics", .search = true}},
    {"numbers that no graph changed",
     {.verdict = "fail.numerics", .check = "D04.learning_rate", .isolation = "process"},
     {.verdict = "fail.numerics", .end_batch = true}},
    {"a mismatch while shrink looks for what fails",
     {.verdict = "fail.numerics",
      .check = "D01.lockstep",
      .isolation = "process",
      .options = {.search_divergence = false}},
     {.verdict = "fail.numerics", .end_batch = true}},
    {"a mismatch between kernels that differ from themselves",
     {.verdict = "fail.numerics",
      .check = "D01.lockstep",
      .isolation = "process",
      .deterministic_algorithms = "off"},
     {.verdict = "fail.numerics", .end_batch = true}},
    {"a mismatch that was planted",
     {.verdict = "pass.killed",
      .check = "D01.lockstep",
      .isolation = "process",
      .expects = "fault"},
     {.verdict = "pass.killed"}},
    {"a mismatch that was planted, in a repro of it",
     {.verdict = "pass.killed",
      .check = "D01.lockstep",
      .isolation = "process",
      .expects = "fault",
      .options = {.search_planted_divergence = true}},
     {.verdict = "pass.killed", .search = true}},
    {"the last mismatch that is searched",
     {.verdict = "fail.numerics",
      .check = "D01.lockstep",
      .isolation = "process",
      .standing = {.divergence_searches = kDivergenceSearches - 1}},
     {.verdict = "fail.numerics", .end_batch = true, .search = true}},
    {"one mismatch more",
     {.verdict = "fail.numerics",
      .check = "D01.lockstep",
      .isolation = "process",
      .standing = {.divergence_searches = kDivergenceSearches}},
     {.verdict = "fail.numerics", .end_batch = true}},
    {"a mismatch while the run ends",
     {.verdict = "fail.numerics",
      .check = "D01.lockstep",
      .isolation = "process",
      .standing = {.ending = true}},
     {.verdict = "fail.numerics", .end_batch = true}},

    // Failures end the run.
    {"--max-fail is reached, and the mismatch that reached it is not searched",
     {.verdict = "fail.numerics",
      .check = "D01.lockstep",
      .isolation = "process",
      .options = {.max_fail = 2},
      .standing = {.product_failures = 1, .final_verdicts = {{"pass", 5}, {"fail.eager", 1}}}},
     {.verdict = "fail.numerics", .end_batch = true, .ending = Ending::max_fail}},
    {"--max-fail is not reached",
     {.verdict = "fail.numerics", .isolation = "process", .options = {.max_fail = 2}},
     {.verdict = "fail.numerics", .end_batch = true}},
    {"a failure in a batch does not count before it has run alone",
     {.verdict = "fail.numerics",
      .options = {.max_fail = 1},
      .standing = {.product_failures = 11, .final_verdicts = {{"fail.numerics", 11}}}},
     {.verdict = "fail.numerics",
      .next = alone,
      .again = "failed in batch b003 (fail.numerics)",
      .end_batch = true,
      .failed_in_batch = true}},
    {"a failure that shows in its batch alone counts",
     {.isolation = "process",
      .attempt = 2,
      .history = after_failure_in_batch("fail.numerics"),
      .options = {.max_fail = 1}},
     {.verdict = "fail.isolation", .ending = Ending::max_fail}},
    {"the first twelve cases all failed alike",
     {.verdict = "fail.numerics",
      .isolation = "process",
      .standing = {.product_failures = 11, .final_verdicts = {{"fail.numerics", 11}}}},
     {.verdict = "fail.numerics", .end_batch = true, .ending = Ending::circuit_breaker}},
    {"the first eleven cases all failed alike",
     {.verdict = "fail.numerics",
      .isolation = "process",
      .standing = {.product_failures = 10, .final_verdicts = {{"fail.numerics", 10}}}},
     {.verdict = "fail.numerics", .end_batch = true}},
    {"the first four cases all hung alike",
     {.verdict = "fail.hang.replay",
      .isolation = "process",
      .standing = {.product_failures = 3, .final_verdicts = {{"fail.hang.replay", 3}}}},
     {.verdict = "fail.hang.replay", .end_batch = true, .ending = Ending::circuit_breaker}},
    {"the first three cases all hung alike",
     {.verdict = "fail.hang.replay",
      .isolation = "process",
      .standing = {.product_failures = 2, .final_verdicts = {{"fail.hang.replay", 2}}}},
     {.verdict = "fail.hang.replay", .end_batch = true}},
    {"eleven cases failed alike, and one otherwise",
     {.verdict = "fail.numerics",
      .isolation = "process",
      .standing = {.product_failures = 11,
                   .final_verdicts = {{"fail.numerics", 10}, {"fail.eager", 1}}}},
     {.verdict = "fail.numerics", .end_batch = true}},
    {"eleven cases failed alike, after one that passed",
     {.verdict = "fail.numerics",
      .isolation = "process",
      .standing = {.product_failures = 11, .final_verdicts = {{"fail.numerics", 11}, {"pass", 1}}}},
     {.verdict = "fail.numerics", .end_batch = true}},
    {"the first twelve cases all passed", {.standing = {.final_verdicts = {{"pass", 11}}}}, {}},
    {"the first twelve cases all met trouble of the infrastructure",
     {.verdict = "infra.node", .standing = {.final_verdicts = {{"infra.node", 11}}}},
     {.verdict = "infra.node", .infra_attempts = 1}},
    {"the last case cannot end the run early",
     {.verdict = "fail.numerics",
      .isolation = "process",
      .options = {.max_fail = 1},
      .standing = {.last_case = true}},
     {.verdict = "fail.numerics", .end_batch = true}},
    {"a failure after the run has begun to end",
     {.verdict = "fail.numerics",
      .isolation = "process",
      .options = {.max_fail = 1},
      .standing = {.ending = true}},
     {.verdict = "fail.numerics", .end_batch = true}},
};

CaseDecision decide(const Given& given) {
  JudgedAttempt attempt;
  attempt.line.expect.kind = given.expects;
  attempt.line.axes["deterministic_algorithms"] = given.deterministic_algorithms;
  attempt.context.isolation = given.isolation;
  attempt.context.attempt = given.attempt;
  attempt.context.batch = "b003";
  attempt.outcome = outcome(given.verdict, given.check);
  return decide(attempt, given.history, given.options, given.standing);
}

TEST(CasePolicyTest, EverySituationHasItsDecision) {
  for (const auto& [name, given, expected] : kSituations) {
    SCOPED_TRACE(name);
    const CaseDecision decision = decide(given);
    EXPECT_EQ(decision.outcome.verdict.text(), expected.verdict);
    EXPECT_EQ(decision.next, expected.next);
    EXPECT_EQ(decision.verdict_stands(), expected.next == none);
    EXPECT_EQ(decision.again, expected.again);
    EXPECT_EQ(decision.end_batch, expected.end_batch);
    EXPECT_EQ(decision.search_divergence, expected.search);
    EXPECT_EQ(decision.run_end ? std::optional(decision.run_end->ending) : std::nullopt,
              expected.ending);
    EXPECT_EQ(decision.history.failed_in_batch.has_value(), expected.failed_in_batch);
    EXPECT_EQ(decision.history.infra_attempts, expected.infra_attempts);
    const auto& confirmation = decision.history.confirmation;
    EXPECT_EQ(
        confirmation ? std::optional(static_cast<int>(confirmation->seen.size())) : std::nullopt,
        expected.confirmed);
  }
}

TEST(CasePolicyTest, EverySituationHasANameOfItsOwn) {
  std::set<std::string> names;
  for (const Situation& situation : kSituations)
    EXPECT_TRUE(names.insert(situation.name).second) << situation.name;
}

TEST(CasePolicyTest, ARecordCarriesWhatAllAttemptsShowed) {
  const CaseDecision decision = decide({.isolation = "process",
                                        .attempt = 2,
                                        .history = confirming("fail.numerics", {"fail.numerics"}),
                                        .options = {.confirmations = 2}});
  EXPECT_EQ(decision.outcome.reason, "1 of 2 confirmations failed; first: a test");
}

TEST(CasePolicyTest, TheUserReadsWhyFailuresEndTheRun) {
  const auto notice = [](const Given& given) {
    const CaseDecision decision = decide(given);
    return decision.run_end ? decision.run_end->notice : "";
  };
  EXPECT_EQ(notice({.verdict = "fail.eager", .isolation = "process", .options = {.max_fail = 1}}),
            "--max-fail 1 is reached: running cases end, no others start");
  EXPECT_EQ(notice({.verdict = "fail.hang.init",
                    .isolation = "process",
                    .standing = {.final_verdicts = {{"fail.hang.init", 3}}}}),
            "the first 4 cases all ended fail.hang.init: the run is stopped, because the machine "
            "or the build is broken and not a combination");
}

TEST(CasePolicyTest, WhatTheUserAskedForComesFromTheRun) {
  record::Run run;
  run.options.confirm = 5;
  run.options.max_fail = 7;
  run.profile = "smoke";
  const PolicyOptions options = policy_options(run);
  EXPECT_EQ(options.confirmations, 5);
  EXPECT_EQ(options.max_fail, 7);
  EXPECT_TRUE(options.search_divergence);
  EXPECT_FALSE(options.search_planted_divergence);
  run.profile = "shrink";
  EXPECT_FALSE(policy_options(run).search_divergence);
  run.profile = "repro";
  EXPECT_TRUE(policy_options(run).search_planted_divergence);
}

TEST(CasePolicyTest, AnOutcomeThatWasRecordedAndReadAgainIsTheSame) {
  const reports::Outcome before = outcome("fail.numerics", "D01.lockstep");
  const record::Record record = reports::make_record({}, before, "run", "cases/a/attempt-1");
  const reports::Outcome after = outcome_of(record);
  EXPECT_EQ(after.verdict, before.verdict);
  EXPECT_EQ(after.observed, before.observed);
  EXPECT_EQ(after.rule, before.rule);
  EXPECT_EQ(after.reason, before.reason);
  EXPECT_EQ(after.failing, before.failing);
}

}  // namespace
}  // namespace graphproof::launcher
