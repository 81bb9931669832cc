// Measures the time of a step, eagerly and under each engine, with the floors of the engines
// (Engine::floor_step), the time that the GPU is busy, and the memory that graphs keep. Rank 0
// prints Markdown. These are figures and not verdicts: a missed limit is shown in its row and does
// not change the exit code.
//   graphproof-start 4 graphproof-engine-speed-cuda --store EMPTY_FOLDER
//   mpirun -n 4 graphproof-engine-speed-cuda --store EMPTY_FOLDER
//   graphproof-engine-speed-cuda --layouts tp1
// Layouts that need more ranks than there are are listed and skipped. Tracing comes last, because
// it slows everything after it (fixtures/device/device_trace.h). The program ends within
// --deadline-s in any case.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <iostream>
#include <mutex>
#include <thread>

#include "fixtures/device/device_trace.h"
#include "fixtures/tensors/torch.h"
#include "workloads/engines/speed/busy_time.h"
#include "workloads/engines/speed/measured_engines.h"
#include "workloads/engines/speed/pool_bytes.h"
#include "workloads/engines/speed/ranks.h"
#include "workloads/engines/speed/tables.h"

namespace graphproof::speed {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  workloads::ModelConfig model{.layers = 4,
                               .hidden = 256,
                               .vocab = 1024,
                               .seq_length = 128,
                               .microbatches = 4,
                               .dropout = 0.1};
  /// One rank with 4 microbatches one after another, and 4 layers whose attention scores alone are
  /// 256 MiB each.
  workloads::ModelConfig pool_model{.layers = 4,
                                    .hidden = 1024,
                                    .vocab = 1024,
                                    .seq_length = 1024,
                                    .microbatch_size = 4,
                                    .microbatches = 4};
  std::vector<std::string> layouts{"tp1", "tp2", "tp2dp2", "tp2pp2"};
  std::vector<std::string> parts{"steps", "pools", "busy"};
  std::vector<std::string> modules;
  int blocks = 11, steps = 10, traced_steps = 3;
  std::string store;
  int deadline_s = 170;

  bool has(const std::string& part) const {
    return std::find(parts.begin(), parts.end(), part) != parts.end();
  }
};

constexpr std::int64_t kHeadWidth = 64;

void complete(workloads::ModelConfig& model) {
  model.ffn = 4 * model.hidden;
  model.heads = model.kv_groups = std::max<std::int64_t>(1, model.hidden / kHeadWidth);
}

/// Ends the process when the time is up, because a lost rank leaves the others waiting in a
/// collective.
class Deadline {
 public:
  explicit Deadline(int seconds)
      : thread_([this, seconds](const std::stop_token& stop) {
          std::unique_lock lock(mutex_);
          if (changed_.wait_for(lock, stop, std::chrono::seconds(seconds), [] { return false; }) ||
              stop.stop_requested())
            return;
          std::cerr << "engine speed: got no end of " << doing_ << " within " << seconds
                    << " s of the start; want all parts by then; "
                    << "why: nothing may wait for ever; next: --parts, --layouts or --blocks for "
                       "less, --deadline-s for more\n";
          ::_exit(1);
        }) {}
  void doing(const std::string& what) {
    const std::lock_guard lock(mutex_);
    doing_ = what;
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::string doing_ = "the start";
  std::jthread thread_;
};

std::vector<double> slowest(const std::vector<std::vector<double>>& of_ranks) {
  std::vector<double> values = of_ranks.front();
  for (const std::vector<double>& rank : of_ranks)
    for (std::size_t i = 0; i < rank.size(); ++i) values[i] = std::max(values[i], rank[i]);
  return values;
}

class Bench {
 public:
  Bench(const Options& options, capture::Device& device, Ranks& ranks, Deadline& deadline)
      : options_(options), device_(device), ranks_(ranks), deadline_(deadline) {
    for (const std::string& word : options.modules)
      for (std::size_t kind = 0; kind < workloads::kModuleKinds.size(); ++kind)
        if (workloads::kModuleKinds[kind] == word)
          modules_.push_back(static_cast<workloads::ModuleKind>(kind));
  }

