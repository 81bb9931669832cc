#include "workloads/training/train_step.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <utility>

#include "fixtures/comm/collectives.h"
#include "fixtures/tensors/torch.h"
#include "workloads/config/precision.h"
#include "workloads/forward/exchange_stream.h"
#include "workloads/layers/fp8_weights.h"
#include "workloads/model/gpt.h"
#include "workloads/model/layer_schedule.h"
#include "workloads/model/vision_encoder.h"
#include "workloads/parameters/parameter_gather.h"
#include "workloads/parameters/parameter_shards.h"
#include "workloads/parameters/parameters.h"
#include "workloads/training/gradient_reduction.h"
#include "workloads/training/host_checks.h"
#include "workloads/training/optimizer.h"
#include "workloads/training/pipeline.h"
#include "workloads/training/schedule_ledger.h"

namespace graphproof::workloads {
namespace {

void require_divides(const char* what, std::int64_t value, const char* by, std::int64_t divisor) {
  if (divisor > 0 && value % divisor == 0) return;
  throw std::invalid_argument(std::string("model layout: got ") + what + " = " +
                              std::to_string(value) + " and " + by + " = " +
                              std::to_string(divisor) +
                              "; want a multiple; why: every rank holds an equal part; "
                              "next: change " +
                              what + " or " + by);
}

void require_predictable(const ModelConfig& config) {
  const bool rope = config.position_embedding == PositionEmbedding::rope;
  if (rope && config.encoder_layers == 0 && config.mtp_num_layers < config.seq_length &&
      (config.mtp_num_layers == 1 || !config.overlap_ep_comm))
    return;
  throw std::invalid_argument(
      "multi-token prediction: got learned positions, images, several layers that overlap their "
      "exchanges, or sequences of " +
      std::to_string(config.seq_length) + " tokens; want none of these and more tokens than the " +
      std::to_string(config.mtp_num_layers) +
      " layers; why: they shift the tokens of a whole sequence, after all layers of the decoder, "
      "and upstream's schedule by layers has one of them (R099); next: leave these options out, or "
      "set mtp_num_layers to 0");
}

void require_castable(const ModelConfig& config) {
  if (config.precision == Precision::fp32 && !config.fp8_weights && !config.overlap_ep_comm &&
      config.attention_kernel == AttentionKernel::math)
    return;
  throw std::invalid_argument(
      std::string("autocast: got parameters in ") + name_of(config.precision) +
      ", weights in fp8, layers that overlap their exchanges, or a fused attention kernel; want "
      "none of these and parameters in fp32; why: there would be nothing to cast, or products that "
      "autocast does not know; next: leave these options out, or set autocast to none");
}

void require_offloadable(const ModelConfig& config, const Layout& layout) {
  if (layout.pp == 1 && !config.recompute.any() && config.experts == 0 &&
      config.encoder_layers == 0 && !config.grad_accumulation_fusion && !config.delay_wgrad &&
      !is_quantized(config.precision))
    return;
  throw std::invalid_argument(
      "activation offload: got a pipeline of " + std::to_string(layout.pp) +
      " stages, recompute, experts, images, weight gradients that are added elsewhere, or products "
      "in 8 or 4 bits; want one stage and none of these; why: one set of host buffers has the "
      "inputs of linear layers, in the order of one forward (R111, R112); next: leave these "
      "options "
      "out, or set cpu_offload to false");
}

ModelConfig checked(const ModelConfig& config, const Layout& layout) {
  if (config.cpu_offload) require_offloadable(config, layout);
  if (config.autocast) require_castable(config);
  require_divides("hidden", config.hidden, "heads", config.heads);
  if (config.position_embedding == PositionEmbedding::rope)
    require_divides("hidden / heads", config.hidden / config.heads, "2 (rotary pairs)", 2);
  if (config.multi_latent_attention) {
    require_divides("hidden / heads", config.head_width(),
                    "4 (rotary pairs of half a head in latent attention)", 4);
    require_divides("kv_groups", config.kv_groups, "heads in latent attention", config.heads);
  }
  if (config.mtp_num_layers > 0) require_predictable(config);
  require_divides("heads", config.heads, "kv_groups", config.kv_groups);
  require_divides("kv_groups", config.kv_groups, "tp", layout.tp);
  require_divides("ffn", config.ffn, "tp", layout.tp);
  require_divides("layers", config.layers, "pp * vpp", layout.pp * layout.vpp);
  require_divides("vocab", config.vocab, "tp", layout.tp);
  if (layout.cp > 1) require_divides("seq_length", config.seq_length, "2 * cp", 2 * layout.cp);
  if (config.distributed_optimizer)
    require_divides("alignment of parameters", ParameterBuffer::kAlignmentElements, "dp * cp",
                    layout.replicas());
  require_divides("seq_length", config.seq_length, "tp * cp under sequence parallelism",
                  layout.sequence_parts() * layout.cp);
  if (config.hybrid) {
    require_divides("layers", config.layers, "2 * pp * vpp in a hybrid model",
                    2 * layout.pp * layout.vpp);
    require_divides("kv_groups", config.kv_groups, "tp * cp in a hybrid model",
                    layout.tp * layout.cp);
  }
  if (config.experts == 0) return config;
  require_divides("experts", config.experts, "ep", layout.ep);
  require_divides("tp * cp * dp", layout.stage_ranks(), "ep * etp", layout.ep * layout.etp);
  require_divides("ffn", config.ffn, "etp", layout.etp);
  if (layout.etp > 1 && config.linear_bias)
    throw std::invalid_argument("model layout: got etp = " + std::to_string(layout.etp) +
                                " and linear_bias; want one of them; why: a "
                                "bias after a reduce-scatter belongs to no part of an expert, and "
                                "Megatron-LM's dispatchers have none; "
                                "next: set etp to 1 or linear_bias to false");
  return config;
}

ModelConfig without_recompute(ModelConfig config) {
  config.recompute = {};
  return config;
}

/// Inference has no such limit, and pays for what every rank computes.
void require_split_tokens(const ModelConfig& config, const Layout& layout) {
  if (config.experts > 0 && layout.tp > 1 && !layout.sequence_parallel)
    throw std::invalid_argument(
        "model layout: got experts = " + std::to_string(config.experts) +
        " and tp = " + std::to_string(layout.tp) +
        " without sequence parallelism; want tp = 1 or sequence parallelism; "
        "why: rule R247, every tensor parallel rank would route the same tokens; next: set it, or "
        "tp to 1");
}

at::Tensor token_weights(const Batch& batch, std::size_t microbatch) {
  return batch.weights.empty() ? at::Tensor() : batch.weights.at(microbatch);
}

// Megatron-LM's offset between the seeds of pipeline stages, so that each stage draws other masks.
constexpr std::uint64_t kStageSeedOffset = 100;

/// Sets TrainStep::inside() for the duration of a scope, also if the step throws.
class Entered {
 public:
  Entered(TrainStep::Inside& inside, TrainStep::Inside where) : inside_(inside) { inside_ = where; }
  ~Entered() { inside_ = TrainStep::Inside::neither; }
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;

