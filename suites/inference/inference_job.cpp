#include "suites/inference/inference_job.h"

#include <utility>

#include "fixtures/device/nvtx.h"
#include "fixtures/inspect/host_copies.h"
#include "fixtures/tensors/torch.h"

namespace graphproof::suites {
namespace {

using requests::Work;

constexpr std::int64_t kOtherPadding = 5;

std::string word(Work work) {
  return work == Work::idle ? "idle" : work == Work::prefill ? "prefill" : "decode";
}

}  // namespace

InferenceJob::InferenceJob(const CaseParts& parts, workloads::TrainStep& step, InferenceArm arm)
    : parts_(parts), step_(step), arm_(std::move(arm)), device_(parts.device) {
  const c10::StreamGuard guard(parts_.stream);
  if (arm_.graph && arm_.watch == Watch::free) {
    observer_ = std::make_unique<CaptureObserver>(parts_.scope, device_, step, arm_.name);
  } else if (arm_.graph) {
    auto observer = std::make_unique<ReplayObserver>(parts_.scope, device_, step, arm_.name);
    replays_ = observer.get();
    observer_ = std::move(observer);
  }
  engines::DecoderConfig decoding = *parts_.config.decoding;
  decoding.padding = arm_.padding == Padding::zeros ? 0 : kOtherPadding;
  if (!arm_.graph) decoding.scope = engines::InferenceScope::none;
  decoder_ = std::make_unique<engines::Decoder>(std::move(decoding), parts_.config.engine, device_,
                                                step, observer_.get());
}

InferenceJob::~InferenceJob() = default;

void InferenceJob::capture() {
  const c10::StreamGuard guard(parts_.stream);
  parts_.scope.enter(Phase::warmup, arm_.name, 0);
  decoder_->capture();
}

Snapshot InferenceJob::run(std::int64_t index, std::int64_t first) {
  const std::int64_t number = first + index;
  const fixtures::NvtxRange range(arm_.name, number);
  const c10::StreamGuard guard(parts_.stream);
  parts_.scope.enter(arm_.graph ? Phase::replay : Phase::eager, arm_.name, number);
  if (observer_) observer_->at_step(number);
  const std::int64_t before = device_.counts().replays;
  decoder_->run(index);
  return arm_.watch == Watch::free ? Snapshot{} : finish(index, number, before);
}

Snapshot InferenceJob::finish(std::int64_t index, std::int64_t number,
                              std::int64_t launches_before) {
  const c10::StreamGuard guard(parts_.stream);
  parts_.device.synchronize(parts_.stream);
  const GraphCounts counts = device_.counts();
  parts_.scope.write(record::BatchLine{.arm = arm_.name,
                                       .step = number,
                                       .work = word(decoder_->work()),
                                       .rows = std::ssize(decoder_->planned(index).rows),
                                       .size = decoder_->size(),
                                       .launches = counts.replays,
                                       .captures = counts.captures_begun});
  if (replays_) write_poison(number, counts.replays - launches_before);
  return fixtures::on_host(decoder_->results());
}

void InferenceJob::drop_graphs() { decoder_->drop_graphs(); }

void InferenceJob::write_poison(std::int64_t number, std::int64_t launches) {
  const auto replay = replays_->take();
  if (!replay) return;
  const auto outputs = std::ssize(replay->poisoned);
  parts_.scope.write(record::PoisonLine{.arm = arm_.name,
                                        .step = number,
                                        .outputs = outputs,
                                        .compared = outputs,
                                        .bytes = replay->poisoned_bytes,
                                        .canary_words = replay->canary_words,
                                        .launches = launches,
                                        .announced = replay->announced,
                                        .inspected = replay->inspected,
                                        .unregistered = std::vector<std::string>{}});
}

}  // namespace graphproof::suites
