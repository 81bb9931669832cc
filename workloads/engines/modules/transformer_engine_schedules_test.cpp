// The sentences about schedules in the contracts of transformer_engine.h and part_chain.h: modules
// of the test, in pipeline orders that the reference model does not have on one rank.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "workloads/engines/modules/transformer_engine.h"
#include "workloads/faults/plant.h"
#include "workloads/testing/refusal.h"
#include "workloads/testing/twin_steps.h"

namespace graphproof::engines::transformer_engine_schedules_test {
namespace {

using workloads::ModuleKind;
using Tensors = std::vector<at::Tensor>;

/// Observes only graphs, because the schedules here do not change the tensors of the reference
/// model.
struct GraphWitness : Witness {
  using Witness::Witness;
  void before_step(const std::vector<NamedTensor>&, const std::vector<NamedTensor>&) override {}
  void after_step(const std::vector<NamedTensor>&) override {}
};

/// Layers y = w x^2, each with its own weight and one that is not used, run in the order of a
/// pipeline stage.
struct Bench {
  Bench(const order::Stage& stage, std::vector<std::vector<std::int64_t>> layers_of_chunk,
        std::int64_t warmup_steps = 1, fixtures::Fault fault = fixtures::Fault::none)
      : device(workloads::device_under_test()),
        stream(device.stream_from_pool()),
        guard(stream),
        schedule{stage, std::move(layers_of_chunk)},
        step(model(stage), {}, device, 1, faults::plant(fault)),
        witness(device),
        engine({.impl = "transformer_engine", .warmup_steps = warmup_steps}, device, stream, step,
               &witness, schedule, transformer_engine_policy()),
        options(at::TensorOptions().device(device.torch_device())) {
    for (const auto& layers : schedule.layers)
      for (const std::int64_t layer : layers) {
        parameters.resize(std::max(parameters.size(), static_cast<std::size_t>(layer) + 1));
        parameters[static_cast<std::size_t>(layer)] = {weight(), weight()};
      }
  }
  static workloads::ModelConfig model(const order::Stage& stage) {
    workloads::ModelConfig config;
    config.microbatches = stage.microbatches;
    return config;
  }
  at::Tensor weight() const {
    at::Tensor made = at::full({4}, 0.5, options).requires_grad_(true);
    made.mutable_grad() = at::zeros({4}, options);
    return made;
  }
  at::Tensor input(double value) const {
    return at::full({3, 4}, value, options).requires_grad_(true);
  }
  static std::vector<float> filled(std::size_t size, double value) {
    return std::vector<float>(size, static_cast<float>(value));
  }

  at::Tensor call(std::int64_t layer, std::int64_t microbatch, const at::Tensor& x) {
    const Tensors& own = parameters[static_cast<std::size_t>(layer)];
    return engine.run({ModuleKind::layer, layer, microbatch}, {x}, own,
                      [w = own[0]](const Tensors& in) { return Tensors{in[0] * w * in[0]}; })[0];
  }
  /// Runs the forwards and backwards of the stage in its order. The input of microbatch m of every
  /// chunk is `first` + m. Returns the gradients of the inputs in the order of the backwards.
  std::vector<float> run(double first) {
    std::vector<float> gradients;
    engine.run_step([&] {
      gradients.clear();
      const auto order = order::chunk_order(schedule.stage);
      std::vector<std::size_t> forwards(schedule.layers.size()), backwards(schedule.layers.size());
      std::vector<std::vector<Tensors>> passes(schedule.layers.size());
      for (const double entry : order) {
        const auto chunk = static_cast<std::size_t>(std::abs(entry)) - 1;
        if (entry > 0) {
          const auto m = static_cast<std::int64_t>(forwards[chunk]++);
          const at::Tensor x = input(first + static_cast<double>(m));
          at::Tensor y = x;
          for (const std::int64_t layer : schedule.layers[chunk]) y = call(layer, m, y);
          passes[chunk].push_back({x, y});
        } else {
          const Tensors& pass = passes[chunk].at(backwards[chunk]++);
          torch::autograd::backward({pass[1].sum()});
          gradients.push_back(workloads::on_host(pass[0].grad())[0]);
        }
      }
    });
    return gradients;
  }
  /// d/dx of `layers` layers from `x`.
  static double slope(double x, std::size_t layers) {
    double slope = 1;
    for (std::size_t l = 0; l < layers; ++l) {
      slope *= x;
      x = 0.5 * x * x;
    }
    return slope;
  }
  std::vector<float> expected(double first) const {
    std::vector<std::size_t> backwards(schedule.layers.size());
    std::vector<float> gradients;
    for (const double entry : order::chunk_order(schedule.stage)) {
      if (entry > 0) continue;
      const auto chunk = static_cast<std::size_t>(-entry) - 1;
      gradients.push_back(static_cast<float>(
          slope(first + static_cast<double>(backwards[chunk]++), schedule.layers[chunk].size())));
    }
    return gradients;
  }

