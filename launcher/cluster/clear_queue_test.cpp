#include "launcher/cluster/clear_queue.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "reports/record/testing/scratch_folder.h"
#include "reports/record/text/file.h"

namespace graphproof::cluster {
namespace {

const launcher::Environment kEnvironment = {{"PATH", "/usr/bin:/bin"}};

TEST(ClearQueueTest, AControllerThatIsAwayIsAskedAgainUntilItAnswers) {
  const record::ScratchFolder scratch;
  const std::string asked = scratch.path() / "asked";
  const launcher::Command third_time_lucky{
      {"sh", "-c", "echo x >>\"$0\"; test $(wc -l <\"$0\") -ge 3", asked}, kEnvironment};
  EXPECT_EQ(clear_queue(third_time_lucky, 20000), "");
  EXPECT_EQ(record::read_text(asked), "x\nx\nx\n");
}

TEST(ClearQueueTest, AControllerThatStaysAwayIsReportedWithWhatToDo) {
  constexpr std::int64_t kBusyShell_ms = 2000;  // a shell on a busy machine may be slow to answer
  EXPECT_EQ(
      clear_queue({{"sh", "-c", "echo no controller >&2; exit 1"}, kEnvironment}, kBusyShell_ms),
      "jobs of this run may be left in the queue until their time limit (no controller): run `sh "
      "-c echo no controller >&2; exit 1`, "
      "or graphproof resume");
  EXPECT_NE(clear_queue({{"/nonexistent/scancel"}, kEnvironment}, 1)
                .find("can't start '/nonexistent/scancel'"),
            std::string::npos);
}

}  // namespace
}  // namespace graphproof::cluster
