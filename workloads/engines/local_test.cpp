// The contract sentences at the top of local.h, module_graphs.h, arguments.h and pool_order.h, one test each.
#include <gtest/gtest.h>

#include <map>

#include "workloads/engines/local.h"
#include "workloads/engines/twin_steps.h"

namespace graphproof::engines {
namespace {

using workloads::ModelConfig;
using workloads::ModuleCall;
using workloads::ModuleKind;
using Modules = std::vector<ModuleKind>;
using Tensors = std::vector<at::Tensor>;

constexpr std::int64_t kSteps = 5, kWarmup = 2;

ModelConfig model(double dropout, std::int64_t microbatches = 2) {
  ModelConfig config;
  config.microbatches = microbatches;
  config.linear_bias = config.qkv_bias = true;
  config.dropout = dropout;
  return config;
}

EngineConfig local(Modules modules = {}, PoolSharing pool = PoolSharing::single) {
  return {.impl = "local", .modules = std::move(modules), .pool = pool, .warmup_steps = kWarmup};
}

const std::map<std::string, Modules> kModuleSets{{"layer", {}},
                                                 {"attn", {ModuleKind::attn}},
                                                 {"mlp", {ModuleKind::mlp}},
                                                 {"attn_mlp", {ModuleKind::attn, ModuleKind::mlp}}};

std::int64_t parts_of_a_layer(const Modules& modules) {
  return modules.empty() ? 1 : static_cast<std::int64_t>(modules.size());
}

template <class Error, class Call>
std::string refusal(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Local, ReplayEqualsEagerBitForBitForEveryModuleSetPoolAndNumberOfMicrobatches) {
  for (const auto& [name, modules] : kModuleSets)
    for (const PoolSharing pool : {PoolSharing::single, PoolSharing::per_microbatch, PoolSharing::per_graph})
      for (const std::int64_t microbatches : {1, 2, 4}) {
        // Where the model is cut doesn't change what a pool is, so the finest cut stands for all.
        if (pool != PoolSharing::single && (modules.size() != 2 || microbatches != 2)) continue;
        const double dropout = microbatches == 1 ? 0.0 : 0.1;
        SCOPED_TRACE(name + " pool " + std::to_string(static_cast<int>(pool)) + " microbatches " +
                     std::to_string(microbatches));
        TwinSteps twins(model(dropout, microbatches), {}, local(modules, pool));
        for (std::int64_t i = 0; i < kSteps; ++i) EXPECT_EQ(difference(twins.step(i)), "") << "step " << i;
        EXPECT_EQ(difference(twins.step(0)), "") << "the recorded inputs last";
        EXPECT_EQ(twins.witness.canaries, 0);
        EXPECT_GT(twins.witness.canaries_poisoned, 0);
        EXPECT_TRUE(twins.witness.moved_tensors.empty());
        EXPECT_EQ(twins.graph_step().rng().states(), twins.eager_step().rng().states());
      }
}

TEST(Local, EveryFeatureOfTheStepIsReplayedBitForBitInEveryCut) {
  ModelConfig rich = model(0.1);
  rich.recompute_core_attention = true;
  rich.precision = workloads::Precision::bf16;
  rich.optimizer = workloads::OptimizerKind::adam;
  ModelConfig experts = rich;
  experts.experts = 4;
  experts.topk = 2;
  experts.shared_expert = true;
  struct Row {
    const char* name;
    ModelConfig model;
    Modules modules;
    std::int64_t parts;
  };
  const std::vector<Row> rows{
      {"dense, layer", rich, {}, 1},
      {"dense, attn", rich, {ModuleKind::attn}, 1},
      {"dense, attn and mlp", rich, {ModuleKind::attn, ModuleKind::mlp}, 2},
      {"experts, layer", experts, {}, 1},
      {"experts, moe", experts, {ModuleKind::moe}, 1},
      {"experts, router", experts, {ModuleKind::moe_router}, 1},
      {"experts, router and preprocess", experts, {ModuleKind::moe_router, ModuleKind::moe_preprocess}, 2},
      {"experts, attn, router and preprocess",
       experts,
       {ModuleKind::attn, ModuleKind::moe_router, ModuleKind::moe_preprocess},
       3}};
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    TwinSteps twins(row.model, {}, local(row.modules));
    for (std::int64_t i = 0; i < 4; ++i) EXPECT_EQ(difference(twins.step(i)), "") << "step " << i;
    EXPECT_EQ(twins.witness.canaries, 0);
    EXPECT_TRUE(twins.witness.moved_tensors.empty());
    EXPECT_TRUE(twins.witness.changed_by.empty());
    EXPECT_EQ(twins.graph->counters().launches_per_step, 2 * row.parts * row.model.layers * row.model.microbatches);
    EXPECT_EQ(twins.graph->counters().replays, 3 * twins.graph->counters().launches_per_step);
  }
}

TEST(Local, OneStepIsEagerAndEveryLaterOneNeedsTwoLaunchesForEachModuleAndMicrobatch) {
  for (const auto& [name, modules] : kModuleSets)
    for (const std::int64_t microbatches : {1, 4}) {
      SCOPED_TRACE(name + ", " + std::to_string(microbatches));
      TwinSteps twins(model(0, microbatches), {}, local(modules));
      const std::int64_t graphs = 2 * parts_of_a_layer(modules) * model(0).layers;
      for (std::int64_t i = 0; i < kSteps; ++i) {
        twins.step(i);
        const Counters counters = twins.graph->counters();
        EXPECT_EQ(counters.steps, i + 1);
        EXPECT_EQ(counters.eager, 1);
        EXPECT_EQ(counters.captures, graphs) << "one pair for each module, whatever the number of microbatches";
        EXPECT_EQ(counters.graphs, graphs);
        EXPECT_EQ(counters.launches_per_step, graphs * microbatches);
        EXPECT_EQ(counters.replays, i * counters.launches_per_step);
        EXPECT_EQ(counters.fallbacks, 0);
        EXPECT_EQ(counters.out_of_order, 0);
      }
    }
}

TEST(Local, CapturesInExecutionOrderIntoOnePoolAndRunsNothing) {
  TwinSteps twins(model(0.1), {}, local({ModuleKind::attn, ModuleKind::mlp}));
  EXPECT_EQ(difference(twins.step(0)), "") << "masks, gradients and losses of the recorded step are still there";
  std::vector<std::string> order;
  for (const CaptureReport& report : twins.witness.reports) {
    order.push_back(report.graph);
    EXPECT_EQ(report.status, "ok");
    EXPECT_EQ(report.warmups, kWarmup);
    EXPECT_GT(report.census.total, 10);
    EXPECT_EQ(report.counter_before, (std::vector<std::int64_t>{2, 2}));
    EXPECT_EQ(report.counter_after, report.counter_before);
  }
  EXPECT_EQ(order, (std::vector<std::string>{"layers.0.attn.forward", "layers.0.mlp.forward", "layers.1.attn.forward",
                                             "layers.1.mlp.forward", "layers.1.mlp.backward", "layers.1.attn.backward",
                                             "layers.0.mlp.backward", "layers.0.attn.backward"}));
  EXPECT_TRUE(twins.witness.changed_by.empty()) << twins.witness.changed_by.front();
  EXPECT_EQ(twins.graph_step().rng().states(), twins.eager_step().rng().states());
}

TEST(Local, AModuleReadsTheOutputOfTheOneBeforeWhereItLies) {
  TwinSteps twins(model(0), {}, local({ModuleKind::attn, ModuleKind::mlp}));
  twins.step(0);
  twins.step(1);
  const auto address = [&](const std::string& graph, const std::string& name) {
    return twins.witness.first_address.at(graph).at(name);
  };
  EXPECT_EQ(address("layers.0.mlp.forward", "input.0"), address("layers.0.attn.forward", "output.0"));
  EXPECT_EQ(address("layers.1.attn.forward", "input.0"), address("layers.0.mlp.forward", "output.0"));
  EXPECT_EQ(address("layers.0.mlp.backward", "grad_output.0"), address("layers.1.attn.backward", "grad_input.0"));
  EXPECT_NE(address("layers.0.attn.forward", "input.0"), address("layers.0.attn.forward", "output.0"));
}

TEST(Local, WorksInEveryCaptureModeAndOnBothAutogradThreads) {
  for (const auto mode :
       {capture::CaptureMode::global, capture::CaptureMode::thread_local_, capture::CaptureMode::relaxed})
    for (const bool threads : {false, true}) {
      EngineConfig config = local();
      config.capture_mode = mode;
      TwinSteps twins(model(0.1), {}, config);
      twins.device().autograd_threads(threads);
      for (std::int64_t i = 0; i < 3; ++i)
        EXPECT_EQ(difference(twins.step(i)), "") << "mode " << static_cast<int>(mode) << " threads " << threads;
      EXPECT_EQ(twins.witness.reports.at(0).mode, mode);
      twins.device().autograd_threads(false);
    }
}

TEST(Local, WarmupPassesMayBeNone) {
  EngineConfig config = local();
  config.warmup_steps = 0;
  TwinSteps twins(model(0.1), {}, config);
  for (std::int64_t i = 0; i < 3; ++i) EXPECT_EQ(difference(twins.step(i)), "") << "step " << i;
  EXPECT_EQ(twins.witness.reports.at(0).warmups, 0);
}

TEST(Local, LossesHandedOutStayAndOutputsAreTheLatest) {
  TwinSteps twins(model(0), {}, local());
  for (std::int64_t i = 0; i < 2; ++i) twins.step(i);
  const at::Tensor kept = twins.graph->losses();
  const auto before = workloads::on_host(kept);
  const auto alias = twins.graph->outputs();
  twins.step(2);
  EXPECT_EQ(workloads::on_host(kept), before);
  EXPECT_NE(workloads::on_host(twins.graph->losses()), before);
  EXPECT_TRUE(fixtures::compare(alias, twins.graph->outputs()).equal);
}

TEST(Local, DroppedGraphsGiveTheirMemoryBackAndTakeNoMoreSteps) {
  TwinSteps twins(model(0), {}, local());
  twins.device().empty_cache();  // what earlier tests left behind
  const auto pool_before = twins.device().memory().pool;
  for (std::int64_t i = 0; i < 3; ++i) twins.step(i);
  EXPECT_GT(twins.device().memory().pool, pool_before);
  twins.graph->drop_graphs();
  twins.graph->drop_graphs();
  twins.device().empty_cache();
  EXPECT_EQ(twins.device().memory().pool, pool_before);
  EXPECT_EQ(twins.graph->counters().replays, 2 * twins.graph->counters().launches_per_step);
  EXPECT_EQ(refusal<std::logic_error>([&] { twins.graph->step(twins.batch(0), 0.1); }),
            "engine: got step() after drop_graphs(); want no more steps; why: the captured graphs and their memory are "
            "gone; next: make a new engine");
}

TEST(Local, TheFloorTrainsAsTheEngineDoesWithTheSameLaunches) {
  for (const auto& [name, modules] : kModuleSets) {
    SCOPED_TRACE(name);
    TwinSteps twins(model(0.1), {}, local(modules));
    for (std::int64_t i = 0; i < 2; ++i) EXPECT_EQ(difference(twins.step(i)), "");
    auto& engine = dynamic_cast<Local&>(*twins.graph);
    const Counters before = engine.counters();
    twins.eager->step(twins.batch(2), 0.05);
    engine.floor_step(twins.batch(2), 0.05);
    twins.device().synchronize();
    EXPECT_EQ(difference(fixtures::compare(twins.eager->outputs(), engine.outputs())), "");
    EXPECT_EQ(engine.counters().replays - before.replays, before.launches_per_step);
    EXPECT_EQ(difference(twins.step(3)), "") << "the engine goes on behind it";
  }
}

TEST(Local, TheFloorNeedsACapture) {
  TwinSteps twins(model(0), {}, local());
  EXPECT_EQ(refusal<std::logic_error>([&] { dynamic_cast<Local&>(*twins.graph).floor_step(twins.batch(0), 0.1); }),
            "local: got floor_step() before any capture; want a step() first; why: the floor replays its graphs; next: "
            "run one step");
}

TEST(Local, RefusesThePlainTracker) {
  auto& device = workloads::device_under_test();
  const c10::Stream stream = device.stream_from_pool();
  const c10::StreamGuard guard(stream);
  workloads::TrainStep step(model(0.1), {}, device, 1, {}, fixtures::RngBackend::plain);
  EXPECT_EQ(refusal<std::invalid_argument>([&] { make_engine(local(), device, stream, step, nullptr); }),
            "local: got rng_tracker plain; want graph_safe; why: rule R154, a capture can neither read nor set a "
            "generator's state, so the plain tracker can't change regions inside it; next: set rng_tracker to graph_safe");
}

// Modules of our own, in schedules that TrainStep doesn't have.
struct Bench {
  explicit Bench(EngineConfig config = local())
      : device(workloads::device_under_test()),
        stream(device.stream_from_pool()),
        guard(stream),
        step(model(0), {}, device, 1, {}),
        witness(device),
        made(make_engine(config, device, stream, step, &witness)),
        engine(dynamic_cast<Local&>(*made)),
        options(at::TensorOptions().device(device.torch_device())) {
    for (at::Tensor* weight : {&used, &unused}) {
      *weight = at::full({4}, 2.0, options).requires_grad_(true);
      weight->mutable_grad() = at::zeros({4}, options);
    }
    parameters = {used, unused};
  }

