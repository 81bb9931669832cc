#include "matrix/guidance/guidance_plans.h"

#include <optional>

namespace graphproof::matrix {
namespace {

constexpr int kSlots = 4;  // room for the layouts of the shipped profiles

Machine machine_with(const std::string& device) {
  return {.device = device,
          .slots = kSlots,
          .stack = {{"torch_version", "2.11.0"},
                    {"sm", device == "cuda" ? "100" : "0"},
                    {"hybrid_ep", device == "cuda" ? "1.2.1" : "none"},
                    {"apex", device == "cuda" ? "0.1" : "none"}}};
}

}  // namespace

const std::vector<GuidancePlans::Planned>& GuidancePlans::planned(const std::string& profile,
                                                                  const std::string& device) {
  const auto [found, is_new] = plans_.try_emplace({profile, device});
  if (is_new) {
    const Plan plan = make_plan(shipped_matrix_file(profile, catalogue_), catalogue_, profile,
                                machine_with(device), std::nullopt);
    for (const record::PlanLine& line : plan.lines)
      if (!line.skip)
        found->second.push_back({case_from_json(catalogue_.axes, line.axes, ""), line});
  }
  return found->second;
}

std::vector<const record::PlanLine*> GuidancePlans::running(const GuidanceCases& cases,
                                                            const std::string& profile) {
  std::vector<const record::PlanLine*> lines;
  const Machine machine = machine_with(cases.device);
  for (const auto& [test_case, line] : planned(profile, cases.device))
    if (line.expect.kind != "rejected" && cases.where.holds(test_case, machine) == Truth::yes)
      lines.push_back(&line);
  return lines;
}

std::vector<const record::PlanLine*> GuidancePlans::refused(const Expression& refused,
                                                            const std::string& rule) {
  std::vector<const record::PlanLine*> lines;
  for (const auto& [profile, device] : {std::pair{"constraints", "sim"}, {"subjects", "cuda"}}) {
    const Machine machine = machine_with(device);
    for (const auto& [test_case, line] : planned(profile, device))
      if (line.expect.kind == "rejected" && line.expect.rule == rule &&
          refused.holds(test_case, machine) == Truth::yes)
        lines.push_back(&line);
  }
  return lines;
}

}  // namespace graphproof::matrix
