// How fast a step is: eager, under the local engine, its floor (Local::floor_step), and under the engines that capture ahead
// of time, for each cut of the model.
//   graphproof-engine-speed-cuda LAYERS HIDDEN SEQUENCE MICROBATCHES STEPS
// One JSON line for each cut: medians over blocks of STEPS steps, in ms a step; blocks of all take turns, so that
// clocks and neighbours hit all alike, and each ends with one wait for the device.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "workloads/device_under_test.h"
#include "workloads/engines/local.h"

namespace {

using namespace graphproof;
using Clock = std::chrono::steady_clock;

constexpr int kBlocks = 15, kBatches = 4;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Cut {
  const char* name;
  std::vector<workloads::ModuleKind> modules;
};

void measure(const workloads::ModelConfig& model, const Cut& cut, std::int64_t steps) {
  capture::Device& device = workloads::device_under_test();
  const c10::Stream stream = device.stream_from_pool();
  const c10::StreamGuard guard(stream);
  workloads::TrainStep eager_step(model, {}, device, 1, {}), graph_step(model, {}, device, 1, {}),
      transformer_engine_step(model, {}, device, 1, {}), callables_step(model, {}, device, 1, {});
  const auto eager = engines::make_engine({.impl = "none"}, device, stream, eager_step, nullptr);
  engines::Local local({.impl = "local", .modules = cut.modules}, device, stream, graph_step, nullptr);
  const auto ahead = [&](const char* impl, workloads::TrainStep& step) {
    return engines::make_engine({.impl = impl, .modules = cut.modules, .warmup_steps = 1}, device, stream, step, nullptr);
  };
  const auto transformer_engine = ahead("transformer_engine", transformer_engine_step);
  const auto callables = ahead("callables", callables_step);
  std::vector<workloads::Batch> batches;
  for (int i = 0; i < kBatches; ++i)
    batches.push_back(workloads::make_batch(model, {}, 1, i, device.torch_device()));

  const auto block = [&](const auto& step) {
    device.synchronize();
    const auto begin = Clock::now();
    for (std::int64_t i = 0; i < steps; ++i) step(batches[static_cast<std::size_t>(i % kBatches)]);
    device.synchronize();
    return std::chrono::duration<double, std::milli>(Clock::now() - begin).count() / static_cast<double>(steps);
  };
  const auto run_eager = [&](const workloads::Batch& batch) { eager->step(batch, 0.01); };
  const auto run_local = [&](const workloads::Batch& batch) { local.step(batch, 0.01); };
  const auto run_floor = [&](const workloads::Batch& batch) { local.floor_step(batch, 0.01); };
  const auto run_transformer_engine = [&](const workloads::Batch& batch) { transformer_engine->step(batch, 0.01); };
  const auto run_callables = [&](const workloads::Batch& batch) { callables->step(batch, 0.01); };
  run_eager(batches[0]);
  for (int i = 0; i < 2; ++i) {  // an eager step, then the captures
    run_transformer_engine(batches[0]);
    run_callables(batches[0]);
  }
  device.synchronize();
  const auto begin = Clock::now();
  run_local(batches[0]);  // eager, recorded, captured
  device.synchronize();
  const double first_ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
  std::vector<double> of_eager, of_local, of_floor, of_transformer_engine, of_callables, ratio;
  for (int i = 0; i < kBlocks; ++i) {
    of_eager.push_back(block(run_eager));
    of_local.push_back(block(run_local));
    of_floor.push_back(block(run_floor));
    of_transformer_engine.push_back(block(run_transformer_engine));
    of_callables.push_back(block(run_callables));
    ratio.push_back(of_local.back() / of_floor.back());
  }
  const engines::Counters counters = local.counters();
  std::cout << "{\"cut\": \"" << cut.name << "\", \"graphs\": " << counters.graphs
            << ", \"launches_per_step\": " << counters.launches_per_step << ", \"first_step_ms\": " << first_ms
            << ", \"eager_ms\": " << median(of_eager) << ", \"local_ms\": " << median(of_local)
            << ", \"transformer_engine_ms\": " << median(of_transformer_engine)
            << ", \"callables_ms\": " << median(of_callables) << ", \"floor_ms\": " << median(of_floor) << ", \"local_over_floor\": " << median(ratio)
            << ", \"smallest\": " << *std::min_element(ratio.begin(), ratio.end())
            << ", \"largest\": " << *std::max_element(ratio.begin(), ratio.end()) << "}" << std::endl;
  local.drop_graphs();
  transformer_engine->drop_graphs();
  callables->drop_graphs();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    std::cerr << "usage: " << argv[0] << " LAYERS HIDDEN SEQUENCE MICROBATCHES STEPS\n";
    return 2;
  }
  workloads::ModelConfig model;
  model.layers = std::atoll(argv[1]);
  model.hidden = std::atoll(argv[2]);
  model.ffn = 4 * model.hidden;
  model.heads = model.kv_groups = std::max<std::int64_t>(1, model.hidden / 64);
  model.seq_length = std::atoll(argv[3]);
  model.vocab = 1024;
  model.microbatches = std::atoll(argv[4]);
  model.dropout = 0.1;
  using workloads::ModuleKind;
  for (const Cut& cut : {Cut{"layer", {}}, Cut{"attn", {ModuleKind::attn}}, Cut{"mlp", {ModuleKind::mlp}},
                         Cut{"attn,mlp", {ModuleKind::attn, ModuleKind::mlp}}})
    measure(model, cut, std::atoll(argv[5]));
}
