#include "suites/checks/collectives/nccl_log.h"

#include <gtest/gtest.h>

namespace graphproof::checks {
namespace {

using Words = std::set<std::string>;

// Shortened from NCCL 2.28.9 with NCCL_DEBUG=INFO and the subsystems ENV, REG, COLL and TUNING.
constexpr const char* kRegistered =
    "graphproof: rank ready\n"
    "node1:4710:4710 [0] NCCL INFO NCCL_GRAPH_REGISTER set by environment to 1.\n"
    "node1:4710:4710 [0] NCCL INFO AllGather: opCount 5 sendbuff 0x7f2a10000000 recvbuff "
    "0x7f2a40000000 count 4194304 datatype 1 op 0 root 0 comm 0x5581 [nranks=4] stream 0x5591\n"
    "node1:4710:4710 [0] NCCL INFO AllGather: 16777216 Bytes -> Algo RING proto SIMPLE "
    "channel{Lo..Hi}={0..23}\n"
    "node1:4710:4710 [0] NCCL INFO rank 0 - IPC registering buffer 0x7f2a40000000 size 20971520 "
    "(baseAddr 0x7f2a40000000 size 20971520) to peer 1\n"
    "node1:4711:4722 [1] NCCL INFO Proxy rank 1 register success regAddr 0x7f2b00000000 size "
    "20971520 offset 0 legacyIpcCap 0 sameProcess 0\n"
    "node1:4710:4710 [0] NCCL INFO rank 0 - IPC register buffer 0x7f2a40000000 size 16777216 "
    "(baseAddr 0x7f2a40000000 size 20971520) to peer 1 regAddr 0x7f2b00000000 offsetOut 0\n"
    "node1:4710:4710 [0] NCCL INFO rank 0 - IPC reuse buffer 0x7f2a40000000 size 16777216 "
    "(baseAddr 0x7f2a40000000 size 20971520) to peer 3 regAddr 0x7f2b00000000\n";

TEST(NcclLog, ABufferCountsOnceHoweverManyPeersItIsRegisteredWith) {
  const NcclLog log = read_nccl_log(kRegistered);
  EXPECT_EQ(log.registered, Words{"0x7f2a40000000"});
  EXPECT_EQ(log.refused, Words{});
  EXPECT_EQ(log.protocols, Words{"RING SIMPLE"});
  EXPECT_EQ(log.collectives, 1);
  EXPECT_EQ(log.info_lines, 7);
}

TEST(NcclLog, EachWayOfRegisteringAndOfFailingIsKnown) {
  struct Row {
    const char* line;
    Words registered, refused;
  };
  const Row rows[] = {
      {"h:1:1 [0] NCCL INFO rank 2 - NET register userbuff 0x71 (handle 0x72), buffSize 64",
       {"0x71"},
       {}},
      {"h:1:1 [0] NCCL INFO rank 2 - COLLNET reuse register userbuff 0x73 (handle 0x72), buffSize "
       "64, type recv",
       {"0x73"},
       {}},
      {"h:1:1 [0] NCCL INFO rank 2 successfully registered NVLS sendbuff 0x74, recvbuff 0x75, "
       "sendbuff size 64",
       {"0x74"},
       {}},
      {"h:1:1 [0] NCCL INFO rank 2 reuse registered NVLS sendbuff 0x76, recvbuff 0x77",
       {"0x76"},
       {}},
      {"h:1:1 [0] NCCL INFO rank 2 failed to IPC register userbuff 0x78 buffSize 64 nPeers 2 "
       "isLegacyIpc 0 type recv",
       {},
       {"0x78"}},
      {"h:1:1 [0] NCCL INFO rank 2 failed to NVLS register sendbuff 0x79 sendbuffSize 64 recvbuff "
       "0x7a recvbuffSize 64",
       {},
       {"0x79"}},
      {"h:1:1 [0] NCCL INFO Skipping graph registration for buffer 0x7b size 64 (P2pUsesMemcpy=1)",
       {},
       {"0x7b"}},
      // Announcements and ends of registrations, and what other versions may print.
      {"h:1:1 [0] NCCL INFO rank 2 - IPC registering buffer 0x7c size 64 (baseAddr 0x7c size 64) "
       "to peer 1",
       {},
       {}},
      {"h:1:1 [0] NCCL INFO rank 2 - IPC deregistered buffer 0x7d peer 1 ipc remote buffer 0x7e",
       {},
       {}},
      {"h:1:1 [0] NCCL INFO register comm 0x5581 buffer 0x7f size 64", {}, {}},
      {"h:1:1 [0] NCCL INFO rank 2 - IPC register buffer", {}, {}},
      {"h:1:1 [0] NCCL INFO rank 2 - IPC register buffer at the place of an address", {}, {}},
      {"h:1:1 [0] NCCL INFO a line of a later version", {}, {}},
      {"a line of another library: IPC register buffer 0x80", {}, {}},
  };
  for (const Row& row : rows) {
    const NcclLog log = read_nccl_log(row.line);
    EXPECT_EQ(log.registered, row.registered) << row.line;
    EXPECT_EQ(log.refused, row.refused) << row.line;
  }
}

TEST(NcclLog, TheFormOfTwoDotTwentyNineIsRead) {
  const NcclLog log = read_nccl_log(
      "h:1:1 [0] NCCL INFO rank 0 - IPC register buffer 0x90 size 64 (baseAddr 0x90 totalSize 64 "
      "numSegments 2) to peer 1 regAddr 0x91 offsetOut 0");
  EXPECT_EQ(log.registered, Words{"0x90"});
}

TEST(NcclLog, ALogCutAnywhereIsRead) {
  const std::string whole = kRegistered;
  for (std::size_t length = 0; length <= whole.size(); ++length) {
    const NcclLog log = read_nccl_log(std::string_view(whole).substr(0, length));
    EXPECT_LE(log.registered.size(), 1u) << length;
    EXPECT_LE(log.info_lines, 7) << length;
  }
}

TEST(NcclLog, WithoutNcclThereIsNothing) {
  const NcclLog log = read_nccl_log("graphproof: rank ready\n");
  EXPECT_EQ(log.info_lines, 0);
  EXPECT_TRUE(log.registered.empty());
}

}  // namespace
}  // namespace graphproof::checks
