#include "suites/arms/decoding.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "fixtures/device/nvtx.h"
#include "fixtures/inspect/host_copies.h"
#include "fixtures/tensors/torch.h"
#include "suites/arms/arm_lines.h"
#include "suites/case/reference.h"
#include "workloads/faults/plant.h"

namespace graphproof::suites {
namespace {

using fixtures::NamedTensor;
using requests::Work;

constexpr std::int64_t kOtherPadding = 5;

std::string word(Work work) {
  return work == Work::idle ? "idle" : work == Work::prefill ? "prefill" : "decode";
}

const at::Tensor& result_named(const Snapshot& left, std::string_view name) {
  return std::ranges::find(left, name, &NamedTensor::name)->tensor;
}

/// A request that ended: its tokens, the logits [V] of each sampled one, and, by the name of each
/// layer of experts in the results, the experts [E] bool of each token that was computed.
struct Finished {
  std::int64_t prompt = 0;
  std::vector<std::int64_t> tokens;
  std::vector<at::Tensor> logits;
  std::map<std::string, std::vector<at::Tensor>> experts;
};

/// The layers with routers, and their names in the results.
std::vector<std::pair<std::size_t, std::string>> routing_layers(
    const workloads::ModelConfig& model) {
  std::vector<std::pair<std::size_t, std::string>> layers;
  for (std::int64_t layer = 0; model.experts > 0 && layer < model.layers; ++layer)
    if (!model.mamba(layer))
      layers.emplace_back(static_cast<std::size_t>(layer), "experts." + std::to_string(layer));
  return layers;
}

}  // namespace

/// One arm, with its own model, cache and, if it is a graph arm, its own graphs.
class DecodingArm {
 public:
  DecodingArm(const CaseParts& parts, std::string name, bool graph, std::int64_t padding,
              Watch watch)
      : parts_(parts),
        name_(std::move(name)),
        graphs_(graph),
        watch_(watch),
        device_(parts.device) {
    parts_.scope.enter(Phase::build, name_, 0);
    const c10::StreamGuard guard(parts_.stream);
    const StepConfig& config = parts_.config;
    step_ =
        std::make_unique<workloads::TrainStep>(config.model, config.layout, device_, config.seed,
                                               faults::plant(config.fault), config.rng_backend);
    if (graphs_ && watch_ == Watch::free) {
      observer_ = std::make_unique<CaptureObserver>(parts_.scope, device_, *step_, name_);
    } else if (graphs_) {
      auto observer = std::make_unique<ReplayObserver>(parts_.scope, device_, *step_, name_);
      replays_ = observer.get();
      observer_ = std::move(observer);
    }
    engines::DecoderConfig decoding = *config.decoding;
    decoding.padding = padding;
    if (!graphs_) decoding.scope = engines::InferenceScope::none;
    decoder_ = std::make_unique<engines::Decoder>(std::move(decoding), config.engine, device_,
                                                  *step_, observer_.get());
  }

  const std::string& name() const { return name_; }
  const engines::Decoder& decoder() const { return *decoder_; }
  workloads::TrainStep& step() { return *step_; }

  /// Captures all sizes. Votes after each capture, as all ranks do.
  void capture() {
    const c10::StreamGuard guard(parts_.stream);
    parts_.scope.enter(Phase::warmup, name_, 0);
    decoder_->capture();
  }

  /// Runs step `index`. Unless the arm is free, waits for it and returns its results.
  Snapshot run(std::int64_t index) {
    const fixtures::NvtxRange range(name_, index);
    const c10::StreamGuard guard(parts_.stream);
    parts_.scope.enter(graphs_ ? Phase::replay : Phase::eager, name_, index);
    if (observer_) observer_->at_step(index);
    const std::int64_t before = device_.counts().replays;
    decoder_->run(index);
    return watch_ == Watch::free ? Snapshot{} : finish(index, before);
  }

  /// Waits for step `index` and writes its lines.
  Snapshot finish(std::int64_t index, std::int64_t launches_before) {
    const c10::StreamGuard guard(parts_.stream);
    parts_.device.synchronize(parts_.stream);
    const GraphCounts counts = device_.counts();
    parts_.scope.write(record::BatchLine{.arm = name_,
                                         .step = index,
                                         .work = word(decoder_->work()),
                                         .rows = std::ssize(decoder_->planned(index).rows),
                                         .size = decoder_->size(),
                                         .launches = counts.replays,
                                         .captures = counts.captures_begun});
    if (replays_) write_poison(index, counts.replays - launches_before);
    return fixtures::on_host(decoder_->results());
  }

