#include "reports/analysis/hazards.h"

#include <algorithm>
#include <map>

#include "matrix/plan/plan.h"
#include "reports/outcome/outcome.h"
#include "reports/record/text/file.h"

namespace graphproof::reports {
namespace {

using record::HazardCell;
using record::HazardCure;
using record::Hazards;
using record::operator""_verdict;

constexpr const char* kRegistrationCheck = "D27.registration_parity";

std::string axis_text(const nlohmann::json& axes, const char* axis) {
  const auto found = axes.find(axis);
  return found != axes.end() && found->is_string() ? found->get<std::string>() : "";
}

matrix::Machine machine_of(const RunResult& run) {
  matrix::Machine machine{.device = run.run.device, .slots = run.run.slots, .stack = {}};
  machine.stack =
      matrix::stack_variables(nlohmann::json::parse(record::to_json(run.run).dump()).at("stack"));
  return machine;
}

std::optional<record::HazardHang> hang_of(const AttemptFacts& facts) {
  if (!facts.context || !facts.context->hang) return std::nullopt;
  const record::Hang& hang = *facts.context->hang;
  record::HazardHang result{
      .phase = hang.phase, .ranks = {hang.missing_rank}, .last_collective = hang.last_collective};
  result.ranks.insert(result.ranks.end(), hang.waiting_ranks.begin(), hang.waiting_ranks.end());
  return result;
}

std::string registration_of(const AttemptFacts& facts) {
  if (!facts.checks) return "";
  for (const record::CheckResult& check : facts.checks->checks)
    if (check.check == kRegistrationCheck && check.result != record::Result::not_applicable)
      return check.message.got;
  return "";
}

/// The variables that differ in the environment of the ranks of the cured case, such as
/// "NCCL_GRAPH_REGISTER=0".
std::string setting_of(const matrix::AxisTable& axes, const matrix::Case& cured,
                       const matrix::Case& sick) {
  const auto before = matrix::case_environment(axes, sick);
  std::string text;
  for (const auto& [name, value] : matrix::case_environment(axes, cured)) {
    const auto found = before.find(name);
    if (found == before.end() || found->second != value)
      text += (text.empty() ? "" : " ") + name + "=" + value;
  }
  return text;
}

class Cells {
 public:
  Cells(const RunResult& run, const matrix::Catalogue& catalogue, const FactsOf& facts_of)
      : run_(run), catalogue_(catalogue), facts_of_(facts_of), machine_(machine_of(run)) {
    for (const CaseResult& one : run.cases) observed_[one.plan.id] = one.record.observed;
  }

  std::optional<HazardCell> cell(const CaseResult& one) const {
    const matrix::Hazard* hazard = catalogue_.hazards.find(one.plan.expect.rule);
    if (hazard == nullptr) return std::nullopt;
    const matrix::Case test_case =
        matrix::case_from_json(catalogue_.axes, one.plan.axes, "plan.jsonl");
    const AttemptFacts facts = facts_of_(one.record);
    HazardCell cell{.case_id = one.plan.id,
                    .name = one.plan.name,
                    .captured = axis_text(one.plan.axes, "impl") != "none",
                    .collective = axis_text(one.plan.axes, "collective"),
                    .allocator = axis_text(one.plan.axes, "allocator"),
                    .nccl_graph_register = axis_text(one.plan.axes, "nccl_graph_register"),
                    .placement = axis_text(one.plan.axes, "placement"),
                    .hazard = hazard->id,
                    .basis = hazard->basis,
                    .expected = one.plan.expect.verdict,
                    .observed = one.record.observed,
                    .verdict = one.record.verdict,
                    .registration = registration_of(facts),
                    .hang = hang_of(facts),
                    .cure = {},
                    .predictions = {}};
    const std::optional<bool> bit = bites(cell);
    cell.cure = cure(*hazard, test_case, bit.value_or(false));
    for (const matrix::Prediction& prediction : catalogue_.hazards.predictions()) {
      const bool refuses = prediction.refuses.holds(test_case, machine_) == matrix::Truth::yes;
      cell.predictions.push_back({.dialect = prediction.dialect,
                                  .covers = prediction.covers,
                                  .rule = prediction.rule,
                                  .refuses = refuses,
                                  .agrees = bit ? std::optional(refuses == *bit) : std::nullopt});
    }
    return cell;
  }

 private:
  /// The cure of the hazard. If the hazard has none and the case failed all the same, the first
  /// cure of the table.
  std::optional<HazardCure> cure(const matrix::Hazard& hazard, const matrix::Case& sick,
                                 bool bit) const {
    const matrix::Hazard* source = &hazard;
    if (hazard.cure.empty()) {
      const auto& all = catalogue_.hazards.hazards();
      const auto found = std::find_if(all.begin(), all.end(),
                                      [](const matrix::Hazard& one) { return !one.cure.empty(); });
      if (!bit || found == all.end()) return std::nullopt;
      source = &*found;
    }
    const matrix::Case cured = matrix::HazardTable::cured(catalogue_.axes, *source, sick);
    if (cured == sick) return std::nullopt;
    const std::string id = matrix::case_id(cured);
    const auto known = observed_.find(id);
    return HazardCure{.setting = setting_of(catalogue_.axes, cured, sick),
                      .case_id = id,
                      .verdict = known == observed_.end() ? "not_run"_verdict : known->second};
  }

  const RunResult& run_;
  const matrix::Catalogue& catalogue_;
  const FactsOf& facts_of_;
  const matrix::Machine machine_;
  std::map<std::string, record::Verdict> observed_;
};

}  // namespace

bool has_hazards(const RunResult& run) {
  return std::any_of(run.cases.begin(), run.cases.end(),
                     [](const CaseResult& one) { return one.plan.expect.kind == "hazard"; });
}

std::optional<bool> bites(const HazardCell& cell) {
  if (cell.observed.in("pass")) return false;
  if (cell.observed.exit_code() == record::ExitCode::product) return true;
  return std::nullopt;
}

Hazards hazards(const RunResult& run, const matrix::Catalogue& catalogue, const FactsOf& facts_of) {
  Hazards result{.run_id = run.run.run_id,
                 .device = run.run.device,
                 .nccl_version = run.run.stack.nccl_version,
                 .cells = {}};
  const Cells cells(run, catalogue, facts_of);
  for (const CaseResult& one : run.cases) {
    if (one.plan.expect.kind != "hazard") continue;
    if (auto cell = cells.cell(one)) result.cells.push_back(std::move(*cell));
  }
  return result;
}

Hazards read_hazards(const RunResult& run, const matrix::Catalogue& catalogue,
                     const std::filesystem::path& run_folder) {
  return hazards(run, catalogue, [&run_folder](const record::Record& record) {
    AttemptFacts facts;
    if (record.artefacts.empty()) return facts;
    const auto context = run_folder / record.artefacts / "context.json",
               checks = run_folder / record.artefacts / "checks.json";
    // A file that is damaged adds nothing, like one that is absent.
    std::error_code absent;
    try {
      if (std::filesystem::exists(context, absent))
        facts.context = record::context_from(record::read_json(context), context.string());
      if (std::filesystem::exists(checks, absent))
        facts.checks = record::checks_from(record::read_json(checks), checks.string());
    } catch (const record::ReadError&) {
    }
    return facts;
  });
}

}  // namespace graphproof::reports
