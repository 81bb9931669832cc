#include "suites/inference/whole_sequences.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "fixtures/tensors/torch.h"
#include "suites/case/reference.h"

namespace graphproof::suites {
namespace {

using fixtures::NamedTensor;
using requests::Work;

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

/// The requests that ended, from the results by step.
std::vector<Finished> finished_requests(const CaseParts& parts, const engines::Decoder& decoder,
                                        const std::vector<Snapshot>& results) {
  const requests::Settings& settings = parts.config.decoding->requests;
  const std::int64_t rank = parts.config.layout.dp_rank;
  std::map<std::int64_t, Finished> all;
  for (std::size_t index = 0; index < results.size(); ++index) {
    const requests::Step& step = decoder.planned(static_cast<std::int64_t>(index));
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
  WholePass(const CaseParts& parts, workloads::TrainStep& step,
            std::span<const Finished> requests) {
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
    logits_ =
        step.infer(sequences.to(on), nullptr, nullptr, &choices).cpu().view({batch, length, -1});
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

}  // namespace

Snapshot sampled_results(Snapshot results) {
  std::erase_if(results, [](const NamedTensor& result) {
    return result.name != "logits" && result.name != "tokens" &&
           !result.name.starts_with("experts.");
  });
  return results;
}

void write_sequences(const CaseParts& parts, const InferenceJob& job,
                     const std::vector<Snapshot>& results) {
  const c10::StreamGuard guard(parts.stream);
  const requests::Settings& settings = parts.config.decoding->requests;
  const std::int64_t batch = parts.config.model.microbatch_size;
  const std::vector<Finished> finished = finished_requests(parts, job.decoder(), results);
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
    const WholePass whole(parts, job.step(), requests);
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
  parts.scope.write(record::SequencesLine{.arm = job.name(),
                                          .requests = std::ssize(finished),
                                          .tokens = tokens,
                                          .distance = distance_of(pairs, reference_bound(single))});
}

}  // namespace graphproof::suites
