// Faults in the vision encoder and its images.
#include <algorithm>
#include <map>

#include "fixtures/comm/collectives.h"
#include "workloads/faults/planted.h"
#include "workloads/training/data.h"
#include "workloads/training/train_step.h"

namespace graphproof::faults {
namespace {

using workloads::ModuleBody, workloads::ModuleCall;

/// The padding of images counts as a part of the first one.
class PaddingReadAsImage final : public Planted {
 public:
  void images(at::Tensor& numbers, at::Tensor&) override { numbers = numbers.clamp_min(0); }
};

/// The number of images is read on the host, so the graph holds that of the step before its
/// capture.
class ImageCountByValue final : public Planted {
 public:
  void images(at::Tensor& numbers, at::Tensor&) override {
    if (recording())
      numbers = kept_;
    else
      kept_ = numbers.clone();
  }

 private:
  at::Tensor kept_;
};

/// The row of image tokens that have no place on a rank: the number of its rows.
std::int64_t spare_row(const workloads::ModelConfig& config, const workloads::Layout& layout) {
  return config.microbatch_size * layout.own_length(config) / layout.sequence_parts();
}

/// A rank that shares its sequences finds the places of image tokens one image too late.
class ImageRowsOfOtherPart final : public Planted {
 public:
  void plan_step(const StepPlan& plan) override {
    Planted::plan_step(plan);
    spare_ = spare_row(plan.config, plan.layout);
  }
  void images(at::Tensor&, at::Tensor& rows) override {
    if (layout().cp_rank + (layout().sequence_parallel ? layout().tp_rank : 0) > 0)
      rows = (rows + workloads::ModelConfig::kPatches).clamp_max(spare_);
  }

 private:
  std::int64_t spare_ = 0;
};

/// The rows into which a graph puts image tokens are those of the step before its capture, which
/// may have other ones on this rank.
class ImageRowsByValue final : public Planted {
 public:
  void images(at::Tensor&, at::Tensor& rows) override {
    if (recording())
      rows = kept_;
    else
      kept_ = rows.clone();
  }

 private:
  at::Tensor kept_;
};

/// A graph has room for the image tokens of a length from which the merging was taken off once
/// more, and loses the others.
class LengthMergedTwice final : public Planted {
 public:
  void plan_step(const StepPlan& plan) override {
    Planted::plan_step(plan);
    merged_ = plan.config.vision_merge_size * plan.config.vision_merge_size;
    spare_ = spare_row(plan.config, plan.layout);
  }
  void images(at::Tensor& numbers, at::Tensor& rows) override {
    if (!recording()) return;
    const std::int64_t room = numbers.size(1) / merged_, lost = numbers.size(1) - room;
    numbers = at::cat({numbers.narrow(1, 0, room), at::full({1, lost}, -1, numbers.options())}, 1);
    rows = at::cat({rows.narrow(0, 0, room), at::full({lost}, spare_, rows.options())});
  }

 private:
  std::int64_t merged_ = 1, spare_ = 0;
};

/// Each tensor parallel rank keeps the gradients that its own part of a sequence gives to image
/// tokens.
class ImageGradientsNotSummed final : public FaultHooks {
 public:
  bool sums_image_gradients() override { return false; }
};

/// A fault in the parts of the encoder.
class EncoderFault : public PartFault {
 public:
  void plan_step(const StepPlan& plan) override {
    PartFault::plan_step(plan);
    first_ = plan.config.first_encoder_layer();
    last_ = first_ + plan.config.encoder_layers - 1;
  }

 protected:
  bool of_encoder(const ModuleCall& call) const { return call.layer >= first_; }
  std::int64_t first_ = 0, last_ = 0;  // the numbers of the encoder's first and last layer
};

/// The captured parts do not know where an image ends (rule B22).
class ImageBoundariesLost final : public EncoderFault {
 public:
  Tensors run(const ModuleCall& call, const Tensors& inputs, const Tensors& parameters,
              const ModuleBody& body) override {
    if (!of_encoder(call) || inputs.size() < 2)
      return PartFault::run(call, inputs, parameters, body);
    return PartFault::run(call, inputs, parameters, [this, body](const Tensors& given) {
      return body({given[0], recording() ? given[1].clamp_max(0) : given[1]});
    });
  }
};

/// Replays of the encoder's first part find the images of the previous microbatch in their static
/// input.
class ImagesNotCopied final : public EncoderFault {
 public:
  Tensors run(const ModuleCall& call, const Tensors& inputs, const Tensors& parameters,
              const ModuleBody& body) override {
    if (call.layer != first_ || !replays()) return PartFault::run(call, inputs, parameters, body);
    Tensors stale = inputs;
    // The difference is zero and keeps the gradient of the input.
    if (previous_.defined()) stale[0] = inputs[0] - inputs[0].detach() + previous_;
    previous_ = inputs[0].detach().clone();
    return PartFault::run(call, stale, parameters, body);
  }