  void run() {
    std::vector<LayoutName> layouts;
    for (const std::string& text : options_.layouts) {
      const LayoutName layout = layout_name(text);
      if (layout.ranks() <= ranks_.size())
        layouts.push_back(layout);
      else
        print("Left out: " + layout.text() + ", which needs " + std::to_string(layout.ranks()) +
              " ranks of " + std::to_string(ranks_.size()) + ".\n");
    }
    std::vector<StepTimes> times;
    if (options_.has("steps")) {
      for (const LayoutName& layout : layouts) times.push_back(step_times(layout));
      print("Step times, ms, medians of " + std::to_string(options_.blocks) + " blocks of " +
            std::to_string(options_.steps) + " steps:\n\n" + step_table(times) + "\n" +
            gate_table(times));
    }
    if (options_.has("pools")) pools();
    if (options_.has("busy") && device_.name() != "cuda")
      print("Busy times: not measured, CUPTI knows no device " + device_.name() + ".\n");
    if (options_.has("busy") && device_.name() == "cuda") {
      fixtures::device_trace(device_,
                             [] {});  // attaches CUPTI before the graphs to be traced are made
      std::vector<BusyRow> rows;
      for (const LayoutName& layout : layouts) busy_rows(layout, times, rows);
      print("Busy times, " + std::to_string(options_.traced_steps) + " steps traced:\n\n" +
            busy_table(rows));
    }
  }

 private:
  void print(const std::string& text) const {
    if (ranks_.rank() == 0) std::cout << text << std::endl;
  }

  /// The time of a whole block in ms.
  double block(const MeasuredEngines& engines, const MeasuredStep& step,
               const workloads::Layout& layout, int steps) {
    ranks_.meet(layout);
    const auto begin = Clock::now();
    for (int i = 0; i < steps; ++i)
      step.run(engines.batches()[static_cast<std::size_t>(i) % engines.batches().size()]);
    device_.synchronize();
    return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
  }

  StepTimes step_times(const LayoutName& name) {
    deadline_.doing("step times of " + name.text());
    const workloads::Layout layout = ranks_.use(name);
    StepTimes times{.layout = name.text(), .pipeline = name.pp > 1, .block_ms = {}};
    std::vector<std::string> names;
    std::vector<double> own;  // step by step of the engines, block by block
    if (ranks_.rank() < name.ranks()) {
      const MeasuredEngines engines(device_, options_.model, layout, modules_, /*variants=*/true);
      std::vector<std::vector<double>> measured(engines.steps().size());
      for (int b = 0; b < options_.blocks; ++b)
        for (std::size_t w = 0; w < measured.size(); ++w)
          measured[w].push_back(block(engines, engines.steps()[w], layout, options_.steps) /
                                options_.steps);
      for (const MeasuredStep& step : engines.steps()) names.push_back(step.name);
      for (const std::vector<double>& of_step : measured)
        own.insert(own.end(), of_step.begin(), of_step.end());
    }
    const std::vector<double> all = slowest(ranks_.gather("step times of " + name.text(), own));
    for (std::size_t w = 0; w < names.size(); ++w)
      times.block_ms[names[w]].assign(
          all.begin() + static_cast<std::ptrdiff_t>(w) * options_.blocks,
          all.begin() + static_cast<std::ptrdiff_t>(w + 1) * options_.blocks);
    return times;
  }

