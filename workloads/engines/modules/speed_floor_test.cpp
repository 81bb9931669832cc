// Floors train as their engines do, with every launch. The floors of local are tested in
// local_test.cpp, those of pipeline stages in pipeline_test.cpp.
#include <gtest/gtest.h>

#include <vector>

#include "workloads/testing/device_under_test.h"
#include "workloads/testing/refusal.h"
#include "workloads/testing/twin_steps.h"

namespace graphproof::engines::speed_floor_test {
namespace {

using workloads::ModuleKind;

workloads::ModelConfig floor_model() { return {.layers = 2, .microbatches = 2, .dropout = 0.1}; }

struct FloorRow {
  const char* impl;
  std::vector<ModuleKind> modules;
  bool optimizer_graph = false;
};

TEST(SpeedFloor, TrainsAsTheEngineDoesWithTheSameLaunches) {
  for (const FloorRow& row :
       {FloorRow{"transformer_engine", {}}, FloorRow{"transformer_engine", {ModuleKind::attn}},
        FloorRow{"transformer_engine", {ModuleKind::attn, ModuleKind::mlp}},
        FloorRow{"callables", {}}, FloorRow{"callables", {ModuleKind::attn, ModuleKind::mlp}},
        FloorRow{"full_iteration", {}}, FloorRow{"full_iteration", {}, true}}) {
    SCOPED_TRACE(row.impl + std::string(" of ") + std::to_string(row.modules.size()) + " modules");
    TwinSteps twins(floor_model(), {},
                    {.impl = row.impl,
                     .modules = row.modules,
                     .warmup_steps = 1,
                     .optimizer_graph = row.optimizer_graph});
    for (std::int64_t i = 0; i < 3; ++i) EXPECT_EQ(difference(twins.step(i)), "");
    const Counters before = twins.graph->counters();
    const std::size_t calls = twins.witness.calls.size();
    twins.eager->step(twins.batch(3), 0.05);
    twins.graph->floor_step(twins.batch(3), 0.05);
    twins.device().synchronize();
    EXPECT_EQ(difference(fixtures::compare(twins.eager->outputs(), twins.graph->outputs())), "");
    EXPECT_EQ(twins.graph->counters().replays - before.replays, before.launches_per_step);
    if (!row.optimizer_graph) {
      EXPECT_EQ(twins.witness.calls.size(), calls) << "unseen by the observer";
    }
    EXPECT_EQ(difference(twins.step(4)), "") << "the engine continues afterwards";
  }
}

TEST(SpeedFloor, NeedsACaptureAndAnEngineThatHasOne) {
  for (const char* impl : {"transformer_engine", "full_iteration"}) {
    TwinSteps twins(floor_model(), {}, {.impl = impl, .warmup_steps = 1});
    EXPECT_EQ(refusal<std::logic_error>([&] { twins.graph->floor_step(twins.batch(0), 0.1); }),
              std::string(impl) +
                  ": got floor_step() before any capture; want a step() first; why: the floor "
                  "replays its graphs; "
                  "next: run one step");
  }
  TwinSteps twins(floor_model(), {}, {.impl = "manual", .warmup_steps = 1});
  EXPECT_EQ(refusal<std::logic_error>([&] { twins.graph->floor_step(twins.batch(0), 0.1); }),
            "engine: got floor_step() of an engine without a floor; want an engine whose header "
            "describes one; why: the speed bench compares no other engine with its floor; next: "
            "measure step()");
}

TEST(SpeedFloor, AnEngineWithoutItsChecksTrainsTheSame) {
  for (const char* impl : {"local", "transformer_engine", "callables"}) {
    TwinSteps twins(floor_model(), {}, {.impl = impl, .warmup_steps = 1, .checks = false});
    for (std::int64_t i = 0; i < 4; ++i)
      EXPECT_EQ(difference(twins.step(i)), "") << impl << " step " << i;
  }
}

}  // namespace
}  // namespace graphproof::engines::speed_floor_test
