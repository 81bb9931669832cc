#include "workloads/engines/speed/tables.h"

#include <gtest/gtest.h>

namespace graphproof::speed {
namespace {

StepTimes times(std::string layout, bool pipeline) {
  return {.layout = std::move(layout),
          .pipeline = pipeline,
          .block_ms = {{"eager", {20, 30, 22}},
                       {"full_iteration", {4, 4, 4}},
                       {"full_iteration floor", {4, 3.9, 3.5}},
                       {"local", {4.7, 4.72, 9}},
                       {"local floor", {4, 4, 4}},
                       {"local unchecked", {4.6, 4.7, 8}},
                       {"transformer_engine", {4.4, 4.2, 4.3}},
                       {"transformer_engine floor", {4, 4, 4}}}};
}

TEST(Tables, RatiosAreMediansOverCorrespondingBlocks) {
  EXPECT_DOUBLE_EQ(*ratio(times("tp1", false), "eager", "local"), 20 / 4.7);
  EXPECT_FALSE(ratio(times("tp1", false), "eager", "callables"));
  EXPECT_DOUBLE_EQ(median({3, 1, 2, 4}), 3);
}

TEST(Tables, WhatWasNotMeasuredIsADash) {
  const std::string table = step_table({times("tp1", false)});
  EXPECT_TRUE(table.starts_with(
      "| layout | eager | full_iteration | its floor | local | its floor | transformer_engine | "
      "its floor | "))
      << table;
  EXPECT_NE(table.find(" | eager / local | checks of local | checks of transformer_engine |\n"),
            std::string::npos)
      << table;
  // The engines after these were not measured; one of them stands right before the ratio.
  EXPECT_NE(table.find("\n| tp1 | 22.00 | 4.00 | 3.90 | 4.72 | 4.00 | 4.30 | 4.00 | - | "),
            std::string::npos)
      << table;
  EXPECT_TRUE(table.ends_with(" | - | 4.255 | 0.100 | - |\n")) << table;
}

TEST(Tables, AGateIsMetOrMissedAndLooserAgainstFullIterationOnStages) {
  EXPECT_EQ(gate_table({times("tp1", false), times("tp2 pp2", true)}),
            "| layout | gate | measured | limit | |\n| --- | --- | ---: | ---: | --- |\n"
            "| tp1 | full_iteration / its floor | 1.026 | 1.05 | met |\n"
            "| tp1 | local / its floor | 1.180 | 1.10 | **missed** |\n"
            "| tp1 | transformer_engine / its floor | 1.075 | 1.10 | met |\n"
            "| tp1 | local / full_iteration | 1.180 | 1.15 | **missed** |\n"
            "| tp1 | transformer_engine / full_iteration | 1.075 | 1.15 | met |\n"
            "| tp2 pp2 | full_iteration / its floor | 1.026 | 1.05 | met |\n"
            "| tp2 pp2 | local / its floor | 1.180 | 1.10 | **missed** |\n"
            "| tp2 pp2 | transformer_engine / its floor | 1.075 | 1.10 | met |\n"
            "| tp2 pp2 | local / full_iteration | 1.180 | 1.20 | met |\n"
            "| tp2 pp2 | transformer_engine / full_iteration | 1.075 | 1.20 | met |\n");
  EXPECT_NE(gate_table({{.layout = "tp1", .block_ms = {{"local", {1}}}}})
                .find("| tp1 | local / its floor | - | 1.10 | not measured |"),
            std::string::npos);
}

TEST(Tables, ATraceThatLacksTheGraphsKernelsGivesNoTime) {
  const std::string table = busy_table({{"tp1", "eager", 20, 3, 0, 900, 0},
                                        {"tp1", "local", 5, 3, 1, 800, 800},
                                        {"tp1", "manual", 5, 3, 1, 799, 800}});
  EXPECT_NE(table.find("| tp1 | eager | 20.00 | 3.00 | 0.00 | 6.67 | 900 | 0 |\n"),
            std::string::npos)
      << table;
  EXPECT_NE(table.find("| tp1 | local | 5.00 | 3.00 | 1.00 | 1.25 | 800 | 800 |\n"),
            std::string::npos)
      << table;
  EXPECT_NE(
      table.find(
          "| tp1 | manual | 5.00 | kernels are missing from the trace | - | - | 799 | 800 |\n"),
      std::string::npos)
      << table;
}

TEST(Tables, PoolBytesAreComparedWithEagersStepPeakFromAGibibyteOn) {
  constexpr std::int64_t kMiB = 1 << 20;
  const PoolRow eager{"eager", 0, 2000 * kMiB, 3000 * kMiB};
  const auto row = [&](const char* engine, std::int64_t pool_mib) {
    return PoolRow{engine, pool_mib * kMiB, 10 * kMiB, 4000 * kMiB};
  };
  const std::string table = pool_table({eager, row("local", 2600), row("manual", 9000)});
  EXPECT_NE(table.find("| eager | 0 | 0.00 | - |  | 2000 | 3000 |\n"), std::string::npos) << table;
  EXPECT_NE(table.find("| local | 2600 | 1.30 | 1.3 | met | 10 | 4000 |\n"), std::string::npos)
      << table;
  EXPECT_NE(table.find("| manual | 9000 | 4.50 | - |  | 10 | 4000 |\n"), std::string::npos)
      << table;
  EXPECT_NE(pool_table({eager, row("local", 2601)}).find("| **missed** |"), std::string::npos);
  EXPECT_NE(pool_table({PoolRow{"eager", 0, 1000 * kMiB, 0}, row("local", 1)})
                .find("not judged: activations below 1 GiB"),
            std::string::npos);
}

}  // namespace
}  // namespace graphproof::speed