  void busy_rows(const LayoutName& name, const std::vector<StepTimes>& times,
                 std::vector<BusyRow>& rows) {
    deadline_.doing("busy times of " + name.text());
    const workloads::Layout layout = ranks_.use(name);
    std::vector<BusyRow> own_rows;
    std::vector<double> compute, collectives;
    if (ranks_.rank() < name.ranks()) {
      const MeasuredEngines engines(device_, options_.model, layout, modules_, /*variants=*/false);
      for (const MeasuredStep& step : engines.steps()) {
        ranks_.meet(layout);
        const auto trace = fixtures::device_trace(device_, [&] {
          for (int i = 0; i < options_.traced_steps; ++i) step.run(engines.batches()[0]);
        });
        const BusyTime busy = busy_time(trace);
        compute.push_back(busy.compute_ms / options_.traced_steps);
        collectives.push_back(-busy.collectives_ms / options_.traced_steps);
        own_rows.push_back({.layout = name.text(),
                            .name = step.name,
                            .kernels = static_cast<double>(busy.kernels) / options_.traced_steps,
                            .graph_kernels = step.graph_kernels});
      }
    }
    compute = slowest(ranks_.gather("busy times of " + name.text(), compute));
    collectives = slowest(
        ranks_.gather("collectives of " + name.text(), collectives));  // negated, for the least
    for (std::size_t i = 0; i < own_rows.size(); ++i) {
      own_rows[i].compute_ms = compute[i];
      own_rows[i].collectives_ms = -collectives[i];
      for (const StepTimes& measured : times)
        if (measured.layout == name.text())
          own_rows[i].step_ms = median(measured.block_ms.at(own_rows[i].name));
      rows.push_back(own_rows[i]);
    }
  }

  void pools() {
    deadline_.doing("pool bytes");
    ranks_.use({});
    std::vector<PoolRow> rows;
    if (ranks_.rank() == 0) rows = pool_bytes(device_, options_.pool_model);
    print(rows.empty() ? "Pool bytes: not measured, this device's allocator keeps no peaks."
                       : "Pool bytes of one rank:\n\n" + pool_table(rows));
    ranks_.gather("pool bytes", {});
  }

  const Options& options_;
  capture::Device& device_;
  Ranks& ranks_;
  Deadline& deadline_;
  std::vector<workloads::ModuleKind> modules_;
};

int run(int count, char** arguments) {
  Options options;
  CLI::App app(
      "Step times of the engines, their floors, the GPU's busy time and pool bytes; needs as many "
      "ranks as the widest layout");
  app.add_option("--layers", options.model.layers);
  app.add_option("--hidden", options.model.hidden);
  app.add_option("--sequence", options.model.seq_length);
  app.add_option("--microbatches", options.model.microbatches);
  app.add_option("--microbatch-size", options.model.microbatch_size);
  app.add_option("--layouts", options.layouts, "such as tp1 tp2dp2 tp2pp2");
  app.add_option("--modules", options.modules,
                 "what local, transformer_engine and callables capture; none: the whole layer")
      ->check(CLI::IsMember({"attn", "mlp"}));
  app.add_option("--parts", options.parts)->check(CLI::IsMember({"steps", "busy", "pools"}));
  app.add_option("--blocks", options.blocks)->check(CLI::PositiveNumber);
  app.add_option("--steps", options.steps, "of a block")->check(CLI::PositiveNumber);
  app.add_option("--traced-steps", options.traced_steps)->check(CLI::PositiveNumber);
  app.add_option("--pool-hidden", options.pool_model.hidden);
  app.add_option("--pool-sequence", options.pool_model.seq_length);
  app.add_option("--pool-microbatch-size", options.pool_model.microbatch_size);
  app.add_option("--store", options.store, "of several ranks: a folder that is not there yet");
  app.add_option("--deadline-s", options.deadline_s)->check(CLI::PositiveNumber);
  try {
    app.parse(count, arguments);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  complete(options.model);
  complete(options.pool_model);

  Deadline deadline(options.deadline_s);
  const fixtures::Rank place = fixtures::this_rank();
  capture::Device& device = *capture::make_device(place.local_rank)
                                 .release();  // tensors of static lifetime may outlive main
  device.autograd_threads(false);
  Ranks ranks(place, device, options.store, comm::Milliseconds(1000) * options.deadline_s);
  Bench(options, device, ranks, deadline).run();
  deadline.doing("the end");
  ranks.finish();
  return 0;
}

}  // namespace
}  // namespace graphproof::speed

int main(int count, char** arguments) {
  try {
    return graphproof::speed::run(count, arguments);
  } catch (const std::exception& error) {
    std::cerr << "engine speed: " << error.what() << "\n";
    return 1;
  }
}
