#include "suites/case/rank_lines.h"

#include <map>
#include <string_view>
#include <vector>

#include "fixtures/inspect/tensor_digest.h"
#include "fixtures/tensors/torch.h"

namespace graphproof::suites {
namespace {

using fixtures::NamedTensor;

/// The name of the parameter to which a tensor of the optimizer belongs; empty for others.
std::string parameter_of(std::string_view state) {
  for (const std::string_view prefix : {"state:master.", "state:adam.m.", "state:adam.v."})
    if (state.starts_with(prefix)) return "param:" + std::string(state.substr(prefix.size()));
  return {};
}

/// The part of the model to which each parameter of this rank belongs, by name.
std::map<std::string, std::string> parts_of(workloads::TrainStep& step) {
  const workloads::Layout& layout = step.layout();
  const bool tied = step.config().embeds_on_last_stage() && layout.pp > 1;
  std::map<std::string, std::string> parts;
  const auto parameters = step.parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const workloads::Shard& shard = step.shards()[i];
    parts[parameters[i].name] = tied && parameters[i].name == "param:embedding.weight" ? "tied"
                                : shard.expert                                         ? "experts"
                                : shard.count > 1                                      ? "split"
                                                                                       : "whole";
  }
  return parts;
}

void write_held(CaseScope& scope, const std::string& arm, std::int64_t index,
                workloads::TrainStep& step) {
  const auto parts = parts_of(step);
  std::map<std::pair<std::string, std::string>, std::vector<NamedTensor>> held;
  for (const NamedTensor& one : step.parameters())
    held[{"parameters", parts.at(one.name)}].push_back(one);
  for (const NamedTensor& one : step.optimizer_state()) {
    if (one.name.starts_with("state:fp8.")) continue;
    const std::string parameter = parameter_of(one.name);
    const std::string part = one.name == "state:router_bias" ? "routers"
                             : parameter.empty()             ? "model"
                                                             : parts.at(parameter);
    held[{"state", part}].push_back(one);
  }
  for (const auto& [key, tensors] : held)
    scope.write(record::HeldLine{.arm = arm,
                                 .step = index,
                                 .what = key.first,
                                 .part = key.second,
                                 .tensors = std::ssize(tensors),
                                 .digest = fixtures::digest(tensors)});
}

void write_masks(CaseScope& scope, const std::string& arm, std::int64_t index,
                 workloads::TrainStep& step) {
  std::map<std::string, std::vector<NamedTensor>> masks;
  for (const NamedTensor& mask : step.masks()) {
    // Without names, because those of other stages are of other layers.
    const bool inside = mask.name.find(".core_attention") != std::string::npos;
    masks[inside ? "inside" : "outside"].push_back({"", mask.tensor});
  }
  for (const auto& [region, drawn] : masks)
    scope.write(record::MasksLine{.arm = arm,
                                  .step = index,
                                  .region = region,
                                  .masks = std::ssize(drawn),
                                  .digest = fixtures::digest(drawn)});
}

}  // namespace

void write_rank_lines(CaseScope& scope, const std::string& arm, std::int64_t index,
                      workloads::TrainStep& step) {
  write_held(scope, arm, index, step);
  write_masks(scope, arm, index, step);
}

}  // namespace graphproof::suites
