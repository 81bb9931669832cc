#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

using record::Result;

const nlohmann::json kMemcheck = {
    {"impl", "full_iteration"}, {"microbatches", 2}, {"sanitizer", "memcheck"}};

std::function<void(Attempt&)> with_sanitizer_log(const std::string& log) {
  return [log](Attempt& attempt) { attempt.sanitizer_log = log; };
}

std::string invalid_write_in(const std::string& kernel) {
  return "========= Invalid __global__ write of size 4 bytes\n=========     at " + kernel +
         "+0x1f0\n=========     by thread (15,0,0) in block (0,0,0)\n"
         "=========     Access to 0x7f2b0ba000fc is out of bounds\n"
         "=========     Saved host backtrace up to driver entry point at kernel launch time\n"
         "=========         Host Frame: graphproof::faults::overrun() [0x99] in rank\n"
         "=========\n";
}

TEST(Sanitizer, Rows) {
  const std::string begin = "========= COMPUTE-SANITIZER\n", kernel = "fill(float *, int)";
  judge_rows(
      "D45.sanitizer", kMemcheck,
      {
          {.name = "two errors of a kernel and one of another",
           .change = with_sanitizer_log(
               begin + invalid_write_in(kernel) + invalid_write_in(kernel) +
               invalid_write_in("sum(float *)") + "========= ERROR SUMMARY: 3 errors\n"),
           .rank = 0,
           .mentions = {"compute-sanitizer (memcheck)", "3 errors",
                        "2 times Invalid __global__ write of size 4 bytes in fill(float *, int)",
                        "Access to 0x7f2b0ba000fc is out of bounds",
                        "graphproof::faults::overrun()", "in sum(float *)"}},
          {.name = "an error, and then the log is cut off",
           .change = with_sanitizer_log(begin + invalid_write_in(kernel)),
           .rank = 0,
           .mentions = {"1 error: Invalid"}},
          {.name = "errors that were not printed",
           .change = with_sanitizer_log(begin + "========= ERROR SUMMARY: 7 errors\n"),
           .rank = 0,
           .mentions = {"7 errors"}},
          {.name = "the log is cut off",
           .change = with_sanitizer_log(begin),
           .want = Result::unexercised,
           .mentions = {"ends without its summary"}},
          {.name = "no log",
           .change = [](Attempt& attempt) { attempt.sanitizer_log.reset(); },
           .want = Result::unexercised,
           .mentions = {"left no log", "docs/guide/sanitizer.md"}},
          {.name = "the tool missed a launch",
           .change = with_sanitizer_log(
               begin + "========= Internal Sanitizer Error: The Sanitizer encountered an "
                       "error while launching fill and didn't track the launch.\n"
                       "========= ERROR SUMMARY: 0 errors\n"),
           .want = Result::unexercised,
           .mentions = {"Internal Sanitizer Error"}},
          {.name = "the tool does not know the bounds of tensors",
           .change = with_setting(0, "effective", "tensor_bounds_known_to", nullptr),
           .want = Result::unexercised,
           .mentions = {"known to no tool"}},
      },
      "cuda");
}

TEST(Sanitizer, RacesAndBarriersNeedNoBoundsOfTensors) {
  for (const char* tool : {"racecheck", "synccheck"}) {
    nlohmann::json axes = kMemcheck;
    axes["sanitizer"] = tool;
    EXPECT_EQ(judge_one("D45.sanitizer", axes,
                        with_setting(0, "effective", "tensor_bounds_known_to", nullptr), "cuda")
                  .result,
              Result::pass)
        << tool;
  }
}

TEST(Sanitizer, AWarningOfRacecheckFails) {
  nlohmann::json axes = kMemcheck;
  axes["sanitizer"] = "racecheck";
  const record::CheckResult result = judge_one(
      "D45.sanitizer", axes,
      with_sanitizer_log(
          "========= COMPUTE-SANITIZER\n"
          "========= Warning: Race reported between Write access at RAW()+0xf0 in a.cu:40\n"
          "=========     and Read access at RAW()+0x280 in a.cu:46 [4 hazards]\n"
          "=========\n"
          "========= RACECHECK SUMMARY: 1 hazard displayed (0 errors, 1 warning)\n"),
      "cuda");
  EXPECT_EQ(result.result, Result::fail);
  EXPECT_NE(result.message.got.find("in RAW()"), std::string::npos) << result.message.got;
}

}  // namespace
}  // namespace graphproof::checks
