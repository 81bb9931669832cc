#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

using nlohmann::json;

TEST(OneLibnccl, Rows) {
  judge_rows("D28.one_libnccl", {{"impl", "none"}, {"tp", 2}},
             {
                 {.name = "two are mapped",
                  .change = with_setting(1, "effective", "libnccl_mapped", 2),
                  .rank = 1,
                  .mentions = {"rank 1", "2 libnccl mapped"}},
                 {.name = "none is mapped",
                  .change = with_setting(1, "effective", "libnccl_mapped", 0),
                  .rank = 1,
                  .mentions = {"0 libnccl mapped"}},
                 {.name = "another version",
                  .change = with_setting(0, "effective", "nccl_loaded", "2.27.5"),
                  .rank = 0,
                  .mentions = {"loaded 2.27.5, compiled against 2.28.9"}},
                 {.name = "versions unknown",
                  .change =
                      [](Attempt& a) {
                        with_setting(0, "effective", "nccl_loaded", nullptr)(a);
                        with_setting(0, "effective", "nccl_compiled", nullptr)(a);
                      },
                  .rank = 0,
                  .mentions = {"loaded unknown"}},
                 {.name = "both none",
                  .change =
                      [](Attempt& a) {
                        with_setting(0, "effective", "nccl_loaded", "none")(a);
                        with_setting(0, "effective", "nccl_compiled", "none")(a);
                      },
                  .rank = 0,
                  .mentions = {"loaded none"}},
                 {.name = "absent",
                  .change = [](Attempt& a) { erase(a, {.rank = 0, .kind = "config"}); },
                  .rank = 0,
                  .mentions = {"`config` line"},
                  .also = {"D28.effective_config"}},
             },
             "cuda");
}

TEST(OneLibnccl, ACountAsTextIsTheSame) {
  EXPECT_EQ(judge_one("D28.one_libnccl", json::object(),
                      with_setting(0, "effective", "libnccl_mapped", "1"), "cuda")
                .result,
            record::Result::pass);
}

TEST(OneLibnccl, IsUnexercisedOnTheSimulatedDevice) {
  const record::CheckResult result = judge_one("D28.one_libnccl", json::object(), [](Attempt&) {});
  EXPECT_EQ(result.result, record::Result::unexercised);
  EXPECT_EQ(result.message.got, "device sim loads no libnccl");
}

}  // namespace
}  // namespace graphproof::checks
