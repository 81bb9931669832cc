// Faults of layouts: missing sums and exchanges between ranks, and tensors that are misinterpreted.
#include <limits>

#include "fixtures/comm/collectives.h"
#include "workloads/faults/planted.h"

namespace graphproof::faults {
namespace {

/// Rotary positions as if the tokens of a context parallel rank were contiguous.
class ContiguousPositions final : public FaultHooks {
 public:
  at::Tensor rotary_positions(const at::Tensor& positions,
                              const workloads::Layout& layout) override {
    return at::arange(positions.size(0), at::kLong) + positions.size(0) * layout.cp_rank;
  }
};

/// The gradients of keys and values do not return from the ranks that attended to them.
class GradientsNotReturned final : public FaultHooks {
 public:
  at::Tensor sent_keys_and_values(const at::Tensor& x) override { return x.detach(); }
};

/// Tokens are scanned in the order in which they arrive.
class OrderOfArrival final : public FaultHooks {
 public:
  at::Tensor scan_input(const at::Tensor&, const at::Tensor& pieces) override {
    return pieces.transpose(1, 2).flatten(0, 1);
  }
};

/// The norm is over all groups of a rank instead of each group.
class NormOverAllGroups final : public FaultHooks {
 public:
  at::Tensor mean_square(const at::Tensor&, const at::Tensor& squares) override {
    return at::mean(squares, {2, 3}, /*keepdim=*/true);
  }
};

/// The router load is that of this rank's tokens, scaled to the number of all tokens.
class LoadOfOneRank final : public Planted {
 public:
  bool sums_router_load(at::Tensor& chosen_by) override {
    chosen_by.mul_(layout().cp * layout().sequence_parts());
    return false;
  }
};

/// Partial sums of an expert's results are used as complete ones.
class PartsNotSummed final : public Planted {
 public:
  at::Tensor unsummed_part(const at::Tensor& rows) override {
    return rows.chunk(layout().etp)[static_cast<std::size_t>(layout().etp_rank)];
  }
};

/// Changes the layout by which the norm for clipping is computed.
class ClipFault final : public FaultHooks {
 public:
  explicit ClipFault(void (*change)(workloads::Layout&)) : change_(change) {}
  void clip_layout(workloads::Layout& layout) override { change_(layout); }

 private:
  void (*change_)(workloads::Layout&);
};

/// The gradients of an embedding that the first and the last stage hold are not summed, so the two
/// diverge.
class TiedNotReduced final : public FaultHooks {
 public:
  void plan_step(const StepPlan& plan) override { plan.layout.embedding_group.clear(); }
};

/// The gather of the last bucket is not started, so each rank continues with its own part of it.
class LastBucketNotGathered final : public FaultHooks {
 public:
  bool gathers(std::size_t bucket, std::size_t buckets) override { return bucket + 1 < buckets; }
};

/// The gathers are pre-hooks of the modules' own forwards, and nothing calls them once graphs
/// replace these.
class GatherHooksNotCalled final : public Planted {
 public:
  std::unique_ptr<Engine> make_engine(const EngineParts& parts, const MakeEngine& make) override {
    captures_modules_ = engines::traits_of(parts.config.impl).captures_modules();
    return Planted::make_engine(parts, make);
  }
  bool gathers(std::size_t, std::size_t buckets) override {
    return !captures_modules_ || gathered_++ < buckets;
  }

 private:
  bool captures_modules_ = false;
  std::size_t gathered_ = 0;
};

/// A bucket counts as complete after one addition to each of its gradients.
class FirstAdditionOnly final : public FaultHooks {
 public:
  std::int64_t additions(std::int64_t, std::size_t parameters) override {
    return static_cast<std::int64_t>(parameters);
  }
};

/// Replays do not run the hooks of .grad, so no bucket becomes complete.
class NoGradientHooks final : public Planted {
 public:
  void before_capture(const engines::CaptureParts&, engines::CaptureRequest&) override {
    captured_ = true;
  }
  std::int64_t additions(std::int64_t additions, std::size_t) override {
    return captured_ ? std::numeric_limits<std::int64_t>::max() : additions;
  }

 private:
  bool captured_ = false;
};

/// One rank masks NaN and removes good gradients as well. After the sum all ranks agree.
class GradientZeroed final : public PartFault {
 public:
  Tensors run(const workloads::ModuleCall& call, const Tensors& inputs, const Tensors& parameters,
              const workloads::ModuleBody& body) override {
    if (layout().dp_rank == 1 && !std::exchange(masked_, true))
      at::Tensor(parameters.front()).register_hook([](const at::Tensor& gradient) {
        return at::zeros_like(gradient);
      });
    return PartFault::run(call, inputs, parameters, body);
  }

 private:
  bool masked_ = false;
};

/// Each rank decides from its own gradients whether a step is skipped, so one rank skips steps that
/// the others take.
class DecidesAlone final : public Planted {
 public:
  bool decides_alone(at::Tensor& found) override {
    if (layout().tp_rank > 0) found.fill_(1);
    return true;
  }
};

/// Some tensors of a step are after it what they were before, as if nobody had updated them.
class NotUpdated : public Planted {
 public:
  std::unique_ptr<Engine> make_engine(const EngineParts& parts, const MakeEngine& make) override {
    return std::make_unique<Restoring>(Planted::make_engine(parts, make), chosen(parts.step));
  }

 protected:
  /// The tensors, on this rank.
  virtual Tensors chosen(workloads::TrainStep& step) const = 0;