  capture::Device& device;
  c10::Stream stream;
  c10::StreamGuard guard;
  CapturedSchedule schedule;
  workloads::TrainStep step;
  GraphWitness witness;
  AheadOfTime engine;
  at::TensorOptions options;
  std::vector<Tensors> parameters;
};

struct Row {
  const char* name;
  order::Stage stage;
  std::vector<std::vector<std::int64_t>> layers;
};
const std::vector<Row> kStages{
    {"one stage, four microbatches of their own", {.microbatches = 4}, {{0, 1}}},
    {"first of two stages", {.pp = 2, .rank = 0, .microbatches = 4}, {{0, 1}}},
    {"last of two stages", {.pp = 2, .rank = 1, .microbatches = 4}, {{2, 3}}},
    {"first of four stages", {.pp = 4, .rank = 0, .microbatches = 6}, {{0}}},
    {"two chunks", {.pp = 2, .rank = 0, .chunks = 2, .microbatches = 4}, {{0, 1}, {4, 5}}},
    {"uneven chunks, odd microbatches",
     {.pp = 2, .rank = 1, .chunks = 2, .microbatches = 5, .group = 3},
     {{2}, {6, 7}}},
    {"a chunk without layers", {.pp = 2, .rank = 0, .chunks = 2, .microbatches = 2}, {{}, {3}}}};

TEST(TransformerEngineSchedules, EveryStageReplaysItsOrderWithGraphsOfItsOwnForEachMicrobatch) {
  for (const Row& row : kStages)
    for (const std::int64_t warmup_steps : {0, 1}) {
      SCOPED_TRACE(row.name);
      Bench bench(row.stage, row.layers, warmup_steps);
      for (const double first : {1.0, 2.0, 1.5, 1.0})
        EXPECT_EQ(bench.run(first), bench.expected(first)) << first;
      std::int64_t layers = 0;
      for (const auto& chunk : row.layers) layers += static_cast<std::int64_t>(chunk.size());
      const Counters counters = bench.engine.counters();
      EXPECT_EQ(counters.graphs, 2 * layers * row.stage.microbatches);
      EXPECT_EQ(counters.launches_per_step, counters.graphs);
      EXPECT_EQ(counters.replays, (4 - warmup_steps) * counters.launches_per_step);
      EXPECT_EQ(counters.out_of_order, 0);
      EXPECT_EQ(bench.witness.canaries, 0);
      EXPECT_TRUE(bench.witness.moved_tensors.empty());
    }
}

TEST(TransformerEngineSchedules, CapturesFollowTheOrderOfTheStage) {
  Bench bench({.pp = 2, .rank = 0, .microbatches = 2}, {{0, 1}});
  bench.run(1);
  bench.run(1);
  std::vector<std::string> order;
  for (const CaptureReport& report : bench.witness.reports) order.push_back(report.graph);
  EXPECT_EQ(order,
            (std::vector<std::string>{"layers.0.layer.forward", "layers.1.layer.forward",
                                      "layers.0.layer.1.forward", "layers.1.layer.1.forward",
                                      "layers.1.layer.backward", "layers.0.layer.backward",
                                      "layers.1.layer.1.backward", "layers.0.layer.1.backward"}));
}

TEST(TransformerEngineSchedules, SlotsShareTheStaticInputsThatThePlanGivesThem) {
  const order::Stage stage{.pp = 2, .rank = 0, .microbatches = 4};
  Bench bench(stage, {{0, 1}});
  bench.run(1);
  bench.run(1);
  const auto buffers = order::input_buffers(order::chunk_order(stage), {2}, 4);
  const auto address = [&](std::size_t slot) {
    const std::string microbatch = slot / 2 == 0 ? "" : "." + std::to_string(slot / 2);
    return bench.witness.first_address
        .at("layers." + std::to_string(slot % 2) + ".layer" + microbatch + ".forward")
        .at("input.0");
  };
  for (std::size_t a = 0; a < buffers.size(); ++a)
    for (std::size_t b = 0; b < buffers.size(); ++b)
      EXPECT_EQ(address(a) == address(b), buffers[a] == buffers[b])
          << "slots " << a << " and " << b;
}

TEST(TransformerEngineSchedules, ReportsNameTheStaticInputsOfTheirSlots) {
  // Two of four microbatches are in use at one time, in each of two layers.
  for (const auto& [fault, different] : std::vector<std::pair<fixtures::Fault, std::size_t>>{
           {fixtures::Fault::none, 4}, {fixtures::Fault::static_inputs_not_shared, 8}}) {
    Bench bench({.pp = 2, .rank = 0, .microbatches = 4}, {{0, 1}}, 1, fault);
    for (const double first : {1.0, 2.0, 1.5})
      EXPECT_EQ(bench.run(first), bench.expected(first)) << fault;
    std::set<std::uint64_t> addresses;
    std::size_t forwards = 0;
    for (const CaptureReport& report : bench.witness.reports) {
      if (!report.graph.ends_with(".forward")) {
        EXPECT_TRUE(report.owned_inputs.empty()) << report.graph;
        continue;
      }
      ++forwards;
      ASSERT_EQ(report.owned_inputs.size(), 1u) << report.graph;
      EXPECT_EQ(report.owned_inputs[0], bench.witness.first_address.at(report.graph).at("input.0"))
          << report.graph;
      addresses.insert(report.owned_inputs[0]);
    }
    EXPECT_EQ(forwards, 8u);
    EXPECT_EQ(addresses.size(), different) << fault;
  }
}

TEST(TransformerEngineSchedules, OnlyConnectedParametersTakePartAndTheirHooksRun) {
  struct Hook : torch::autograd::FunctionPostHook {
    explicit Hook(int& calls) : calls(calls) {}
    torch::autograd::variable_list operator()(const torch::autograd::variable_list& outputs,
                                              const torch::autograd::variable_list&) override {
      ++calls;
      return outputs;
    }
    int& calls;
  };
  Bench bench({.microbatches = 1}, {{0}});
  int used = 0, unused = 0;
  const auto first = torch::autograd::impl::grad_accumulator(bench.parameters[0][0]);
  const auto second = torch::autograd::impl::grad_accumulator(bench.parameters[0][1]);
  first->add_post_hook(std::make_unique<Hook>(used));
  second->add_post_hook(std::make_unique<Hook>(unused));
  bench.parameters[0][1].mutable_grad().fill_(7);
  for (int i = 0; i < 3; ++i) bench.run(2);
  EXPECT_EQ(used, 3);
  EXPECT_EQ(unused, 0);
  EXPECT_EQ(workloads::on_host(bench.parameters[0][1].grad()), Bench::filled(4, 7));
  EXPECT_EQ(workloads::on_host(bench.parameters[0][0].grad()), Bench::filled(4, 3 * 3 * 4))
      << "three steps, rows of x^2";
}

TEST(TransformerEngineSchedules, AGradientReturnedToAutogradSurvivesTheNextReplay) {
  Bench bench({.microbatches = 1}, {{0}});
  for (int i = 0; i < 2; ++i) bench.run(1);
  at::Tensor kept;
  bench.engine.run_step([&] {
    bench.parameters[0][0].mutable_grad() =
        at::Tensor();  // so that the accumulator keeps the gradient without a copy
    torch::autograd::backward({bench.call(0, 0, bench.input(2)).sum()});
    kept = bench.parameters[0][0].grad();
  });
  EXPECT_EQ(workloads::on_host(kept), Bench::filled(4, 12));
  bench.parameters[0][0].mutable_grad() = at::zeros({4}, bench.options);
  bench.run(1);
  EXPECT_EQ(workloads::on_host(kept), Bench::filled(4, 12));
}

TEST(TransformerEngineSchedules, AModuleThatChangesItsParametersBetweenPassesIsRefused) {
  Bench bench({.microbatches = 1}, {{0}});
  int calls = 0;
  const auto work = [&] {
    bench.engine.run({ModuleKind::layer, 0, 0}, {bench.input(1)}, bench.parameters[0],
                     [&](const Tensors& in) {
                       const bool more = ++calls == 3;
                       return Tensors{more ? in[0] * bench.parameters[0][0] * bench.parameters[0][1]
                                           : in[0] * bench.parameters[0][0]};
                     });
  };
  bench.engine.run_step(work);
  EXPECT_EQ(refusal<std::logic_error>([&] { bench.engine.run_step(work); }),
            "layer of layer 0, microbatch 0: got a gradient for 2 parameters; want the 1 of the "
            "first pass; why: a graph cannot "
            "change its parameters; next: let the module use the same parameters in every pass");
}

TEST(TransformerEngineSchedules, AChangedArgumentIsRefusedAndNamed) {
  Bench bench({.microbatches = 1}, {{0}});
  for (int i = 0; i < 2; ++i) bench.run(1);
  const auto refused = [&](const at::Tensor& x) {
    return refusal<std::invalid_argument>(
        [&] { bench.engine.run_step([&] { bench.call(0, 0, x); }); });
  };
  const std::string device = bench.device.torch_device().str();
  EXPECT_EQ(refused(at::zeros({1, 4}, bench.options)),
            "layer of layer 0, microbatch 0: got a call that graph 0 of 1 cannot take (input 0 "
            "Float [1, 4] strides [4, 1] on " +
                device + " without a gradient instead of Float [3, 4] strides [4, 1] on " + device +
                " with a gradient); want the captured inputs in the captured schedule; why: a "
                "graph fixes count, shape, strides, "
                "type and device of its inputs; next: use another engine for another "
                "shape or schedule");
  EXPECT_NE(refused(at::zeros({3, 4}, bench.options.dtype(at::kDouble))).find("Double [3, 4]"),
            std::string::npos)
      << "which a copy would accept";
  EXPECT_NE(refused(bench.input(1).t().contiguous().t()).find("strides [1, 3]"), std::string::npos);
  EXPECT_NE(refusal<std::invalid_argument>([&] {
              bench.engine.run_step([&] {
                const at::Tensor kept = bench.call(0, 0, bench.input(1));
                bench.call(0, 1, bench.input(1));
              });
            }).find("its last forward still waits for the backward"),
            std::string::npos);
  EXPECT_EQ(bench.run(3), bench.expected(3)) << "usable afterwards";
}

TEST(TransformerEngineSchedules, ALaunchInAnotherOrderThanTheScheduleIsRefused) {
  Bench bench({.pp = 2, .rank = 0, .microbatches = 2}, {{0}});
  for (int i = 0; i < 2; ++i) bench.run(1);
  EXPECT_EQ(refusal<std::logic_error>([&] {
              bench.engine.run_step([&] {
                const at::Tensor first = bench.call(0, 0, bench.input(1)),
                                 second = bench.call(0, 1, bench.input(1));
                torch::autograd::backward({second.sum()});
                torch::autograd::backward({first.sum()});
              });
            }),
            "graph layers.0.layer.backward: got launch number 2 after 3 with 1 backwards "
            "outstanding; want the order of "
            "capture; why: the graphs of a pool reuse each other's memory in that order; next: "
            "keep the order of the recorded "
            "step, or set pool to per_graph");
}

TEST(TransformerEngineSchedules, ABackwardThatIsToBeDifferentiatedAgainIsRefused) {
  Bench bench({.microbatches = 1}, {{0}});
  for (int i = 0; i < 2; ++i) bench.run(1);
  EXPECT_EQ(refusal<std::logic_error>([&] {
              bench.engine.run_step([&] {
                const at::Tensor x = bench.input(1);
                torch::autograd::grad({bench.call(0, 0, x).sum()}, {x}, {}, /*retain_graph=*/true,
                                      /*create_graph=*/true);
              });
            }),
            "layer of layer 0, microbatch 0: got a backward that is to be differentiated again; "
            "want one without "
            "create_graph; why: a replayed graph leaves no history, so the second gradient would "
            "be silently zero; next: leave "
            "this module out of modules");
}

TEST(TransformerEngineSchedules, ACallOfALayerThatNoEagerStepHadIsRefused) {
  Bench bench({.microbatches = 1}, {{0}});
  for (int i = 0; i < 2; ++i) bench.run(1);
  bench.parameters.push_back({bench.weight(), bench.weight()});
  EXPECT_EQ(refusal<std::invalid_argument>(
                [&] { bench.engine.run_step([&] { bench.call(1, 0, bench.input(1)); }); }),
            "layer of layer 1, microbatch 0: got a call without graphs; want the calls of the "
            "steps before the capture; why: "
            "graphs are made ahead of time; next: call the same parts in every step");
}

TEST(TransformerEngineSchedules, ALayerWithoutAPlaceInTheScheduleIsRefused) {
  Bench bench({.microbatches = 1}, {{0}});
  bench.parameters.push_back({bench.weight(), bench.weight()});
  const auto work = [&] { bench.call(1, 0, bench.call(0, 0, bench.input(1))); };
  bench.engine.run_step(work);
  EXPECT_EQ(refusal<std::logic_error>([&] { bench.engine.run_step(work); }),
            "transformer_engine: got calls of 2 layers; want the 1 of the schedule; why: a layer "
            "without a place in the order "
            "has no graphs; next: give the schedule every layer of this rank");
}

TEST(TransformerEngineSchedules, InputsThatNoGraphCanTakeAreRefusedInTheEagerSteps) {
  Bench bench({.microbatches = 1}, {{0}});
  const auto refused = [&](const at::Tensor& input) {
    return refusal<std::invalid_argument>(
        [&] { bench.engine.run_step([&] { bench.call(0, 0, input); }); });
  };
  EXPECT_NE(refused(at::zeros({3, 4})).find("got a tensor on cpu"), std::string::npos);
  EXPECT_NE(refused(at::Tensor()).find("got an undefined tensor"), std::string::npos);
  EXPECT_NE(refused(at::zeros({1, 4}, bench.options).expand({3, 4}))
                .find("got a tensor with gaps or overlaps"),
            std::string::npos);
}

/// attn and mlp of one layer in one graph: u = w x, and y = u + u x2, with a second result v = 3 u
/// that only eager code uses.
struct ChainBench {
  ChainBench()
      : device(workloads::device_under_test()),
        stream(device.stream_from_pool()),
        guard(stream),
        step({}, {}, device, 1, {}),
        engine({.impl = "transformer_engine",
                .modules = {ModuleKind::attn, ModuleKind::mlp},
                .warmup_steps = 1},
               device, stream, step, nullptr, {{.microbatches = 1}, {{0}}},
               transformer_engine_policy()),
        options(at::TensorOptions().device(device.torch_device())) {
    weight = at::full({4}, 2.0, options).requires_grad_(true);
    weight.mutable_grad() = at::zeros({4}, options);
    parameters = {weight};
  }
  Tensors attn(const at::Tensor& x) {
    return engine.run({ModuleKind::attn, 0, 0}, {x}, parameters,
                      [w = weight](const Tensors& in) { return Tensors{in[0] * w, in[0] * 3}; });
  }
  Tensors mlp(const at::Tensor& u) {
    return engine.run({ModuleKind::mlp, 0, 0}, {u}, none,
                      [](const Tensors& in) { return Tensors{in[0] * in[0]}; });
  }
  at::Tensor input(double value) const {
    return at::full({4}, value, options).requires_grad_(true);
  }