 private:
  TrainStep::Inside& inside_;
};

}  // namespace

struct TrainStep::State {
  State(const ModelConfig& config_, const Layout& layout_, capture::Device& device_,
        std::uint64_t seed_, std::shared_ptr<faults::FaultHooks> faults_,
        fixtures::RngBackend backend)
      : config(checked(config_, layout_)),
        layout(layout_),
        device(device_),
        seed(seed_),
        planted(faults_ ? std::move(faults_) : std::make_shared<faults::FaultHooks>()),
        faults(plan()),
        options(at::TensorOptions().device(device_.torch_device())),
        autocast{.enabled = config.autocast, .cache = config.autocast_cache},
        tracker(backend, device_),
        parameters(seed, device_.torch_device(), scalar_type(config.precision)),
        model(parameters, config, layout, device_.torch_device(), faults),
        frozen(seed, device_.torch_device(), scalar_type(config.precision), /*frozen=*/true),
        vision(layout.encoder_layers(config) > 0
                   ? std::make_unique<VisionEncoder>(
                         config.freeze_vision_model ? frozen : parameters, parameters, config,
                         layout, tracker, seed, device_.torch_device(), faults)
                   : nullptr),
        all_shards(parameters.shards()),
        gradients(parameters, placed("gradients")),
        shards(config.distributed_optimizer && layout.replicas() > 1
                   ? std::make_unique<ParameterShards>(
                         parameters, gradients, cut_buckets(config, layout, parameters, gradients),
                         faults, placed("parameters"))
                   : nullptr),
        checks(config, faults),
        reduction(config, layout, parameters, gradients, checks, device, faults),
        gather(shards && config.overlap_param_gather
                   ? std::make_unique<ParameterGather>(*shards, parameters, device, faults)
                   : nullptr),
        optimizer(config, layout, parameters, gradients, faults, shards.get()),
        dropout(config, layout, tracker, seed, device_.torch_device(), faults),
        recomputes(config, layout, device_.torch_device()),
        nothing_recomputed(without_recompute(config), layout, device_.torch_device()),
        experts(config, layout, device_.torch_device()),
        expert_buffers(config, layout, device_.torch_device()),
        router_bias(config, layout, device_.torch_device()),
        losses(at::zeros({config.microbatches},
                         options.dtype(wide_type(scalar_type(config.precision))))),
        evaluation_losses(at::zeros_like(losses)),
        // The loss of a step is the mean over its microbatches.
        root_gradient(
            at::full({}, 1.0 / static_cast<double>(config.microbatches), losses.options())),
        counter(at::zeros({layout.stage_layers(config) + layout.mtp_layers(config) +
                           layout.encoder_layers(config)},
                          options.dtype(at::kLong))),
        slots(order::schedule_slots(stage_of(layout, config), /*in_pairs=*/config.overlap_ep_comm)),
        forward_slots(order::schedule_slots(stage_of(layout, config))),
        transfers(layout, config, options.dtype(scalar_type(config.precision))),
        schedule(config, layout, device_.torch_device()) {
    if (config.fp8_weights || is_quantized(config.precision))
      fp8_weights.emplace(config, layout, parameters, frozen, faults);
    if (config.cpu_offload) offload.emplace(device, faults);
    if (config.overlap_ep_comm) exchanges.emplace(device, layout.ep_group, faults);
    if (config.shared_expert && config.shared_expert_overlap)
      shared_expert_stream.emplace(device, faults);
    all_shards.insert(all_shards.end(), frozen.shards().begin(), frozen.shards().end());
    root = root_gradient;
    if (optimizer.loss_scale().defined()) {
      used_scale = at::zeros_like(root_gradient);
      root = at::zeros_like(root_gradient);
    }
    tracker.add_parallel_regions(
        seed + kStageSeedOffset * static_cast<std::uint64_t>(layout.pp_rank), layout.tp_rank);
    for (std::int64_t l = 0; l < counter.size(0); ++l)
      layer_counters.push_back(counter.select(0, l));
    for (const NamedTensor& gradient : gradients.views())
      if (gradient.name == "grad:embedding.weight" && config.embeds_on_last_stage() &&
          !layout.embedding_group.empty())
        embedding_gradient = gradient.tensor;
  }

