// The contracts of module_graphs.h, arguments.h and pool_order.h, and the sentences about schedules
// in that of local.h: modules of the test in orders that the reference model does not have.
#include <gtest/gtest.h>

#include "workloads/engines/modules/local.h"
#include "workloads/testing/refusal.h"
#include "workloads/testing/twin_steps.h"

namespace graphproof::engines::local_schedules_test {
namespace {

using workloads::ModuleKind;
using Tensors = std::vector<at::Tensor>;

EngineConfig local(PoolSharing pool = PoolSharing::single) {
  return {.impl = "local", .pool = pool, .warmup_steps = 2};
}

struct Bench {
  explicit Bench(EngineConfig config = local())
      : device(workloads::device_under_test()),
        stream(device.stream_from_pool()),
        guard(stream),
        step({}, {}, device, 1, {}),
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
    return engine.run({ModuleKind::layer, layer, microbatch}, inputs, parameters,
                      [weight = used](const Tensors& x) { return Tensors{x[0] * weight * x[0]}; });
  }
  static void backward(const at::Tensor& output) { torch::autograd::backward({output.sum()}); }
  // x * w * x: 2 x w, and 3 x^2 for each element of w.
  static std::vector<float> filled(std::size_t size, float value) {
    return std::vector<float>(size, value);
  }

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
            "layer of layer 0, microbatch 1: got a call that none of its 1 captured graphs can "
            "take (1 still waiting for a "
            "backward); want inputs and outstanding microbatches as in the recorded step; why: a "
            "graph fixes count, shape, "
            "strides, type and device of its inputs; next: use another engine for another "
            "shape or schedule");
  bench.engine.run_step(
      [&] { Bench::backward(bench.call(0, 0, {bench.input(1)})[0]); });  // usable afterwards
}

TEST(LocalSchedules, AChangedArgumentIsRefusedAndNamed) {
  Bench bench;
  bench.engine.run_step([&] { Bench::backward(bench.call(0, 0, {bench.input(1)})[0]); });
  const auto refused = [&](const Tensors& inputs) {
    return refusal<std::invalid_argument>(
        [&] { bench.engine.run_step([&] { bench.call(0, 3, inputs); }); });
  };
  const std::string device = bench.device.torch_device().str();
  EXPECT_EQ(refused({at::zeros({2, 4}, bench.options)}),
            "layer of layer 0, microbatch 3: got a call that none of its 1 captured graphs can "
            "take (0 still waiting for a "
            "backward; input 0 Float [2, 4] strides [4, 1] on " +
                device +
                " without a gradient instead of Float [3, 4] "
                "strides [4, 1] on " +
                device +
                " with a gradient); want inputs and outstanding microbatches as in the "
                "recorded step; why: a graph fixes count, shape, strides, type and device of its "
                "inputs; next: use "
                "another engine for another shape or schedule");
  EXPECT_NE(refused({bench.input(1), bench.input(1)}).find("2 inputs instead of 1"),
            std::string::npos);
  EXPECT_NE(
      refused({at::zeros({3, 4}, at::kDouble)}).find("input 0 Double [3, 4] strides [4, 1] on cpu"),
      std::string::npos);
  EXPECT_NE(refused({at::Tensor()}).find("input 0 undefined instead of"), std::string::npos);
  EXPECT_NE(refused({bench.input(1).t().contiguous().t()}).find("strides [1, 3]"),
            std::string::npos);
}

TEST(LocalSchedules, InputsThatNoGraphCanTakeAreRefusedWhenRecorded) {
  Bench bench;
  const auto refused = [&](const at::Tensor& input) {
    return refusal<std::invalid_argument>(
        [&] { bench.engine.run_step([&] { bench.call(1, 0, {input}); }); });
  };
  EXPECT_EQ(refused(at::zeros({3, 4})),
            "layer of layer 1, microbatch 0, input 0: got a tensor on cpu; want a dense tensor of "
            "the graph's device; why: "
            "a graph reads its inputs at one address in one layout; next: pass such a tensor, or "
            "leave this module out of "
            "modules");
  EXPECT_NE(refused(at::Tensor()).find("got an undefined tensor"), std::string::npos);
  EXPECT_NE(refused(at::zeros({1, 4}, bench.options).expand({3, 4}))
                .find("got a tensor with gaps or overlaps"),
            std::string::npos);
  EXPECT_NE(refused(at::zeros({3, 4}).to_sparse()).find("got layout Sparse"), std::string::npos);
}

TEST(LocalSchedules, ACallWithoutGradientsIsRefused) {
  Bench bench;
  const at::NoGradGuard no_grad;
  EXPECT_EQ(refusal<std::invalid_argument>(
                [&] { bench.engine.run_step([&] { bench.call(0, 0, {bench.input(1)}); }); }),
            "layer of layer 0, microbatch 0: got a call without gradients; want a training step; "
            "why: its graphs are those "
            "of training, with dropout and a backward; next: call evaluate() for evaluation");
}

TEST(LocalSchedules, ALaunchInAnotherOrderThanTheCapturesIsRefused) {
  // The pool was captured in the order layer 0, layer 1, backward of 1, backward of 0. Two
  // microbatches at a time violate it.
  for (const PoolSharing pool : {PoolSharing::single, PoolSharing::per_graph}) {
    Bench bench(local(pool));
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
                           : "graph layers.0.layer.forward: got launch number 0 after 2 with 1 "
                             "backwards outstanding; want "
                             "the order of capture; why: the graphs of a pool reuse each other's "
                             "memory in that order; "
                             "next: keep the order of the recorded step, or set pool to per_graph");
  }
}

