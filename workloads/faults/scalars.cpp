// Faults of numbers that a capture takes by value or that are read at the wrong time.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>

#include "workloads/faults/planted.h"

namespace graphproof::faults {
namespace {

/// The optimizer takes the learning rate as a kernel argument, so a capture freezes it. The
/// arithmetic is the same, so that only the value differs.
class RateByValue final : public Planted {
 public:
  std::unique_ptr<Engine> make_engine(const EngineParts& parts, const MakeEngine& make) override {
    return std::make_unique<Noting>(Planted::make_engine(parts, make), rate_);
  }
  at::Tensor scalar(Scalar which, const at::Tensor& value) override {
    return which == Scalar::learning_rate ? at::full({}, rate_, value.options()) : value;
  }

 private:
  struct Noting final : ForwardingEngine {
    Noting(std::unique_ptr<Engine> engine, double& to)
        : ForwardingEngine(std::move(engine)), rate(to) {}
    void step(const workloads::Batch& batch, double learning_rate) override {
      rate = learning_rate;
      engine_->step(batch, learning_rate);
    }
    double& rate;
  };
  double rate_ = 0;  // as the host knows it
};

/// The optimizer counts its steps on the host, as torch::optim::Adam does. A capture freezes the
/// number, and with it the bias correction.
class StepByValue final : public FaultHooks {
 public:
  at::Tensor scalar(Scalar which, const at::Tensor& value) override {
    if (which == Scalar::adam_step) at::Tensor(value).fill_(static_cast<double>(++steps_));
    return value;
  }

 private:
  std::int64_t steps_ = 0;
};

/// The backward takes the loss scale by value, so a capture freezes it.
class LossScaleByValue final : public Planted {
 public:
  std::unique_ptr<Engine> make_engine(const EngineParts& parts, const MakeEngine& make) override {
    return std::make_unique<Reading>(Planted::make_engine(parts, make), parts.step, scale_);
  }
  at::Tensor scalar(Scalar which, const at::Tensor& value) override {
    return which == Scalar::loss_scale && scale_ ? at::full({}, *scale_, value.options()) : value;
  }

 private:
  /// Reads the scale before each step until the first replay.
  struct Reading final : ForwardingEngine {
    Reading(std::unique_ptr<Engine> engine, workloads::TrainStep& of, std::optional<double>& to)
        : ForwardingEngine(std::move(engine)), step_(of), scale(to) {}
    void step(const workloads::Batch& batch, double learning_rate) override {
      if (engine_->counters().replays == 0)
        for (const NamedTensor& state : step_.optimizer_state())
          if (state.name == "state:loss_scale.scale") scale = state.tensor.item<double>();
      engine_->step(batch, learning_rate);
    }
    workloads::TrainStep& step_;
    std::optional<double>& scale;
  };
  std::optional<double> scale_;  // as the host knows it
};

/// The number of tokens over which a loss is averaged is a number of the host, so the graphs of a
/// length go on with those of the first batch that had it.
class TokenCountByValue final : public Planted {
 public:
  void plan_step(const StepPlan& plan) override {
    microbatches_ = plan.config.microbatches;
    Planted::plan_step(plan);
  }
  std::unique_ptr<Engine> make_engine(const EngineParts& parts, const MakeEngine& make) override {
    captures_ = captures_ || engines::traits_of(parts.config.impl).captures();
    return Planted::make_engine(parts, make);
  }
  at::Tensor padded_weights(const at::Tensor& weights) override {
    Tensors& first = first_[weights.size(1)];  // a weight of each microbatch: 1 / its tokens
    std::int64_t& calls = calls_[weights.size(1)];
    const auto microbatch = static_cast<std::size_t>(calls++ % microbatches_);
    if (microbatch >= first.size()) first.push_back(weights.max());
    return captures_ ? weights.gt(0) * first[microbatch] : weights;
  }

 private:
  std::int64_t microbatches_ = 0;
  bool captures_ = false;
  std::map<std::int64_t, Tensors> first_;       // by padded length
  std::map<std::int64_t, std::int64_t> calls_;  // likewise
};

/// How many steps a job runs before the host decides something new: more than any arm of which
/// results are compared, and fewer than the arms that run alone.
constexpr std::int64_t kLaterStep = 8;

/// Counts the steps of the engines of one training step.
class CountsSteps : public Planted {
 public:
  std::unique_ptr<Engine> make_engine(const EngineParts& parts, const MakeEngine& make) override {
    return std::make_unique<Counting>(Planted::make_engine(parts, make), *this);
  }

 protected:
  /// Before step number `steps`, from 1.
  virtual void begin(std::int64_t steps) = 0;

