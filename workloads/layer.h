// One transformer layer, norms before the branches: x + dropout(attention(norm(x))), then the same with the MLP. The
// layer and each of the two are parts that a graph may hold alone (module_runner.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fixtures/nvtx.h"
#include "fixtures/torch.h"
#include "workloads/attention.h"
#include "workloads/mlp.h"
#include "workloads/norm.h"

namespace graphproof::workloads {

class Layer {
 public:
  Layer(Parameters& parameters, const ModelConfig& config, const Layout& layout, const AttentionTables& tables,
        std::int64_t index)
      : index_(index),
        name_("layers." + std::to_string(index)),
        attention_norm_(parameters, name_ + ".attention_norm", config.hidden),
        attention_(parameters, config, layout, tables, name_ + ".attention", index),
        mlp_norm_(parameters, name_ + ".mlp_norm", config.hidden),
        mlp_(parameters, config, layout, name_ + ".mlp"),
        parameters_(parameters.starting_with(name_ + ".")),
        attention_parameters_(parameters.starting_with(name_ + ".attention")),
        mlp_parameters_(parameters.starting_with(name_ + ".mlp")) {}

  /// x [N, H] fp32, the same on all T ranks. Returns [N, H], the same on all T ranks. Adds one to this layer's counter.
  at::Tensor forward(const at::Tensor& x, const ForwardPass& pass) const {
    const fixtures::NvtxRange range("layer", index_);
    return part(ModuleKind::layer, x, parameters_, pass,
                [this, pass](const at::Tensor& input) { return mlp_part(attention_part(input, pass), pass); });
  }

 private:
  at::Tensor attention_part(const at::Tensor& x, const ForwardPass& pass) const {
    return part(ModuleKind::attn, x, attention_parameters_, pass, [this, pass](const at::Tensor& input) {
      count(pass.counters[index_], stray_stream(pass));
      // M01 stands for a host that looks at a value inside the region: a NaN check, a log line, a token count.
      if (pass.fault.is("M01") && index_ == 1) (void)input.detach().sum().item<float>();
      return input + pass.dropout.apply(attention_.forward(attention_norm_.forward(input), pass),
                                        {index_, DropoutSite::attention});
    });
  }

  at::Tensor mlp_part(const at::Tensor& x, const ForwardPass& pass) const {
    return part(ModuleKind::mlp, x, mlp_parameters_, pass, [this, pass](const at::Tensor& input) {
      return input + pass.dropout.apply(mlp_.forward(mlp_norm_.forward(input), stray_stream(pass)),
                                        {index_, DropoutSite::mlp});
    });
  }

  template <class Body>
  at::Tensor part(ModuleKind kind, const at::Tensor& x, const std::vector<at::Tensor>& parameters,
                  const ForwardPass& pass, const Body& body) const {
    if (!pass.runner) return body(x);
    return run_module(pass.runner, {kind, index_, pass.microbatch}, {x}, parameters,
                      [body](const std::vector<at::Tensor>& inputs) {
                        return std::vector<at::Tensor>{body(inputs[0])};
                      })[0];
  }

  // M15 stands for a library that launches on the legacy stream whatever stream is current: beside a capture on a
  // non-blocking stream that raises nothing, runs once and is missing from the graph.
  std::optional<c10::Stream> stray_stream(const ForwardPass& pass) const {
    if (pass.fault.is("M15") && pass.recording && index_ == 0) return pass.default_stream;
    return std::nullopt;
  }

  static void count(const at::Tensor& counter, std::optional<c10::Stream> stray) {
    c10::OptionalStreamGuard guard;
    if (stray) guard.reset_stream(*stray);
    counter.add_(1);
  }

  std::int64_t index_;
  std::string name_;
  RmsNorm attention_norm_;
  Attention attention_;
  RmsNorm mlp_norm_;
  Mlp mlp_;
  std::vector<at::Tensor> parameters_, attention_parameters_, mlp_parameters_;
};

}  // namespace graphproof::workloads
