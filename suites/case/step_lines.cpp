#include "suites/case/step_lines.h"

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "fixtures/inspect/tensor_digest.h"
#include "fixtures/tensors/torch.h"
#include "suites/case/learning_rate.h"
#include "workloads/layers/fp8_weights.h"
#include "workloads/training/optimizer.h"

namespace graphproof::suites {
namespace {

using fixtures::NamedTensor;

/// The parameter whose movement is measured: the largest one, because its many elements give the
/// most precise estimate. Not an expert's and not one of the vision encoder, unless there are no
/// others, because an expert without tokens and an encoder without images do not move.
const workloads::Updated& watched_update(workloads::TrainStep& step) {
  const auto& updated = step.updated();
  const auto rank = [](const workloads::Updated& one) {
    const bool always_moves = !one.expert && one.moved.name.find("vision.") == std::string::npos;
    return std::pair(always_moves, one.moved.tensor.numel());
  };
  return *std::max_element(updated.begin(), updated.end(),
                           [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
}

const at::Tensor& named(const std::vector<NamedTensor>& tensors, const std::string& name) {
  for (const NamedTensor& tensor : tensors)
    if (tensor.name == name) return tensor.tensor;
  throw std::logic_error("no tensor " + name + " among " + std::to_string(tensors.size()));
}

std::vector<std::int64_t> integers(const at::Tensor& tensor) {
  if (!tensor.defined()) return {};
  const at::Tensor flat = tensor.cpu().contiguous().view({-1});
  return {flat.const_data_ptr<std::int64_t>(), flat.const_data_ptr<std::int64_t>() + flat.numel()};
}

void write_hyperparameter(CaseScope& scope, const std::string& arm, std::int64_t index,
                          const char* name, double host, double effective, double bound) {
  scope.write(record::HyperparameterLine{.arm = arm,
                                         .step = index,
                                         .name = name,
                                         .host = host,
                                         .effective = effective,
                                         .bound = bound});
}

void write_hyperparameters(CaseScope& scope, const std::string& arm, std::int64_t index,
                           double learning_rate, workloads::TrainStep& step,
                           const StepBefore& before) {
  // The step's own tensors and not those that the engine returns, because these the optimizer used.
  const workloads::Updated& watched = watched_update(step);
  const workloads::ModelConfig& config = step.config();
  const auto state = step.optimizer_state();
  const at::Tensor after = watched.moved.tensor;
  const bool fp16 = config.precision == workloads::Precision::fp16;
  const std::int64_t skipped =
      fp16 ? named(state, "state:loss_scale.skipped").item<std::int64_t>() : 0;
  if (fp16)
    write_hyperparameter(scope, arm, index, "loss_scale", before.loss_scale,
                         named(step.ledgers(), "loss_scale:applied").item<double>(), 0);
  if (config.optimizer == workloads::OptimizerKind::adam)
    write_hyperparameter(scope, arm, index, "optimizer_step",
                         static_cast<double>(index + 1 - skipped),
                         named(state, "state:adam.step").item<double>(), 0);
  if (fp16 && step.skipped().item<bool>()) {
    const double moved = (before.watched - after).abs().max().item<double>();
    return write_hyperparameter(scope, arm, index, "learning_rate", 0, moved, 0);
  }
  UpdateDirection direction;
  if (config.optimizer == workloads::OptimizerKind::adam)
    direction = adam_direction(watched.m, watched.v, index + 1 - skipped);
  else
    direction = sgd_direction(watched.gradient);
  if (config.weight_decay && watched.decays)
    direction = with_decay(direction, before.watched, workloads::kWeightDecay);
  const EffectiveRate effective =
      effective_learning_rate(before.watched, after, direction, learning_rate);
  write_hyperparameter(scope, arm, index, "learning_rate", learning_rate, effective.rate,
                       effective.bound);
}

void write_host_work(CaseScope& scope, const std::string& arm, std::int64_t index,
                     workloads::TrainStep& step, const StepBefore& before) {
  const workloads::ModelConfig& config = step.config();
  const workloads::HostChecks& checks = step.host_checks();
  if (config.nan_check_loss)
    write_hyperparameter(
        scope, arm, index, "losses_checked",
        step.layout().last_stage() ? static_cast<double>(config.microbatches) : 0.0,
        static_cast<double>(checks.losses_checked() - before.losses_checked), 0);
  if (config.nan_check_grad)
    write_hyperparameter(scope, arm, index, "gradients_checked", 1,
                         static_cast<double>(checks.gradients_checked() - before.gradients_checked),
                         0);
  if (const auto overlapped = step.reduction().overlapped())
    write_hyperparameter(scope, arm, index, "buckets_overlapped",
                         static_cast<double>(step.reduction().buckets()),
                         static_cast<double>(*overlapped), 0);
}

/// The dropout masks inside the recomputed part `part`: those of the forward and those of its
/// recomputation.
std::pair<std::vector<NamedTensor>, std::vector<NamedTensor>> masks_with_recomputed(
    workloads::TrainStep& step, workloads::RecomputedPart part) {
  using workloads::RecomputedPart;
  std::pair<std::vector<NamedTensor>, std::vector<NamedTensor>> drawn;
  if (part != RecomputedPart::core_attn && part != RecomputedPart::layer)
    return drawn;  // the other parts have no dropout
  constexpr std::string_view kAgain = "_again";
  const std::vector<NamedTensor> masks = step.masks();
  for (const NamedTensor& again : masks) {
    if (!again.name.ends_with(kAgain)) continue;
    drawn.first.push_back(
        {"", named(masks, again.name.substr(0, again.name.size() - kAgain.size()))});
    drawn.second.push_back({"", again.tensor});
  }
  return drawn;
}

void write_recompute(CaseScope& scope, const std::string& arm, std::int64_t index,
                     workloads::TrainStep& step, const StepBefore& before) {
  const auto ledgers = step.ledgers();
  const at::Tensor first = named(ledgers, "recompute:first"),
                   again = named(ledgers, "recompute:again");  // [P, M, R]
  const auto& parts = step.config().recompute.parts;
  const std::vector<std::int64_t> after = integers(step.recompute_counter());
  const auto row = static_cast<std::ptrdiff_t>(after.size() / parts.size());
  for (std::ptrdiff_t p = 0; p < static_cast<std::ptrdiff_t>(parts.size()); ++p) {
    const workloads::RecomputedPart part = parts[static_cast<std::size_t>(p)];
    const auto counts = [&](const std::vector<std::int64_t>& all) {
      return std::vector<std::int64_t>(all.begin() + p * row, all.begin() + (p + 1) * row);
    };
    const auto [drawn, drawn_again] = masks_with_recomputed(step, part);
    scope.write(record::RecomputeLine{
        .arm = arm,
        .step = index,
        .part = std::string(workloads::name(part)),
        .counter_before = counts(before.recomputes),
        .counter_after = counts(after),
        .outputs = fixtures::digest(first.select(0, p).contiguous()),
        .outputs_again = fixtures::digest(again.select(0, p).contiguous()),
        .masks = std::ssize(drawn),
        .masks_digest = drawn.empty() ? "" : fixtures::digest(drawn),
        .masks_again_digest = drawn_again.empty() ? "" : fixtures::digest(drawn_again)});
  }
}

void write_experts(CaseScope& scope, const std::string& arm, std::int64_t index,
                   workloads::TrainStep& step) {
  const auto ledgers = step.ledgers();
  const workloads::ModelConfig& config = step.config();
  scope.write(record::ExpertsLine{.arm = arm,
                                  .step = index,
                                  .assignments = config.microbatches * config.microbatch_size *
                                                 step.layout().own_length(config) /
                                                 step.layout().sequence_parts() * config.topk,
                                  .assigned = integers(named(ledgers, "experts:assigned")),
                                  .carried = integers(named(ledgers, "experts:carried")),
                                  .dropped = integers(step.dropped()),
                                  .overflowed = integers(named(ledgers, "experts:overflowed"))});
}

void write_fp8_weights(CaseScope& scope, const std::string& arm, std::int64_t index,
                       workloads::TrainStep& step) {
  scope.write(record::Fp8WeightsLine{
      .arm = arm, .step = index, .copies = integers(workloads::copies_made(step.ledgers()))});
}

void write_fp8_scaling(CaseScope& scope, const std::string& arm, std::int64_t index,
                       workloads::TrainStep& step) {
  const auto ledgers = step.ledgers();
  scope.write(record::Fp8ScalingLine{.arm = arm,
                                     .step = index,
                                     .updates = integers(named(ledgers, "fp8:updates")),
                                     .reductions = integers(named(ledgers, "fp8:reductions")),
                                     .scales = fixtures::digest(step.fp8_state())});
}

void write_schedule(CaseScope& scope, const std::string& arm, std::int64_t index,
                    workloads::TrainStep& step) {
  scope.write(record::ScheduleLine{
      .arm = arm, .step = index, .ran = integers(named(step.ledgers(), "schedule"))});
}

}  // namespace

StepBefore look_before_step(workloads::TrainStep& step) {
  return {.watched = watched_update(step).moved.tensor.detach().clone(),
          .recomputes = integers(step.recompute_counter()),
          .loss_scale = step.config().precision == workloads::Precision::fp16
                            ? named(step.optimizer_state(), "state:loss_scale.scale").item<double>()
                            : 0,
          .losses_checked = step.host_checks().losses_checked(),
          .gradients_checked = step.host_checks().gradients_checked()};
}

void write_step_lines(CaseScope& scope, const std::string& arm, std::int64_t index,
                      double learning_rate, workloads::TrainStep& step, const StepBefore& before) {
  write_hyperparameters(scope, arm, index, learning_rate, step, before);
  write_host_work(scope, arm, index, step, before);
  if (step.config().recompute.any()) write_recompute(scope, arm, index, step, before);
  if (step.config().experts > 0) write_experts(scope, arm, index, step);
  if (step.config().fp8_weights) write_fp8_weights(scope, arm, index, step);
  if (step.config().precision == workloads::Precision::fp8_delayed)
    write_fp8_scaling(scope, arm, index, step);
  if (step.layout().pp > 1 || step.config().overlap_ep_comm)
    write_schedule(scope, arm, index, step);
}

void mark_offload(workloads::TrainStep& step) {
  if (step.offload()) step.offload()->mark();
}

void write_offload(CaseScope& scope, const std::string& arm, std::int64_t index,
                   workloads::TrainStep& step) {
  const auto counts =
      step.offload() ? step.offload()->counts() : workloads::ActivationOffload::Counts{};
  scope.write(record::OffloadLine{.arm = arm,
                                  .step = index,
                                  .buffers = counts.buffers,
                                  .pinned = counts.pinned,
                                  .written = counts.written,
                                  .fetched = counts.fetched});
}

void write_products(CaseScope& scope, const std::string& arm, std::int64_t index,
                    const capture::ProductLog& log) {
  const capture::ProductLog::Counts counts = log.counts();
  scope.write(record::ProductsLine{.arm = arm,
                                   .step = index,
                                   .in_16_bits = counts.in_16_bits,
                                   .in_32_bits = counts.in_32_bits,
                                   .parameters = counts.parameters,
                                   .casts = counts.casts});
}

}  // namespace graphproof::suites
