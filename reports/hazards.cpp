#include "reports/hazards.h"

#include <algorithm>
#include <map>

#include "matrix/plan.h"
#include "reports/outcome.h"
#include "reports/printable.h"
#include "reports/record/file.h"

namespace graphproof::reports {
namespace {

using record::HazardCell;
using record::HazardCure;
using record::Hazards;
using record::operator""_verdict;

constexpr const char* kRegistrationCheck = "D27.registration_parity";

std::string text_of(const nlohmann::json& axes, const char* axis) {
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

/// What the cured case's ranks have in their environment beside this one's:
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
                    .captured = text_of(one.plan.axes, "impl") != "none",
                    .collective = text_of(one.plan.axes, "collective"),
                    .allocator = text_of(one.plan.axes, "allocator"),
                    .nccl_graph_register = text_of(one.plan.axes, "nccl_graph_register"),
                    .placement = text_of(one.plan.axes, "placement"),
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
  /// The hazard's own cure; of a cell that bit although nothing was expected to, the first that the
  /// table knows.
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

// ---- as text
// -------------------------------------------------------------------------------------------------------

std::string settings_text(const HazardCell& cell) {
  return std::string(cell.captured ? "captured " : "eager ") + cell.collective + ", allocator " +
         cell.allocator + ", placement " + cell.placement + ", NCCL_GRAPH_REGISTER " +
         cell.nccl_graph_register;
}

std::string hang_text(const HazardCell& cell) {
  if (!cell.hang) return "";
  std::string ranks;
  for (const int rank : cell.hang->ranks)
    ranks += (ranks.empty() ? "" : ", ") + std::to_string(rank);
  std::string text =
      "ranks " + ranks + " hung in phase " + std::string(record::name(cell.hang->phase));
  if (const auto& last = cell.hang->last_collective)
    text += ", last collective " + std::to_string(last->sequence) + " " + last->op + " in " +
            last->group;
  return text;
}

std::string cure_text(const HazardCell& cell) {
  if (!cell.cure) return "";
  const bool holds = cell.cure->verdict.in("pass");
  return "cure: " + cell.cure->setting +
         (holds ? ", with which it passes"
                : ", with which it ended " + std::string(cell.cure->verdict.text())) +
         " (" + cell.cure->case_id + ")";
}

/// How one rule did over the cells that showed something.
struct Score {
  record::HazardPrediction rule;
  int agrees = 0, judged = 0;
  int needless = 0;  // refuses what works
  int misses = 0;    // allows what bites
};

std::vector<Score> scores(const Hazards& hazards) {
  std::vector<Score> all;
  for (const HazardCell& cell : hazards.cells)
    for (const record::HazardPrediction& one : cell.predictions) {
      auto found = std::find_if(all.begin(), all.end(), [&](const Score& score) {
        return score.rule.dialect == one.dialect && score.rule.rule == one.rule &&
               score.rule.covers == one.covers;
      });
      if (found == all.end()) found = all.insert(all.end(), {.rule = one});
      if (!one.agrees) continue;
      ++found->judged;
      found->agrees += *one.agrees;
      found->needless += !*one.agrees && one.refuses;
      found->misses += !*one.agrees && !one.refuses;
    }
  return all;
}

std::string score_text(const Score& score) {
  if (score.judged == 0) return "no cell showed anything";
  std::string text = "agrees with " + std::to_string(score.agrees) + " of " +
                     std::to_string(score.judged) + " cells";
  if (score.needless > 0) text += ", forbids " + std::to_string(score.needless) + " that work";
  if (score.misses > 0) text += ", lets through " + std::to_string(score.misses) + " that fail";
  return text;
}

struct Totals {
  int shown = 0, bit = 0, surprising = 0;
};
Totals totals(const Hazards& hazards) {
  Totals all;
  for (const HazardCell& cell : hazards.cells) {
    const auto bit = bites(cell);
    all.shown += bit.has_value();
    all.bit += bit.value_or(false);
    all.surprising += bit && !(cell.verdict.in("pass") || cell.verdict.in("xfail"));
  }
  return all;
}

std::string head_text(const Hazards& hazards) {
  const Totals all = totals(hazards);
  return std::to_string(hazards.cells.size()) + " cells on " + hazards.device + ", NCCL " +
         hazards.nccl_version + ": " + std::to_string(all.shown) + " shown, " +
         std::to_string(all.bit) + " fail, " + std::to_string(all.surprising) +
         " otherwise than expected";
}

bool worth_a_line(const HazardCell& cell) {
  const auto bit = bites(cell);
  return bit && (*bit || !(cell.verdict.in("pass") || cell.verdict.in("xfail")));
}

/// Text inside a table cell: the bar alone would end it.
std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : printable(text)) {
    if (std::string_view("\\`*_|<>[]#").find(c) != std::string_view::npos) result += '\\';
    result += c;
  }
  return result;
}

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
    std::error_code absent;
    if (std::filesystem::exists(context, absent))
      facts.context = record::context_from(record::read_json(context), context.string());
    if (std::filesystem::exists(checks, absent))
      facts.checks = record::checks_from(record::read_json(checks), checks.string());
    return facts;
  });
}

