#include "suites/checks/testing/check_rows.h"

#include <gtest/gtest.h>

#include "suites/checks/attempt/concat.h"

namespace graphproof::checks {
namespace {

const record::CheckResult& of(const record::Checks& checks, const std::string& name) {
  for (const record::CheckResult& result : checks.checks)
    if (result.check == name) return result;
  throw std::logic_error("no check " + name);
}

/// The checks whose result changed, without `check` itself.
std::set<std::string> flipped(const record::Checks& clean, const record::Checks& changed,
                              const std::string& check) {
  std::set<std::string> result;
  for (const record::CheckResult& before : clean.checks)
    if (before.check != check && of(changed, before.check).result != before.result)
      result.insert(before.check);
  return result;
}

void expect_whole(const record::CheckResult& result) {
  EXPECT_FALSE(result.message.what.empty());
  EXPECT_FALSE(result.message.got.empty());
  if (result.result == record::Result::pass) return;
  EXPECT_FALSE(result.message.why.empty()) << record::to_text(result.message);
  EXPECT_FALSE(result.message.next.empty()) << record::to_text(result.message);
  EXPECT_FALSE(result.result == record::Result::fail && result.message.want.empty())
      << record::to_text(result.message);
}

}  // namespace

std::function<void(Attempt&)> with_setting(std::size_t rank, const char* part, const char* name,
                                           nlohmann::json value) {
  return [=](Attempt& attempt) {
    for (Line& line : attempt.ranks.at(rank).evidence->lines) {
      if (line.kind != "config") continue;
      if (value.is_null())
        line.fields[part].erase(name);
      else
        line.fields[part][name] = value;
    }
  };
}

Row rank_died(const Where& where) {
  return {.name = "the rank died",
          .change = [=](Attempt& attempt) { die_before(attempt, where); },
          .want = record::Result::unexercised,
          .rank = std::nullopt,
          .mentions = {concat("rank ", *where.rank)},
          .also = {"*"}};
}

void judge_rows(const std::string& check, const nlohmann::json& axes, const std::vector<Row>& rows,
                const std::string& device, std::int64_t revision) {
  const matrix::Catalogue catalogue = matrix::load_catalogue();
  const Attempt clean = clean_attempt(catalogue, axes, device, revision);
  const record::Checks before = judge(clean, catalogue.checks);
  ASSERT_EQ(record::name(of(before, check).result), "pass")
      << record::to_text(of(before, check).message);
  bool alone = false;
  for (const Row& row : rows) {
    SCOPED_TRACE(concat(check, ": ", row.name));
    Attempt changed = clean;
    row.change(changed);
    type_again(changed);
    const record::Checks after = judge(changed, catalogue.checks);
    const record::CheckResult& result = of(after, check);
    const std::string message = record::to_text(result.message);
    EXPECT_EQ(record::name(result.result), record::name(row.want)) << message;
    EXPECT_EQ(result.rank, row.rank) << message;
    for (const std::string& part : row.mentions)
      EXPECT_NE(message.find(part), std::string::npos) << "wanted `" << part << "` in: " << message;
    expect_whole(result);
    const std::set<std::string> others = flipped(before, after, check);
    for (const std::string& other : others) {
      if (!row.also.contains(other) && !row.also.contains("*"))
        ADD_FAILURE() << other << " flipped too: " << record::to_text(of(after, other).message);
    }
    alone |= others.empty() && result.result == record::Result::fail;
  }
  EXPECT_TRUE(alone) << "no row flips " << check << " alone to fail";
  if (alone) testing::Test::RecordProperty(check, "fails");  // for every_check_fails_test.cpp
}

record::CheckResult judge_one(const std::string& check, const nlohmann::json& axes,
                              const std::function<void(Attempt&)>& change,
                              const std::string& device) {
  const matrix::Catalogue catalogue = matrix::load_catalogue();
  Attempt attempt = clean_attempt(catalogue, axes, device);
  change(attempt);
  type_again(attempt);
  return of(judge(attempt, catalogue.checks), check);
}

}  // namespace graphproof::checks