  at::Tensor input(double value) { return at::full({3, 4}, value, options).requires_grad_(true); }
  Tensors call(std::int64_t layer, std::int64_t microbatch, const Tensors& inputs) {
    return engine.run({ModuleKind::layer, layer, microbatch}, inputs, parameters, [weight = used](const Tensors& x) {
      return Tensors{x[0] * weight * x[0]};
    });
  }
  static void backward(const at::Tensor& output) { torch::autograd::backward({output.sum()}); }
  // x * w * x: 2 x w, and 3 x^2 for each element of w.
  static std::vector<float> filled(std::size_t size, float value) { return std::vector<float>(size, value); }

  capture::Device& device;
  c10::Stream stream;
  c10::StreamGuard guard;
  workloads::TrainStep step;
  Witness witness;
  std::unique_ptr<Engine> made;
  Local& engine;
  at::TensorOptions options;
  at::Tensor used, unused;
  Tensors parameters;
};

TEST(LocalSchedules, OutstandingMicrobatchesHaveGraphsOfTheirOwn) {
  Bench bench;
  const auto both = [&](double first, double second) {
    bench.used.mutable_grad().zero_();
    const at::Tensor x = bench.input(first), y = bench.input(second);
    const at::Tensor a = bench.call(0, 0, {x})[0], b = bench.call(0, 1, {y})[0];
    Bench::backward(a);
    Bench::backward(b);
    EXPECT_EQ(workloads::on_host(x.grad()), Bench::filled(12, static_cast<float>(4 * first)));
    EXPECT_EQ(workloads::on_host(y.grad()), Bench::filled(12, static_cast<float>(4 * second)));
    EXPECT_EQ(workloads::on_host(bench.used.grad()),
              Bench::filled(4, static_cast<float>(3 * (first * first + second * second))));
  };
  bench.engine.run_step([&] { both(1, 2); });
  bench.engine.run_step([&] { both(3, 5); });
  bench.engine.run_step([&] { both(2, 7); });
  EXPECT_EQ(bench.engine.counters().graphs, 4);
  EXPECT_EQ(bench.engine.counters().replays, 8);
  EXPECT_EQ(bench.witness.reports.at(1).graph, "layers.0.layer.1.forward");
}

TEST(LocalSchedules, MoreOutstandingMicrobatchesThanRecordedAreRefused) {
  Bench bench;
  bench.engine.run_step([&] { Bench::backward(bench.call(0, 0, {bench.input(1)})[0]); });
  EXPECT_EQ(refusal<std::invalid_argument>([&] {
              bench.engine.run_step([&] {
                const at::Tensor kept = bench.call(0, 0, {bench.input(1)})[0];
                bench.call(0, 1, {bench.input(1)});
              });
            }),
            "layer of layer 0, microbatch 1: got a call that none of its 1 captured graphs can take (1 still owe a "
            "backward); want inputs and outstanding microbatches as in the recorded step; why: a graph has count, shape, "
            "strides, type and device of its inputs for good; next: use another engine for another shape or schedule");
  bench.engine.run_step([&] { Bench::backward(bench.call(0, 0, {bench.input(1)})[0]); });  // usable afterwards
}

TEST(LocalSchedules, AChangedArgumentIsRefusedAndNamed) {
  Bench bench;
  bench.engine.run_step([&] { Bench::backward(bench.call(0, 0, {bench.input(1)})[0]); });
  const auto refused = [&](const Tensors& inputs) {
    return refusal<std::invalid_argument>([&] { bench.engine.run_step([&] { bench.call(0, 3, inputs); }); });
  };
  const std::string device = bench.device.torch_device().str();
  EXPECT_EQ(refused({at::zeros({2, 4}, bench.options)}),
            "layer of layer 0, microbatch 3: got a call that none of its 1 captured graphs can take (0 still owe a "
            "backward; input 0 Float [2, 4] strides [4, 1] on " + device + " without a gradient instead of Float [3, 4] "
            "strides [4, 1] on " + device + " with a gradient); want inputs and outstanding microbatches as in the "
            "recorded step; why: a graph has count, shape, strides, type and device of its inputs for good; next: use "
            "another engine for another shape or schedule");
  EXPECT_NE(refused({bench.input(1), bench.input(1)}).find("2 inputs instead of 1"), std::string::npos);
  EXPECT_NE(refused({at::zeros({3, 4}, at::kDouble)}).find("input 0 Double [3, 4] strides [4, 1] on cpu"), std::string::npos);
  EXPECT_NE(refused({at::Tensor()}).find("input 0 undefined instead of"), std::string::npos);
  EXPECT_NE(refused({bench.input(1).t().contiguous().t()}).find("strides [1, 3]"), std::string::npos);
}

TEST(LocalSchedules, InputsThatNoGraphCanTakeAreRefusedWhenRecorded) {
  Bench bench;
  const auto refused = [&](const at::Tensor& input) {
    return refusal<std::invalid_argument>([&] { bench.engine.run_step([&] { bench.call(1, 0, {input}); }); });
  };
  EXPECT_EQ(refused(at::zeros({3, 4})),
            "layer of layer 1, microbatch 0, input 0: got a tensor on cpu; want a dense tensor of the graph's device; why: "
            "a graph reads its inputs at one address in one layout; next: pass such a tensor, or leave this module out of "
            "modules");
  EXPECT_NE(refused(at::Tensor()).find("got an undefined tensor"), std::string::npos);
  EXPECT_NE(refused(at::zeros({1, 4}, bench.options).expand({3, 4})).find("got a tensor with gaps or overlaps"),
            std::string::npos);
  EXPECT_NE(refused(at::zeros({3, 4}).to_sparse()).find("got layout Sparse"), std::string::npos);
}

TEST(LocalSchedules, ACallWithoutGradientsIsRefused) {
  Bench bench;
  const at::NoGradGuard no_grad;
  EXPECT_EQ(refusal<std::invalid_argument>([&] { bench.engine.run_step([&] { bench.call(0, 0, {bench.input(1)}); }); }),
            "layer of layer 0, microbatch 0: got a call without gradients; want a training step; why: its graphs are those "
            "of training, with dropout and a backward; next: run evaluation with another engine");
}

TEST(LocalSchedules, ALaunchInAnotherOrderThanTheCapturesIsRefused) {
  // Layer 0, layer 1, backward of 1, backward of 0 is what the pool was made for; two at a time is not.
  for (const PoolSharing pool : {PoolSharing::single, PoolSharing::per_graph}) {
    Bench bench(local({}, pool));
    bench.engine.run_step([&] {
      Bench::backward(bench.call(0, 0, {bench.input(1)})[0]);
      Bench::backward(bench.call(1, 0, {bench.input(1)})[0]);
    });
    const std::string message = refusal<std::logic_error>([&] {
      bench.engine.run_step([&] {
        const at::Tensor late = bench.call(1, 0, {bench.input(1)})[0];
        Bench::backward(bench.call(0, 0, {bench.input(1)})[0]);
        Bench::backward(late);
      });
    });
    EXPECT_EQ(message, pool == PoolSharing::per_graph
                           ? "accepted"
                           : "graph layers.0.layer.forward: got launch number 0 after 2 with 1 backwards outstanding; want "
                             "the order of capture; why: the graphs of a pool reuse each other's memory in that order; "
                             "next: keep the order of the recorded step, or set pool to per_graph");
  }
}

TEST(LocalSchedules, AnInputThatIsNotTheProducersOutputIsRefused) {
  Bench bench;
  bench.engine.run_step([&] { Bench::backward(bench.call(1, 0, {bench.call(0, 0, {bench.input(1)})[0]})[0]); });
  EXPECT_EQ(refusal<std::invalid_argument>([&] {
              bench.engine.run_step([&] { bench.call(1, 0, {bench.call(0, 0, {bench.input(1)})[0].clone()}); });
            }),
            "layer of layer 1, microbatch 0, input 0: got a tensor elsewhere; want the output of layer of layer 0, "
            "microbatch 0 where its graph leaves it; why: both graphs hold that address; next: pass the output itself, or "
            "leave one of the two out of modules");
}

TEST(LocalSchedules, AParameterThatTheOutputsDoNotDependOnKeepsItsGradient) {
  Bench bench;
  bench.unused.mutable_grad().fill_(7);
  for (int i = 0; i < 3; ++i) bench.engine.run_step([&] { Bench::backward(bench.call(0, 0, {bench.input(1)})[0]); });
  EXPECT_EQ(workloads::on_host(bench.unused.grad()), Bench::filled(4, 7));
  EXPECT_EQ(workloads::on_host(bench.used.grad()), Bench::filled(4, 9));
}

TEST(LocalSchedules, HooksOfAccumulatorsRunAtEveryReplay) {
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
  const auto accumulator = torch::autograd::impl::grad_accumulator(bench.used);
  accumulator->add_post_hook(std::make_unique<Hook>(calls));
  for (int i = 0; i < 3; ++i) bench.engine.run_step([&] { Bench::backward(bench.call(0, 0, {bench.input(1)})[0]); });
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(workloads::on_host(bench.used.grad()), Bench::filled(4, 9));
}

TEST(LocalSchedules, AnUnusedOutputHasNoGradientAndAnIntegerOutputNeedsNone) {
  Bench bench;
  const auto call = [&](double value) {
    const at::Tensor x = bench.input(value);
    const auto outputs = bench.engine.run({ModuleKind::layer, 0, 0}, {x}, bench.parameters, [weight = bench.used](const Tensors& in) {
      return Tensors{in[0] * weight, in[0].detach().gt(2).to(at::kLong), in[0] * 100 * weight};
    });
    Bench::backward(outputs[0]);
    EXPECT_EQ(workloads::on_host(x.grad()), Bench::filled(12, 2));
    EXPECT_EQ(workloads::on_host(outputs[1]), Bench::filled(12, value > 2 ? 1 : 0));
    EXPECT_FALSE(outputs[1].requires_grad());
  };
  for (const double value : {1.0, 3.0, 2.0}) bench.engine.run_step([&] { call(value); });
}

TEST(LocalSchedules, ASecondGradientOfAnOutputIsCopiedToTheCapturedPlace) {
  Bench bench;
  const auto twice = [&](double value) {
    const at::Tensor x = bench.input(value);
    const at::Tensor first = bench.call(0, 0, {x})[0];
    const at::Tensor second = bench.call(1, 0, {first})[0];
    // `first` is used by a graph and by eager work: x + 2x^2-like sums arrive in memory of their own.
    torch::autograd::backward({second.sum() + first.sum()});
    // y = 2 x^2, z = 2 y^2: d(z + y)/dx = (4 y + 1) 4 x.
    const double y = 2 * value * value;
    EXPECT_EQ(workloads::on_host(x.grad()), Bench::filled(12, static_cast<float>((4 * y + 1) * 4 * value)));
  };
  for (const double value : {1.0, 2.0, 3.0}) bench.engine.run_step([&] { twice(value); });
}

TEST(LocalSchedules, AFailedCaptureLeavesNoGraphAndTheNextStepRecordsAgain) {
  if (workloads::device_under_test().name() != "sim") return;  // LibTorch 2.11 on CUDA does not work on (pytorch#180395)
  Bench bench;
  bool look = true;
  const auto call = [&] {
    Bench::backward(bench.engine.run({ModuleKind::layer, 0, 0}, {bench.input(1)}, bench.parameters, [&](const Tensors& x) {
      if (look) (void)x[0].sum().item<float>();
      return Tensors{x[0] * bench.used};
    })[0]);
  };
  try {
    bench.engine.run_step(call);
    FAIL() << "captured";
  } catch (const capture::DeviceError& error) {
    EXPECT_EQ(error.code, 900);
    EXPECT_EQ(error.call, "aten::_local_scalar_dense");
  }
  EXPECT_EQ(bench.engine.counters().graphs, 0);
  look = false;
  for (int i = 0; i < 2; ++i) bench.engine.run_step(call);
  EXPECT_EQ(bench.engine.counters().replays, 2);
}

TEST(PoolOrder, AllowsTheOrderOfCaptureAndANewBeginningWhenNothingIsAlive) {
  PoolOrder order;
  EXPECT_TRUE(order.allows(0));
  order.last = 1;
  order.alive = 2;
  EXPECT_TRUE(order.allows(2));
  EXPECT_FALSE(order.allows(1));
  EXPECT_FALSE(order.allows(0));
  order.alive = 0;
  EXPECT_TRUE(order.allows(0));
  order.alive = 1;
  order.begin_step();
  EXPECT_TRUE(order.allows(0));
}

}  // namespace
}  // namespace graphproof::engines
