#include "launcher/backend/compute_sanitizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "launcher/backend/local_command.h"

namespace graphproof::launcher {
namespace {

Job job_under(const std::string& sanitizer) {
  Job job;
  job.device = "cuda";
  job.program = "/opt/bin/rank";
  job.switches = {"--divergence"};
  job.batch_file = "/runs/r/batches/b001/batch.json";
  job.sanitizer = sanitizer;
  job.sanitizer_log = "/runs/100%/attempt-1/compute-sanitizer.log";
  return job;
}

TEST(ComputeSanitizer, StandsBetweenTheStarterAndTheRank) {
  const Command command = local_command(job_under("initcheck"), {});
  std::vector<std::string> want = {"/opt/bin/graphproof-start", "1", "/usr/bin/env",
                                   "compute-sanitizer"};
  const auto options =
      sanitizer_options("initcheck", "/runs/100%%/attempt-1/compute-sanitizer.log");
  want.insert(want.end(), options.begin(), options.end());
  want.insert(want.end(), {"/opt/bin/rank", "--divergence", "/runs/r/batches/b001/batch.json"});
  EXPECT_EQ(command.arguments, want);
  EXPECT_EQ(command.environment.at(kSanitizerVariable), "initcheck");
}

TEST(ComputeSanitizer, IsLeftOutOfOtherCases) {
  const Command command = local_command(job_under(""), {});
  EXPECT_EQ(command.arguments,
            (std::vector<std::string>{"/opt/bin/graphproof-start", "1", "/opt/bin/rank",
                                      "--divergence", "/runs/r/batches/b001/batch.json"}));
  EXPECT_FALSE(command.environment.contains(kSanitizerVariable));
}

TEST(ComputeSanitizer, ReportsWhatKernelsDoAndLetsTheRankGoOn) {
  const auto options = sanitizer_options("memcheck", "log");
  for (const std::vector<std::string>& pair :
       std::vector<std::vector<std::string>>{{"--tool", "memcheck"},
                                             {"--report-api-errors", "no"},
                                             {"--destroy-on-device-error", "kernel"},
                                             {"--log-file", "log"}}) {
    const auto found = std::search(options.begin(), options.end(), pair.begin(), pair.end());
    EXPECT_NE(found, options.end()) << pair.front();
  }
  EXPECT_EQ(std::count(options.begin(), options.end(), "--error-exitcode"), 0)
      << "an exit code of the tool would take the place of the rank's";
}

}  // namespace
}  // namespace graphproof::launcher
