#include "matrix/plan/concessions.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace graphproof::matrix {
namespace {

// What a case may give up, beginning with what matters least to what graphs hold. A concession is
// made, alone or together with others, only if something is then no longer missing.
struct Concession {
  const char* axis;
  const char* value;  // as in a case's name
};
constexpr Concession kConcessions[] = {
    {"allocator", "default"},
    {"nccl_graph_register", "unset"},
    {"nccl_algo", "unset"},
    {"nccl_proto", "unset"},
    {"nan_check_loss", "false"},
    {"nan_check_grad", "false"},
    {"grad_accumulation_fusion", "false"},
    {"overlap_param_gather", "false"},
    {"overlap_grad_reduce", "false"},
    {"distributed_optimizer", "false"},
    {"optimizer_graph", "false"},
    {"delay_wgrad", "false"},
    {"overlap_ep_comm", "false"},
    {"shared_expert_overlap", "false"},
    {"packed", "false"},
    {"mtp_num_layers", "0"},
    {"multi_latent_attention", "false"},
    {"cpu_offload", "false"},
    {"precision", "bf16"},
    {"dispatcher", "alltoall"},
    {"dispatch", "dropless"},
    {"dispatch", "drop_and_pad"},
    {"recompute", "selective(core_attn)"},
    {"recompute", "none"},
    {"model", "moe"},
    {"model", "gpt"},
    {"dp", "1"},
    {"vpp", "1"},
    {"etp", "1"},
    {"cp", "1"},
    {"sequence_parallel", "false"},
    {"pp", "1"},
    {"ep", "1"},
    {"tp", "1"},
    {"dp", "2"},
    {"impl", "local"},
};
constexpr std::size_t kMostTogether = 4;  // the most concessions that are tried together

// `recompute`, a value of that axis, without the module mla_up_proj.
std::string without_latents(const std::string& recompute) {
  std::string kept;
  const Call call = split_call(recompute);
  if (call.word != "selective") return recompute;
  for (const std::string& module : call.arguments)
    if (module != "mla_up_proj") kept += (kept.empty() ? "" : ",") + module;
  return kept.empty() ? "none" : "selective(" + kept + ")";
}

class Conceding {
 public:
  Conceding(const Case& asked, const Catalogue& catalogue, const Machine& machine)
      : catalogue_(catalogue), axes_(catalogue.axes), machine_(machine) {
    result_.test_case = asked;
  }

  RunnableCase run() {
    if (catalogue_.rules.refusal(result_.test_case, machine_)) return std::move(result_);
    result_.missing = missing(result_.test_case);
    while (!result_.missing.empty() && step()) {
    }
    return std::move(result_);
  }

 private:
  std::vector<std::string> missing(const Case& test_case) const {
    std::vector<std::string> result = catalogue_.capabilities.missing(test_case, machine_);
    for (std::string& one : catalogue_.capabilities.missing_in_architecture(test_case, machine_))
      result.push_back(std::move(one));
    if (const std::int64_t ranks = world_size(axes_, test_case); ranks > machine_.slots)
      result.push_back(std::to_string(ranks) + " ranks: this machine has " +
                       std::to_string(machine_.slots) + " slots");
    return result;
  }

  // `from` with one concession; `from` itself if the concession does not apply to it. A model that
  // gives up its mamba layers gives up the capture of them too, and one that gives up its latents
  // the recompute of what is made of them.
  Case conceded(const Case& from, const Concession& concession) const {
    Case result = from;
    const bool recompute = std::string_view(concession.axis) == "recompute" &&
                           std::string_view(concession.value) != "none";
    if (recompute && text_of(axes_, from, "recompute").find("core_attn") == std::string::npos)
      return from;  // it would recompute a module that `from` does not
    set_value(
        axes_, result, concession.axis,
        parse_value_text(axes_.at(concession.axis, {}), concession.axis, concession.value, {}));
    if (std::string_view(concession.axis) == "multi_latent_attention") {
      const std::string recomputed = without_latents(text_of(axes_, from, "recompute"));
      set_value(axes_, result, "recompute", recomputed);
    }
    if (std::string_view(concession.axis) != "model") return result;
    if ((integer_of(axes_, from, "experts") > 0) != (std::string_view(concession.value) == "moe"))
      return from;
    auto modules = std::get<std::vector<std::string>>(value_of(axes_, from, "modules"));
    std::erase(modules, "mamba");
    set_value(axes_, result, "modules", modules);
    return result;
  }

  // Makes the fewest concessions after which less is missing, and among as many the first ones.
  // False if there are none.
  bool step() {
    std::vector<const Concession*> open;
    for (const Concession& concession : kConcessions)
      if (conceded(result_.test_case, concession) != result_.test_case) open.push_back(&concession);
    for (std::size_t together = 1; together <= std::min(kMostTogether, open.size()); ++together)
      if (concede(open, 0, together, result_.test_case)) return true;
    return false;
  }

  // Tries every choice of `more` of the concessions from `begin` on, after those of `so_far`.
  bool concede(const std::vector<const Concession*>& open, std::size_t begin, std::size_t more,
               const Case& so_far) {
    if (more > 0) {
      for (std::size_t i = begin; i + more <= open.size(); ++i)
        if (concede(open, i + 1, more - 1, conceded(so_far, *open[i]))) return true;
      return false;
    }
    std::vector<std::string> left = missing(so_far);
    if (left.size() >= result_.missing.size() || catalogue_.rules.refusal(so_far, machine_))
      return false;
    std::string why;
    for (const std::string& one : result_.missing)
      if (std::find(left.begin(), left.end(), one) == left.end())
        why += (why.empty() ? "" : "; ") + one;
    note_change(result_.test_case, so_far, why);
    result_.test_case = so_far;
    result_.missing = std::move(left);
    return true;
  }

  void note_change(const Case& before, const Case& after, const std::string& why) {
    std::string from, to;
    for (const Axis& axis : axes_.axes()) {
      const Value old = value_of(axes_, before, axis.name), now = value_of(axes_, after, axis.name);
      if (old == now) continue;
      from += (from.empty() ? "" : ", ") + axis.name + "=" + value_text(old);
      to += (to.empty() ? "" : ", ") + axis.name + "=" + value_text(now);
    }
    result_.replaced.push_back({from, to, why});
  }

  const Catalogue& catalogue_;
  const AxisTable& axes_;
  const Machine& machine_;
  RunnableCase result_;
};

}  // namespace

RunnableCase runnable_case(const Case& asked, const Catalogue& catalogue, const Machine& machine) {
  return Conceding(asked, catalogue, machine).run();
}

}  // namespace graphproof::matrix