TEST(LocalSchedules, AnInputThatIsNotTheProducersOutputIsRefused) {
  Bench bench;
  bench.engine.run_step(
      [&] { Bench::backward(bench.call(1, 0, {bench.call(0, 0, {bench.input(1)})[0]})[0]); });
  EXPECT_EQ(refusal<std::invalid_argument>([&] {
              bench.engine.run_step(
                  [&] { bench.call(1, 0, {bench.call(0, 0, {bench.input(1)})[0].clone()}); });
            }),
            "layer of layer 1, microbatch 0, input 0: got a tensor at another address; want the "
            "output of "
            "layer of layer 0, "
            "microbatch 0 where its graph leaves it; why: both graphs hold that address; next: "
            "pass the output itself, or "
            "leave one of the two out of modules");
}

TEST(LocalSchedules, AParameterThatTheOutputsDoNotDependOnKeepsItsGradient) {
  Bench bench;
  bench.unused.mutable_grad().fill_(7);
  for (int i = 0; i < 3; ++i)
    bench.engine.run_step([&] { Bench::backward(bench.call(0, 0, {bench.input(1)})[0]); });
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
  for (int i = 0; i < 3; ++i)
    bench.engine.run_step([&] { Bench::backward(bench.call(0, 0, {bench.input(1)})[0]); });
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(workloads::on_host(bench.used.grad()), Bench::filled(4, 9));
}

TEST(LocalSchedules, AnUnusedOutputHasNoGradientAndAnIntegerOutputNeedsNone) {
  Bench bench;
  const auto call = [&](double value) {
    const at::Tensor x = bench.input(value);
    const auto outputs = bench.engine.run(
        {ModuleKind::layer, 0, 0}, {x}, bench.parameters, [weight = bench.used](const Tensors& in) {
          return Tensors{in[0] * weight, in[0].detach().gt(2).to(at::kLong), in[0] * 100 * weight};
        });
    Bench::backward(outputs[0]);
    EXPECT_EQ(workloads::on_host(x.grad()), Bench::filled(12, 2));
    EXPECT_EQ(workloads::on_host(outputs[1]), Bench::filled(12, value > 2 ? 1 : 0));
    EXPECT_FALSE(outputs[1].requires_grad());
  };
  for (const double value : {1.0, 3.0, 2.0}) bench.engine.run_step([&] { call(value); });
}

TEST(LocalSchedules, AnOutputMayBeAViewOfItsInputOrTheInputItself) {
  for (const bool itself : {false, true}) {
    Bench bench;
    const auto step = [&](double value) {
      const at::Tensor x = bench.input(value);
      // The next module returns the producer's output next to its own result, like a residual, and
      // both are used.
      const at::Tensor first = bench.call(0, 0, {x})[0];
      const auto outputs = bench.engine.run(
          {ModuleKind::layer, 1, 0}, {first}, bench.parameters, [&](const Tensors& in) {
            return Tensors{itself ? in[0] : in[0].view_as(in[0]), in[0] * bench.used};
          });
      Bench::backward(outputs[0] * 10 + outputs[1]);
      // y = 2 x^2, sum of 10 y + 2 y: d/dx = 12 * 4 x.
      EXPECT_EQ(workloads::on_host(outputs[0]),
                Bench::filled(12, static_cast<float>(2 * value * value)));
      EXPECT_EQ(workloads::on_host(x.grad()), Bench::filled(12, static_cast<float>(48 * value)));
    };
    for (const double value : {1.0, 2.0, 3.0}) bench.engine.run_step([&] { step(value); });
    EXPECT_TRUE(bench.witness.moved_tensors.empty());
  }
}

TEST(LocalSchedules, ASecondGradientOfAnOutputIsCopiedToTheCapturedPlace) {
  Bench bench;
  const auto used_twice = [&](double value) {
    const at::Tensor x = bench.input(value);
    const at::Tensor first = bench.call(0, 0, {x})[0];
    const at::Tensor second = bench.call(1, 0, {first})[0];
    // `first` is used by a graph and by eager work, so the sum of its gradients is in new memory.
    torch::autograd::backward({second.sum() + first.sum()});
    // y = 2 x^2, z = 2 y^2: d(z + y)/dx = (4 y + 1) 4 x.
    const double y = 2 * value * value;
    EXPECT_EQ(workloads::on_host(x.grad()),
              Bench::filled(12, static_cast<float>((4 * y + 1) * 4 * value)));
  };
  for (const double value : {1.0, 2.0, 3.0}) bench.engine.run_step([&] { used_twice(value); });
}

TEST(LocalSchedules, AFailedCaptureLeavesNoGraphAndTheNextStepRecordsAgain) {
  if (workloads::device_under_test().name() != "sim")
    return;  // LibTorch 2.11 on CUDA is unusable after a failed capture (pytorch#180395)
  Bench bench;
  bool look = true;
  const auto call = [&] {
    Bench::backward(bench.engine.run({ModuleKind::layer, 0, 0}, {bench.input(1)}, bench.parameters,
                                     [&](const Tensors& x) {
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
}  // namespace graphproof::engines::local_schedules_test
