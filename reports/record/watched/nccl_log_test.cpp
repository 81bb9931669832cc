#include "reports/record/watched/nccl_log.h"

#include <gtest/gtest.h>

namespace graphproof::record {
namespace {

TEST(NcclLogTest, RegistrationsAreCountedByWhatTheyAreFor) {
  const NcclRegistrationLine found = registrations_in(
      "node-1:1:1 [0] NCCL INFO register comm 0x1 buffer 0x2 size 4096\n"
      "node-1:1:1 [0] NCCL INFO rank 0 - IPC register buffer 0x2 size 4096 (baseAddr ...\n"
      "node-1:1:1 [0] NCCL INFO rank 0 successfully registered NVLS sendbuff 0x2, ...\n"
      "node-1:1:1 [0] NCCL INFO rank 0 reuse registered NVLS sendbuff 0x2, recvbuff 0x3\n"
      "node-1:1:1 [0] NCCL INFO rank 0 - NET register userbuff 0x2 (handle 0x9), buffSize 4096\n"
      "node-1:1:1 [0] NCCL INFO rank 0 failed to NET register userbuff 0x2 buffSize 64 GDR flag 0\n"
      "node-1:1:1 [0] NCCL INFO Skipping graph registration for buffer 0x2 size 64\n"
      "node-1:1:1 [0] NCCL INFO rank 0 - IPC deregistered buffer 0x2 peer 1\n"
      "node-1:1:1 [0] NCCL INFO something else",
      "nccl.node-1.1");
  EXPECT_EQ(found.file, "nccl.node-1.1");
  EXPECT_EQ(found.registered, 1);
  EXPECT_EQ(found.ipc, 1);
  EXPECT_EQ(found.nvls, 2);
  EXPECT_EQ(found.network, 1);
  EXPECT_EQ(found.graph_skipped, 1);
  EXPECT_EQ(found.notes.size(), 2u);
}

TEST(NcclLogTest, ALogWithoutRegistrationsHasNone) {
  EXPECT_EQ(registrations_in("", "x").registered, 0);
}

}  // namespace
}  // namespace graphproof::record
