#include "matrix/plan.h"

#include <algorithm>
#include <set>

namespace graphproof::matrix {
namespace {

constexpr std::size_t kMostLines = 200'000;    // a plan is held in memory, about 3 KiB a line
// First guesses for the remaining time; a run's own durations replace them as they come in.
constexpr double kRefusalSeconds = 0.1;        // no device work
constexpr double kCaseSeconds = 0.5;           // one rank, arms of five steps, on a device that is up
constexpr double kSecondsPerRank = 0.15;
constexpr double kProcessSeconds = 1.5;        // start and end of processes of its own

struct Wanted {
  Case test_case;
  std::string why;
  std::string isolation = "batch";
  nlohmann::json expect = {{"kind", "pass"}};
  Limits limits = {};                 // beside the defaults
  std::string skip_as = {}, skip_why = {};
};

nlohmann::json skip(std::string verdict, std::string why) { return {{"verdict", std::move(verdict)}, {"why", std::move(why)}}; }

class LineMaker {
 public:
  LineMaker(const Catalogue& catalogue, const Machine& machine) : catalogue_(catalogue), machine_(machine) {}

  nlohmann::json make(const Wanted& wanted) const {
    const Case& test_case = wanted.test_case;
    const std::int64_t ranks = world_size(catalogue_.axes, test_case);
    const std::string kind = wanted.expect.at("kind");
    Limits limits = catalogue_.limits;
    for (const auto& [phase, limit] : wanted.limits) limits[phase] = limit;
    nlohmann::json line{{"schema", "graphproof-plan/1"},
                        {"id", case_id(test_case)},
                        {"name", case_name(catalogue_.axes, test_case)},
                        {"axes", effective_values(catalogue_.axes, test_case)},
                        {"ranks", ranks},
                        {"isolation", wanted.isolation},
                        {"environment", case_environment(catalogue_.axes, test_case)},
                        {"limits_ms", limits},
                        {"expect", wanted.expect},
                        {"required_checks", nlohmann::json::array()},
                        {"skip", skip_of(wanted, ranks)},
                        {"why", wanted.why}};
    if (kind != "rejected") line["required_checks"] = required(test_case);
    const double seconds = kCaseSeconds + kSecondsPerRank * static_cast<double>(ranks) + (wanted.isolation == "process" ? kProcessSeconds : 0);
    line["expected_seconds"] = kind == "rejected" ? kRefusalSeconds : seconds;
    return line;
  }

  /// What a case is expected to do: be refused, be killed as a fault, or pass.
  Wanted wanted(Case test_case, std::string why) const {
    Wanted result{.test_case = std::move(test_case), .why = std::move(why)};
    if (const auto refusal = catalogue_.rules.refusal(result.test_case, machine_)) {
      result.expect = {{"kind", "rejected"}, {"rule", refusal->rule}};
    } else if (const FaultEntry* fault = catalogue_.faults.find(text_of(catalogue_.axes, result.test_case, "fault"))) {
      result.expect = {{"kind", "fault"}, {"fault", fault->fault}, {"detector", fault->detector}, {"clean_twin", case_id(clean_twin(result.test_case))}};
      result.isolation = fault->isolation;
      result.limits = fault->limits_ms;
    }
    return result;
  }

 private:
  // A fault is only asked for its detector's checks: what else it disturbs is evidence, not a requirement.
  std::vector<std::string> required(const Case& test_case) const {
    std::vector<std::string> names = catalogue_.checks.required(test_case, machine_.device);
    const FaultEntry* fault = catalogue_.faults.find(text_of(catalogue_.axes, test_case, "fault"));
    if (fault == nullptr) return names;
    std::erase_if(names, [&](const std::string& name) { return catalogue_.checks.find(name)->detector != fault->detector; });
    return names;
  }

  nlohmann::json skip_of(const Wanted& wanted, std::int64_t ranks) const {
    if (!wanted.skip_as.empty()) return skip(wanted.skip_as, wanted.skip_why);
    if (ranks > machine_.slots) {
      const std::string unit = machine_.device == "cuda" ? " GPUs" : " slots";
      return skip("skipped.gpus", "needs " + std::to_string(ranks) + " ranks, this machine has " + std::to_string(machine_.slots) + unit);
    }
    if (wanted.expect.at("kind") == "rejected") return nullptr;  // refused before the device or the engine matters
    const std::string arch = text_of(catalogue_.axes, wanted.test_case, "arch");
    if (arch != "any") {
      const Value sm = variable_value(machine_, "sm");
      const auto* number = std::get_if<std::int64_t>(&sm);
      const std::string own = number != nullptr && *number > 0 ? "sm_" + std::to_string(*number) : "no known architecture";
      if (arch != own) return skip("skipped.arch", "needs " + arch + ", this machine has " + own);
    }
    const std::vector<std::string> missing = catalogue_.capabilities.missing(wanted.test_case, machine_);
    if (!missing.empty()) {
      std::string why;
      for (const std::string& one : missing) why += (why.empty() ? "" : "; ") + one;
      return skip("skipped.capability", why);
    }
    const FaultEntry* fault = catalogue_.faults.find(text_of(catalogue_.axes, wanted.test_case, "fault"));
    if (fault != nullptr && !fault->shown_on(machine_.device)) return skip("unexercised", "the fault " + fault->fault + " can't be shown on " + machine_.device);
    return nullptr;
  }