  capture::Device& device;
  c10::Stream stream;
  c10::StreamGuard guard;
  workloads::TrainStep step;
  AheadOfTime engine;
  at::TensorOptions options;
  at::Tensor weight;
  Tensors parameters, none;
};

TEST(PartChain, OneGraphPairHoldsBothPartsAndReturnsTheOutputsOfEach) {
  ChainBench bench;
  for (const double value : {1.0, 2.0, 3.0}) {
    const at::Tensor x = bench.input(value);
    bench.engine.run_step([&] {
      const Tensors first = bench.attn(x);
      const at::Tensor y = bench.mlp(first[0])[0];
      EXPECT_EQ(workloads::on_host(first[1]), std::vector<float>(4, static_cast<float>(3 * value)));
      EXPECT_EQ(workloads::on_host(y),
                std::vector<float>(4, static_cast<float>(4 * value * value)));
      torch::autograd::backward({(y + first[1]).sum()});
    });
    EXPECT_EQ(workloads::on_host(x.grad()),
              std::vector<float>(4, static_cast<float>(8 * value + 3)));
  }
  EXPECT_EQ(bench.engine.counters().graphs, 2);
  EXPECT_EQ(bench.engine.counters().replays, 4);
}

TEST(PartChain, WhatPassesBetweenThePartsIsAStandInOfItsShapeFullOfNaN) {
  ChainBench bench;
  for (int i = 0; i < 2; ++i)
    bench.engine.run_step([&] {
      const Tensors first = bench.attn(bench.input(1));
      const auto between = workloads::on_host(first[0]);
      EXPECT_EQ(first[0].sizes(), at::IntArrayRef({4}));
      for (const float value : between) EXPECT_EQ(std::isnan(value), i == 1) << "step " << i;
      torch::autograd::backward({bench.mlp(first[0])[0].sum()});
    });
}

TEST(PartChain, ACallOutOfOrderOrWithOtherInputsAndAPartLeftOutAreRefused) {
  ChainBench bench;
  for (int i = 0; i < 2; ++i)
    bench.engine.run_step(
        [&] { torch::autograd::backward({bench.mlp(bench.attn(bench.input(1))[0])[0].sum()}); });
  const std::string out_of_order =
      "mlp of layer 0, microbatch 0: got a call out of order or with other inputs; want it after "
      "the previous part, with the outputs of that part; why: one graph holds attn+mlp, and "
      "nothing can run between its parts; next: leave one of the parts out of modules";
  EXPECT_EQ(
      refusal<std::logic_error>([&] { bench.engine.run_step([&] { bench.mlp(bench.input(1)); }); }),
      out_of_order);
  EXPECT_EQ(refusal<std::logic_error>([&] {
              bench.engine.run_step([&] { bench.mlp(bench.attn(bench.input(1))[0] + 0); });
            }),
            out_of_order);
  EXPECT_EQ(refusal<std::logic_error>(
                [&] { bench.engine.run_step([&] { bench.attn(bench.input(1)); }); }),
            "mlp of layer 0, microbatch 0: got no call; want it after the previous part; why: one "
            "graph holds attn+mlp and has run all of it; next: leave this part out of modules");
  bench.engine.run_step(
      [&] { torch::autograd::backward({bench.mlp(bench.attn(bench.input(1))[0])[0].sum()}); });
}

}  // namespace
}  // namespace graphproof::engines::transformer_engine_schedules_test
