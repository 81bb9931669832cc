#include "suites/checks/watched/job/watched_job.h"

#include <gtest/gtest.h>

#include "suites/checks/watched/job/stack_facts.h"
#include "suites/checks/watched/testing/clean_job.h"

namespace graphproof::checks::watched {
namespace {

TEST(WatchedJobTest, TheLineOfTheProgramIsNoLineOfALibrary) {
  EXPECT_EQ(program_line({"/opt/site-packages/torch/cuda/graphs.py:115 capture_begin",
                          "<frozen abc: graphproof probe>:208 wrapped",
                          "/usr/lib/python3.12/contextlib.py:81 inner",
                          "/opt/site-packages/megatron/core/full_cuda_graph.py:90 __call__",
                          "/data/train.py:41 main"}),
            "/opt/site-packages/megatron/core/full_cuda_graph.py:90 __call__");
  EXPECT_EQ(program_line({"/usr/lib/python3.12/threading.py:1 run"}),
            "/usr/lib/python3.12/threading.py:1 run");
  EXPECT_EQ(program_line({}), "");
}

TEST(WatchedJobTest, OfSeveralProcessesOfARankTheBusiestCounts) {
  WatchedJob job = clean_job();
  JobProcess worker = job.processes[1];
  worker.name = "worker";
  worker.evidence.lines<record::WatchedProcessLine>().front().threads.clear();
  job.processes.insert(job.processes.begin(), worker);
  ASSERT_EQ(ranks(job).size(), 2u);
  EXPECT_EQ(ranks(job)[1]->name, "node-1.4712");
}

TEST(WatchedJobTest, ExecutablesAreJoinedWithTheirLines) {
  const WatchedJob job = clean_job();
  const std::vector<Executable> all = executables(job.processes[0]);
  ASSERT_EQ(all.size(), 8u);
  EXPECT_EQ(all[0].title(), "graph 1, captured at /data/train.py:41 step");
  EXPECT_TRUE(all[0].communicates());
  EXPECT_FALSE(all[1].communicates());
  EXPECT_EQ(all[1].kernels(), 18);
  const Executable* first = launched_with(job.processes[0], all, 1);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->number(), 1);
}

TEST(WatchedJobTest, ACaptureForAnUpdateIsLaunchedWithTheGraphThatWasUpdated) {
  WatchedJob job = clean_job();
  const std::vector<Executable> all = executables(job.processes[0]);
  const Executable* updated = launched_with(job.processes[0], all, 77);
  ASSERT_NE(updated, nullptr);
  EXPECT_EQ(updated->number(), 2);
  lines<record::GraphUpdateLine>(job, 0)[0].launches = 100;
  EXPECT_EQ(launched_with(job.processes[0], all, 77), nullptr) << "not launched since";
  lines<record::GraphUpdateLine>(job, 0).clear();
  EXPECT_EQ(launched_with(job.processes[0], all, 77), nullptr) << "a capture that was dropped";
}

TEST(WatchedJobTest, WhatCouldNotBeReadOfAGraphIsNamed) {
  WatchedJob job = clean_job();
  EXPECT_EQ(executables(job.processes[0])[0].operands_unread(), "");
  auto& graph = lines<record::WatchedGraphLine>(job, 0)[0];
  graph.without_layout = 3;
  EXPECT_EQ(executables(job.processes[0])[0].nodes_unread(), "");
  EXPECT_EQ(executables(job.processes[0])[0].operands_unread(),
            "of graph 1, captured at /data/train.py:41 step, the parameters of 3 of 18 kernels "
            "cannot be read");
  graph.failure = "cuGraphGetNodes";
  EXPECT_EQ(executables(job.processes[0])[0].operands_unread(),
            "the nodes of graph 1, captured at /data/train.py:41 step, were not read whole: "
            "cuGraphGetNodes");
}

TEST(WatchedJobTest, VersionsOfLibrariesAreDotted) {
  const WatchedJob job = clean_job();
  EXPECT_EQ(version_of("libnccl", job.processes[0]), matrix::parse_version("2.30.7"));
  EXPECT_EQ(version_of("libcublasLt", job.processes[0]), matrix::parse_version("13.8.0"));
  EXPECT_EQ(version_of("driver", job.processes[0]), matrix::parse_version("13.0"));
  EXPECT_EQ(version_of("torch", job.processes[0]), matrix::parse_version("2.11.0"));
  EXPECT_EQ(version_of("megatron.core", job.processes[0]), matrix::parse_version("0.19.2"));
  EXPECT_FALSE(version_of("libcudnn", job.processes[0]));
}

}  // namespace
}  // namespace graphproof::checks::watched
