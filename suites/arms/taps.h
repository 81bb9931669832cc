// What every operator of a training step left, in execution order, with the place in the model that
// it belongs to: for finding the first tensor in which two arms differ (suites/arms/divergence.h).
//
// Operators are seen where PyTorch's profilers see them (at::RecordFunction), so the model takes no
// part; modules and microbatches come from the seam at which engines take over parts of the model
// (workloads/forward/module_runner.h). Outside captures a result is copied to the host at once.
// Inside one the copy becomes part of the graph and goes to memory that was set aside before, so
// that the graph's own pool is laid out as without taps; it is read after each replay of that
// graph. Work that runs beside a capture without being recorded (warm-up passes, a launch on
// another stream) is not seen, nor what an engine does outside the step's own forward, backward and
// optimizer (copies of state, static inputs), nor what hooks do between two of autograd's nodes but
// for the step's own tensors: a replay calls them elsewhere by design. Copies add nodes and time: a
// race may not show again.
#pragma once

#include <ATen/ATen.h>

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fixtures/device/device.h"
#include "workloads/engines/capture/engine.h"
#include "workloads/forward/module_runner.h"
#include "workloads/training/train_step.h"

namespace graphproof::suites {

/// `layer` -1: outside the layers; `microbatch` -1: outside forward and backward. `direction`:
/// "forward", "backward", or "" outside both. `what`: the tensor of the step that was written
/// ("grad:layers.0.mlp.up.weight"), else the operator. `ordinal` counts an operator's results at
/// one place; a written tensor has one place for each microbatch.
struct TapPlace {
  std::int64_t microbatch = -1, layer = -1;
  std::string module, direction, what;
  std::int64_t ordinal = 0;
  auto operator<=>(const TapPlace&) const = default;
};

struct Tap {
  TapPlace place;
  std::string op;    // "aten::mul"
  at::Tensor value;  // on the host
};

/// The taps of one arm: observer of its engine and runner of its model's parts. One thread at a
/// time, as a step and its backward are.
class Taps final : public engines::Observer, public workloads::ModuleRunner {
 public:
  /// No more is kept of one step (bytes of host memory).
  static constexpr std::int64_t kMostBytes = std::int64_t{1} << 30;

  /// Both outlive it.
  Taps(capture::Device& device, workloads::TrainStep& step);

  /// Puts itself between the step and `engine`, which may be a runner itself. Once, after the
  /// engine was made.
  void surround(engines::Engine& engine);
  /// Sets memory aside for a capture whose results are like `eager`'s. Once, outside captures.
  void reserve(const std::vector<Tap>& eager);

  /// While it lives, operators of this process are this arm's; at most one lives at a time.
  class Step {
   public:
    explicit Step(Taps& taps);
    ~Step();
    Step(const Step&) = delete;
    Step& operator=(const Step&) = delete;

   private:
    std::uint64_t handle_;
  };

  /// Of the latest step, in execution order. Valid until the next one begins.
  const std::vector<Tap>& taps() const { return seen_; }
  /// Some were left out: kMostBytes was reached, or reserve() had no room for them.
  bool truncated() const { return truncated_; }

  void before_capture(const std::string& graph,
                      const std::vector<fixtures::NamedTensor>& state) override;
  void after_capture(const engines::CaptureReport& report,
                     const std::vector<fixtures::NamedTensor>& state) override;
  void after_replay(const std::string& graph,
                    const std::vector<fixtures::NamedTensor>& outputs) override;

  std::vector<at::Tensor> run(const workloads::ModuleCall& call,
                              const std::vector<at::Tensor>& inputs,
                              const std::vector<at::Tensor>& parameters,
                              const workloads::ModuleBody& body) override;
  void run_weight_gradients(const workloads::ModuleCall& call,
                            const std::function<void()>& body) override;
  bool captures_parts() const override { return next_ && next_->captures_parts(); }

 private:
  struct Callbacks;
  class Inside;
  struct Region {
    workloads::ModuleCall call;
    bool weight_gradients;  // those that the part's backward left for later
    bool engine;  // between the call and the part's own work: the engine's copies, which eager does
                  // not have
  };
  using NodeNumber = std::pair<std::uint64_t, std::int64_t>;  // the thread that made it, which
                                                              // counts its own; -1: none
  struct Owner {
    std::uint64_t end = 0;
    std::string name;
  };
  struct Captured {
    TapPlace place;
    std::string op;
    at::Tensor buffer;  // on the device
  };

  /// Where in the step the work is.
  struct Now {
    void work(const std::optional<order::Work>& running);
    std::optional<order::Work> running;
    bool parts_ran = false;  // since it began
    TapPlace last_backward;
    std::map<TapPlace, std::int64_t> ordinals;
  };

  void begin_step();
  bool engine_at_work(bool recorded) const;
  bool between_nodes() const;  // of a backward
  void keep(const std::string& op, const at::Tensor& result, NodeNumber node);
  TapPlace place_of(const Owner* written, const std::string& op, NodeNumber node);
  void nodes_from_here();
  std::optional<TapPlace> made_here() const;  // where the thread's next node would belong
  TapPlace here();
  const Owner* owner(const at::Tensor& tensor) const;
  std::vector<at::Tensor> pieces(const at::Tensor& written) const;
  void add(Tap tap);

  capture::Device& device_;
  workloads::TrainStep& step_;
  workloads::ModuleRunner* next_ = nullptr;  // the engine, where it runs modules itself
  std::map<std::uint64_t, Owner> owners_;    // by address
  std::map<std::pair<at::ScalarType, std::int64_t>, std::vector<at::Tensor>>
      room_;  // flat, by type and elements

  std::mutex mutex_;  // autograd's device thread runs operators too
  std::vector<Region> regions_;
  struct Running {
    bool engine;                     // an engine put it in place of a part of the model
    std::optional<TapPlace> around;  // where nodes that the thread makes belong once it has run
  };
  std::vector<Running> nodes_;              // of autograd
  std::map<NodeNumber, TapPlace> forward_;  // where nodes from this one on were made
  Now now_, outside_capture_;
  std::int64_t bytes_ = 0;
  bool truncated_ = false;
  std::string capturing_;                                  // the graph being captured
  std::map<std::string, std::vector<Captured>> captured_;  // by graph
  std::map<std::string, std::int64_t>
      replayed_microbatch_;  // by module graphs: of the latest forward
  std::vector<Tap> seen_;
};

}  // namespace graphproof::suites