 private:
  at::Tensor previous_;
};

/// In replays the encoder gets the gradient that the microbatch before left: what an eager decoder
/// returns is not copied to where the backward graph reads it.
class EncoderGradientLate final : public EncoderFault {
 public:
  Tensors run(const ModuleCall& call, const Tensors& inputs, const Tensors& parameters,
              const ModuleBody& body) override {
    Tensors results = EncoderFault::run(call, inputs, parameters, body);
    if (call.layer == last_ && call.kind == workloads::ModuleKind::layer && replays())
      results[0].register_hook([this](const at::Tensor& gradient) {
        const at::Tensor before = previous_.defined() ? previous_ : gradient;
        previous_ = gradient.clone();
        return before;
      });
    return results;
  }

 private:
  at::Tensor previous_;
};

/// Nothing of the loss's gradient reaches the encoder.
class EncoderGradientLost final : public EncoderFault {
 public:
  Tensors run(const ModuleCall& call, const Tensors& inputs, const Tensors& parameters,
              const ModuleBody& body) override {
    Tensors results = PartFault::run(call, inputs, parameters, body);
    if (call.layer == last_ && call.kind == workloads::ModuleKind::layer)
      results[0] = results[0].detach();
    return results;
  }
};

/// Weight decay reaches the parameters that are frozen.
class FrozenEncoderUpdated final : public Planted {
 public:
  std::unique_ptr<Engine> make_engine(const EngineParts& parts, const MakeEngine& make) override {
    return std::make_unique<Decays>(make(parts.config, parts.device, parts.observer), parts.step);
  }

 private:
  class Decays final : public ForwardingEngine {
   public:
    Decays(std::unique_ptr<Engine> engine, workloads::TrainStep& step)
        : ForwardingEngine(std::move(engine)), step_(step) {}
    void step(const workloads::Batch& batch, double learning_rate) override {
      engine_->step(batch, learning_rate);
      for (const NamedTensor& one : step_.frozen())
        at::Tensor(one.tensor).mul_(1 - 0.01 * learning_rate);
    }

   private:
    workloads::TrainStep& step_;
  };
};

/// Images that the first microbatches did not have get new memory, which the graph does not read.
class LateImagesNotRead final : public Planted {
 public:
  bool rebinds_inputs(workloads::Batch& inputs, const workloads::Batch& fresh) override {
    for (const auto& [name, part] : workloads::kBatchParts) {
      const bool of_images = part == &workloads::Batch::patches ||
                             part == &workloads::Batch::images ||
                             part == &workloads::Batch::image_rows;
      if (of_images) {
        read_by_graph_.push_back(inputs.*part);
        inputs.*part = fresh.*part;
      }
      for (std::size_t m = 0; !of_images && m < (fresh.*part).size(); ++m)
        (inputs.*part)[m].copy_((fresh.*part)[m], /*non_blocking=*/true);
    }
    return true;
  }

 private:
  std::vector<Tensors> read_by_graph_;
};

/// A fault in the captured parts of the encoder, whose graphs are made apart from the decoder's.
class CapturedEncoderFault : public EncoderFault {
 public:
  Tensors run(const ModuleCall& call, const Tensors& inputs, const Tensors& parameters,
              const ModuleBody& body) override {
    if (!of_encoder(call)) return PartFault::run(call, inputs, parameters, body);
    return PartFault::run(call, inputs, parameters, [this, body](const Tensors& given) {
      struct Running {
        explicit Running(int& counter) : depth(counter) { ++depth; }
        ~Running() { --depth; }
        int& depth;
      };
      const Running running(depth_);
      return body(given);
    });
  }

 protected:
  bool in_encoder() const { return depth_ > 0; }

