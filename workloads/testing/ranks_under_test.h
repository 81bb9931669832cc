// The ranks of a test program that mpirun started: MPI, and the process groups of one layout after
// another. A program with GRAPHPROOF_TEST_CUDA has ranks on GPUs instead, which send over NCCL and
// meet in the folder of the variable GRAPHPROOF_TEST_STORE. All ranks must issue the same
// collectives, so tests use expectations only, never an early return between two collectives.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "fixtures/comm/process_groups.h"
#include "fixtures/comm/transport/file_world.h"
#include "fixtures/comm/transport/mpi.h"
#include "fixtures/comm/transport/transports.h"
#include "fixtures/process/rank.h"
#include "fixtures/process/store.h"
#include "workloads/config/model_config.h"
#include "workloads/pipeline/pipeline_schedule.h"
#include "workloads/testing/device_under_test.h"

namespace graphproof::engines {

/// The for_each functions call `body` with every layout of one kind, after making its process
/// groups.
class RanksUnderTest : public testing::Environment {
 public:
  // Long enough for a machine with other load. It only elapses if a rank is lost.
  static constexpr comm::Milliseconds kLimit{60'000};

  void SetUp() override {
    const auto rank = fixtures::this_rank();
#ifdef GRAPHPROOF_TEST_CUDA
    fixtures::separate_sharers_for_nccl(rank);
    workloads::device_under_test();
    const char* folder = std::getenv("GRAPHPROOF_TEST_STORE");
    ASSERT_NE(folder, nullptr) << "the ranks have no folder in which they meet";
    const std::filesystem::path store(folder);
    world_ = std::make_unique<comm::FileWorld>(store / "world", rank.world_size, rank.rank);
    store_ = std::make_unique<fixtures::FileStore>(store / "store");
    auto transports = comm::make_transports(*world_, *store_, rank.gpu, kLimit);
#else
    workloads::device_under_test();
    world_ = std::make_unique<comm::MpiWorld>(rank.world_size, rank.rank);
    std::vector<std::unique_ptr<comm::Transport> > transports;
    transports.push_back(world_->cpu_transport());
#endif
    groups_ = std::make_unique<comm::ProcessGroups>(world_->size(), world_->rank(),
                                                    std::move(transports));
    groups_->collective_limit(kLimit);
  }
  void TearDown() override {
    groups_->destroy(kLimit);
    world_->finalize(kLimit);
  }

  /// Every (tp, dp) with tp * dp equal to the size of the world.
  template <class Body>
  void for_each_layout(Body body) {
    for (int tp = 1; tp <= world_->size(); ++tp) {
      if (world_->size() % tp != 0) continue;
      const int dp = world_->size() / tp;
      auto layouts = comm::tensor_data_groups(tp, dp);
      layouts.push_back(comm::amax_group(tp * dp));
      groups_->use(layouts, kLimit);
      SCOPED_TRACE("tp " + std::to_string(tp) + " dp " + std::to_string(dp) + " rank " +
                   std::to_string(rank()));
      body(workloads::Layout{.tp = tp,
                             .dp = dp,
                             .tp_rank = rank() % tp,
                             .dp_rank = rank() / tp,
                             .tp_group = "tp",
                             .dp_group = "dp",
                             .amax_group = "amax"});
    }
  }
  /// Every (pp, tp, dp) of the size of the world with two or more stages of `vpp` chunks each and
  /// with sequence parallelism.
  template <class Body>
  void for_each_pipeline_layout(int vpp, Body body) {
    for (int pp = 2; pp <= world_->size(); ++pp)
      for (int tp = 1; tp * pp <= world_->size(); ++tp) {
        if (world_->size() % (pp * tp) != 0) continue;
        const int dp = world_->size() / (pp * tp);
        auto layouts = comm::tensor_data_groups(tp, dp, pp);
        for (const order::Edge& edge : order::edges(pp, vpp))
          layouts.push_back(comm::edge_group(tp * dp, edge.from, edge.to));
        layouts.push_back(comm::stage_pairs("embd", tp * dp, 0, pp - 1));
        layouts.push_back(comm::stage_group(tp * dp, pp));
        layouts.push_back(comm::amax_group(tp * dp, pp));
        groups_->use(layouts, kLimit);
        SCOPED_TRACE("pp " + std::to_string(pp) + " vpp " + std::to_string(vpp) + " tp " +
                     std::to_string(tp) + " dp " + std::to_string(dp) + " rank " +
                     std::to_string(rank()));
        body(workloads::Layout{.tp = tp,
                               .dp = dp,
                               .tp_rank = rank() % tp,
                               .dp_rank = rank() / tp % dp,
                               .tp_group = "tp",
                               .dp_group = "dp",
                               .sequence_parallel = tp > 1,
                               .pp = pp,
                               .pp_rank = rank() / (tp * dp),
                               .vpp = vpp,
                               .embedding_group = "embd",
                               .amax_group = "amax",
                               .pp_group = "pp"});
      }
  }
  /// Every (pp, dp) of the size of the world with two or more stages of `vpp` chunks each, with ep
  /// = 1 and with ep over all ranks of a stage.
  template <class Body>
  void for_each_expert_pipeline_layout(int vpp, Body body) {
    for (int pp = 2; pp <= world_->size(); ++pp) {
      if (world_->size() % pp != 0) continue;
      const int dp = world_->size() / pp;
      for (const int ep : dp > 1 ? std::vector<int>{1, dp} : std::vector<int>{1}) {
        auto layouts = comm::tensor_data_groups(1, dp, pp);
        for (const order::Edge& edge : order::edges(pp, vpp))
          layouts.push_back(comm::edge_group(dp, edge.from, edge.to));
        for (comm::GroupLayout& layout : comm::expert_groups(world_->size(), ep, pp))
          layouts.push_back(std::move(layout));
        layouts.push_back(comm::amax_group(dp, pp));
        groups_->use(layouts, kLimit);
        SCOPED_TRACE("pp " + std::to_string(pp) + " vpp " + std::to_string(vpp) + " dp " +
                     std::to_string(dp) + " ep " + std::to_string(ep) + " rank " +
                     std::to_string(rank()));
        body(workloads::Layout{.dp = dp,
                               .dp_rank = rank() % dp,
                               .tp_group = "tp",
                               .dp_group = "dp",
                               .ep = ep,
                               .ep_rank = rank() % ep,
                               .ep_group = "ep",
                               .edp_group = "edp",
                               .pp = pp,
                               .pp_rank = rank() / dp,
                               .vpp = vpp,
                               .amax_group = "amax"});
      }
    }
  }
  /// Every (cp, tp, dp) of the size of the world with two or more context parallel ranks and
  /// sequence parallelism, on one stage and on two, with both methods to exchange keys and values.
  /// Experts, if any, are split over all ranks of a stage.
  template <class Body>
  void for_each_context_parallel_layout(Body body) {
    const int world = world_->size();
    for (int cp = 2; cp <= world; ++cp)
      for (int tp = 1; tp * cp <= world; ++tp)
        for (const int pp : {1, 2}) {
          if (world % (cp * tp * pp) != 0) continue;
          const int dp = world / (cp * tp * pp), stage = world / pp;
          auto layouts = comm::tensor_data_groups(tp, dp, pp, cp);
          for (comm::GroupLayout& layout : comm::context_groups(tp, cp, dp, pp))
            layouts.push_back(std::move(layout));
          for (comm::GroupLayout& layout : comm::expert_groups(world, stage, pp))
            layouts.push_back(std::move(layout));
          for (const order::Edge& edge : order::edges(pp, 1))
            layouts.push_back(comm::edge_group(stage, edge.from, edge.to));
          layouts.push_back(comm::amax_group(stage, pp));
          groups_->use(layouts, kLimit);
          for (const auto& [type, word] :
               {std::pair{workloads::CpCommType::p2p, "p2p"},
                std::pair{workloads::CpCommType::all_gather, "all_gather"}}) {
            const std::string trace = "cp " + std::to_string(cp) + " tp " + std::to_string(tp) +
                                      " dp " + std::to_string(dp) + " pp " + std::to_string(pp) +
                                      " " + word;
            SCOPED_TRACE(trace + " rank " + std::to_string(rank()));
            body(workloads::Layout{.tp = tp,
                                   .dp = dp,
                                   .tp_rank = rank() % tp,
                                   .dp_rank = rank() / (tp * cp) % dp,
                                   .tp_group = "tp",
                                   .dp_group = "dp",
                                   .ep = stage,
                                   .ep_rank = rank() % stage,
                                   .ep_group = "ep",
                                   .edp_group = "edp",
                                   .sequence_parallel = tp > 1,
                                   .cp = cp,
                                   .cp_rank = rank() / tp % cp,
                                   .cp_group = "cp",
                                   .dp_cp_group = "dp_cp",
                                   .cp_comm_type = type,
                                   .pp = pp,
                                   .pp_rank = rank() / stage,
                                   .amax_group = "amax"},
                 trace);
          }
        }
  }
  /// Every (tp, dp) with sequence parallelism.
  template <class Body>
  void for_each_sequence_parallel_layout(Body body) {
    for_each_layout([&](workloads::Layout layout) {
      layout.sequence_parallel = true;
      if (layout.tp > 1) body(layout);
    });
  }
  /// Every ep that divides the size of the world, with all ranks data parallel.
  template <class Body>
  void for_each_expert_layout(Body body) {
    const int dp = world_->size();
    for (int ep = 1; ep <= dp; ++ep) {
      if (dp % ep != 0) continue;
      auto layouts = comm::tensor_data_groups(1, dp);
      for (comm::GroupLayout& layout : comm::expert_groups(dp, ep))
        layouts.push_back(std::move(layout));
      layouts.push_back(comm::amax_group(dp));
      groups_->use(layouts, kLimit);
      SCOPED_TRACE("dp " + std::to_string(dp) + " ep " + std::to_string(ep) + " rank " +
                   std::to_string(rank()));
      body(workloads::Layout{.dp = dp,
                             .dp_rank = rank(),
                             .tp_group = "tp",
                             .dp_group = "dp",
                             .ep = ep,
                             .ep_rank = rank() % ep,
                             .ep_group = "ep",
                             .edp_group = "edp",
                             .amax_group = "amax"});
    }
  }
  /// Every (tp, cp, dp) of the size of the world with every possible (ep, etp), tp, cp, ep and etp
  /// at most two, with sequence parallelism; without the layouts of for_each_expert_layout.
  template <class Body>
  void for_each_split_expert_layout(Body body) {
    const int world = world_->size();
    for (int tp = 1; tp <= 2; ++tp)
      for (int cp = 1; cp <= 2; ++cp)
        for (int ep = 1; ep <= 2; ++ep)
          for (int etp = 1; etp <= 2; ++etp) {
            if (world % (tp * cp) != 0 || world % (ep * etp) != 0 || tp * cp * etp == 1) continue;
            const int dp = world / (tp * cp);
            auto layouts = comm::tensor_data_groups(tp, dp, 1, cp);
            for (comm::GroupLayout& layout : comm::context_groups(tp, cp, dp, 1))
              layouts.push_back(std::move(layout));
            for (comm::GroupLayout& layout : comm::expert_groups(world, ep, 1, etp))
              layouts.push_back(std::move(layout));
            layouts.push_back(comm::amax_group(world));
            groups_->use(layouts, kLimit);
            const std::string trace = "tp " + std::to_string(tp) + " cp " + std::to_string(cp) +
                                      " dp " + std::to_string(dp) + " ep " + std::to_string(ep) +
                                      " etp " + std::to_string(etp);
            SCOPED_TRACE(trace + " rank " + std::to_string(rank()));
            body(workloads::Layout{.tp = tp,
                                   .dp = dp,
                                   .tp_rank = rank() % tp,
                                   .dp_rank = rank() / (tp * cp),
                                   .tp_group = "tp",
                                   .dp_group = "dp",
                                   .ep = ep,
                                   .ep_rank = rank() / etp % ep,
                                   .ep_group = "ep",
                                   .edp_group = "edp",
                                   .etp = etp,
                                   .etp_rank = rank() % etp,
                                   .etp_group = "etp",
                                   .sequence_parallel = tp > 1,
                                   .cp = cp,
                                   .cp_rank = rank() / tp % cp,
                                   .cp_group = "cp",
                                   .dp_cp_group = "dp_cp",
                                   .amax_group = "amax"},
                 trace);
          }
  }
  int rank() const { return world_->rank(); }
  comm::World& world() { return *world_; }
  comm::ProcessGroups& groups() { return *groups_; }

 private:
  std::unique_ptr<comm::World> world_;
  std::unique_ptr<fixtures::FileStore> store_;
  std::unique_ptr<comm::ProcessGroups> groups_;
};

/// The ranks of this program. GoogleTest owns them.
inline RanksUnderTest* const ranks =
    static_cast<RanksUnderTest*>(testing::AddGlobalTestEnvironment(new RanksUnderTest));

}  // namespace graphproof::engines
