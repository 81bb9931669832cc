// How fast a step is: eager, under the local engine, its floor (Local::floor_step), under the engines that capture ahead
// of time, for each cut of the model, and as one graph of the iteration.
//   graphproof-engine-speed-cuda LAYERS HIDDEN SEQUENCE MICROBATCHES STEPS
//   mpirun -n TP*DP graphproof-engine-speed-cuda LAYERS HIDDEN SEQUENCE MICROBATCHES STEPS TP DP EMPTY_FOLDER
// One JSON line for each cut, from rank 0: medians over blocks of STEPS steps, in ms a step; blocks of all take turns, so
// that clocks and neighbours hit all alike. A block begins when all ranks are there and ends with one wait for the device.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "fixtures/comm/collectives.h"
#include "fixtures/comm/process_groups.h"
#include "fixtures/comm/mpi.h"
#include "fixtures/comm/transports.h"
#include "fixtures/rank.h"
#include "workloads/engines/local.h"

namespace {

using namespace graphproof;
using Clock = std::chrono::steady_clock;

constexpr int kBlocks = 15, kBatches = 4;
constexpr comm::Milliseconds kLimit{60'000};  // nothing waits for it unless a rank is lost

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Cut {
  const char* name;
  std::vector<workloads::ModuleKind> modules;
};

void measure(capture::Device& device, const workloads::ModelConfig& model, const workloads::Layout& layout, const Cut& cut,
             std::int64_t steps, bool tells) {
  const c10::Stream stream = device.stream_from_pool();
  const c10::StreamGuard guard(stream);
  const auto make_step = [&] { return std::make_unique<workloads::TrainStep>(model, layout, device, 1, fixtures::Fault{}); };
  const auto eager_step = make_step(), local_step = make_step(), transformer_engine_step = make_step(), callables_step = make_step(),
             iteration_step = make_step();
  const auto eager = engines::make_engine({.impl = "none"}, device, stream, *eager_step, nullptr);
  engines::Local local({.impl = "local", .modules = cut.modules}, device, stream, *local_step, nullptr);
  const auto ahead = [&](const char* impl, workloads::TrainStep& step) {
    return engines::make_engine({.impl = impl, .modules = cut.modules, .warmup_steps = 1}, device, stream, step, nullptr);
  };
  const auto transformer_engine = ahead("transformer_engine", *transformer_engine_step);
  const auto callables = ahead("callables", *callables_step);
  const auto iteration = engines::make_engine({.impl = "full_iteration", .warmup_steps = 1}, device, stream, *iteration_step, nullptr);
  std::vector<workloads::Batch> batches;
  for (int i = 0; i < kBatches; ++i)
    batches.push_back(workloads::make_batch(model, layout, 1, i, device.torch_device()));

  const auto meet = [&] {
    for (const std::string& group : {layout.tp_group, layout.dp_group})
      if (!group.empty()) comm::all_reduce_(at::zeros({1}, at::TensorOptions().device(device.torch_device())), group);
    device.synchronize();
  };
  const auto block = [&](const auto& step) {
    meet();
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
  const auto run_iteration = [&](const workloads::Batch& batch) { iteration->step(batch, 0.01); };
  run_eager(batches[0]);
  for (int i = 0; i < 2; ++i) {  // an eager step, then the captures
    run_transformer_engine(batches[0]);
    run_callables(batches[0]);
    run_iteration(batches[0]);
  }
  device.synchronize();
  const auto begin = Clock::now();
  run_local(batches[0]);  // eager, recorded, captured
  device.synchronize();
  const double first_ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
  std::vector<double> of_eager, of_local, of_floor, of_transformer_engine, of_callables, of_iteration, ratio;
  for (int i = 0; i < kBlocks; ++i) {
    of_eager.push_back(block(run_eager));
    of_local.push_back(block(run_local));
    of_floor.push_back(block(run_floor));
    of_transformer_engine.push_back(block(run_transformer_engine));
    of_callables.push_back(block(run_callables));
    of_iteration.push_back(block(run_iteration));
    ratio.push_back(of_local.back() / of_floor.back());
  }
  const engines::Counters counters = local.counters();
  if (tells)
    std::cout << "{\"tp\": " << layout.tp << ", \"dp\": " << layout.dp << ", \"cut\": \"" << cut.name << "\", \"graphs\": " << counters.graphs
              << ", \"launches_per_step\": " << counters.launches_per_step << ", \"first_step_ms\": " << first_ms
              << ", \"eager_ms\": " << median(of_eager) << ", \"local_ms\": " << median(of_local)
              << ", \"transformer_engine_ms\": " << median(of_transformer_engine)
              << ", \"callables_ms\": " << median(of_callables) << ", \"full_iteration_ms\": " << median(of_iteration)
              << ", \"floor_ms\": " << median(of_floor) << ", \"local_over_floor\": " << median(ratio)
              << ", \"smallest\": " << *std::min_element(ratio.begin(), ratio.end())
              << ", \"largest\": " << *std::max_element(ratio.begin(), ratio.end()) << "}" << std::endl;
  local.drop_graphs();
  transformer_engine->drop_graphs();
  callables->drop_graphs();
  iteration->drop_graphs();
  device.synchronize();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6 && argc != 9) {
    std::cerr << "usage: " << argv[0] << " LAYERS HIDDEN SEQUENCE MICROBATCHES STEPS [TP DP EMPTY_FOLDER]\n";
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

  const fixtures::Rank rank = fixtures::this_rank();
  capture::Device& device = *capture::make_device(rank.local_rank).release();  // tensors of static objects may outlive main
  device.autograd_threads(false);
  workloads::Layout layout;
  std::unique_ptr<fixtures::FileStore> store;
  std::unique_ptr<comm::MpiWorld> world;
  std::unique_ptr<comm::ProcessGroups> groups;
  if (argc == 9) {
    layout.tp = std::atoi(argv[6]);
    layout.dp = std::atoi(argv[7]);
    if (layout.tp * layout.dp != rank.world_size) {
      std::cerr << "got " << rank.world_size << " ranks, want TP * DP = " << layout.tp * layout.dp << "\n";
      return 2;
    }
    layout.tp_rank = rank.rank % layout.tp;
    layout.dp_rank = rank.rank / layout.tp;
    layout.tp_group = "tp";
    layout.dp_group = "dp";
    store = std::make_unique<fixtures::FileStore>(argv[8]);
    world = std::make_unique<comm::MpiWorld>(rank.world_size, rank.rank);
    groups = std::make_unique<comm::ProcessGroups>(world->size(), world->rank(),
                                                   comm::make_transports(*world, *store, rank.local_rank, kLimit));
    groups->collective_limit(kLimit);
    groups->use(comm::tensor_data_groups(layout.tp, layout.dp), kLimit);
  }
  using workloads::ModuleKind;
  for (const Cut& cut : {Cut{"layer", {}}, Cut{"attn", {ModuleKind::attn}}, Cut{"mlp", {ModuleKind::mlp}},
                         Cut{"attn,mlp", {ModuleKind::attn, ModuleKind::mlp}}})
    measure(device, model, layout, cut, std::atoll(argv[5]), rank.rank == 0);
  if (groups) groups->destroy(kLimit);
  if (world) world->finalize(kLimit);
}