  /// Lets the hooks change the values from which the step is built.
  faults::FaultHooks& plan() {
    planted->plan_step({config, layout, seed, device, recording});
    return *planted;
  }

  /// What makes the flat buffer `name`; nothing if the allocator chooses its place.
  MakeBuffer placed(const char* name) {
    if (layout.placement == BufferPlacement::by_allocator) return {};
    return [this, name](std::int64_t elements, const at::TensorOptions& of) {
      const at::ScalarType type = c10::typeMetaToScalarType(of.dtype());
      const auto bytes = elements * static_cast<std::int64_t>(c10::elementSize(type));
      const BufferArena arena(device, type, bytes, /*buffers=*/1);
      placed_buffers.push_back(
          arena.place(name, 0, elements, layout.placement == BufferPlacement::across_border));
      return placed_buffers.back().tensor;
    };
  }

  /// Enqueues the computation of `root` for the step.
  void make_root() {
    if (!used_scale.defined()) return;
    used_scale.copy_(optimizer.loss_scale());
    root.copy_(root_gradient * used_scale);
  }

  /// A forward whose backward has not run: its input, undefined if that is the tokens, and its
  /// output.
  struct Outstanding {
    at::Tensor received, output;
  };
  ForwardPass pass_of(const Batch& batch, const order::Work& work) {
    return pass_of(batch, work, recomputes);
  }
  ForwardPass pass_of(const Batch& batch, const order::Work& work, const RecomputeLedger& ledger);
  at::Tensor run_chunk(const Batch& batch, const order::Work& work, const at::Tensor& received);
  void note_loss(const order::Work& work, const at::Tensor& loss);
  void leave_fp8(Fp8Scaling::Direction direction, const order::Work& work);
  Outstanding forward(const Batch& batch, const order::Work& work, at::Tensor received);
  at::Tensor backward(const order::Work& work, const Outstanding& done, const at::Tensor& gradient);
  at::Tensor receive(const Batch& batch, const order::Transfer& transfer) const {
    return transfers.receive(
        transfer, batch.tokens.at(static_cast<std::size_t>(transfer.consumer.microbatch)));
  }
  void run_microbatches(const Batch& batch);
  /// The forward of a chunk in pieces, layer by layer (layer_pass.h).
  struct PassInPieces {
    AutogradSection front, end;  // the part before the first layer; the loss, unless a layer of
                                 // multi-token prediction has it
    ChunkPass layers;
  };
  /// The output of a forward, and the gradient that a backward returns for its chunk's input.
  struct Made {
    at::Tensor output, gradient;
  };
  Made run_overlapped(const Batch& batch, const order::Work* forward, const at::Tensor& received,
                      const order::Work* backward, const at::Tensor& gradient);
  void for_each_layer(const std::function<void(const Layer&)>& visit) const;
  void run_layer_by_layer(const Batch& batch);
  void run_forwards(const Batch& batch);
  void average(at::Tensor of_own_tokens) const;
  void reduce_gradients();

