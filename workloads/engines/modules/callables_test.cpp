// One test for each sentence of the contract in callables.h. The common part with
// transformer_engine is tested there.
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "workloads/engines/modules/callables.h"
#include "workloads/testing/refusal.h"
#include "workloads/testing/twin_steps.h"

namespace graphproof::engines::callables_test {
namespace {

using workloads::ModelConfig;
using workloads::ModuleKind;
using Modules = std::vector<ModuleKind>;
using Tensors = std::vector<at::Tensor>;

constexpr std::int64_t kWarmup = 2, kSteps = 5;

// Small, because products in bf16 are slow on a CPU.
ModelConfig model(double dropout) {
  return {.hidden = 32,
          .heads = 4,
          .kv_groups = 2,
          .ffn = 64,
          .vocab = 64,
          .seq_length = 8,
          .microbatches = 2,
          .qkv_bias = true,
          .linear_bias = true,
          .dropout = dropout};
}

EngineConfig callables(Modules modules = {}) {
  return {.impl = "callables", .modules = std::move(modules), .warmup_steps = kWarmup};
}

TEST(Callables, ReplayEqualsEagerBitForBitForEveryModuleSetAsOnePairForEachModule) {
  ModelConfig rich = model(0.1), experts = model(0.1);
  rich.recompute = workloads::selective({workloads::RecomputedPart::core_attn});
  rich.precision = workloads::Precision::bf16;
  rich.optimizer = workloads::OptimizerKind::adam;
  experts.experts = 4;
  experts.topk = 2;
  experts.shared_expert = true;
  ModelConfig after_router = experts;
  after_router.recompute = workloads::selective({workloads::RecomputedPart::moe});
  after_router.recompute.after_router = true;
  struct Cut {
    const char* name;
    ModelConfig model;
    Modules modules;
    std::int64_t callables_of_layer;
  };
  for (const Cut& cut :
       {Cut{"layer", model(0.1), {}, 1}, Cut{"attn", model(0), {ModuleKind::attn}, 1},
        Cut{"attn and mlp", model(0.1), {ModuleKind::attn, ModuleKind::mlp}, 2},
        Cut{"every feature", rich, {}, 1}, Cut{"experts", experts, {ModuleKind::moe}, 1},
        Cut{"router, with recompute after it", after_router, {ModuleKind::moe_router}, 1},
        Cut{"attention, router, preprocess",
            experts,
            {ModuleKind::attn, ModuleKind::moe_router, ModuleKind::moe_preprocess},
            3}}) {
    SCOPED_TRACE(cut.name);
    TwinSteps twins(cut.model, {}, callables(cut.modules));
    for (std::int64_t i = 0; i < kSteps; ++i)
      EXPECT_EQ(difference(twins.step(i)), "") << "step " << i;
    EXPECT_EQ(difference(twins.step(kWarmup)), "") << "the inputs of the capture last";
    EXPECT_EQ(twins.witness.canaries, 0);
    EXPECT_TRUE(twins.witness.moved_tensors.empty()) << twins.witness.moved_tensors.front();
    EXPECT_TRUE(twins.witness.changed_by.empty()) << twins.witness.changed_by.front();
    EXPECT_EQ(twins.graph_step().rng().states(), twins.eager_step().rng().states());
    const Counters counters = twins.graph->counters();
    EXPECT_EQ(counters.eager, kWarmup);
    EXPECT_EQ(counters.graphs, 2 * cut.callables_of_layer * cut.model.layers);
    EXPECT_EQ(counters.launches_per_step, counters.graphs * cut.model.microbatches);
    EXPECT_EQ(counters.replays, (kSteps + 1 - kWarmup) * counters.launches_per_step);
    EXPECT_EQ(counters.out_of_order, 0);
  }
}

TEST(Callables, AllForwardsAreCapturedInOrderThenTheBackwardsInReverseAfterThreePassesEach) {
  TwinSteps twins(model(0.1), {}, callables({ModuleKind::attn, ModuleKind::mlp}));
  for (std::int64_t i = 0; i <= kWarmup; ++i) EXPECT_EQ(difference(twins.step(i)), "");
  std::vector<std::string> order;
  for (const CaptureReport& report : twins.witness.reports) {
    order.push_back(report.graph);
    EXPECT_EQ(report.warmups, kWarmup * 2 + 3) << "microbatches of the eager steps, and the passes";
    EXPECT_EQ(report.counter_after, report.counter_before);
  }
  EXPECT_EQ(order, (std::vector<std::string>{"layers.0.attn.forward", "layers.0.mlp.forward",
                                             "layers.1.attn.forward", "layers.1.mlp.forward",
                                             "layers.1.mlp.backward", "layers.1.attn.backward",
                                             "layers.0.mlp.backward", "layers.0.attn.backward"}));
}

TEST(Callables, EachHasStaticInputsAndGradientsOfItsOwn) {
  TwinSteps twins(model(0), {}, callables());
  for (std::int64_t i = 0; i <= kWarmup; ++i) twins.step(i);
  const auto address = [&](const std::string& graph, const std::string& name) {
    return twins.witness.first_address.at(graph).at(name);
  };
  EXPECT_NE(address("layers.1.layer.forward", "input.0"),
            address("layers.0.layer.forward", "output.0"));
  EXPECT_NE(address("layers.1.layer.forward", "input.0"),
            address("layers.0.layer.forward", "input.0"));
  EXPECT_NE(address("layers.1.layer.backward", "grad_output.0"),
            address("layers.0.layer.backward", "grad_output.0"));
}

TEST(Callables, WithoutEagerStepsTheFirstOneIsRehearsedAndPutBack) {
  EngineConfig config = callables();
  config.warmup_steps = 0;
  TwinSteps twins(model(0.1), {}, config);
  for (std::int64_t i = 0; i < 3; ++i) EXPECT_EQ(difference(twins.step(i)), "") << "step " << i;
}

TEST(Callables, RefusesThePlainTracker) {
  auto& device = workloads::device_under_test();
  const c10::Stream stream = device.stream_from_pool();
  const c10::StreamGuard guard(stream);
  workloads::TrainStep step(model(0.1), {}, device, 1, {}, fixtures::RngBackend::plain);
  EXPECT_EQ(refusal<std::invalid_argument>(
                [&] { make_engine(callables(), device, stream, step, nullptr); }),
            "callables: got rng_tracker plain; want graph_safe; why: rule B08, a capture can "
            "neither read nor set a "
            "generator's state, so the plain tracker can't change regions inside it; next: set "
            "rng_tracker to graph_safe");
}

TEST(Callables, RefusesAPipeline) {
  auto& device = workloads::device_under_test();
  const c10::Stream stream = device.stream_from_pool();
  const c10::StreamGuard guard(stream);
  workloads::TrainStep step(model(0), {.pp = 2}, device, 1, {});
  EXPECT_EQ(refusal<std::invalid_argument>(
                [&] { make_engine(callables(), device, stream, step, nullptr); }),
            "callables: got pp = 2; want 1; why: a callable has one pair of graphs, and a stage "
            "has several microbatches "
            "outstanding; next: set impl to local or transformer_engine");
}

/// Two layers y = w x^2 + 0 * u. The second input `u` is omitted by some bodies.
struct Bench {
  Bench()
      : device(workloads::device_under_test()),
        stream(device.stream_from_pool()),
        guard(stream),
        step({}, {}, device, 1, {}),
        engine({.impl = "callables", .warmup_steps = 1}, device, stream, step, nullptr,
               {{.microbatches = 1}, {{0, 1}}}, callables_policy()),
        options(at::TensorOptions().device(device.torch_device())) {
    for (Tensors& own : parameters) {
      own = {at::full({4}, 0.5, options).requires_grad_(true)};
      own[0].mutable_grad() = at::zeros({4}, options);
    }
  }
  at::Tensor input(double value) const {
    return at::full({3, 4}, value, options).requires_grad_(true);
  }
  at::Tensor call(std::int64_t layer, const at::Tensor& x) {
    const Tensors& own = parameters[static_cast<std::size_t>(layer)];
    return engine.run({ModuleKind::layer, layer, 0}, {x}, own,
                      [w = own[0]](const Tensors& in) { return Tensors{in[0] * w * in[0]}; })[0];
  }
  void train(double value) {
    engine.run_step([&] { torch::autograd::backward({call(1, call(0, input(value))).sum()}); });
  }
  static std::vector<float> filled(std::size_t size, double value) {
    return std::vector<float>(size, static_cast<float>(value));
  }