  const Catalogue& catalogue_;
  const Machine& machine_;
};

class Planner {
 public:
  Planner(const MatrixFile& file, const Catalogue& catalogue, const Profile& profile, const Machine& machine, const std::optional<Expression>& where)
      : file_(file), catalogue_(catalogue), profile_(profile), machine_(machine), where_(where), maker_(catalogue, machine) {}

  Plan run() {
    plan_.profile = profile_.name;
    plan_.seed = profile_.seed;
    plan_.budget_ms = profile_.budget_ms;
    plan_.matrix_source = file_.source;
    plan_.matrix_sha256 = file_.sha256;
    plan_.axes_version = catalogue_.axes.version();
    if (profile_.cases == "product") product();
    else if (profile_.cases == "faults") faults();
    else negatives();
    if (plan_.lines.empty() && plan_.valid == 0 && plan_.filtered == 0) impossible();
    return std::move(plan_);
  }

 private:
  bool chosen(const Case& test_case) const {
    for (const std::optional<Expression>* filter : {&profile_.where, &where_})
      if (*filter && (*filter)->holds(test_case, machine_) != Truth::yes) return false;
    return true;
  }

  // Adds a case once: an include may repeat a row of the product.
  void add(Wanted wanted) {
    const std::string kind = wanted.expect.at("kind");
    if (kind == "pass") {
      for (const KnownIssue& issue : file_.known_issues) {
        if (issue.when.holds(wanted.test_case, machine_) != Truth::yes) continue;
        wanted.expect = {{"kind", "known_issue"}, {"issue", issue.id}, {"verdict", issue.expect}, {"owner", issue.owner}, {"until", issue.until}};
        break;
      }
      for (const OracleRule& rule : file_.oracle) {
        if (wanted.skip_as.empty() && rule.when.holds(wanted.test_case, machine_) != Truth::no) {
          wanted.skip_as = "skipped.capability";
          wanted.skip_why = "the oracle rule for `" + rule.when.text() + "` asks for a tolerance, and only bitwise comparison is built yet";
        }
      }
    }
    Limits limits = file_.limits;
    const Limits* const later[] = {&profile_.limits, &wanted.limits};
    for (const Limits* more : later)
      for (const auto& [phase, limit] : *more) limits[phase] = limit;
    wanted.limits = std::move(limits);
    if (profile_.isolation == "process") wanted.isolation = "process";

    nlohmann::json line = maker_.make(wanted);
    if (!ids_.insert(line.at("id").get<std::string>()).second) return;
    if (plan_.lines.size() >= kMostLines)
      throw InputError({.what = "too many cases for one run", .got = "more than " + std::to_string(kMostLines), .want = "at most " + std::to_string(kMostLines),
                        .why = "the plan is held in memory", .next = "narrow it with --where, or list fewer values", .place = profile_.place});
    if (!line.at("skip").is_null()) ++plan_.skipped[line.at("skip").at("verdict").get<std::string>()];
    if (kind == "rejected") ++plan_.negative;
    if (kind == "fault") ++plan_.faults;
    plan_.lines.push_back(std::move(line));
  }

  void product() {
    std::optional<Expression> both = profile_.where ? profile_.where : where_;
    if (profile_.where && where_) {
      const std::string text = "(" + profile_.where->text() + ") and (" + where_->text() + ")";
      both = Expression::condition(text, file_.scope, Origin::option("where", text));
    }
    const Expansion expansion = expand(file_, catalogue_, machine_, both, [&](ExpandedRow&& row) {
      add({.test_case = std::move(row.test_case), .why = "product of profile " + profile_.name, .skip_as = std::move(row.skip_as), .skip_why = std::move(row.skip_why)});
    });
    plan_.raw = expansion.raw;
    plan_.valid = expansion.valid;
    plan_.filtered = expansion.filtered;
    plan_.removed = expansion.removed;
    plan_.unknown_rules = expansion.unknown;
    for (const Case& included : file_.include) {
      if (!chosen(included)) continue;
      add(maker_.wanted(included, "included by the matrix file"));
    }
    NegativeRows negative = negative_rows(file_, catalogue_, machine_);
    for (NegativeRow& row : negative.rows) {
      if (!chosen(row.test_case)) continue;
      add({.test_case = std::move(row.test_case), .why = "negative case of " + row.rule, .expect = {{"kind", "rejected"}, {"rule", row.rule}}});
    }
    plan_.not_isolated = std::move(negative.not_isolated);
  }

  void faults() {
    for (const FaultEntry& fault : catalogue_.faults.faults()) {
      ++plan_.raw;
      const Case planted = planted_case(catalogue_.axes, fault);
      if (!chosen(planted)) {
        ++plan_.filtered;
        continue;
      }
      ++plan_.valid;
      add(maker_.wanted(planted, "planted fault " + fault.fault));
      add(maker_.wanted(fault.twin, "clean twin of " + fault.fault));
    }
  }

