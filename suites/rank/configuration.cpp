#include "suites/rank/configuration.h"

#include <charconv>
#include <cstdlib>

#include "fixtures/tensors/torch.h"

namespace graphproof::suites {
namespace {

/// Counts are numbers in the evidence, not text.
record::Json reported(const std::string& text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size() && !text.empty()) return number;
  return text;
}

struct Variable {
  const char* axis;
  const char* name;
};
/// NCCL reads these variables once and reports them only in its log, so the value in the
/// environment of this process is taken as the effective one.
constexpr Variable kVariables[] = {{"nccl_graph_register", "NCCL_GRAPH_REGISTER"},
                                   {"nccl_algo", "NCCL_ALGO"},
                                   {"nccl_proto", "NCCL_PROTO"}};

}  // namespace

void write_configuration(CaseScope& scope, RankProcess& process, const StepConfig& config,
                         const c10::Stream& stream, const nlohmann::json& axes) {
  const bool cuda = process.device().name() == "cuda";
  record::Settings asked{{"autograd_threads", axes.at("autograd_threads")},
                         {"capture_mode", axes.at("capture_mode")}},
      effective;
  for (const auto& [name, value] : process.device().configuration())
    effective[name] = reported(value);
  effective["autograd_threads"] =
      c10::AutogradState::get_tls_state().get_multithreading_enabled() ? "on" : "off";
  asked["capture_stream"] = axes.at("capture_stream");
  effective["capture_stream"] = process.device().blocking(stream) ? "blocking" : "non_blocking";
  effective["capture_mode"] = capture_mode_word(config.engine.capture_mode);
  effective["mpi_thread_level"] = process.world()->thread_level();
  effective["deterministic"] = at::globalContext().deterministicAlgorithms();
  if (cuda) {
    asked["allocator"] = axes.at("allocator");
    asked["comm"] = axes.value("comm", "nccl");
    effective["comm"] = process.groups().transport(at::DeviceType::CUDA);
    for (const Variable& variable : kVariables) {
      // For "unset" the suite's own setting or the library's default applies.
      if (axes.at(variable.axis) != "unset") asked[variable.name] = axes.at(variable.axis);
      const char* value = std::getenv(variable.name);
      effective[variable.name] = value ? value : "unset";
    }
  }
  scope.write(record::ConfigLine{.asked = std::move(asked), .effective = std::move(effective)});
}

}  // namespace graphproof::suites