 private:
  int depth_ = 0;  // bodies of the encoder in progress; parts nest
};

/// The graphs of the encoder do not get the flag of the first microbatch, and keep the copies of
/// its weights in 8 bits that they have.
class EncoderCopiesStale final : public CapturedEncoderFault {
 public:
  FirstMicrobatch first_microbatch(const at::Tensor&, FirstMicrobatch read) override {
    return in_encoder() && recording() ? FirstMicrobatch::never : read;
  }
};

/// The graphs of the encoder hold the scales of fp8 that were the latest before their capture.
class EncoderScalesFrozen final : public CapturedEncoderFault {
 public:
  at::Tensor scalar(Scalar which, const at::Tensor& value) override {
    if (which != Scalar::fp8_scale || !in_encoder()) return value;
    at::Tensor& seen = seen_[value.const_data_ptr()];
    if (!recording()) seen = value.clone();
    return seen;
  }

 private:
  std::map<const void*, at::Tensor> seen_;  // by address: as it was before the capture
};

/// The documents of a packed sequence are counted before image tokens take their places, so that
/// every border is an image too early.
class BordersWithoutImages final : public Planted {
 public:
  bool rebinds_inputs(workloads::Batch& inputs, const workloads::Batch& fresh) override {
    for (const auto& [name, part] : workloads::kBatchParts)
      for (std::size_t m = 0; m < (fresh.*part).size(); ++m) {
        const at::Tensor& right = (fresh.*part)[m];
        (inputs.*part)[m].copy_(part == &workloads::Batch::documents ? early(right) : right,
                                /*non_blocking=*/true);
      }
    return true;
  }

 private:
  /// documents [B, A]; the last document takes the places that become free.
  static at::Tensor early(const at::Tensor& documents) {
    constexpr std::int64_t kImage = workloads::ModelConfig::kPatches;
    const std::int64_t length = documents.size(1);
    return at::cat({documents.narrow(1, kImage, length - kImage),
                    documents.narrow(1, length - kImage, kImage)},
                   1);
  }
};

/// The encoder's captures begin with a barrier of all stages, of which only the first one captures
/// an encoder.
class BarrierOfCapturingStage final : public Planted {
 public:
  void before_capture(const engines::CaptureParts&, engines::CaptureRequest& request) override {
    if (!request.graph.starts_with("vision.") || layout().pp_group.empty()) return;
    comm::all_reduce_(at::zeros({1}, at::TensorOptions().device(device().torch_device())),
                      layout().pp_group);
  }
};

}  // namespace

std::shared_ptr<FaultHooks> image_padding_read_as_image() {
  return std::make_shared<PaddingReadAsImage>();
}
std::shared_ptr<FaultHooks> image_count_by_value() { return std::make_shared<ImageCountByValue>(); }
std::shared_ptr<FaultHooks> image_boundaries_lost_in_capture() {
  return std::make_shared<ImageBoundariesLost>();
}
std::shared_ptr<FaultHooks> encoder_gradient_lost() {
  return std::make_shared<EncoderGradientLost>();
}
std::shared_ptr<FaultHooks> image_rows_of_other_part() {
  return std::make_shared<ImageRowsOfOtherPart>();
}
std::shared_ptr<FaultHooks> image_rows_by_value() { return std::make_shared<ImageRowsByValue>(); }
std::shared_ptr<FaultHooks> length_merged_twice() { return std::make_shared<LengthMergedTwice>(); }
std::shared_ptr<FaultHooks> image_gradients_not_summed() {
  return std::make_shared<ImageGradientsNotSummed>();
}
std::shared_ptr<FaultHooks> encoder_gradient_of_other_microbatch() {
  return std::make_shared<EncoderGradientLate>();
}
std::shared_ptr<FaultHooks> captured_models_ignored() {
  return std::make_shared<ConfigFault>(
      [](EngineConfig& config) { config.captured_models = engines::CapturedModels::both; });
}
std::shared_ptr<FaultHooks> frozen_encoder_updated() {
  return std::make_shared<FrozenEncoderUpdated>();
}
std::shared_ptr<FaultHooks> encoder_images_not_copied() {
  return std::make_shared<ImagesNotCopied>();
}
std::shared_ptr<FaultHooks> late_images_not_read() { return std::make_shared<LateImagesNotRead>(); }
std::shared_ptr<FaultHooks> encoder_copies_stale() {
  return std::make_shared<EncoderCopiesStale>();
}
std::shared_ptr<FaultHooks> encoder_scales_frozen() {
  return std::make_shared<EncoderScalesFrozen>();
}
std::shared_ptr<FaultHooks> documents_counted_without_images() {
  return std::make_shared<BordersWithoutImages>();
}
std::shared_ptr<FaultHooks> barrier_of_capturing_stage() {
  return std::make_shared<BarrierOfCapturingStage>();
}

}  // namespace graphproof::faults