  void negatives() {
    for (const Rule& rule : catalogue_.rules.rules()) {
      if (rule.status != "live" || rule.severity != "error") continue;
      if (rule.breaks.empty()) plan_.not_isolated.push_back(rule.id + ": no negative case");
      for (const Case& example : rule.breaks) {
        ++plan_.raw;
        if (!chosen(example)) {
          ++plan_.filtered;
          continue;
        }
        ++plan_.valid;
        add({.test_case = example, .why = "negative case of " + rule.id, .expect = {{"kind", "rejected"}, {"rule", rule.id}}});
      }
    }
  }

  [[noreturn]] void impossible() const {
    std::string removers;
    for (const Removed& removed : plan_.removed) removers += (removers.empty() ? "" : ", ") + removed.rule + " (" + std::to_string(removed.rows) + ")";
    throw InputError({.what = "an impossible matrix: no row is valid", .got = std::to_string(plan_.raw) + " rows, removed by " + removers,
                      .want = "at least one valid row", .why = "a run in which nothing ran would look like a pass",
                      .next = "loosen the constraint that removes most, or list other values", .place = profile_.place});
  }

  const MatrixFile& file_;
  const Catalogue& catalogue_;
  const Profile& profile_;
  const Machine& machine_;
  const std::optional<Expression>& where_;
  LineMaker maker_;
  Plan plan_;
  std::set<std::string> ids_;
};

}  // namespace

nlohmann::json Plan::summary() const {
  nlohmann::json by_rule = nlohmann::json::array();
  for (const Removed& one : removed) by_rule.push_back({{"rule", one.rule}, {"rows", one.rows}});
  std::int64_t skipped_lines = 0;
  for (const auto& [verdict, lines] : skipped) skipped_lines += lines;
  return {{"profile", profile}, {"seed", seed},         {"raw", raw},         {"valid", valid},
          {"filtered", filtered}, {"removed", by_rule}, {"cases", lines.size()}, {"to_run", static_cast<std::int64_t>(lines.size()) - skipped_lines},
          {"negative", negative}, {"faults", faults},   {"skipped", skipped}, {"unknown_rules", unknown_rules},
          {"not_isolated", not_isolated}};
}

Plan make_plan(const MatrixFile& file, const Catalogue& catalogue, std::string_view profile, const Machine& machine, const std::optional<Expression>& where) {
  const auto found = file.profiles.find(std::string(profile));
  if (found == file.profiles.end()) {
    std::vector<std::string> names;
    for (const auto& [name, known] : file.profiles) names.push_back(name);
    throw InputError({.what = "no profile `" + std::string(profile) + "` in this matrix", .got = std::string(profile), .want = names.empty() ? "a file with profiles" : "one of " + listed(names),
                      .why = "", .next = suggestion(profile, names, "add the profile, or choose another"), .place = {.source = file.source}});
  }
  if (!found->second.unsupported.empty())
    throw InputError({.what = "profile `" + found->first + "` asks for what this version can't do", .got = listed(found->second.unsupported),
                      .want = "the full product, faults, or negative cases", .why = "ignoring it would run something else than the file says",
                      .next = "remove `" + found->second.unsupported.front() + "`", .place = found->second.place});
  return Planner(file, catalogue, found->second, machine, where).run();
}

nlohmann::json plan_case(const Catalogue& catalogue, const Case& test_case, const Machine& machine, std::string why) {
  const LineMaker maker(catalogue, machine);
  return maker.make(maker.wanted(test_case, std::move(why)));
}

std::string batch_key(const nlohmann::json& plan_line, std::string_view device) {
  nlohmann::json key{{"device", device}, {"ranks", plan_line.at("ranks")}, {"isolation", plan_line.at("isolation")},
                     {"environment", plan_line.at("environment")}, {"limits_ms", plan_line.at("limits_ms")}};
  if (plan_line.at("isolation") == "process" || plan_line.at("expect").at("kind") == "fault") key["case"] = plan_line.at("id");
  return key.dump();
}

std::map<std::string, std::string> case_environment(const AxisTable& axes, const Case& test_case) {
  std::map<std::string, std::string> environment;
  constexpr std::pair<const char*, const char*> kVariables[] = {{"nccl_graph_register", "NCCL_GRAPH_REGISTER"}, {"nccl_algo", "NCCL_ALGO"}, {"nccl_proto", "NCCL_PROTO"}};
  for (const auto& [axis, variable] : kVariables)
    if (const std::string value = text_of(axes, test_case, axis); value != "unset") environment[variable] = value;
  if (text_of(axes, test_case, "allocator") == "expandable") environment["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True";
  constexpr std::string_view kPrefix = "env.";
  for (const auto& [name, value] : test_case.values)
    if (name.starts_with(kPrefix)) environment[name.substr(kPrefix.size())] = std::get<std::string>(value);
  return environment;
}

}  // namespace graphproof::matrix
