// One transformer layer, norms before the branches: x + dropout(attention(norm(x))), then the same with the MLP.
#pragma once

#include <optional>
#include <string>

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
        mlp_(parameters, config, layout, name_ + ".mlp") {}

  /// x [N, H] fp32, the same on all T ranks. Returns [N, H], the same on all T ranks. Adds one to this layer's counter.
  at::Tensor forward(const at::Tensor& x, ForwardPass& pass) const {
    const fixtures::NvtxRange range("layer", index_);
    // M15 stands for a library that launches on the legacy stream whatever stream is current: beside a capture on a
    // non-blocking stream that raises nothing, runs once and is missing from the graph.
    std::optional<c10::Stream> stray;
    if (pass.fault.is("M15") && pass.recording && index_ == 0) stray = pass.default_stream;
    count(pass.counters[index_], stray);
    // M01 stands for a host that looks at a value inside the region: a NaN check, a log line, a token count.
    if (pass.fault.is("M01") && index_ == 1) (void)x.detach().sum().item<float>();

    const at::Tensor attended =
        x + pass.dropout.apply(attention_.forward(attention_norm_.forward(x), pass),
                               {pass.microbatch, index_, DropoutSite::attention});
    return attended + pass.dropout.apply(mlp_.forward(mlp_norm_.forward(attended), stray),
                                         {pass.microbatch, index_, DropoutSite::mlp});
  }

 private:
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
};

}  // namespace graphproof::workloads