std::string hazard_text(const Hazards& hazards, const TerminalStyle& style) {
  if (hazards.cells.empty()) return "";
  const auto paint = [&](const std::string& text, const char* code) {
    return style.colour ? std::string("\033[") + code + "m" + text + "\033[0m" : text;
  };
  std::string text = "hazards: " + printable(head_text(hazards)) + "\n";
  for (const HazardCell& cell : hazards.cells) {
    if (!worth_a_line(cell)) continue;
    const bool met = cell.verdict.in("xfail");
    text += "  " + paint(std::string(cell.verdict.text()), met ? "2" : "31") + "  " + cell.case_id +
            "  " + printable(settings_text(cell)) + "\n";
    text += "      " + std::string(cell.observed.text()) + ", expected " +
            printable(cell.expected) + " (" + printable(cell.hazard) + ", " + cell.basis + ")\n";
    for (const std::string& line :
         {hang_text(cell),
          cell.registration.empty() ? std::string() : "NCCL registered: " + cell.registration,
          cure_text(cell)})
      if (!line.empty()) text += "      " + printable(line) + "\n";
  }
  text += "upstream's rules\n";
  for (const Score& score : scores(hazards))
    text += "  " +
            printable(score.rule.dialect + " " + score.rule.rule + ", " + score.rule.covers + ": " +
                      score_text(score)) +
            "\n";
  return text;
}

std::string hazard_markdown(const Hazards& hazards) {
  if (hazards.cells.empty()) return "";
  const auto row = [](const std::vector<std::string>& cells) {
    std::string line = "|";
    for (const std::string& one : cells) line += " " + one + " |";
    return line + "\n";
  };
  std::string text = "## Hazards\n\n" + escaped(head_text(hazards)) + ".\n\n";
  for (const HazardCell& cell : hazards.cells) {
    if (!worth_a_line(cell)) continue;
    text += "- **" + escaped(std::string(cell.observed.text())) + "** " +
            escaped(settings_text(cell)) + " (case " + cell.case_id + ", expected " +
            escaped(cell.expected) + ")\n";
    for (const std::string& line :
         {hang_text(cell),
          cell.registration.empty() ? std::string() : "NCCL registered: " + cell.registration,
          cure_text(cell)})
      if (!line.empty()) text += "  - " + escaped(line) + "\n";
  }
  text += "\n" + row({"dialect", "rule", "covers", "against what was seen"}) +
          row({"---", "---", "---", "---"});
  for (const Score& score : scores(hazards))
    text += row({escaped(score.rule.dialect), escaped(score.rule.rule), escaped(score.rule.covers),
                 escaped(score_text(score))});

  std::vector<std::string> heads = {"collective", "graph",    "allocator", "register",
                                    "placement",  "expected", "observed",  "verdict"};
  for (const record::HazardPrediction& one : hazards.cells.front().predictions)
    heads.push_back(escaped(one.dialect + " " + one.rule));
  text += "\nRules: `refuses` or `allows`, and whether that agrees with what was seen.\n\n" +
          row(heads) + row(std::vector<std::string>(heads.size(), "---"));
  for (const HazardCell& cell : hazards.cells) {
    std::vector<std::string> cells = {escaped(cell.collective),
                                      cell.captured ? "captured" : "eager",
                                      cell.allocator,
                                      cell.nccl_graph_register,
                                      escaped(cell.placement),
                                      escaped(cell.expected),
                                      escaped(std::string(cell.observed.text())),
                                      escaped(std::string(cell.verdict.text()))};
    for (const record::HazardPrediction& one : cell.predictions)
      cells.push_back(std::string(one.refuses ? "refuses" : "allows") + (!one.agrees ? ""
                                                                         : *one.agrees
                                                                             ? ", agrees"
                                                                             : ", **disagrees**"));
    text += row(cells);
  }
  return text + "\n";
}

}  // namespace graphproof::reports
