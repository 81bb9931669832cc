// What is taken from NCCL's answer about a command that hangs. The text is that of NCCL 2.28
// (src/ras/client_support.cc), shortened.
#include "launcher/watch/nccl_question.h"

#include <gtest/gtest.h>

#include "reports/record/testing/scratch_folder.h"
#include "reports/record/text/file.h"

namespace graphproof::launcher {
namespace {

constexpr const char* kBehind = R"(NCCL version 2.28.9 compiled with CUDA 13.0
CUDA runtime version 13000, driver version 13000

Job summary
===========

  Nodes  Processes         GPUs  Processes     GPUs
(total)   per node  per process    (total)  (total)
      1          2            1          2        2

Communicators... (0.00s)
=============

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    0         1         1         2         2         2   RUNNING  MISMATCH

Errors
======

Warnings
========

#0-0 (27a079b828ff1a75) MISMATCH
  Communicator ranks have different collective operation counts
  1 rank has launched up to operation 41
  1 rank has launched up to operation 40
  Rank 1 -- GPU 1 managed by process 4712 on node 10.0.0.1

)";

TEST(NcclQuestion, FindingsAreTheErrorsAndWarnings) {
  const std::vector<std::string> findings = ras_findings(kBehind);
  ASSERT_EQ(findings.size(), 5u);
  EXPECT_EQ(findings[0], "#0-0 (27a079b828ff1a75) MISMATCH");
  EXPECT_EQ(findings[4], "  Rank 1 -- GPU 1 managed by process 4712 on node 10.0.0.1");
}

TEST(NcclQuestion, AnAnswerWithoutErrorsAndATextThatIsNoneSaySo) {
  std::string sound = kBehind;
  sound.resize(sound.find("#0-0"));
  EXPECT_EQ(ras_findings(sound),
            std::vector<std::string>{"NCCL's RAS service reports no error and no warning"});
  EXPECT_EQ(ras_findings("NCCL's RAS service does not answer: Connection refused\n"),
            std::vector<std::string>{"NCCL's RAS service does not answer: Connection refused"});
  EXPECT_EQ(ras_findings(""), std::vector<std::string>{"NCCL's RAS service sent nothing"});
  std::string many = kBehind;
  for (int i = 0; i < 1000; ++i) many += "  Rank 9 -- GPU 1\n";
  EXPECT_EQ(ras_findings(many).size(), 41u);
  EXPECT_EQ(ras_findings(many).back(), "... and more");
}

TEST(NcclQuestion, TheUsersSettingsSayWhomToAsk) {
  EXPECT_EQ(watched_ras_address({}), "localhost:28028");
  EXPECT_EQ(watched_ras_address({{"NCCL_RAS_ADDR", "127.0.0.1:9"}}), "127.0.0.1:9");
  EXPECT_EQ(watched_ras_address({{"NCCL_RAS_ENABLE", "0"}}), std::nullopt);
  const std::string own = own_ras_address();
  EXPECT_TRUE(own.starts_with("127.0.0.1:")) << own;
  EXPECT_NE(own, "127.0.0.1:0");
}

TEST(NcclQuestion, WithoutNcclAServiceThatDoesNotAnswerIsNoFinding) {
  const record::ScratchFolder folder;
  const Environment nobody = {{"NCCL_RAS_ADDR", "127.0.0.1:1"}};
  EXPECT_EQ(ask_nccl(nobody, folder.path() / "answer", false), std::nullopt);
  const auto refused = ask_nccl(nobody, folder.path() / "answer", true);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->front(), "NCCL's RAS service does not answer: Connection refused");
  EXPECT_EQ(ask_nccl({{"NCCL_RAS_ENABLE", "0"}}, folder.path() / "answer", true)->front(),
            "NCCL's RAS service was not asked: NCCL_RAS_ENABLE=0");
}

}  // namespace
}  // namespace graphproof::launcher
