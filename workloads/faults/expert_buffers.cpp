// Faults in the flex dispatcher, whose numbers of rows are known on the device alone, and in the
// paged stash, whose buffers may be too small for a step.
#include <map>
#include <utility>

#include "workloads/engines/step/paged_stash.h"
#include "workloads/faults/planted.h"

namespace graphproof::faults {
namespace {

using workloads::ModuleBody, workloads::ModuleCall, workloads::ModuleKind;

/// A captured dispatch sends by other numbers of rows [E] than those of its tokens.
class OtherCounts : public PartFault {
 public:
  Tensors run(const ModuleCall& call, const Tensors& inputs, const Tensors& parameters,
              const ModuleBody& body) override {
    if (call.kind != ModuleKind::moe_preprocess)
      return PartFault::run(call, inputs, parameters, body);
    return PartFault::run(call, inputs, parameters, [this, call, body](const Tensors& given) {
      Tensors dispatch = body(given);
      at::Tensor& counts = dispatch.at(3);
      counts = recording() ? captured(call, counts) : eager(call, counts);
      return dispatch;
    });
  }

 protected:
  virtual at::Tensor captured(const ModuleCall& call, const at::Tensor& counts) = 0;
  virtual at::Tensor eager(const ModuleCall&, const at::Tensor& counts) { return counts; }
};

/// The host has read the numbers of rows before the capture, and the graph keeps them.
class CountsFrozen final : public OtherCounts {
  at::Tensor captured(const ModuleCall& call, const at::Tensor&) override {
    captured_ = true;
    return of(call);
  }
  at::Tensor eager(const ModuleCall& call, const at::Tensor& counts) override {
    if (!captured_) of(call) = counts.clone();
    return counts;
  }
  at::Tensor& of(const ModuleCall& call) { return counts_[{call.layer, call.microbatch}]; }

  bool captured_ = false;  // the graph refers to counts_ from then on
  std::map<std::pair<std::int64_t, std::int64_t>, at::Tensor> counts_;  // by layer and microbatch
};

/// The microbatches share a buffer for the numbers of rows, which is read before it is written.
class CountsOfPreviousMicrobatch final : public OtherCounts {
  at::Tensor captured(const ModuleCall& call, const at::Tensor& counts) override {
    at::Tensor& buffer = buffers_.at(call.layer);
    const at::Tensor previous = buffer.clone();
    buffer.copy_(counts);
    return previous;
  }
  at::Tensor eager(const ModuleCall& call, const at::Tensor& counts) override {
    at::Tensor& buffer = buffers_[call.layer];
    if (!buffer.defined()) buffer = at::empty_like(counts);
    buffer.copy_(counts);
    return counts;
  }

  std::map<std::int64_t, at::Tensor> buffers_;  // by layer
};

/// The rows of the last expert end one row too late, in the undefined part of a buffer.
class TailReadAsTokens final : public OtherCounts {
  at::Tensor captured(const ModuleCall&, const at::Tensor& counts) override {
    at::Tensor more = counts.clone();
    more.narrow(0, more.numel() - 1, 1).add_(1);
    return more;
  }
};

/// Numbers of rows are cut to an even share, so no buffer overflows and no flag is set.
class CountsCut final : public OtherCounts {
  at::Tensor captured(const ModuleCall&, const at::Tensor& counts) override {
    return at::minimum(counts, counts.sum().div(counts.numel(), "floor"));
  }
};

/// A fault of a step whose buffers of experts are limited.
class StashFault : public Planted {
 public:
  std::unique_ptr<Engine> make_engine(const EngineParts& parts, const MakeEngine& make) override {
    buffers_ = &parts.step.expert_buffers();
    return Planted::make_engine(parts, make);
  }

 protected:
  bool limited() const { return buffers_ && buffers_->limited(); }
  workloads::ExpertBuffers& buffers() const { return *buffers_; }
  at::Tensor flag() const { return buffers_->overflowed(); }

