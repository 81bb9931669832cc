#include "suites/checks/watched/testing/watched_rows.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "matrix/catalogue/catalogue.h"
#include "suites/checks/attempt/concat.h"

namespace graphproof::checks::watched {
namespace {

const matrix::CheckTable& check_table() {
  static const matrix::CheckTable table = matrix::load_checks(matrix::load_axes());
  return table;
}

const record::CheckResult& of(const record::WatchedChecks& checks, const std::string& name) {
  for (const record::CheckResult& result : checks.checks)
    if (result.check == name) return result;
  throw std::logic_error("no check " + name);
}

void expect_whole_message(const record::CheckResult& result) {
  EXPECT_FALSE(result.message.what.empty());
  EXPECT_FALSE(result.message.got.empty());
  if (result.result == record::Result::pass) return;
  EXPECT_FALSE(result.message.want.empty()) << record::to_text(result.message);
  EXPECT_FALSE(result.message.why.empty()) << record::to_text(result.message);
  EXPECT_FALSE(result.message.next.empty()) << record::to_text(result.message);
}

}  // namespace

void judge_watched_rows(const std::string& check, const std::vector<WatchedRow>& rows) {
  const record::WatchedChecks before = judge_watched(clean_job(), check_table());
  ASSERT_EQ(record::name(of(before, check).result), "pass")
      << check << ": " << record::to_text(of(before, check).message);
  bool alone = false;
  for (const WatchedRow& row : rows) {
    SCOPED_TRACE(concat(check, ": ", row.name));
    WatchedJob job = clean_job();
    row.change(job);
    const record::WatchedChecks after = judge_watched(job, check_table());
    const record::CheckResult& result = of(after, check);
    const std::string message = record::to_text(result.message);
    EXPECT_EQ(record::name(result.result), record::name(row.want)) << message;
    EXPECT_EQ(result.rank, row.rank) << message;
    for (const std::string& part : row.mentions)
      EXPECT_NE(message.find(part), std::string::npos) << "wanted `" << part << "` in: " << message;
    expect_whole_message(result);
    bool others = false;
    for (const record::CheckResult& one : before.checks) {
      if (one.check == check || of(after, one.check).result == one.result) continue;
      others |= !row.also.contains(one.check);
      EXPECT_TRUE(row.also.contains(one.check) || row.also.contains("*"))
          << one.check << " changed too: " << record::to_text(of(after, one.check).message);
    }
    alone |= !others && result.result == record::Result::fail;
  }
  EXPECT_TRUE(alone) << "no row makes " << check
                     << " fail without changing checks that it does not name";
  // For every_watched_check_fails_test.cpp.
  if (alone) testing::Test::RecordProperty(check, "fails");
}

record::CheckResult result_of(const std::string& check, const WatchedJob& job) {
  return of(judge_watched(job, check_table()), check);
}

}  // namespace graphproof::checks::watched
