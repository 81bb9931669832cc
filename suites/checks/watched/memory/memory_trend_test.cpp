#include <gtest/gtest.h>

#include <functional>

#include "suites/checks/watched/testing/watched_rows.h"

namespace graphproof::checks::watched {
namespace {

constexpr std::int64_t kMiB = 1024 * 1024;

/// Gives every point of a series of rank 1 the value `of` its launches.
void set(WatchedJob& job, const std::string& what,
         const std::function<std::int64_t(std::int64_t)>& of) {
  for (auto& line : lines<record::MemorySeriesLine>(job, 1)) {
    if (line.what != what) continue;
    for (std::size_t i = 0; i < line.launches.size(); ++i) line.values[i] = of(line.launches[i]);
  }
}

/// What a series of rank 1 shows that grows by so much at each launch.
std::function<void(WatchedJob&)> grows(const std::string& what, std::int64_t by) {
  return [=](WatchedJob& job) {
    set(job, what, [=](std::int64_t launches) { return 100 * kMiB + by * launches; });
  };
}

void without_series(WatchedJob& job) { lines<record::MemorySeriesLine>(job, 1).clear(); }

const std::set<std::string> kAll = {"D31.resident_trend", "D31.device_trend",
                                    "D31.allocator_series", "D31.open_files"};

TEST(WatchedMemoryTrend, HostMemory) {
  judge_watched_rows("D31.resident_trend",
                     {{.name = "each replay keeps a batch",
                       .change = grows("resident", kMiB),
                       .rank = 1,
                       .mentions = {"memory of the host grows", "bytes a round"}},
                      {.name = "each replay pins a buffer",
                       .change = grows("host", kMiB),
                       .rank = 1,
                       .mentions = {"host memory that the driver gave out grows"}},
                      {.name = "evidence of an older probe",
                       .change = without_series,
                       .want = record::Result::unexercised,
                       .rank = std::nullopt,
                       .mentions = {"was not looked at again and again"},
                       .also = kAll}});
}

TEST(WatchedMemoryTrend, DeviceMemory) {
  judge_watched_rows("D31.device_trend", {{.name = "each replay allocates",
                                           .change = grows("device", 2 * kMiB),
                                           .rank = 1,
                                           .mentions = {"memory of the device grows"}}});
}

TEST(WatchedMemoryTrend, AllocatedMemory) {
  judge_watched_rows("D31.allocator_series",
                     {{.name = "each replay keeps a tensor",
                       .change = grows("allocated", kMiB),
                       .rank = 1,
                       .mentions = {"memory that PyTorch's allocator gave out grows"}}});
}

TEST(WatchedMemoryTrend, OpenFiles) {
  judge_watched_rows("D31.open_files", {{.name = "each replay opens a file",
                                         .change = grows("descriptors", 1),
                                         .rank = 1,
                                         .mentions = {"the number of open files grows"}}});
}

record::CheckResult resident_of(const std::function<void(WatchedJob&)>& change) {
  WatchedJob job = clean_job();
  change(job);
  return result_of("D31.resident_trend", job);
}

TEST(WatchedMemoryTrend, WarmUpAndCachesThatFillAreSound) {
  struct Row {
    const char* what;
    std::function<std::int64_t(std::int64_t)> of;
  };
  // The clean job launches up to 206 graphs; its second half begins at 103.
  for (const Row& row : std::vector<Row>{
           {"only the first half grows",
            [](std::int64_t at) { return kMiB * std::min<std::int64_t>(at, 100); }},
           {"a cache is full after three quarters",
            [](std::int64_t at) { return kMiB * std::min<std::int64_t>(at, 150); }},
           {"less than a page a round", [](std::int64_t at) { return 1000 * at; }},
           {"one jump", [](std::int64_t at) { return at < 160 ? kMiB : 500 * kMiB; }},
           {"up and down", [](std::int64_t at) { return kMiB * (100 + 90 * (at % 3)); }},
           {"falls", [](std::int64_t at) { return kMiB * (400 - at); }}})
    EXPECT_EQ(
        record::name(resident_of([&](WatchedJob& job) { set(job, "resident", row.of); }).result),
        "pass")
        << row.what;
}

TEST(WatchedMemoryTrend, AShortRunHasNoTrend) {
  const record::CheckResult result = resident_of([](WatchedJob& job) {
    grows("resident", kMiB)(job);
    for (auto& line : lines<record::MemorySeriesLine>(job, 1))
      for (std::int64_t& launches : line.launches) launches /= 2;
  });
  EXPECT_EQ(result.result, record::Result::unexercised);
  EXPECT_NE(result.message.got.find("rounds of replays"), std::string::npos);
}

TEST(WatchedMemoryTrend, WhatCapturesTakeIsNoTrend) {
  const record::CheckResult result = resident_of([](WatchedJob& job) {
    grows("resident", kMiB)(job);
    lines<record::ExecutableGraphLine>(job, 1).back().seconds = 11.5;  // of 12
  });
  EXPECT_EQ(result.result, record::Result::unexercised);
}

}  // namespace
}  // namespace graphproof::checks::watched
