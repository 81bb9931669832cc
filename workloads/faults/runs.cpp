// Faults in how the harness runs a case, and in how its ranks participate.
#include <chrono>
#include <thread>

#include "workloads/faults/planted.h"
#include "workloads/faults/stall.h"

namespace graphproof::faults {
namespace {

/// Changes the plan of the run.
class PlanFault : public FaultHooks {
 public:
  explicit PlanFault(std::function<void(RunPlan&)> change) : change_(std::move(change)) {}
  void plan_run(RunPlan& plan) override { change_(plan); }

 private:
  std::function<void(RunPlan&)> change_;
};

std::shared_ptr<FaultHooks> before_loading(std::function<void(const ResumedJob&)> change) {
  return std::make_shared<PlanFault>(
      [change = std::move(change)](RunPlan& plan) { plan.before_loading = change; });
}

/// A new process goes on with the new model's own values of the state that `prefix` names.
std::shared_ptr<FaultHooks> forgetting(const char* prefix) {
  return before_loading([prefix](const ResumedJob& job) {
    for (const NamedTensor& own : job.step.optimizer_state())
      for (NamedTensor& one : job.read)
        if (one.name == own.name && one.name.starts_with(prefix))
          one.tensor = own.tensor.to(at::kCPU, /*non_blocking=*/false, /*copy=*/true);
  });
}

/// One rank is busy with something else, such as a checkpoint or a failed disk, while its peers
/// replay a collective that waits for it.
class OneRankStalls final : public GraphFault {
 public:
  explicit OneRankStalls(std::chrono::milliseconds stall) : stall_(stall) {}

 private:
  struct Stalling final : capture::ForwardingGraph {
    Stalling(std::unique_ptr<Graph> graph, std::chrono::milliseconds how_long)
        : ForwardingGraph(std::move(graph)), stall(how_long) {}
    void replay() override {
      if (graph_->replays() == 1) std::this_thread::sleep_for(stall);
      graph_->replay();
    }
    std::chrono::milliseconds stall;
  };
  std::unique_ptr<capture::Graph> wrap(std::unique_ptr<capture::Graph> graph) override {
    if (layout().tp_rank != 1) return graph;
    return std::make_unique<Stalling>(std::move(graph), stall_);
  }

  std::chrono::milliseconds stall_;
};

/// One rank has no graph for its input and runs eagerly, while its peers replay.
class OneRankRunsEagerly final : public Planted {
 public:
  std::unique_ptr<Engine> make_engine(const EngineParts& parts, const MakeEngine& make) override {
    auto engine = make(parts.config, parts.device, parts.observer);
    const bool this_rank = layout().tp > 1 ? layout().tp_rank == 1 : layout().dp_rank == 1;
    if (!this_rank || !engine->module_runner()) return engine;
    return std::make_unique<FallsBack>(std::move(engine), parts.step);
  }

 private:
  class FallsBack final : public ForwardingEngine {
   public:
    FallsBack(std::unique_ptr<Engine> engine, workloads::TrainStep& step)
        : ForwardingEngine(std::move(engine)), step_(step) {}
    void step(const workloads::Batch& batch, double learning_rate) override {
      if (engine_->counters().replays > 0) {
        step_.module_runner(nullptr);
        ++fallbacks_;
      }
      engine_->step(batch, learning_rate);
    }
    engines::Counters counters() const override {
      engines::Counters counters = engine_->counters();
      counters.fallbacks += fallbacks_;
      return counters;
    }