  void drop_graphs() { decoder_->drop_graphs(); }

 private:
  void write_poison(std::int64_t index, std::int64_t launches) {
    const auto replay = replays_->take();
    if (!replay) return;
    const auto outputs = std::ssize(replay->poisoned);
    parts_.scope.write(record::PoisonLine{.arm = name_,
                                          .step = index,
                                          .outputs = outputs,
                                          .compared = outputs,
                                          .bytes = replay->poisoned_bytes,
                                          .canary_words = replay->canary_words,
                                          .launches = launches,
                                          .announced = replay->announced,
                                          .inspected = replay->inspected,
                                          .unregistered = std::vector<std::string>{}});
  }

  CaseParts parts_;
  const std::string name_;
  const bool graphs_;
  const Watch watch_;
  WatchedDevice device_;
  std::unique_ptr<workloads::TrainStep> step_;
  std::unique_ptr<CaptureObserver> observer_;  // only of a graph arm
  ReplayObserver* replays_ = nullptr;          // observer_, if this is a graph arm in full
  std::unique_ptr<engines::Decoder> decoder_;
};

namespace {

/// The requests that `arm` finished, from its results by step.
std::vector<Finished> finished_requests(const CaseParts& parts, const DecodingArm& arm,
                                        const std::vector<Snapshot>& results) {
  const requests::Settings& settings = parts.config.decoding->requests;
  const std::int64_t rank = parts.config.layout.dp_rank;
  std::map<std::int64_t, Finished> all;
  for (std::size_t index = 0; index < results.size(); ++index) {
    const requests::Step& step = arm.decoder().planned(static_cast<std::int64_t>(index));
    for (std::size_t r = 0; r < step.rows.size(); ++r) {
      const requests::Row& row = step.rows[r];
      Finished& request = all[row.request];
      for (const auto& [layer, name] : routing_layers(parts.config.model))
        request.experts[name].push_back(
            result_named(results[index], name).select(0, static_cast<std::int64_t>(r)));
      if (step.work == Work::prefill) {
        ++request.prompt;
        request.tokens.push_back(
            requests::prompt_token(rank, row.request, row.position, parts.config.model.vocab));
      }
      if (std::ssize(step.rows) - static_cast<std::int64_t>(r) > step.sampled) continue;
      request.logits.push_back(result_named(results[index], "logits").select(0, row.slot));
      request.tokens.push_back(
          result_named(results[index], "tokens").select(0, row.slot).item<std::int64_t>());
    }
  }
  std::vector<Finished> finished;
  for (auto& [index, request] : all)
    if (std::ssize(request.logits) == requests::request(settings, rank, index).output)
      finished.push_back(std::move(request));
  return finished;
}

/// One pass over whole sequences, which uses neither a cache nor a batch of single tokens. The
/// routers of an expert model take the choices that were made token by token, because a rounding
/// may move a token to another expert. That those are the experts with the largest scores is
/// compared instead.
class WholePass {
 public:
  /// The tokens of `requests`, at most B, whose last sampled token is not an input.
  WholePass(const CaseParts& parts, DecodingArm& arm, std::span<const Finished> requests) {
    const workloads::ModelConfig& model = parts.config.model;
    const std::int64_t batch = model.microbatch_size, length = model.seq_length;
    at::Tensor sequences = at::zeros({batch, length}, at::kLong);
    at::Tensor requested = at::zeros({batch * length}, at::kBool);
    const auto layers = static_cast<std::size_t>(model.layers);
    std::vector<at::Tensor> experts(layers);
    for (const auto& [layer, name] : routing_layers(model))
      experts[layer] = at::zeros({batch * length, model.experts}, at::kBool);
    for (std::size_t row = 0; row < requests.size(); ++row) {
      const Finished& request = requests[row];
      for (std::size_t place = 0; place + 1 < request.tokens.size(); ++place) {
        const std::int64_t token =
            static_cast<std::int64_t>(row) * length + static_cast<std::int64_t>(place);
        sequences.view({-1})[token] = request.tokens[place];
        requested[token] = true;
        for (const auto& [layer, name] : routing_layers(model))
          experts[layer][token] = request.experts.at(name).at(place);
      }
    }
    const at::Device on = parts.device.torch_device();
    workloads::ExpertChoices choices{.requested = requested.to(on),
                                     .given = true,
                                     .experts = experts,
                                     .scores = std::vector<at::Tensor>(layers)};
    for (at::Tensor& of_layer : choices.experts)
      if (of_layer.defined()) of_layer = of_layer.to(on);
    logits_ = arm.step()
                  .infer(sequences.to(on), nullptr, nullptr, &choices)
                  .cpu()
                  .view({batch, length, -1});
    for (const auto& [layer, name] : routing_layers(model)) {
      // Far below any score. A token with fewer experts than it should have shows.
      constexpr double kNotChosen = -10000.0;
      const at::Tensor scores = choices.scores[layer].cpu();
      const auto largest = [&](const at::Tensor& of) {
        return std::get<0>(of.index({requested}).topk(model.topk, 1));
      };
      if (!requests.empty())
        choices_.emplace_back(name,
                              largest(scores.masked_fill(experts[layer].logical_not(), kNotChosen)),
                              largest(scores), scores);
    }
  }