 private:
  workloads::ExpertBuffers* buffers_ = nullptr;  // of the step, which owns this
};

/// A captured step clears the flag at its end, before the host reads it.
class FlagNotRead final : public StashFault {
 public:
  bool updates_router_bias() override {
    if (limited() && recording()) flag().zero_();
    return true;
  }
};

/// The flag keeps what earlier steps have set.
class FlagNotCleared final : public StashFault {
 public:
  std::unique_ptr<Engine> make_engine(const EngineParts& parts, const MakeEngine& make) override {
    auto engine = StashFault::make_engine(parts, make);
    if (flag().defined()) set_ = at::zeros_like(flag());
    return engine;
  }
  bool updates_router_bias() override {
    if (limited()) flag().copy_(set_.add_(flag()));
    return true;
  }

 private:
  at::Tensor set_;
};

/// Every step begins with the first size of the buffers, so a step that needs more always runs
/// twice, and every step after it captures again.
class BuffersDoNotGrow final : public StashFault {
 public:
  std::unique_ptr<Engine> make_engine(const EngineParts& parts, const MakeEngine& make) override {
    std::unique_ptr<Engine> engine = StashFault::make_engine(parts, make);
    return std::make_unique<Shrinks>(std::move(engine), buffers());
  }

 private:
  class Shrinks final : public ForwardingEngine {
   public:
    Shrinks(std::unique_ptr<Engine> engine, workloads::ExpertBuffers& buffers)
        : ForwardingEngine(std::move(engine)), buffers_(buffers) {}
    void step(const workloads::Batch& batch, double learning_rate) override {
      if (buffers_.limited()) buffers_.limit(engines::PagedStash::first_limit(buffers_));
      ForwardingEngine::step(batch, learning_rate);
    }

   private:
    workloads::ExpertBuffers& buffers_;
  };
};

/// The second run of a step reads static inputs into which another batch has been copied since.
class RerunOfOtherBatch final : public StashFault {
 public:
  bool rebinds_inputs(workloads::Batch& inputs, const workloads::Batch&) override {
    static_ = inputs.tokens;
    other_.clear();
    for (const at::Tensor& tokens : inputs.tokens) other_.push_back(tokens.clone());
    return false;
  }
  workloads::ModuleRunner* runner(workloads::ModuleRunner* engine) override {
    captured_ |= recording();
    if (limited() && captured_ && !recording()) {
      const at::NoGradGuard no_grad;
      for (std::size_t m = 0; m < other_.size(); ++m) static_[m].copy_(other_[m]);
    }
    return engine;
  }

 private:
  bool captured_ = false;
  Tensors static_, other_;  // the static tokens, and those of the step before
};

}  // namespace

std::shared_ptr<FaultHooks> expert_counts_frozen_at_capture() {
  return std::make_shared<CountsFrozen>();
}
std::shared_ptr<FaultHooks> tail_of_buffer_read_as_tokens() {
  return std::make_shared<TailReadAsTokens>();
}
std::shared_ptr<FaultHooks> overflow_flag_not_read() { return std::make_shared<FlagNotRead>(); }
std::shared_ptr<FaultHooks> overflow_flag_not_cleared() {
  return std::make_shared<FlagNotCleared>();
}
std::shared_ptr<FaultHooks> expert_counts_cut_in_silence() { return std::make_shared<CountsCut>(); }
std::shared_ptr<FaultHooks> expert_buffers_do_not_grow() {
  return std::make_shared<BuffersDoNotGrow>();
}
std::shared_ptr<FaultHooks> rerun_of_other_batch() { return std::make_shared<RerunOfOtherBatch>(); }
std::shared_ptr<FaultHooks> expert_counts_of_previous_microbatch() {
  return std::make_shared<CountsOfPreviousMicrobatch>();
}

}  // namespace graphproof::faults