  capture::Device& device;
  c10::Stream stream;
  c10::StreamGuard guard;
  workloads::TrainStep step;
  AheadOfTime engine;
  at::TensorOptions options;
  std::array<Tensors, 2> parameters;
};

TEST(Callables, OutputsStayUntilTheNextLaunchOfTheirOwnCallable) {
  Bench bench;
  bench.train(1);
  at::Tensor first;
  bench.engine.run_step([&] {
    first = bench.call(0, bench.input(2));
    torch::autograd::backward({bench.call(1, first).sum()});
  });
  EXPECT_EQ(workloads::on_host(first), Bench::filled(12, 2)) << "both backwards have run";
  bench.train(4);
  EXPECT_EQ(workloads::on_host(first), Bench::filled(12, 8)) << "static memory";
}

TEST(Callables, AnAccumulatorWithoutASumKeepsTheStaticMemoryThatTheNextReplayOverwrites) {
  Bench bench;
  bench.train(1);
  bench.parameters[1][0].mutable_grad() = at::Tensor();
  bench.train(1);
  const at::Tensor kept = bench.parameters[1][0].grad();
  EXPECT_EQ(workloads::on_host(kept), Bench::filled(4, 3 * 0.25)) << "rows of (x^2 / 2)^2";
  bench.parameters[1][0].mutable_grad() = at::zeros({4}, bench.options);
  bench.train(2);
  EXPECT_EQ(workloads::on_host(kept), Bench::filled(4, 3 * 4.0))
      << "pytorch#181723: another step's gradient";
  EXPECT_EQ(workloads::on_host(bench.parameters[1][0].grad()), Bench::filled(4, 3 * 4.0));
}

TEST(Callables, HooksOfAccumulatorsRunInEveryBackward) {
  struct Hook : torch::autograd::FunctionPostHook {
    explicit Hook(int& calls) : calls(calls) {}
    torch::autograd::variable_list operator()(const torch::autograd::variable_list& outputs,
                                              const torch::autograd::variable_list&) override {
      ++calls;
      return outputs;
    }
    int& calls;
  };
  Bench bench;
  int calls = 0;
  const auto accumulator = torch::autograd::impl::grad_accumulator(bench.parameters[0][0]);
  accumulator->add_post_hook(std::make_unique<Hook>(calls));
  for (int i = 0; i < 4; ++i) bench.train(1);
  EXPECT_EQ(calls, 4);
  EXPECT_EQ(bench.engine.counters().replays, 3 * 4);
}

TEST(Callables, AnUnusedInputIsRefused) {
  Bench bench;
  const auto work = [&] {
    torch::autograd::backward(
        {bench.engine
             .run({ModuleKind::layer, 0, 0}, {bench.input(1), bench.input(2)}, bench.parameters[0],
                  [w = bench.parameters[0][0]](const Tensors& in) { return Tensors{in[0] * w}; })[0]
             .sum()});
  };
  bench.engine.run_step(work);
  EXPECT_EQ(
      refusal<std::invalid_argument>([&] { bench.engine.run_step(work); }),
      "layer of layer 0, microbatch 0: got an input that requires a gradient and gets none; want "
      "every such input used; "
      "why: the producer of the input would get no gradient; next: pass it without requiring a "
      "gradient");
}

TEST(Callables, AModuleThatChangedAfterItsCaptureIsRefused) {
  struct Row {
    const char* what;
    std::function<void(at::Tensor&)> change, undo;
  };
  at::Tensor before;
  const std::vector<Row> rows{{"moved",
                               [&](at::Tensor& weight) {
                                 before = weight.variable_data();
                                 weight.set_data(weight.detach().clone());
                               },
                               [&](at::Tensor& weight) { weight.set_data(before); }},
                              {"frozen", [](at::Tensor& weight) { weight.requires_grad_(false); },
                               [](at::Tensor& weight) { weight.requires_grad_(true); }}};
  for (const Row& row : rows) {
    Bench bench;
    bench.train(1);
    bench.train(1);
    row.change(bench.parameters[1][0]);
    EXPECT_EQ(refusal<std::logic_error>([&] { bench.train(1); }),
              std::string("layer of layer 1, microbatch 0, parameter 0: got one that was ") +
                  row.what +
                  " after the capture; want the module as it was; why: the graphs hold its address "
                  "and make its gradient; next: "
                  "change modules before they are graphed, and load weights by copying into them");
    row.undo(bench.parameters[1][0]);
    bench.train(1);
  }
}

TEST(Callables, ABackwardThatIsToBeDifferentiatedAgainIsRefused) {
  Bench bench;
  bench.train(1);
  bench.train(1);
  EXPECT_NE(refusal<std::logic_error>([&] {
              bench.engine.run_step([&] {
                const at::Tensor x = bench.input(1);
                torch::autograd::grad({bench.call(0, x).sum()}, {x}, {}, /*retain_graph=*/true,
                                      /*create_graph=*/true);
              });
            }).find("got a backward that is to be differentiated again"),
            std::string::npos);
}

TEST(Callables, ASecondForwardBeforeTheBackwardAndAnotherOrderAreRefused) {
  Bench bench;
  bench.train(1);
  bench.train(1);
  EXPECT_NE(refusal<std::invalid_argument>([&] {
              bench.engine.run_step([&] {
                const at::Tensor kept = bench.call(0, bench.input(1));
                bench.call(0, bench.input(1));
              });
            }).find("its last forward still waits for the backward"),
            std::string::npos);
  EXPECT_NE(refusal<std::logic_error>([&] {
              bench.engine.run_step([&] {
                const at::Tensor late = bench.call(1, bench.input(1));
                bench.call(0, bench.input(1));
              });
            }).find("want the order of capture"),
            std::string::npos);
}

}  // namespace
}  // namespace graphproof::engines::callables_test
