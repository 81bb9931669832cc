#include "launcher/cli/known_bad_stacks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cstdlib>
#include <utility>

namespace graphproof::cli {
namespace {

using matrix::StackUse;
using matrix::Value;

// The most GPUs that a server of the usual makers has (NVIDIA DGX-2).
constexpr std::int64_t kMostGpusOfAMachine = 16;

/// The components of the table that are variables of a stack. The versions of others, such as
/// cuBLAS, are known only once they are loaded.
constexpr std::array<std::pair<std::string_view, const char*>, 2> kVariables = {{
    {"torch", "torch_version"},
    {"libnccl", "nccl_version"},
}};

/// The name under which the user can supply it.
std::string variable_of(const std::string& component) {
  for (const auto& [name, variable] : kVariables)
    if (name == component) return variable;
  return component;
}

/// What a user can give so that an unknown use is decided.
std::string decided_by(const std::string& unknown) {
  if (unknown == matrix::name(StackUse::spans_nodes)) return "env.LOCAL_WORLD_SIZE";
  if (unknown == matrix::name(StackUse::captured_communication)) return "world_size";
  if (unknown == matrix::name(StackUse::grouped_products)) return "moe_grouped_gemm";
  return variable_of(unknown);
}

std::optional<matrix::Version> version_in(const matrix::Machine& machine,
                                          const std::string& component) {
  const auto found = machine.stack.find(variable_of(component));
  return found == machine.stack.end() ? std::nullopt : matrix::parse_version(found->second);
}

bool not_installed(const matrix::Machine& machine, const std::string& component) {
  const auto found = machine.stack.find(variable_of(component));
  return found != machine.stack.end() && found->second == "none";
}

std::vector<dialect::Finding> findings(const matrix::Machine& machine,
                                       const matrix::BadStackTable& table,
                                       const matrix::UseHolds& holds) {
  std::vector<dialect::Finding> list;
  for (const matrix::BadStack& row : table.rows()) {
    if (not_installed(machine, row.component)) continue;
    const auto met = row.met(
        [&](const std::string& component) { return version_in(machine, component); }, holds);
    if (!met) continue;
    std::vector<std::string> unknown;
    for (const std::string& one : met->unknown) unknown.push_back(decided_by(one) + "=unknown");
    list.push_back({.rule = row.id,
                    .stage = dialect::Stage::run,
                    .status = "live",
                    .severity = "hazard",
                    .option = {},
                    .what = row.what,
                    .got = unknown.empty() ? met->got : fmt::format("{}", fmt::join(unknown, ", ")),
                    .want = "none of: " + row.conditions(),
                    .why = row.why + " (" + row.source + ")",
                    .next = row.next,
                    .place = {},
                    .unknown = !unknown.empty()});
  }
  return list;
}

std::optional<bool> both(std::optional<bool> one, std::optional<bool> other) {
  if (one == false || other == false) return false;
  if (!one || !other) return std::nullopt;
  return true;
}

/// What a Megatron configuration says.
class ConfigurationFacts {
 public:
  explicit ConfigurationFacts(const dialect::Configuration& configuration)
      : configuration_(configuration) {}

  std::optional<bool> holds(StackUse use) const {
    switch (use) {
      case StackUse::captured_communication:
        return both(has_graphs(), more_than(1));
      case StackUse::spans_nodes:
        return spans_nodes();
      case StackUse::expandable_segments:
        return environment("PYTORCH_CUDA_ALLOC_CONF").find(kExpandable) != std::string::npos ||
               environment("PYTORCH_ALLOC_CONF").find(kExpandable) != std::string::npos;
      case StackUse::graph_registration:
        return environment("NCCL_GRAPH_REGISTER") != "0";
      case StackUse::grouped_products:
        return both(has_graphs(), flag("moe_grouped_gemm"));
    }
    return std::nullopt;
  }

 private:
  static constexpr const char* kExpandable = "expandable_segments:True";