   private:
    workloads::TrainStep& step_;
    std::int64_t fallbacks_ = 0;
  };
};

/// The graph of a stage sends before it receives. If the neighbour's graph sends first too, both
/// wait for ever.
class StageSendsFirst final : public Planted {
 public:
  void schedule_slot(std::vector<order::Transfer>& transfers,
                     std::optional<order::Work>&) override {
    if (recording() && layout().last_stage()) std::reverse(transfers.begin(), transfers.end());
  }
};

/// The graph of a stage runs its first two microbatches in another order than the neighbours.
class StageSwapsMicrobatches final : public Planted {
 public:
  void schedule_slot(std::vector<order::Transfer>&, std::optional<order::Work>& work) override {
    if (recording() && layout().last_stage() && work && work->microbatch < 2)
      work->microbatch = 1 - work->microbatch;
  }
};

}  // namespace

/// Another one: axis capture_stream.
std::shared_ptr<FaultHooks> blocking_stream_without_effect() {
  return std::make_shared<PlanFault>([](RunPlan& plan) { plan.blocking_stream = false; });
}
/// A setting of the case that the harness does not apply: axis autograd_threads.
std::shared_ptr<FaultHooks> setting_without_effect() {
  return std::make_shared<PlanFault>([](RunPlan& plan) { plan.autograd_threads = false; });
}
/// A program destroys its process group while a graph of a captured step still exists.
std::shared_ptr<FaultHooks> communicators_destroyed_first() {
  return std::make_shared<PlanFault>([](RunPlan& plan) { plan.communicators_first = true; });
}
/// The same by an abort, as a watchdog does.
std::shared_ptr<FaultHooks> communicators_aborted_first() {
  return std::make_shared<PlanFault>(
      [](RunPlan& plan) { plan.communicators_first = plan.abort_communicators = true; });
}
std::shared_ptr<FaultHooks> buffers_at_rank_dependent_offsets() {
  return std::make_shared<PlanFault>([](RunPlan& plan) { plan.buffers_per_rank = true; });
}
/// A job sets its parallel state up again, as it does when it resumes, and keeps the old one.
std::shared_ptr<FaultHooks> groups_made_again() {
  return std::make_shared<PlanFault>([](RunPlan& plan) { plan.groups_made_again = true; });
}
/// A job that ends leaves its communicators to the end of the process.
std::shared_ptr<FaultHooks> communicators_not_ended() {
  return std::make_shared<PlanFault>([](RunPlan& plan) { plan.communicators_kept = true; });
}
/// A kernel of tensor parallel rank 1 does not end: a spin, a fault of the GPU, or a wait for a
/// flag that nobody sets. The host has issued the whole step.
std::shared_ptr<FaultHooks> device_stalls_inside_replay() {
  return std::make_shared<PlanFault>(
      [](RunPlan& plan) { plan.stall = {.rank = 1, .group = "tp", .ahead_of = 5}; });
}
/// The same on the first stage of a pipeline, ahead of a transfer, so that the ranks of the second
/// stage wait too, which communicate with it in no other group.
std::shared_ptr<FaultHooks> device_stalls_before_transfer() {
  return std::make_shared<PlanFault>(
      [](RunPlan& plan) { plan.stall = {.rank = 1, .group = "pp.0>1", .ahead_of = 2}; });
}
/// The transport omits the join (fixtures/comm/transport/c10d.cpp); it gets the fault separately.
/// The step itself is sound.
std::shared_ptr<FaultHooks> process_group_work_not_joined() {
  return std::make_shared<FaultHooks>();
}

/// A job that asks for a new process resumes in the old one, where nothing can be missing.
std::shared_ptr<FaultHooks> job_resumes_in_old_process() {
  return std::make_shared<PlanFault>([](RunPlan& plan) { plan.new_process = false; });
}
std::shared_ptr<FaultHooks> new_process_without_optimizer_steps() {
  return forgetting("state:adam.step");
}
std::shared_ptr<FaultHooks> new_process_without_loss_scale() {
  return forgetting("state:loss_scale.");
}
std::shared_ptr<FaultHooks> new_process_without_fp8_history() { return forgetting("state:fp8"); }
std::shared_ptr<FaultHooks> new_process_without_generators() {
  return before_loading([](const ResumedJob& job) {
    std::erase_if(job.read,
                  [](const NamedTensor& one) { return one.name.starts_with("generator:"); });
  });
}
std::shared_ptr<FaultHooks> new_process_without_step() {
  return before_loading([](const ResumedJob& job) {
    for (const NamedTensor& one : job.read)
      if (one.name == "next_step") at::Tensor(one.tensor).zero_();
  });
}
/// Warm-up and capture come first, with the new model's own values. Loading copies into the memory
/// that the graphs read, so the numbers are right.
std::shared_ptr<FaultHooks> new_process_captures_before_loading() {
  return before_loading([](const ResumedJob& job) {
    for (std::int64_t step = 0; step <= job.first_replay; ++step) job.run(step);
  });
}

std::shared_ptr<FaultHooks> stalling_rank(std::chrono::milliseconds stall) {
  return std::make_shared<OneRankStalls>(stall);
}
/// The duration is only a bound: the hang detector ends the rank much earlier.
std::shared_ptr<FaultHooks> one_rank_stalls() { return stalling_rank(std::chrono::minutes(10)); }
std::shared_ptr<FaultHooks> one_rank_runs_eagerly() {
  return std::make_shared<OneRankRunsEagerly>();
}
std::shared_ptr<FaultHooks> stage_sends_before_it_receives() {
  return std::make_shared<StageSendsFirst>();
}
std::shared_ptr<FaultHooks> stage_swaps_microbatches() {
  return std::make_shared<StageSwapsMicrobatches>();
}

}  // namespace graphproof::faults