 private:
  struct Counting final : ForwardingEngine {
    Counting(std::unique_ptr<Engine> engine, CountsSteps& of)
        : ForwardingEngine(std::move(engine)), owner(of) {}
    void step(const workloads::Batch& batch, double learning_rate) override {
      owner.begin(++owner.steps_);
      engine_->step(batch, learning_rate);
    }
    CountsSteps& owner;
  };
  std::int64_t steps_ = 0;
};

/// The host reads a factor of the learning rate from a file before each step, and the update takes
/// it by value. Somebody changes the file while the job runs.
class FactorFromFile final : public CountsSteps {
 public:
  FactorFromFile() : file_(std::tmpfile()) { write("1.0"); }
  ~FactorFromFile() override { std::fclose(file_); }
  at::Tensor scalar(Scalar which, const at::Tensor& value) override {
    return which == Scalar::learning_rate ? value * factor_ : value;
  }

 private:
  void begin(std::int64_t steps) override {
    if (steps == kLaterStep) write("0.5");
    std::rewind(file_);
    if (std::fscanf(file_, "%lf", &factor_) != 1)
      throw std::runtime_error("the file of the factor has no number");
  }
  void write(const char* text) {
    std::rewind(file_);
    std::fputs(text, file_);
    std::fflush(file_);
  }

  std::FILE* const file_;
  double factor_ = 1;
};

/// After a number of steps the host begins to limit the learning rate, which is an operation more.
/// The limit is above every rate, so that no number changes.
class LimitsRateLater final : public CountsSteps {
 public:
  at::Tensor scalar(Scalar which, const at::Tensor& value) override {
    return which == Scalar::learning_rate && limits_ ? value.clamp_max(1) : value;
  }

 private:
  void begin(std::int64_t steps) override { limits_ = steps >= kLaterStep; }
  bool limits_ = false;
};

/// The host numbers the layers that it runs and writes the number into a tensor that nobody
/// compares, as a record of progress.
class NumbersLayers final : public FaultHooks {
 public:
  bool counts_layer(std::int64_t, const at::Tensor& counter) override {
    if (!progress_.defined()) progress_ = at::zeros({}, counter.options());
    progress_.fill_(++layers_);
    return true;
  }

 private:
  at::Tensor progress_;  // [] int64
  std::int64_t layers_ = 0;
};

/// Graphs read the flag of the first microbatch from elsewhere.
class FlagFault final : public FaultHooks {
 public:
  explicit FlagFault(FirstMicrobatch in_graphs) : in_graphs_(in_graphs) {}
  FirstMicrobatch first_microbatch(const at::Tensor&, FirstMicrobatch read) override {
    return read == FirstMicrobatch::on_device ? in_graphs_ : read;
  }

 private:
  FirstMicrobatch in_graphs_;
};

/// A capture runs every layer with rounded weights, also the first and the last.
class RoundsEveryLayer final : public Planted {
 public:
  void plan_step(const StepPlan& plan) override {
    Planted::plan_step(plan);
    if (!std::exchange(plan.config.first_last_layers_bf16, false)) return;
    unrounded_ = {"layers.0.", "layers." + std::to_string(plan.config.layers - 1) + "."};
  }
  std::unique_ptr<Engine> make_engine(const EngineParts& parts, const MakeEngine& make) override {
    for (const NamedTensor& parameter : parts.step.parameters())
      for (const std::string& layer : unrounded_)
        if (parameter.name.starts_with("param:" + layer))
          weights_.insert(parameter.tensor.unsafeGetTensorImpl());
    return std::make_unique<WithoutCopies>(Planted::make_engine(parts, make), unrounded_);
  }
  FirstMicrobatch first_microbatch(const at::Tensor& weight, FirstMicrobatch read) override {
    return !recording() && weights_.contains(weight.unsafeGetTensorImpl()) ? FirstMicrobatch::none
                                                                           : read;
  }

 private:
  /// The sound step has no copies of these layers' weights, so they are not outputs here either.
  struct WithoutCopies final : ForwardingEngine {
    WithoutCopies(std::unique_ptr<Engine> engine, std::vector<std::string> prefixes)
        : ForwardingEngine(std::move(engine)), layers(std::move(prefixes)) {}
    std::vector<NamedTensor> outputs() override {
      std::vector<NamedTensor> all = engine_->outputs();
      std::erase_if(all, [&](const NamedTensor& one) {
        return std::any_of(layers.begin(), layers.end(), [&](const std::string& layer) {
          return one.name.starts_with("fp8:" + layer);
        });
      });
      return all;
    }
    std::vector<std::string> layers;
  };

  std::vector<std::string> unrounded_;  // prefixes of names
  std::set<const void*> weights_;       // of the layers that are not rounded
};

/// A capture takes the scale of each cast to fp8 by value.
class Fp8ScaleByValue final : public Planted {
 public:
  at::Tensor scalar(Scalar which, const at::Tensor& value) override {
    if (which != Scalar::fp8_scale) return value;
    at::Tensor& seen = seen_[value.const_data_ptr()];
    if (!recording()) seen = value.clone();
    return seen;
  }