  const Value* value(std::string_view name) const {
    const auto found = configuration_.values.find(name);
    return found == configuration_.values.end() ? nullptr : &found->second;
  }
  std::optional<bool> has_graphs() const {
    const Value* impl = value("cuda_graph_impl");
    if (impl == nullptr || std::holds_alternative<matrix::Unknown>(*impl)) return std::nullopt;
    if (std::holds_alternative<matrix::Absent>(*impl)) return false;
    const auto* word = std::get_if<std::string>(impl);
    return word == nullptr ? std::nullopt : std::optional(*word != "none");
  }
  std::optional<std::int64_t> world_size() const {
    const Value* size = value("world_size");
    const auto* number = size == nullptr ? nullptr : std::get_if<std::int64_t>(size);
    return number == nullptr ? std::nullopt : std::optional(*number);
  }
  std::optional<bool> more_than(std::int64_t ranks) const {
    const auto size = world_size();
    return size ? std::optional(*size > ranks) : std::nullopt;
  }
  std::optional<bool> spans_nodes() const {
    const auto size = world_size();
    if (!size) return std::nullopt;
    const std::int64_t local = std::atoll(environment("LOCAL_WORLD_SIZE").c_str());
    if (local > 0) return *size > local;
    if (*size > kMostGpusOfAMachine) return true;
    return *size == 1 ? std::optional(false) : std::nullopt;
  }
  std::optional<bool> flag(std::string_view name) const {
    const Value* set = value(name);
    if (set == nullptr || std::holds_alternative<matrix::Absent>(*set)) return false;
    const auto* known = std::get_if<bool>(set);
    return known == nullptr ? std::nullopt : std::optional(*known);
  }
  /// Empty if it is not set.
  std::string environment(const std::string& name) const {
    const Value* text = value("env." + name);
    const auto* known = text == nullptr ? nullptr : std::get_if<std::string>(text);
    return known == nullptr ? "" : *known;
  }

  const dialect::Configuration& configuration_;
};

std::optional<bool> case_holds(StackUse use, const OwnCase& own, const matrix::AxisTable& axes) {
  const bool graphs = matrix::text_of(axes, own.test_case, "impl") != "none" ||
                      matrix::boolean_of(axes, own.test_case, "optimizer_graph") ||
                      matrix::text_of(axes, own.test_case, "schedule") == "decode";
  const bool several = matrix::world_size(axes, own.test_case) > 1;
  switch (use) {
    case StackUse::captured_communication:
      return graphs && several;
    case StackUse::spans_nodes:
      // A case says nothing of where its ranks are.
      return several ? std::nullopt : std::optional(false);
    case StackUse::expandable_segments:
      return matrix::text_of(axes, own.test_case, "allocator") == "expandable";
    case StackUse::graph_registration:
      return matrix::text_of(axes, own.test_case, "nccl_graph_register") != "0";
    case StackUse::grouped_products:
      // The engines of reference multiply expert by expert; other subjects may do either.
      if (matrix::subject_of(own.test_case) == matrix::kReference) return false;
      return both(graphs, std::nullopt);
  }
  return std::nullopt;
}

}  // namespace

std::vector<dialect::Finding> bad_stacks_of(const dialect::Configuration& configuration,
                                            const matrix::BadStackTable& table) {
  const ConfigurationFacts facts(configuration);
  return findings(configuration.machine, table, [&](StackUse use) { return facts.holds(use); });
}

std::vector<dialect::Finding> bad_stacks_of(const OwnCase& own, const matrix::AxisTable& axes,
                                            const matrix::BadStackTable& table) {
  return findings(own.machine, table, [&](StackUse use) { return case_holds(use, own, axes); });
}

std::vector<std::string> bad_versions_of(const matrix::Machine& machine,
                                         const matrix::BadStackTable& table) {
  std::vector<std::string> list;
  for (const matrix::BadStack& row : table.rows()) {
    if (!version_in(machine, row.component)) continue;
    const auto met =
        row.met([&](const std::string& component) { return version_in(machine, component); },
                [](StackUse) -> std::optional<bool> { return std::nullopt; });
    if (met)
      list.push_back(fmt::format("{}: {} ({}; {})", met->got, row.what, row.next, row.source));
  }
  return list;
}

}  // namespace graphproof::cli