 private:
  struct Restoring final : ForwardingEngine {
    Restoring(std::unique_ptr<Engine> engine, Tensors tensors)
        : ForwardingEngine(std::move(engine)), kept(std::move(tensors)) {}
    void step(const workloads::Batch& batch, double learning_rate) override {
      const at::NoGradGuard no_grad;
      Tensors before;
      for (const at::Tensor& one : kept) before.push_back(one.clone());
      {
        const at::AutoGradMode grad(true);
        engine_->step(batch, learning_rate);
      }
      for (std::size_t i = 0; i < kept.size(); ++i) at::Tensor(kept[i]).copy_(before[i]);
    }
    Tensors kept;
  };
};

/// One data parallel rank does not update the correction of its routers' scores.
class RouterBiasOfOneRank final : public NotUpdated {
  Tensors chosen(workloads::TrainStep& step) const override {
    Tensors tensors;
    for (const NamedTensor& one : step.optimizer_state())
      if (layout().dp_rank == 1 && one.name == "state:router_bias") tensors.push_back(one.tensor);
    return tensors;
  }
};

/// The optimizer was not given the norms.
class NormsNotUpdated final : public NotUpdated {
  Tensors chosen(workloads::TrainStep& step) const override {
    Tensors tensors;
    for (const NamedTensor& one : step.parameters())
      if (one.name.find("norm") != std::string::npos) tensors.push_back(one.tensor);
    return tensors;
  }
};

/// A stage of a pipeline hears from the others whether their gradients are infinite, and decides by
/// its own.
class StageDecidesAlone final : public Planted {
 public:
  bool decides_alone(at::Tensor& found) override {
    at::Tensor heard = found.clone();
    comm::all_reduce_(heard, layout().pp_group);
    return true;
  }
};

/// A captured evaluation has no gathers, so replays use what other ranks' parameters were when it
/// was captured.
class EvaluationWithoutGathers final : public Planted {
 public:
  std::unique_ptr<Engine> make_engine(const EngineParts& parts, const MakeEngine& make) override {
    return std::make_unique<Evaluating>(Planted::make_engine(parts, make), evaluating_);
  }
  bool gathers(std::size_t, std::size_t) override { return !(evaluating_ && recording()); }

 private:
  struct Evaluating final : ForwardingEngine {
    Evaluating(std::unique_ptr<Engine> engine, bool& now)
        : ForwardingEngine(std::move(engine)), evaluating(now) {}
    void evaluate(const workloads::Batch& batch) override {
      evaluating = true;
      engine_->evaluate(batch);
      evaluating = false;
    }
    bool& evaluating;
  };
  bool evaluating_ = false;
};

}  // namespace

std::shared_ptr<FaultHooks> contiguous_context_parallel_positions() {
  return std::make_shared<ContiguousPositions>();
}
std::shared_ptr<FaultHooks> key_value_gradients_not_returned() {
  return std::make_shared<GradientsNotReturned>();
}
std::shared_ptr<FaultHooks> chunks_scanned_in_order_of_arrival() {
  return std::make_shared<OrderOfArrival>();
}
std::shared_ptr<FaultHooks> norm_over_all_groups() { return std::make_shared<NormOverAllGroups>(); }
std::shared_ptr<FaultHooks> router_load_of_one_rank() { return std::make_shared<LoadOfOneRank>(); }
std::shared_ptr<FaultHooks> expert_parts_not_summed() { return std::make_shared<PartsNotSummed>(); }
/// The norm counts parameters that every rank holds once for each rank.
std::shared_ptr<FaultHooks> clip_norm_counts_replicas() {
  return std::make_shared<ClipFault>([](workloads::Layout& layout) { layout.tp_rank = 0; });
}
/// Each stage of a pipeline uses the norm of its own gradients.
std::shared_ptr<FaultHooks> clip_by_norm_of_one_stage() {
  return std::make_shared<ClipFault>([](workloads::Layout& layout) { layout.pp = 1; });
}
std::shared_ptr<FaultHooks> tied_embedding_not_reduced() {
  return std::make_shared<TiedNotReduced>();
}
std::shared_ptr<FaultHooks> prediction_embedding_not_reduced() {
  return std::make_shared<TiedNotReduced>();
}
std::shared_ptr<FaultHooks> last_bucket_not_gathered() {
  return std::make_shared<LastBucketNotGathered>();
}
std::shared_ptr<FaultHooks> last_bucket_not_gathered_with_fp8() {
  return last_bucket_not_gathered();
}
std::shared_ptr<FaultHooks> gather_hooks_not_called() {
  return std::make_shared<GatherHooksNotCalled>();
}
std::shared_ptr<FaultHooks> bucket_reduced_after_first_addition() {
  return std::make_shared<FirstAdditionOnly>();
}
std::shared_ptr<FaultHooks> replays_call_no_gradient_hooks() {
  return std::make_shared<NoGradientHooks>();
}
std::shared_ptr<FaultHooks> gradient_zeroed_on_one_rank() {
  return std::make_shared<GradientZeroed>();
}
std::shared_ptr<FaultHooks> skip_decided_by_one_rank() { return std::make_shared<DecidesAlone>(); }
std::shared_ptr<FaultHooks> router_bias_of_one_rank() {
  return std::make_shared<RouterBiasOfOneRank>();
}
std::shared_ptr<FaultHooks> norms_not_updated() { return std::make_shared<NormsNotUpdated>(); }
std::shared_ptr<FaultHooks> skip_decided_by_one_stage() {
  return std::make_shared<StageDecidesAlone>();
}
std::shared_ptr<FaultHooks> captured_evaluation_without_gathers() {
  return std::make_shared<EvaluationWithoutGathers>();
}

}  // namespace graphproof::faults
