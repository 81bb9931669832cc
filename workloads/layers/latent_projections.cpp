#include "workloads/layers/latent_projections.h"

namespace graphproof::workloads {

LatentProjections::LatentProjections(Parameters& parameters, const ModelConfig& config,
                                     const Layout& layout, const std::string& name,
                                     DelayedGradients* delayed)
    : config_(config),
      layout_(layout),
      query_down_(parameters, layout, name + ".q_down", config.hidden, config.q_lora_rank(),
                  config.grad_accumulation_fusion, delayed),
      key_value_down_(parameters, layout, name + ".kv_down", config.hidden,
                      config.kv_lora_rank() + config.rotary_width(),
                      config.grad_accumulation_fusion, delayed),
      query_norm_(parameters, config, layout, name + ".q_norm", config.q_lora_rank()),
      key_value_norm_(parameters, config, layout, name + ".kv_norm", config.kv_lora_rank()),
      query_up_(parameters, layout, name + ".q_up", config.q_lora_rank(),
                config.heads * config.query_width(), config.qkv_bias,
                config.grad_accumulation_fusion, delayed),
      key_value_up_(parameters, layout, name + ".kv_up", config.kv_lora_rank(),
                    config.heads * 2 * config.head_width(), config.qkv_bias,
                    config.grad_accumulation_fusion, delayed),
      up_parameters_(known_to_autograd(parameters.starting_with(name + ".q_up."), delayed)) {
  for (const at::Tensor& parameter :
       known_to_autograd(parameters.starting_with(name + ".kv_up."), delayed))
    up_parameters_.push_back(parameter);
}

Latents LatentProjections::down(const at::Tensor& x, const ForwardPass& pass) const {
  const at::Tensor query = query_down_.forward(x, pass);
  const std::vector<at::Tensor> parts = key_value_down_.forward(x, pass).split_with_sizes(
      {config_.kv_lora_rank(), config_.rotary_width()}, 1);
  return {query_norm_.forward(query), key_value_norm_.forward(parts[0]), parts[1]};
}

UpProjected LatentProjections::up(const Latents& latents, const ForwardPass& pass) const {
  return {queries(latents.query, pass), keys_and_values(latents.key_value, pass),
          enter_tensor_parallel(latents.rotary, layout_)};
}

at::Tensor LatentProjections::queries(const at::Tensor& query, const ForwardPass& pass) const {
  return query_up_.forward(query, pass)
      .unflatten(1, {config_.heads / layout_.tp, config_.query_width()});
}

at::Tensor LatentProjections::keys_and_values(const at::Tensor& key_value,
                                              const ForwardPass& pass) const {
  return key_value_up_.forward(key_value, pass)
      .unflatten(1, {config_.heads / layout_.tp, 2 * config_.head_width()});
}

}  // namespace graphproof::workloads