  /// Dropout is off and the scales of fp8 stay while it exists.
  struct Evaluating {
    explicit Evaluating(State& of) : state(of) { set(true); }
    ~Evaluating() { set(false); }
    void set(bool on) {
      state.dropout.evaluating(on);
      if (state.fp8_weights) state.fp8_weights->scaling().evaluating(on);
    }
    State& state;
  };

  bool recording = false;
  ModelConfig config;
  Layout layout;
  capture::Device& device;
  std::uint64_t seed;
  const std::shared_ptr<faults::FaultHooks> planted;
  faults::FaultHooks& faults;
  const at::TensorOptions options;
  const AutocastState autocast;  // of each forward of a microbatch
  fixtures::RngTracker tracker;
  Parameters parameters;
  Gpt model;
  Parameters frozen;                            // those that are not trained
  const std::unique_ptr<VisionEncoder> vision;  // on the first stage of model vlm
  std::vector<Shard> all_shards;                // of `parameters`, then of `frozen`
  std::vector<BufferArena::Placed> placed_buffers;
  GradientBuffer gradients;
  const std::unique_ptr<ParameterShards> shards;  // of the distributed optimizer
  HostChecks checks;
  GradientReduction reduction;
  const std::unique_ptr<ParameterGather> gather;  // with overlap_param_gather
  Optimizer optimizer;
  Dropout dropout;
  RecomputeLedger recomputes;
  const RecomputeLedger nothing_recomputed;  // of inference, which no backward follows
  ExpertLedger experts;
  ExpertBuffers expert_buffers;
  RouterBias router_bias;
  at::Tensor losses, evaluation_losses, root_gradient, counter;
  /// [] fp32, static: the gradient with which a backward starts. It is root_gradient, with fp16
  /// multiplied by used_scale.
  at::Tensor root;
  at::Tensor used_scale;  // [] fp32: the loss scale of this step; undefined without fp16
  std::vector<at::Tensor> layer_counters;
  const std::vector<order::ScheduleSlot> slots;
  /// Of an evaluation, which has no backwards to pair its forwards with.
  const std::vector<order::ScheduleSlot> forward_slots;
  const StageTransfers transfers;
  ScheduleLedger schedule;
  std::optional<Fp8Weights> fp8_weights;
  std::optional<ActivationOffload> offload;                // with cpu_offload
  std::optional<ExchangeStream> exchanges;                 // with overlap_ep_comm
  std::optional<SharedExpertStream> shared_expert_stream;  // with shared_expert_overlap
  /// By chunk and microbatch: the forwards whose backward has not run.
  std::map<std::pair<std::int64_t, std::int64_t>, std::unique_ptr<PassInPieces>> passes_in_pieces;
  std::optional<order::Work> running;
  Inside inside = Inside::neither;
  /// Of an embedding that the first and the last stage hold, on these; else undefined.
  at::Tensor embedding_gradient;
  ModuleRunner* runner = nullptr;
  ModuleRuns module_runs;
};

TrainStep::TrainStep(const ModelConfig& config, const Layout& layout, capture::Device& device,
                     std::uint64_t seed, std::shared_ptr<faults::FaultHooks> faults,
                     fixtures::RngBackend backend)
    : state_(std::make_unique<State>(config, layout, device, seed, std::move(faults), backend)) {}
TrainStep::~TrainStep() = default;

ForwardPass TrainStep::State::pass_of(const Batch& batch, const order::Work& work,
                                      const RecomputeLedger& ledger) {
  return {.microbatch = work.microbatch,
          .dropout = dropout,
          .counters = layer_counters,
          .faults = faults,
          .recording = recording,
          .runner = faults.runner(runner),
          .module_runs = module_runs,
          .recomputes = ledger,
          .experts = experts,
          .expert_buffers = expert_buffers,
          .router_bias = router_bias,
          .root_gradient = root,
          .documents = config.packed ? batch.documents.at(static_cast<std::size_t>(work.microbatch))
                                     : at::Tensor(),
          .expert_pull = batch.expert_pull.empty()
                             ? at::Tensor()
                             : batch.expert_pull.at(static_cast<std::size_t>(work.microbatch)),
          .autocast = autocast,
          .offload = offload && at::GradMode::is_enabled() ? &*offload : nullptr,
          .gather = gather.get(),
          .fp8_weights = fp8_weights ? &*fp8_weights : nullptr,
          .shared_expert_stream = shared_expert_stream ? &*shared_expert_stream : nullptr};
}

at::Tensor TrainStep::State::run_chunk(const Batch& batch, const order::Work& work,
                                       const at::Tensor& received) {
  const auto index = static_cast<std::size_t>(work.microbatch);
  const ForwardPass pass = pass_of(batch, work);
  const AutocastRegion region(options.device().type(), autocast);
  at::Tensor input = model.before_layers(work.chunk, batch.tokens.at(index), received, pass);
  if (vision && model.embeds(work.chunk))
    input = vision->forward(
        input, {batch.patches.at(index), batch.images.at(index), batch.image_rows.at(index)}, pass);
  return model.forward(work.chunk, input, batch.labels.at(index), token_weights(batch, index),
                       pass);
}

void TrainStep::State::note_loss(const order::Work& work, const at::Tensor& loss) {
  losses.select(0, work.microbatch).copy_(loss.detach());
  checks.loss(loss.detach(), work.microbatch);
}

/// Leaves the fp8 context of a forward or a backward.
void TrainStep::State::leave_fp8(Fp8Scaling::Direction direction, const order::Work& work) {
  if (fp8_weights) fp8_weights->scaling().leave(direction, work.chunk, work.microbatch);
}

TrainStep::State::Outstanding TrainStep::State::forward(const Batch& batch, const order::Work& work,
                                                        at::Tensor received) {
  const std::int64_t m = work.microbatch;
  schedule.note(work);
  dropout.begin(m);
  recomputes.begin(m);
  if (received.defined()) received.requires_grad_(true);
  if (offload) offload->begin();
  const at::Tensor output = run_chunk(batch, work, received);
  if (offload) offload->finish();
  if (model.makes_loss(work.chunk)) note_loss(work, output);
  leave_fp8(Fp8Scaling::Direction::forward, work);
  return {received, output};
}

/// Returns the gradient of the forward's input; undefined if that is the tokens.
at::Tensor TrainStep::State::backward(const order::Work& work, const Outstanding& done,
                                      const at::Tensor& gradient) {
  schedule.note(work);
  reduction.begin_backward(work.microbatch + 1 == config.microbatches);
  // Recompute runs parts of this microbatch again, and other forwards may have run since its own.
  if (config.recompute.any()) {
    dropout.begin(work.microbatch);
    recomputes.begin(work.microbatch);
  }
  const SilenceStreamMismatchWarning silence(shared_expert_stream.has_value());
  torch::autograd::backward({done.output}, {model.makes_loss(work.chunk) ? root : gradient});
  leave_fp8(Fp8Scaling::Direction::backward, work);
  return done.received.defined() ? done.received.grad() : at::Tensor();
}

void TrainStep::State::run_microbatches(const Batch& batch) {
  running.reset();  // an error may have ended the last step
  std::map<std::pair<std::int64_t, std::int64_t>, Outstanding>
      outstanding;                            // by chunk and microbatch
  std::map<order::Work, at::Tensor> arrived;  // by the work that consumes it
  for (const order::ScheduleSlot& slot : slots) {
    at::Tensor made;
    std::vector<order::Transfer> in_order = slot.transfers;
    std::optional<order::Work> run = slot.work;
    faults.schedule_slot(in_order, run);
    if (slot.work) {
      at::Tensor input;
      if (auto taken = arrived.extract(*slot.work)) input = std::move(taken.mapped());
      const order::Work work = *run;
      running = work;
      const std::pair key{work.chunk, work.microbatch};
      if (work.forward)
        made =
            outstanding.emplace(key, forward(batch, work, std::move(input))).first->second.output;
      else
        made = backward(work, outstanding.extract(key).mapped(), input);
    }
    for (const order::Transfer& transfer : in_order) {
      running = transfer.consumer;
      if (transfer.from == layout.pp_rank)
        transfers.send(transfer, made);
      else
        arrived[transfer.consumer] = receive(batch, transfer);
    }
    running.reset();
  }
}

/// Runs a forward and a backward with their layers interleaved. One of the two may be null.
/// `gradient` is that of the output of the backward's chunk; undefined if that output is the loss.
TrainStep::State::Made TrainStep::State::run_overlapped(const Batch& batch,
                                                        const order::Work* forward,
                                                        const at::Tensor& received,
                                                        const order::Work* backward,
                                                        const at::Tensor& gradient) {
  using LayerWork = ScheduleLedger::LayerWork;
  LayerSlot forward_slot, backward_slot;
  std::unique_ptr<PassInPieces> forward_pass, backward_pass;
  if (backward) {
    backward_pass =
        std::move(passes_in_pieces.extract({backward->chunk, backward->microbatch}).mapped());
    reduction.begin_backward(backward->microbatch + 1 == config.microbatches);
    backward_slot = {&backward_pass->layers, gradient};
    if (model.makes_loss(backward->chunk))
      backward_slot.x =
          model.prediction_layer(backward->chunk) ? root : backward_pass->end.backward({root})[0];
  }
  if (forward) {
    const auto index = static_cast<std::size_t>(forward->microbatch);
    forward_pass = std::make_unique<PassInPieces>();
    dropout.begin(forward->microbatch);
    const ForwardPass pass = pass_of(batch, *forward);
    for (const Layer& layer : model.layers(forward->chunk))
      forward_pass->layers.emplace_back(layer, pass, *exchanges);
    if (const Layer* predicts = model.prediction_layer(forward->chunk))
      forward_pass->layers.emplace_back(
          *predicts, pass, *exchanges,
          model.around_prediction(batch.labels.at(index), token_weights(batch, index), pass));
    forward_slot = {
        &forward_pass->layers,
        forward_pass->front.forward(
            received.defined() ? std::vector{received} : std::vector<at::Tensor>(),
            [&](const auto& in) {
              return std::vector{model.before_layers(forward->chunk, batch.tokens.at(index),
                                                     in.empty() ? at::Tensor() : in[0], pass)};
            })[0]};
  }
  const auto note = [&](LayerWork work, const order::Work* of) {
    return [this, work, of](const Layer& layer) {
      schedule.note(work, layout.place(config, layer.index()), of->microbatch);
    };
  };
  const auto weights_added = [this](const std::vector<at::Tensor>& weights) {
    for (const at::Tensor& weight : weights) reduction.added(weight);
  };
  const LayerScheduleNotes notes{note(LayerWork::forward, forward),
                                 note(LayerWork::backward, backward),
                                 note(LayerWork::weight_gradients, backward), weights_added};
  Made made;
  run_layer_schedule(forward_slot, backward_slot, config.delay_wgrad, notes, [&] {
    if (forward && model.makes_loss(forward->chunk)) {
      const auto index = static_cast<std::size_t>(forward->microbatch);
      if (!model.prediction_layer(forward->chunk))
        forward_slot.x = forward_pass->end.forward({forward_slot.x}, [&](const auto& in) {
          return std::vector{model.after_layers(in[0], batch.labels.at(index),
                                                token_weights(batch, index),
                                                pass_of(batch, *forward))};
        })[0];
      note_loss(*forward, forward_slot.x);
    }
    if (backward) {
      const auto found = backward_pass->front.backward({backward_slot.x});
      if (!found.empty()) made.gradient = found[0];
    }
  });
  made.output = forward_slot.x;
  if (forward) leave_fp8(Fp8Scaling::Direction::forward, *forward);
  if (backward) leave_fp8(Fp8Scaling::Direction::backward, *backward);
  if (forward) passes_in_pieces[{forward->chunk, forward->microbatch}] = std::move(forward_pass);
  return made;
}

/// Calls `visit` with the layers of this stage, that of multi-token prediction included.
void TrainStep::State::for_each_layer(const std::function<void(const Layer&)>& visit) const {
  for (std::int64_t chunk = 0; chunk < layout.vpp; ++chunk) {
    for (const Layer& layer : model.layers(chunk)) visit(layer);
    if (const Layer* predicts = model.prediction_layer(chunk)) visit(*predicts);
  }
}

void TrainStep::State::run_layer_by_layer(const Batch& batch) {
  running.reset();  // an error may have ended the last step
  passes_in_pieces.clear();
  for_each_layer([](const Layer& layer) { layer.discard_delayed(); });
  std::map<order::Work, at::Tensor> arrived;  // by the work that consumes it
  const auto take = [&](const order::Work* work) {
    auto taken = work ? arrived.extract(*work) : decltype(arrived)::node_type();
    return taken ? std::move(taken.mapped()) : at::Tensor();
  };
  for (const order::ScheduleSlot& slot : slots) {
    Made made;
    if (slot.work) {
      const order::Work* const backward = slot.work->forward ? nullptr : &*slot.work;
      const order::Work* const forward = slot.work->forward        ? &*slot.work
                                         : slot.overlapped_forward ? &*slot.overlapped_forward
                                                                   : nullptr;
      running = *slot.work;
      const at::Tensor received = take(forward), gradient = take(backward);
      made = run_overlapped(batch, forward, received, backward, gradient);
    }
    for (const order::Transfer& transfer : slot.transfers) {
      running = transfer.consumer;
      if (transfer.from == layout.pp_rank)
        transfers.send(transfer, transfer.consumer.forward ? made.output : made.gradient);
      else
        arrived[transfer.consumer] = receive(batch, transfer);
    }
    running.reset();
  }
  for_each_layer([](const Layer& layer) { layer.require_none_pending(); });
}

/// Runs the forwards of the schedule and their transfers. Their order is that of the training step,
/// so there is no deadlock.
void TrainStep::State::run_forwards(const Batch& batch) {
  std::map<order::Work, at::Tensor> arrived;  // by the work that consumes it
  for (const order::ScheduleSlot& slot : forward_slots) {
    at::Tensor made;
    if (slot.work && slot.work->forward) {
      const order::Work& work = *slot.work;
      at::Tensor input;
      if (auto taken = arrived.extract(work)) input = std::move(taken.mapped());
      made = run_chunk(batch, work, input);
      if (model.makes_loss(work.chunk)) evaluation_losses.select(0, work.microbatch).copy_(made);
    }
    for (const order::Transfer& transfer : slot.transfers) {
      if (!transfer.consumer.forward) continue;
      if (transfer.from == layout.pp_rank)
        transfers.send(transfer, made);
      else
        arrived[transfer.consumer] = receive(batch, transfer);
    }
  }
}

/// The mean over the context parallel ranks, which have equally many tokens.
void TrainStep::State::average(at::Tensor of_own_tokens) const {
  if (layout.cp == 1) return;
  comm::all_reduce_(of_own_tokens, layout.cp_group);
  of_own_tokens.mul_(1.0 / layout.cp);
}

/// In Megatron-LM's order: over data and context parallel ranks, over tensor parallel ranks with
/// different tokens, over the two ends of the pipeline.
void TrainStep::State::reduce_gradients() {
  reduction.finish();
  if (embedding_gradient.defined()) comm::all_reduce_(embedding_gradient, layout.embedding_group);
}

void TrainStep::forward_backward(const Batch& batch) {
  State& s = *state_;
  require_split_tokens(s.config, s.layout);
  const Entered passes(s.inside, Inside::passes);
  at::Tensor(s.gradients.flat()).zero_();
  s.experts.begin_step();
  s.expert_buffers.begin_step();
  s.schedule.begin_step();
  if (s.fp8_weights) s.fp8_weights->begin_step();
  if (!s.layout.last_stage()) s.losses.zero_();
  s.make_root();
  s.reduction.begin_step();
  if (s.gather) s.gather->begin();
  if (s.config.overlap_ep_comm)
    s.run_layer_by_layer(batch);
  else
    s.run_microbatches(batch);
  if (s.gather) s.gather->finish();
  s.average(s.losses);
  s.reduce_gradients();
  if (s.faults.updates_router_bias()) s.router_bias.update(s.experts.assigned());
}

void TrainStep::evaluate(const Batch& batch) {
  State& s = *state_;
  const at::NoGradGuard no_grad;
  const State::Evaluating evaluating(s);
  s.evaluation_losses.zero_();
  if (s.gather) s.gather->begin();
  s.run_forwards(batch);
  if (s.gather) s.gather->finish();
  s.average(s.evaluation_losses);
}

at::Tensor TrainStep::infer(const at::Tensor& tokens, const CachedTokens* cached,
                            ModuleRunner* runner, ExpertChoices* choices) {
  State& s = *state_;
  const at::NoGradGuard no_grad;
  const State::Evaluating evaluating(s);
  ForwardPass pass = s.pass_of({}, {}, s.nothing_recomputed);
  pass.runner = runner;
  pass.cached = cached;
  pass.choices = choices;
  return s.model.logits(tokens, pass);
}

void TrainStep::gather_parameters() {
  State& s = *state_;
  if (!s.gather) return;
  s.gather->begin();
  s.gather->finish();
}

at::Tensor TrainStep::evaluation_losses() { return state_->evaluation_losses; }

void TrainStep::optimizer_step() {
  const Entered optimizer(state_->inside, Inside::optimizer);
  state_->optimizer.step();
}

at::Tensor TrainStep::learning_rate() { return state_->optimizer.learning_rate(); }
void TrainStep::learning_rate(double rate) { state_->optimizer.learning_rate(rate); }

std::vector<NamedTensor> TrainStep::parameters() {
  std::vector<NamedTensor> all = state_->parameters.all();
  all.insert(all.end(), state_->frozen.all().begin(), state_->frozen.all().end());
  return all;
}
const std::vector<Shard>& TrainStep::shards() const { return state_->all_shards; }
const std::vector<BufferArena::Placed>& TrainStep::placed_buffers() const {
  return state_->placed_buffers;
}
const std::vector<NamedTensor>& TrainStep::frozen() const { return state_->frozen.all(); }
std::vector<NamedTensor> TrainStep::gradients() { return state_->gradients.views(); }
const std::vector<Updated>& TrainStep::updated() const { return state_->optimizer.updated(); }
void TrainStep::gather_gradients() { state_->reduction.gather(); }
std::vector<NamedTensor> TrainStep::optimizer_state() {
  std::vector<NamedTensor> state = state_->optimizer.state();
  state_->router_bias.append_to(state);
  for (NamedTensor& tensor : fp8_state()) state.push_back(std::move(tensor));
  return state;
}
std::vector<NamedTensor> TrainStep::fp8_state() {
  return state_->fp8_weights ? state_->fp8_weights->scaling().state() : std::vector<NamedTensor>();
}
at::Tensor TrainStep::first_microbatch() {
  return state_->fp8_weights ? state_->fp8_weights->first() : at::Tensor();
}
void TrainStep::set_first_microbatch(bool first) {
  if (state_->fp8_weights) state_->fp8_weights->set_first_microbatch(first);
}
at::Tensor TrainStep::skipped() { return state_->optimizer.skipped(); }
const HostChecks& TrainStep::host_checks() const { return state_->checks; }
const GradientReduction& TrainStep::reduction() const { return state_->reduction; }
at::Tensor TrainStep::losses() { return state_->losses; }
std::vector<NamedTensor> TrainStep::masks() { return state_->dropout.tensors(); }
std::vector<NamedTensor> TrainStep::ledgers() {
  std::vector<NamedTensor> tensors = state_->recomputes.tensors();
  for (NamedTensor& tensor : state_->experts.tensors()) tensors.push_back(std::move(tensor));
  for (NamedTensor& tensor : state_->schedule.tensors()) tensors.push_back(std::move(tensor));
  if (state_->fp8_weights)
    for (NamedTensor& tensor : state_->fp8_weights->tensors()) tensors.push_back(std::move(tensor));
  if (state_->used_scale.defined()) tensors.push_back({"loss_scale:applied", state_->used_scale});
  return tensors;
}
ActivationOffload* TrainStep::offload() const {
  return state_->offload ? &*state_->offload : nullptr;
}
at::Tensor TrainStep::recompute_counter() { return state_->recomputes.counts(); }
at::Tensor TrainStep::dropped() { return state_->experts.dropped(); }
ExpertBuffers& TrainStep::expert_buffers() { return state_->expert_buffers; }
at::Tensor TrainStep::layer_counter() { return state_->counter; }
std::optional<order::Work> TrainStep::running() const { return state_->running; }
TrainStep::Inside TrainStep::inside() const { return state_->inside; }
fixtures::RngTracker& TrainStep::rng() { return state_->tracker; }
const ModelConfig& TrainStep::config() const { return state_->config; }
const Layout& TrainStep::layout() const { return state_->layout; }
faults::FaultHooks& TrainStep::faults() const { return state_->faults; }
void TrainStep::module_runner(ModuleRunner* runner) { state_->runner = runner; }
RunCount TrainStep::module_runs(const ModuleCall& call) const {
  return state_->module_runs.of(call);
}
void TrainStep::recording(bool on) { state_->recording = on; }

}  // namespace graphproof::workloads