  /// [V], of the token after place `place` of request `row`.
  at::Tensor logits(std::int64_t row, std::int64_t place) const { return logits_[row][place]; }
  /// For each layer of experts: the scores of the chosen ones, and the largest scores.
  const std::vector<ReferencePair>& choices() const { return choices_; }

 private:
  at::Tensor logits_;  // [B, S, V] fp32, on the host
  std::vector<ReferencePair> choices_;
};

/// Compares the logits of every sampled token with those of one pass over whole sequences.
void write_sequences(const CaseParts& parts, DecodingArm& arm,
                     const std::vector<Snapshot>& results) {
  const c10::StreamGuard guard(parts.stream);
  const requests::Settings& settings = parts.config.decoding->requests;
  const std::int64_t batch = parts.config.model.microbatch_size;
  const std::vector<Finished> finished = finished_requests(parts, arm, results);
  // Ranks that share experts issue the same exchanges, so all ranks make as many passes.
  std::int64_t most = 0;
  const auto plan = requests::plan(settings);
  for (std::size_t rank = 0; rank < plan.size(); ++rank)
    most = std::max(
        most, requests::ended(settings, static_cast<std::int64_t>(rank), plan[rank]).requests);
  std::vector<ReferencePair> pairs;
  std::int64_t tokens = 0;
  for (std::int64_t first = 0; first < most; first += batch) {
    const std::int64_t left = std::ssize(finished) - first,
                       count = std::clamp(left, std::int64_t{0}, batch);
    const std::span<const Finished> requests(finished.data() + (count > 0 ? first : 0),
                                             static_cast<std::size_t>(count));
    const WholePass whole(parts, arm, requests);
    for (std::int64_t row = 0; row < count; ++row) {
      const Finished& request = requests[static_cast<std::size_t>(row)];
      for (std::size_t k = 0; k < request.logits.size(); ++k) {
        const std::int64_t place = request.prompt - 1 + static_cast<std::int64_t>(k);
        pairs.emplace_back("logits." + std::to_string(first + row) + "." + std::to_string(place),
                           request.logits[k].clone(), whole.logits(row, place).clone());
        ++tokens;
      }
    }
    pairs.insert(pairs.end(), whole.choices().begin(), whole.choices().end());
  }
  // single_rank() has fp32 where a rounding could move a token to another expert.
  StepConfig single = single_rank(parts.config);
  single.model.precision = parts.config.model.precision;
  parts.scope.write(record::SequencesLine{.arm = arm.name(),
                                          .requests = std::ssize(finished),
                                          .tokens = tokens,
                                          .distance = distance_of(pairs, reference_bound(single))});
}

}  // namespace

DecodingArms::DecodingArms(const CaseParts& parts) : parts_(parts) {}
DecodingArms::~DecodingArms() = default;

DecodingArm& DecodingArms::arm(std::string name, bool graph, Padding padding, Watch watch) {
  kept_.push_back(std::make_unique<DecodingArm>(
      parts_, std::move(name), graph, padding == Padding::zeros ? 0 : kOtherPadding, watch));
  return *kept_.back();
}

void DecodingArms::run() {
  run_sections(parts_, [this] { run_eager(); }, [this] { run_lockstep(); }, [this] { run_free(); });
}

void DecodingArms::run_eager() {
  CountedCollectives collectives(parts_, "eager");
  DecodingArm& first = arm("eager_a", false, Padding::zeros, Watch::full);
  DecodingArm& second = arm("eager_b", false, Padding::zeros, Watch::full);
  DecodingArm& padded = arm("padded_eager", false, Padding::others, Watch::full);
  std::vector<Snapshot> results;
  for (std::int64_t step = 0; step < parts_.config.steps; ++step) {
    Snapshot left = first.run(step);
    write_comparison(parts_, first.name(), second.name(), "eager_repeats", step, "fresh", left,
                     second.run(step));
    write_comparison(parts_, first.name(), padded.name(), "padding", step, "fresh", left,
                     padded.run(step));
    std::erase_if(left, [](const NamedTensor& result) {
      return result.name != "logits" && result.name != "tokens" &&
             !result.name.starts_with("experts.");
    });
    results.push_back(std::move(left));
  }
  write_sequences(parts_, first, results);
  collectives.write();
  kept_.clear();
}

void DecodingArms::run_lockstep() {
  const std::int64_t steps = parts_.config.steps;
  DecodingArm& eager = arm("lockstep_eager", false, Padding::zeros, Watch::full);
  DecodingArm& graph = arm("lockstep_graph", true, Padding::others, Watch::full);
  std::vector<Snapshot> last;
  {
    parts_.scope.boundary(Phase::capture);  // the next vote of all ranks, also after a failure
    CountedCollectives collectives(parts_, "lockstep");
    graph.capture();
    for (std::int64_t step = 0; step < steps; ++step) {
      // Freed memory is overwritten halfway, so that a replay that still reads it differs.
      if (step == steps / 2)
        parts_.scope.write(record::ScribbledLine{
            .arm = graph.name(), .step = step, .bytes = parts_.device.overwrite_free_memory()});
      const Snapshot left = eager.run(step);
      Snapshot right = graph.run(step);
      parts_.scope.enter(Phase::compare, graph.name(), step);
      write_comparison(parts_, eager.name(), graph.name(), "lockstep", step, "fresh", left, right);
      if (step == steps - 1) last.push_back(std::move(right));
    }
    collectives.write();
  }
  DecodingArm& again = arm("graph_b", true, Padding::others, Watch::full);
  parts_.scope.boundary(Phase::capture);
  CountedCollectives collectives(parts_, again.name());
  again.capture();
  for (std::int64_t step = 0; step < steps; ++step) {
    const Snapshot right = again.run(step);
    if (step < steps - 1) continue;
    parts_.scope.enter(Phase::compare, again.name(), step);
    write_comparison(parts_, graph.name(), again.name(), "graph_repeats", step, "fresh",
                     last.front(), right);
  }
  collectives.write();
}

void DecodingArms::run_free() {
  const std::int64_t last = parts_.config.steps - 1;
  CountedCollectives collectives(parts_, "free_run");
  DecodingArm& eager = arm("free_eager", false, Padding::zeros, Watch::free);
  for (std::int64_t step = 0; step <= last; ++step) eager.run(step);
  const Snapshot left = eager.finish(last, 0);
  DecodingArm& graph = arm("free_graph", true, Padding::others, Watch::free);
  parts_.scope.boundary(Phase::capture);
  graph.capture();
  for (std::int64_t step = 0; step <= last; ++step) graph.run(step);
  const Snapshot right = graph.finish(last, 0);
  parts_.scope.enter(Phase::compare, graph.name(), last);
  write_comparison(parts_, eager.name(), graph.name(), "free_run", last, "fresh", left, right);
  collectives.write();
}

void DecodingArms::drop_graphs() {
  for (const auto& arm : kept_) arm->drop_graphs();
}

void DecodingArms::drop_buffers() { kept_.clear(); }

}  // namespace graphproof::suites