 private:
  std::map<const void*, at::Tensor> seen_;  // by address: as it was before the capture
};

/// A capture takes the scales of blocks by value, of the last cast before it.
class BlockScalesByValue final : public Planted {
 public:
  void block_scales(const BlockCast& cast, at::Tensor& of_block, at::Tensor& of_tensor) override {
    auto& [blocks, tensor] = seen_[cast];
    if (!recording()) {
      blocks = of_block.clone();
      tensor = of_tensor.defined() ? of_tensor.clone() : at::Tensor();
    } else if (blocks.defined() && blocks.sizes() == of_block.sizes()) {
      of_block = blocks;
      of_tensor = tensor;
    }
  }

 private:
  std::map<BlockCast, std::pair<at::Tensor, at::Tensor>> seen_;
};

/// A capture casts columns from the numbers to which rows were rounded.
class CastsRoundedColumns final : public Planted {
 public:
  void before_column_cast(at::Tensor& x, const std::function<at::Tensor()>& rounded) override {
    if (recording()) x = rounded();
  }
};

/// Every part whose graph casts to fp8 also reduces over the ranks what was noted so far, besides
/// the one reduction on leaving the context.
class ReducesInEveryGraph final : public Planted {
 public:
  void before_fp8_input(const std::function<void()>& reduce) override {
    if (recording()) reduce();
  }
};

/// Once there are graphs, the scales of fp8 are not updated after some microbatches.
class LeavesNoContext final : public FaultHooks {
 public:
  /// `period`: one microbatch in so many still updates them; 0 is none.
  explicit LeavesNoContext(std::int64_t period) : period_(period) {}
  void before_capture(const engines::CaptureParts&, engines::CaptureRequest&) override {
    captured_ = true;
  }
  bool leaves_fp8_context(std::int64_t microbatch) override {
    return !captured_ || (period_ > 0 && microbatch % period_ == period_ - 1);
  }

 private:
  std::int64_t period_;
  bool captured_ = false;
};

/// From its second step on, a model keeps the copies of its weights that it has.
class KeepsOldCopies final : public FaultHooks {
 public:
  FirstMicrobatch first_microbatch(const at::Tensor& weight, FirstMicrobatch read) override {
    const void* of = weight.unsafeGetTensorImpl();
    return calls_[of]++ < 1 ? read : FirstMicrobatch::never;
  }

 private:
  std::map<const void*, std::int64_t> calls_;  // by weight
};

/// A wrapper around replayed modules omits the host's check once they are captured.
class ChecksStop final : public FaultHooks {
 public:
  bool host_checks(std::int64_t checked) override { return checked == 0; }
};

}  // namespace

std::shared_ptr<FaultHooks> learning_rate_by_value() { return std::make_shared<RateByValue>(); }
std::shared_ptr<FaultHooks> adam_step_by_value() { return std::make_shared<StepByValue>(); }
std::shared_ptr<FaultHooks> loss_scale_by_value() { return std::make_shared<LossScaleByValue>(); }
std::shared_ptr<FaultHooks> rate_factor_from_file() { return std::make_shared<FactorFromFile>(); }
std::shared_ptr<FaultHooks> rate_limited_after_some_steps() {
  return std::make_shared<LimitsRateLater>();
}
std::shared_ptr<FaultHooks> token_count_by_value() { return std::make_shared<TokenCountByValue>(); }
std::shared_ptr<FaultHooks> layer_number_by_value() { return std::make_shared<NumbersLayers>(); }
/// The capture takes the flag by value from the host.
std::shared_ptr<FaultHooks> first_microbatch_flag_by_value() {
  return std::make_shared<FlagFault>(FirstMicrobatch::on_host);
}
/// The capture takes the flag as false, so no replay makes copies, and the copies of earlier
/// weights remain in use.
std::shared_ptr<FaultHooks> first_microbatch_flag_frozen_false() {
  return std::make_shared<FlagFault>(FirstMicrobatch::never);
}
std::shared_ptr<FaultHooks> unrounded_layers_rounded_in_capture() {
  return std::make_shared<RoundsEveryLayer>();
}
std::shared_ptr<FaultHooks> fp8_scale_by_value() { return std::make_shared<Fp8ScaleByValue>(); }
std::shared_ptr<FaultHooks> block_scales_by_value() {
  return std::make_shared<BlockScalesByValue>();
}
std::shared_ptr<FaultHooks> columns_cast_from_rounded_rows() {
  return std::make_shared<CastsRoundedColumns>();
}
std::shared_ptr<FaultHooks> amax_reduced_in_every_graph() {
  return std::make_shared<ReducesInEveryGraph>();
}
std::shared_ptr<FaultHooks> fp8_context_missing_at_replay() {
  return std::make_shared<LeavesNoContext>(/*period=*/0);
}
std::shared_ptr<FaultHooks> amax_history_shared_by_two_microbatches() {
  return std::make_shared<LeavesNoContext>(/*period=*/2);
}
std::shared_ptr<FaultHooks> fp8_copies_stale_over_a_step() {
  return std::make_shared<KeepsOldCopies>();
}
std::shared_ptr<FaultHooks> nan_checks_stop_after_capture() {
  return std::make_shared<ChecksStop>();
}

}  // namespace graphproof::faults
