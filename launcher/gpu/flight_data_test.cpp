#include "launcher/gpu/flight_data.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "reports/record/testing/scratch_folder.h"
#include "reports/record/text/file.h"

namespace graphproof::launcher {
namespace {

namespace fs = std::filesystem;

class FlightDataTest : public testing::Test {
 protected:
  FlightDataTest() {
    for (const fs::path& folder : {pipes_, answers_, stacks_}) fs::create_directories(folder);
  }
  /// Opens the reading end without waiting, as ProcessGroupNCCL's monitor does.
  int listen(int rank) const {
    const fs::path pipe = pipes_ / ("flight-" + std::to_string(rank) + ".pipe");
    EXPECT_EQ(mkfifo(pipe.c_str(), 0600), 0);
    return open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  }
  void answer(int rank) const {
    record::write_atomically(answers_ / ("flight-" + std::to_string(rank) + ".json"),
                             "{\"entries\": []}");
  }

  const record::ScratchFolder scratch_;
  const fs::path pipes_ = scratch_.path() / "node", answers_ = scratch_.path() / "batch",
                 stacks_ = scratch_.path() / "stacks";
};

TEST_F(FlightDataTest, EveryRankThatListensIsAskedOnceAndItsAnswerKept) {
  const int first = listen(0), second = listen(1);
  FlightData data(pipes_, answers_, stacks_, {0, 1, 2}, 1000);
  for (const int end : {first, second}) {
    char bytes[16];
    EXPECT_EQ(read(end, bytes, sizeof bytes), 1);
  }
  EXPECT_FALSE(data.step(1001));
  answer(1);
  EXPECT_FALSE(data.step(1002));
  answer(0);
  EXPECT_TRUE(data.step(1003));
  for (const char* name : {"rank-0.flight.json", "rank-1.flight.json"})
    EXPECT_EQ(record::read_text(stacks_ / name), "{\"entries\": []}") << name;
  close(first);
  close(second);
}

TEST_F(FlightDataTest, ARankWithoutAPipeOrThatDoesNotReadIsNotWaitedFor) {
  close(listen(1));  // the process has ended
  FlightData data(pipes_, answers_, stacks_, {0, 1}, 1000);
  EXPECT_TRUE(data.step(1000));
}

TEST_F(FlightDataTest, ASilentMonitorCostsItsTimeAndNoMore) {
  const int end = listen(0);
  FlightData data(pipes_, answers_, stacks_, {0}, 1000);
  EXPECT_FALSE(data.step(1000 + FlightData::kFlightAnswer_ms - 1));
  EXPECT_TRUE(data.step(1000 + FlightData::kFlightAnswer_ms));
  EXPECT_TRUE(fs::is_empty(stacks_));
  close(end);
}

}  // namespace
}  // namespace graphproof::launcher
