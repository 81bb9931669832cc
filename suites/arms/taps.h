// Taps record the results of all operators of a training step, in execution order and with their
// place in the model, to find the first tensor in which two arms differ (divergence.h).
//
// Operators are observed where PyTorch's profilers observe them (at::RecordFunction), so the model
// is unchanged. Modules and microbatches are known from the interface by which engines take over
// parts of the model (workloads/forward/module_runner.h). Outside captures a result is copied to
// the host at once. Inside a capture the copy becomes part of the graph. Its destination was
// allocated before, so that the layout of the graph's pool does not change, and it is read after
// each replay of the graph.
//
// Not recorded is work during a capture that is not captured itself (warm-up passes, launches on
// another stream), work of an engine outside the step's forward, backward and optimizer (copies of
// state and static inputs), and work of hooks between two nodes of autograd except on the step's
// own tensors, because a replay calls hooks elsewhere by design. The copies add nodes and time, so
// a race may not happen again.
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

/// The place of a result in the step. `layer` is -1 outside the layers, `microbatch` -1 outside
/// forward and backward. `direction` is "forward", "backward", or "" outside both. `what` is the
/// tensor of the step that was written ("grad:layers.0.mlp.up.weight"), otherwise the operator.
/// `ordinal` counts the results of an operator at one place; a written tensor has one place per
/// microbatch.
struct TapPlace {
  std::int64_t microbatch = -1, layer = -1;
  std::string module, direction, what;
  std::int64_t ordinal = 0;
  auto operator<=>(const TapPlace&) const = default;
};

/// One recorded result.
struct Tap {
  TapPlace place;
  std::string op;    // "aten::mul"
  at::Tensor value;  // in host memory
};

/// The taps of one arm, which observe its engine and run the parts of its model. One thread at a
/// time, as in a step and its backward.
class Taps final : public engines::Observer, public workloads::ModuleRunner {
 public:
  /// The limit of host memory for the results of one step, in bytes.
  static constexpr std::int64_t kMostBytes = std::int64_t{1} << 30;

  /// `device` and `step` outlive the taps.
  Taps(capture::Device& device, workloads::TrainStep& step);

  /// Inserts the taps between the step and `engine`, which may run parts of the model too. Called
  /// once, after the engine was made.
  void surround(engines::Engine& engine);
  /// Allocates memory for a capture with the results `eager`. Called once, outside captures.
  void reserve(const std::vector<Tap>& eager);

  /// While it lives, all operators of the process are recorded for this arm. At most one exists at
  /// a time.
  class Step {
   public:
    explicit Step(Taps& taps);
    ~Step();
    Step(const Step&) = delete;
    Step& operator=(const Step&) = delete;

   private:
    std::uint64_t handle_;
  };

  /// The results of the latest step, in execution order. Valid until the next step begins.
  const std::vector<Tap>& taps() const { return seen_; }
  /// Whether results are missing, because of kMostBytes or because reserve() had no memory for
  /// them.
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
  /// A part of the model that is running.
  struct Region {
    workloads::ModuleCall call;
    bool weight_gradients;  // whether it computes delayed weight gradients
    /// Whether the engine works between the call and the part itself. Its copies have no
    /// counterpart in eager.
    bool engine;
  };
  /// A node of autograd: the thread that made it, and its number on that thread; -1 for no node.
  using NodeNumber = std::pair<std::uint64_t, std::int64_t>;
  /// The memory of one of the step's tensors, up to the address `end`.
  struct Owner {
    std::uint64_t end = 0;
    std::string name;
  };
  /// A result that a graph copies to `buffer`.
  struct Captured {
    TapPlace place;
    std::string op;
    at::Tensor buffer;  // on the device
  };

  /// The current place in the step.
  struct Now {
    void work(const std::optional<order::Work>& running);
    std::optional<order::Work> running;
    bool parts_ran = false;  // whether a part of the model has run since `running` began
    TapPlace last_backward;
    std::map<TapPlace, std::int64_t> ordinals;
  };

  void begin_step();
  bool engine_at_work(bool recorded) const;
  bool between_nodes() const;  // of a backward
  void keep(const std::string& op, const at::Tensor& result, NodeNumber node);
  TapPlace place_of(const Owner* written, const std::string& op, NodeNumber node);
  void nodes_from_here();
  std::optional<TapPlace> made_here() const;  // the place of the thread's next node
  TapPlace here();
  const Owner* owner(const at::Tensor& tensor) const;
  std::vector<at::Tensor> pieces(const at::Tensor& written) const;
  void add(Tap tap);

  capture::Device& device_;
  workloads::TrainStep& step_;
  workloads::ModuleRunner* next_ = nullptr;  // the engine, if it runs modules
  std::map<std::uint64_t, Owner> owners_;    // by address
  // Flat tensors for results of captures, by type and number of elements.
  std::map<std::pair<at::ScalarType, std::int64_t>, std::vector<at::Tensor>> room_;

  std::mutex mutex_;  // autograd's device thread runs operators too
  std::vector<Region> regions_;
  /// A node of autograd that is running.
  struct Running {
    bool engine;                     // whether an engine put it in place of a part of the model
    std::optional<TapPlace> around;  // the place of nodes that the thread makes after it
  };
  std::vector<Running> nodes_;
  std::map<NodeNumber, TapPlace> forward_;  // the place of nodes from this one on
  Now now_, outside_capture_;
  std::int64_t bytes_ = 0;
  bool truncated_ = false;
  std::string capturing_;                                  // the graph being captured
  std::map<std::string, std::vector<Captured>> captured_;  // by graph
  // The microbatch of the latest forward, by the common name of the graphs of a module.
  std::map<std::string, std::int64_t> replayed_microbatch_;
  std::vector<Tap> seen_;
};

}  // namespace graphproof::suites
