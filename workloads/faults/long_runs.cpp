// Faults that show only in a job that lives long: after hundreds of replays, or when its graphs are
// captured again.
#include <fcntl.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdint>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "fixtures/device/faults/kept_graph.h"
#include "workloads/faults/planted.h"

namespace graphproof::faults {
namespace {

/// A fault in every replay of a step, counted over all its graphs.
class ReplayFault : public GraphFault {
 protected:
  /// Called before replay number `replay`, from 0.
  virtual void before_replay(std::int64_t replay) = 0;

 private:
  struct Counted final : capture::ForwardingGraph {
    Counted(std::unique_ptr<capture::Graph> graph, ReplayFault& of)
        : ForwardingGraph(std::move(graph)), fault(of) {}
    void replay() override {
      fault.before_replay(fault.replays_++);
      graph_->replay();
    }
    ReplayFault& fault;
  };
  std::unique_ptr<capture::Graph> wrap(std::unique_ptr<capture::Graph> graph) override {
    return std::make_unique<Counted>(std::move(graph), *this);
  }
  std::int64_t replays_ = 0;
};

/// A cache in front of the replays is full, and what does not fit is kept elsewhere for ever.
class KeepsHostMemoryLater final : public ReplayFault {
  static constexpr std::int64_t kCached = 100;
  static constexpr std::size_t kBytes = 16 << 10;
  void before_replay(std::int64_t replay) override {
    if (replay >= kCached) kept_.emplace_back(kBytes, 'x');
  }
  std::vector<std::string> kept_;
};

/// Every replay notes something about itself, a few hundred bytes, and never forgets it.
class KeepsNotes final : public ReplayFault {
  static constexpr std::size_t kBytes = 512;
  void before_replay(std::int64_t) override { kept_.emplace_back(kBytes, 'x'); }
  std::list<std::string> kept_;
};

/// A generator's offset is counted in a byte of replays, and wraps to where it began.
class OffsetWraps final : public ReplayFault {
  static constexpr std::int64_t kReplays = 256;
  std::unique_ptr<Engine> make_engine(const EngineParts& parts, const MakeEngine& make) override {
    step_ = &parts.step;
    return ReplayFault::make_engine(parts, make);
  }
  void before_replay(std::int64_t replay) override {
    std::vector<at::Generator> generators = step_->rng().generators();
    if (replay == 0)
      for (const at::Generator& generator : generators) first_.push_back(generator.get_state());
    if (replay > 0 && replay % kReplays == 0)
      for (std::size_t i = 0; i < generators.size(); ++i) generators[i].set_state(first_[i]);
  }
  workloads::TrainStep* step_ = nullptr;
  std::vector<at::Tensor> first_;  // the states before the first replay
};

/// Knows whether the graphs of a step are captured again.
class RecaptureFault : public GraphFault {
 public:
  std::unique_ptr<Engine> make_engine(const EngineParts& parts, const MakeEngine& make) override {
    if (engines::traits_of(parts.config.impl).captures()) ++engines_;
    return GraphFault::make_engine(parts, make);
  }

 protected:
  bool captures() const { return engines_ > 0; }
  bool captures_again() const { return engines_ > 1; }
  std::unique_ptr<capture::Graph> wrap(std::unique_ptr<capture::Graph> graph) override {
    return graph;
  }

 private:
  std::int64_t engines_ = 0;  // with graphs
};

/// Each recapture starts a thread that watches the new graphs, and nobody ends the old one.
class LeavesThread final : public RecaptureFault {
 public:
  ~LeavesThread() override {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    end_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  std::unique_ptr<Engine> make_engine(const EngineParts& parts, const MakeEngine& make) override {
    auto engine = RecaptureFault::make_engine(parts, make);
    if (captures_again())
      threads_.emplace_back([this] {
        std::unique_lock lock(mutex_);
        end_.wait(lock, [this] { return ended_; });
      });
    return engine;
  }

 private:
  std::mutex mutex_;
  std::condition_variable end_;
  bool ended_ = false;
  std::vector<std::thread> threads_;
};

/// A checkpoint opens a file and does not close it.
class LeavesDescriptor final : public RecaptureFault {
 public:
  ~LeavesDescriptor() override {
    for (const int descriptor : descriptors_) ::close(descriptor);
  }
  bool saves_random_numbers() override {
    // An eager job that lost as many would hide it.
    if (captures()) descriptors_.push_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    return true;
  }

 private:
  std::vector<int> descriptors_;
};

/// A recapture keeps the executable graphs that it should replace.
class KeepsExecutable final : public RecaptureFault {
  std::unique_ptr<capture::Graph> wrap(std::unique_ptr<capture::Graph> graph) override {
    if (!captures_again()) return graph;
    return capture::kept_graph(std::move(graph), capture::KeptBy::leak);
  }
};

/// Inputs are staged in a ring, and its index wraps one place too early: from then on each step has
/// the inputs of the one before.
class RingWraps final : public Planted {
 public:
  std::unique_ptr<Engine> make_engine(const EngineParts& parts, const MakeEngine& make) override {
    auto engine = make(parts.config, parts.device, parts.observer);
    if (!engines::traits_of(parts.config.impl).captures()) return engine;
    return std::make_unique<Ring>(std::move(engine), replayed_);
  }

 private:
  static constexpr std::int64_t kPlaces = 300;
  class Ring final : public ForwardingEngine {
   public:
    Ring(std::unique_ptr<Engine> engine, std::int64_t& replayed)
        : ForwardingEngine(std::move(engine)), replayed_(replayed) {}
    void step(const workloads::Batch& batch, double learning_rate) override {
      if (engine_->counters().replays > 0) ++replayed_;
      engine_->step(replayed_ > kPlaces && before_ ? *before_ : batch, learning_rate);
      before_ = batch;
    }

   private:
    std::int64_t& replayed_;  // steps, of all engines of the job
    std::optional<workloads::Batch> before_;
  };
  std::int64_t replayed_ = 0;
};

}  // namespace

std::shared_ptr<FaultHooks> host_memory_kept_after_many_replays() {
  return std::make_shared<KeepsHostMemoryLater>();
}
std::shared_ptr<FaultHooks> notes_kept_by_replays() { return std::make_shared<KeepsNotes>(); }
std::shared_ptr<FaultHooks> thread_left_by_recapture() { return std::make_shared<LeavesThread>(); }
std::shared_ptr<FaultHooks> descriptor_left_by_checkpoint() {
  return std::make_shared<LeavesDescriptor>();
}
std::shared_ptr<FaultHooks> executable_kept_by_recapture() {
  return std::make_shared<KeepsExecutable>();
}
std::shared_ptr<FaultHooks> staged_inputs_wrap() { return std::make_shared<RingWraps>(); }
std::shared_ptr<FaultHooks> random_offset_wraps() { return std::make_shared<OffsetWraps>(); }

}  // namespace graphproof::faults
