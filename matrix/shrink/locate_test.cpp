#include "matrix/shrink/locate.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>

#include "matrix/cover/cover.h"

namespace graphproof::shrink {
namespace {

/// A model whose parameters have these numbers of values.
cover::Model model_of(const std::vector<int>& sizes) {
  cover::Model model;
  for (const int size : sizes) {
    cover::Parameter parameter{.name = "p" + std::to_string(model.parameters.size()), .values = {}};
    for (int value = 0; value < size; ++value)
      parameter.values.push_back({.names = {std::to_string(value)}});
    model.parameters.push_back(std::move(parameter));
  }
  return model;
}

/// Forbids rows that have both cells.
void forbid(cover::Model& model, cover::Cell left, cover::Cell right) {
  model.constraints.push_back(
      {"c" + std::to_string(model.constraints.size()),
       {{{left.parameter, left.value, false}, {right.parameter, right.value, false}}}});
}

bool has(const cover::Row& row, const cover::Cells& cells) {
  return std::all_of(cells.begin(), cells.end(), [&](const cover::Cell& cell) {
    return row[static_cast<std::size_t>(cell.parameter)] == cell.value;
  });
}

std::vector<cover::Row> pairs_of(const cover::Model& model) {
  std::vector<cover::Row> rows;
  for (const cover::PlannedRow& row : cover::cover(model, {.strength = 2, .steps = 0}).rows)
    rows.push_back(row.cells);
  return rows;
}

using Run = std::function<Outcome(const Job&)>;
Answer drive(Locator& locator, int idle, const Run& run) {
  for (std::vector<Job> jobs = locator.next_jobs(idle); !jobs.empty();
       jobs = locator.next_jobs(idle)) {
    EXPECT_LE(static_cast<int>(jobs.size()), idle);
    for (const Job& job : jobs) locator.record(job.id, run(job));
  }
  return locator.answer();
}

Run fails_with(const cover::Cells& fault) {
  return [fault](const Job& job) { return has(job.row, fault) ? Outcome::fail : Outcome::pass; };
}

/// A failing row, and the outcomes of rows that cover all pairs, under this fault.
Question question_of(const cover::Model& model, const cover::Row& failing,
                     const cover::Cells& fault) {
  Question question{.model = &model, .failing = failing, .seen = {}};
  for (const cover::Row& row : pairs_of(model))
    question.seen.push_back({row, has(row, fault) ? Outcome::fail : Outcome::pass});
  return question;
}

const cover::Model& ten() {
  static const cover::Model kModel = model_of({2, 3, 2, 3, 2, 4, 2, 2, 3, 2});
  return kModel;
}

TEST(LocateTest, TwoValuesAreFoundAndTheRestIsShownIrrelevant) {
  const cover::Cells fault = {{1, 0}, {5, 0}};
  Locator locator(question_of(ten(), cover::Row(10, 0), fault));
  const Answer answer = drive(locator, 1, fails_with(fault));
  EXPECT_EQ(answer.state, State::confirmed);
  EXPECT_EQ(answer.combination, (std::vector<int>{1, 5}));
  EXPECT_GE(answer.probability, kSure);
  EXPECT_EQ(answer.irrelevant, (std::vector<int>{0, 2, 3, 4, 6, 7, 8, 9}));
  EXPECT_TRUE(answer.open.empty());
  EXPECT_EQ(answer.repeats, 3);
  EXPECT_LT(answer.jobs - answer.repeats,
            10);  // changing one factor at a time would take a job for each axis
}

TEST(LocateTest, WithoutEvidenceOfOtherRowsItTakesMoreJobsAndIsFound) {
  const cover::Cells fault = {{1, 0}, {5, 0}};
  Locator locator({.model = &ten(), .failing = cover::Row(10, 0), .seen = {}});
  const Answer answer = drive(locator, 1, fails_with(fault));
  EXPECT_EQ(answer.state, State::confirmed);
  EXPECT_EQ(answer.combination, (std::vector<int>{1, 5}));
}

TEST(LocateTest, TheSameQuestionAndOutcomesGiveTheSameJobs) {
  const cover::Cells fault = {{0, 0}, {3, 0}, {8, 0}};
  const auto rows_of = [&] {
    Locator locator(question_of(ten(), cover::Row(10, 0), fault));
    drive(locator, 2, fails_with(fault));
    std::vector<cover::Row> rows;
    for (const Evidence& one : locator.evidence()) rows.push_back(one.row);
    return rows;
  };
  EXPECT_EQ(rows_of(), rows_of());
}

TEST(LocateTest, ABatchTakesFewerRounds) {
  const cover::Cells fault = {{0, 0}, {3, 0}, {8, 0}};
  int rounds[2] = {0, 0};
  for (const int batch : {0, 1}) {
    Locator locator({.model = &ten(), .failing = cover::Row(10, 0), .seen = {}});
    for (auto jobs = locator.next_jobs(batch ? 6 : 1); !jobs.empty();
         jobs = locator.next_jobs(batch ? 6 : 1), ++rounds[batch])
      for (const Job& job : jobs) locator.record(job.id, fails_with(fault)(job));
    EXPECT_EQ(locator.answer().combination, (std::vector<int>{0, 3, 8}));
  }
  EXPECT_LT(rounds[1], rounds[0]);
}

TEST(LocateTest, WhatTheRulesTieTogetherIsOneCondition) {
  cover::Model model = model_of({2, 2, 2, 2, 2, 2});
  forbid(model, {0, 0}, {1, 1});  // p0=0 always comes with p1=0
  forbid(model, {0, 1}, {1, 0});  // and p0=1 with p1=1
  const cover::Cells fault = {{0, 0}, {4, 0}};
  Locator locator(question_of(model, cover::Row(6, 0), fault));
  const Answer answer = drive(locator, 1, fails_with(fault));
  EXPECT_EQ(answer.state, State::confirmed);
  EXPECT_EQ(answer.combination, (std::vector<int>{0, 4}));
  EXPECT_EQ(answer.same, (std::vector<std::vector<int>>{{1, 4}}));
  EXPECT_EQ(answer.implied, (std::vector<int>{1}));
}

TEST(LocateTest, AValueThatNoRowCanChangeIsFixed) {
  cover::Model model = model_of({2, 2, 2, 2});
  forbid(model, {2, 1}, {2, 1});
  const cover::Cells fault = {{0, 0}};
  Locator locator(question_of(model, cover::Row(4, 0), fault));
  const Answer answer = drive(locator, 1, fails_with(fault));
  EXPECT_EQ(answer.combination, (std::vector<int>{0}));
  EXPECT_EQ(answer.fixed, (std::vector<int>{2}));
}

TEST(LocateTest, WhereEveryRowFailsNoValueIsBlamed) {
  Locator locator(question_of(ten(), cover::Row(10, 0), {}));
  const Answer answer = drive(locator, 1, fails_with({}));
  EXPECT_EQ(answer.state, State::confirmed);
  EXPECT_TRUE(answer.combination.empty());
}

TEST(LocateTest, MoreThanFourValuesAreReportedAsMore) {
  const cover::Cells fault = {{0, 0}, {1, 0}, {3, 0}, {5, 0}, {7, 0}, {8, 0}};
  Locator locator(question_of(ten(), cover::Row(10, 0), fault));
  const Answer answer = drive(locator, 1, fails_with(fault));
  EXPECT_NE(answer.state, State::confirmed);
}

TEST(LocateTest, ARowThatDoesNotFailAgainIsNotLocated) {
  Locator locator(question_of(ten(), cover::Row(10, 0), {{1, 0}, {5, 0}}));
  const Answer answer = drive(locator, 1, [](const Job&) { return Outcome::pass; });
  EXPECT_EQ(answer.state, State::not_reproduced);
  EXPECT_EQ(answer.jobs, 8);
}

TEST(LocateTest, JobsWithoutAnOutcomeAreNeitherAPassNorAFailure) {
  const cover::Cells fault = {{1, 0}, {5, 0}};
  Question question = question_of(ten(), cover::Row(10, 0), fault);
  for (const cover::Row& row : pairs_of(ten())) question.seen.push_back({row, Outcome::invalid});
  Locator locator(question);
  int count = 0;
  const Answer answer = drive(locator, 1, [&](const Job& job) {
    return ++count % 3 == 0 ? Outcome::invalid : fails_with(fault)(job);
  });
  EXPECT_EQ(answer.state, State::confirmed);
  EXPECT_EQ(answer.combination, (std::vector<int>{1, 5}));
  EXPECT_EQ(answer.invalid, answer.jobs / 3);

  Locator lost(question);
  EXPECT_EQ(drive(lost, 1, [](const Job&) { return Outcome::invalid; }).state, State::no_outcomes);
  EXPECT_LE(lost.answer().jobs, 12);
}

TEST(LocateTest, TheBudgetOfJobsIsKept) {
  Question question{.model = &ten(), .failing = cover::Row(10, 0), .seen = {}, .most_jobs = 5};
  Locator locator(question);
  const Answer answer = drive(locator, 4, fails_with({{1, 0}, {5, 0}, {9, 0}}));
  EXPECT_EQ(answer.state, State::out_of_jobs);
  EXPECT_EQ(answer.jobs, 5);
}

TEST(LocateTest, AFlakyFaultIsFoundWithItsPassRate) {
  const cover::Cells fault = {{1, 0}, {5, 0}};
  cover::Random luck(3);
  Locator locator(question_of(ten(), cover::Row(10, 0), fault));
  const Answer answer = drive(locator, 1, [&](const Job& job) {
    return has(job.row, fault) && luck.unit() >= 0.3 ? Outcome::fail : Outcome::pass;
  });
  EXPECT_EQ(answer.state, State::confirmed);
  EXPECT_EQ(answer.combination, (std::vector<int>{1, 5}));
  EXPECT_GT(answer.pass_triggered, 0.15);
}

TEST(LocateTest, GivenNoiseIsUsed) {
  const cover::Cells fault = {{1, 0}, {5, 0}};
  Question question = question_of(ten(), cover::Row(10, 0), fault);
  question.noise = Noise{0.3, 0.02};
  Locator locator(question);
  const Answer answer = drive(locator, 1, fails_with(fault));
  EXPECT_EQ(answer.combination, (std::vector<int>{1, 5}));
  EXPECT_NEAR(answer.pass_triggered, 0.3, 1e-9);
}

TEST(LocateTest, MoreThan64AxesShareBitsAndAreTakenApartAtTheEnd) {
  const cover::Model model = model_of(std::vector<int>(90, 2));
  const cover::Cells fault = {{10, 0}, {70, 0}};
  Locator locator(question_of(model, cover::Row(90, 0), fault));
  const Answer answer = drive(locator, 1, fails_with(fault));
  EXPECT_EQ(answer.state, State::confirmed);
  EXPECT_EQ(answer.combination, (std::vector<int>{10, 70}));
}

struct Small {
  cover::Model model;
  cover::Row failing;
  cover::Cells fault;
};

/// A random model of four to eight axes with a few forbidden pairs, a valid row, and one to three
/// of its values as the fault.
Small small() {
  Small made;
  made.model = model_of(
      *rc::gen::container<std::vector<int>>(*rc::gen::inRange(4, 9), rc::gen::inRange(2, 4)));
  const int count = static_cast<int>(made.model.parameters.size());
  const auto cell = [&] {
    const int parameter = *rc::gen::inRange(0, count);
    return cover::Cell{
        parameter,
        *rc::gen::inRange(
            0, static_cast<int>(
                   made.model.parameters[static_cast<std::size_t>(parameter)].values.size()))};
  };
  const int forbidden = *rc::gen::inRange(0, 5);
  for (int i = 0; i < forbidden; ++i) {
    const cover::Cell left = cell(), right = cell();
    if (left.parameter != right.parameter) forbid(made.model, left, right);
  }
  cover::Oracle oracle(made.model);
  RC_PRE(oracle.solve({}));
  const std::vector<cover::Row> rows = pairs_of(made.model);
  made.failing =
      rows[static_cast<std::size_t>(*rc::gen::inRange(0, static_cast<int>(rows.size())))];
  const auto parameters = *rc::gen::unique<std::vector<int>>(*rc::gen::inRange<std::size_t>(1, 4),
                                                             rc::gen::inRange(0, count));
  for (const int parameter : parameters)
    made.fault.push_back({parameter, made.failing[static_cast<std::size_t>(parameter)]});
  return made;
}

TEST(LocateProperty, AFaultWithoutNoiseIsFoundUpToWhatTheRulesTieTogether) {
  EXPECT_TRUE(rc::check([] {
    const Small one = small();
    Locator locator(question_of(one.model, one.failing, one.fault));
    const Answer answer = drive(locator, *rc::gen::inRange(1, 4), fails_with(one.fault));
    RC_ASSERT(answer.state == State::confirmed || locator.neighbourhood().bits().empty());
    if (answer.state != State::confirmed) return;
    // The rows that have one combination are the rows that have the other.
    cover::Oracle oracle(one.model);
    cover::Cells found;
    for (const int parameter : answer.combination)
      found.push_back({parameter, one.failing[static_cast<std::size_t>(parameter)]});
    const auto implies = [&](const cover::Cells& left, const cover::Cells& right) {
      for (const cover::Cell& cell : right)
        for (int value = 0;
             value <
             static_cast<int>(
                 one.model.parameters[static_cast<std::size_t>(cell.parameter)].values.size());
             ++value) {
          if (value == cell.value) continue;
          cover::Cells other = left;
          other.push_back({cell.parameter, value});
          if (oracle.solve(other)) return false;
        }
      return true;
    };
    RC_ASSERT(implies(found, one.fault));
    RC_ASSERT(implies(one.fault, found));
  }));
}

TEST(LocateProperty, NoAnswerIsContradictedByARowThatPassed) {
  EXPECT_TRUE(rc::check([] {
    const Small one = small();
    Question question = question_of(one.model, one.failing, one.fault);
    question.noise = Noise{0, 0};
    question.most_jobs = *rc::gen::inRange(1, 30);
    Locator locator(question);
    const Answer answer = drive(locator, 1, fails_with(one.fault));
    if (answer.probability < kSure) return;
    for (const Evidence& evidence : locator.evidence()) {
      if (evidence.outcome != Outcome::pass) continue;
      RC_ASSERT(
          std::any_of(answer.combination.begin(), answer.combination.end(), [&](int parameter) {
            return evidence.row[static_cast<std::size_t>(parameter)] !=
                   one.failing[static_cast<std::size_t>(parameter)];
          }));
    }
  }));
}

}  // namespace
}  // namespace graphproof::shrink
