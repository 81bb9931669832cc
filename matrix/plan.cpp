#include "matrix/plan.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <utility>

#include "matrix/recipes.h"

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
    double seconds = kCaseSeconds + kSecondsPerRank * static_cast<double>(ranks) + (wanted.isolation == "process" ? kProcessSeconds : 0);
    // An expected hang takes as long as the watch is patient.
    if (kind == "hazard" && wanted.expect.at("verdict").get<std::string>().starts_with("fail.hang")) seconds += static_cast<double>(limits.at("replay")) / 1000;
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
    } else if (const Hazard* hazard = catalogue_.hazards.of(result.test_case, machine_)) {
      result.expect = {{"kind", "hazard"}, {"rule", hazard->id}, {"verdict", hazard->expect}};
      if (catalogue_.hazards.disposable(result.test_case, machine_)) {
        result.isolation = "process";
        result.limits = catalogue_.hazards.limits();
      }
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
    const FaultEntry* fault = catalogue_.faults.find(text_of(catalogue_.axes, wanted.test_case, "fault"));
    if (fault != nullptr && !fault->shown_on(machine_.device)) return skip("unexercised", "the fault " + fault->fault + " can't be shown on " + machine_.device);
    const std::vector<std::string> missing = catalogue_.capabilities.missing(wanted.test_case, machine_);
    if (!missing.empty()) {
      std::string why;
      for (const std::string& one : missing) why += (why.empty() ? "" : "; ") + one;
      return skip("skipped.capability", why);
    }
    return nullptr;
  }

  const Catalogue& catalogue_;
  const Machine& machine_;
};

/// So many of the rows offered, each as likely as another, in the order in which they came (reservoir sampling,
/// Vitter's algorithm R).
template <class Row>
class Sample {
 public:
  Sample(std::size_t size, std::uint64_t seed) : size_(size), random_(seed) {}
  void offer(Row&& row) {
    const std::size_t place = offered_ < size_ ? offered_ : static_cast<std::size_t>(random_() % (offered_ + 1));
    if (place < size_) kept_.insert_or_assign(place, std::pair(offered_, std::move(row)));
    ++offered_;
  }
  std::vector<Row> take() {
    std::map<std::size_t, Row> in_order;
    for (auto& [place, row] : kept_) in_order.emplace(row.first, std::move(row.second));
    std::vector<Row> rows;
    for (auto& [offered, row] : in_order) rows.push_back(std::move(row));
    return rows;
  }

 private:
  const std::size_t size_;
  std::mt19937_64 random_;
  std::size_t offered_ = 0;
  std::map<std::size_t, std::pair<std::size_t, Row>> kept_;
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
    if (profile_.cover) covering();
    else if (profile_.cases == "product") product();
    else if (profile_.cases == "faults") faults();
    else if (profile_.cases == "recipes") recipes();
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
    // A case that destroys its communicators before its graphs leaves none for the next case of a batch.
    const bool comm_first = text_of(catalogue_.axes, wanted.test_case, "teardown") == "comm_first";
    if (profile_.isolation == "process" || comm_first) wanted.isolation = "process";

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

  /// What the profile and the command line leave.
  std::optional<Expression> filter() const {
    if (!profile_.where || !where_) return profile_.where ? profile_.where : where_;
    const std::string text = "(" + profile_.where->text() + ") and (" + where_->text() + ")";
    return Expression::condition(text, file_.scope, Origin::option("where", text));
  }

  void product() {
    Sample<ExpandedRow> sample(static_cast<std::size_t>(profile_.sample), static_cast<std::uint64_t>(profile_.seed));
    const auto add_row = [&](ExpandedRow&& row) {
      Wanted wanted = maker_.wanted(std::move(row.test_case), "product of profile " + profile_.name);
      wanted.skip_as = std::move(row.skip_as);
      wanted.skip_why = std::move(row.skip_why);
      add(std::move(wanted));
    };
    const Expansion expansion = expand(file_, catalogue_, machine_, filter(), [&](ExpandedRow&& row) {
      if (profile_.sample > 0) sample.offer(std::move(row));
      else add_row(std::move(row));
    });
    for (ExpandedRow& row : sample.take()) add_row(std::move(row));
    plan_.raw = expansion.raw;
    plan_.valid = expansion.valid;
    plan_.filtered = expansion.filtered;
    plan_.removed = expansion.removed;
    plan_.unknown_rules = expansion.unknown;
    add_included();
    negative_cases();
  }

  void covering() {
    const CoverRequest& request = *profile_.cover;
    Covering covering = cover_rows(file_, catalogue_, machine_, filter(), request, profile_.seed);
    for (ExpandedRow& row : covering.rows)
      add(maker_.wanted(std::move(row.test_case), "covers combinations of " + std::to_string(request.strength) + " in profile " + profile_.name));
    plan_.unknown_rules = covering.unknown;
    plan_.raw = plan_.valid = static_cast<std::int64_t>(covering.rows.size());
    covering.rows.clear();
    plan_.covering = std::move(covering);
    add_included();
    negative_cases();
  }

  void add_included() {
    for (const Included& included : file_.include)
      if (chosen(included.test_case)) add(maker_.wanted(included.test_case, "included by the matrix file"));
  }

  void negative_cases() {
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

  // One line for each distinct graph setting, and beside one that can't run here the nearest that can.
  void recipes() {
    struct Stood {
      Case test_case;
      std::vector<std::string> names;
      std::string without;
    };
    std::vector<Stood> asked, nearest;
    const auto stand = [](std::vector<Stood>& list, const Case& test_case, const std::string& name, const std::string& without) {
      const auto found = std::find_if(list.begin(), list.end(), [&](const Stood& one) { return one.test_case == test_case; });
      Stood& one = found != list.end() ? *found : list.emplace_back(Stood{test_case, {}, without});
      one.names.push_back(name);
    };
    for (const Recipe& recipe : shipped_recipes()) {
      ++plan_.raw;
      if (!recipe.uses_graphs()) continue;
      const NearestCase made = nearest_case(recipe.values, catalogue_, machine_);
      std::string dropped, replaced;
      for (const Mapped& one : made.account) {
        std::string* text = one.kind == Mapped::Kind::dropped ? &dropped : one.kind == Mapped::Kind::replaced ? &replaced : nullptr;
        if (text != nullptr) *text += (text->empty() ? "" : "; ") + one.from + (one.to.empty() ? "" : " -> " + one.to);
      }
      stand(asked, made.asked, recipe.name, dropped.empty() ? "" : ", without " + dropped);
      if (made.missing.empty() && made.runnable != made.asked) stand(nearest, made.runnable, recipe.name, replaced);
    }
    const auto names = [](const Stood& one) {
      return std::to_string(one.names.size()) + (one.names.size() == 1 ? " recipe, " : " recipes, such as ") + one.names.front();
    };
    for (const auto& [list, nearby] : {std::pair(&asked, false), std::pair(&nearest, true)})
      for (const Stood& one : *list) {
        if (!chosen(one.test_case)) {
          ++plan_.filtered;
          continue;
        }
        ++plan_.valid;
        add(maker_.wanted(one.test_case, nearby ? "the nearest that runs to " + names(one) + ": " + one.without : "asked for by " + names(one) + one.without));
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

double Plan::gpu_minutes() const {
  double minutes = 0;
  for (const nlohmann::json& line : lines)
    if (line.at("skip").is_null()) minutes += line.at("ranks").get<double>() * line.at("expected_seconds").get<double>() / 60;
  return minutes;
}

nlohmann::json Plan::summary() const {
  nlohmann::json by_rule = nlohmann::json::array();
  for (const Removed& one : removed) by_rule.push_back({{"rule", one.rule}, {"rows", one.rows}});
  std::int64_t skipped_lines = 0;
  for (const auto& [verdict, lines] : skipped) skipped_lines += lines;
  nlohmann::json value = {{"profile", profile}, {"seed", seed},         {"raw", raw},         {"valid", valid},
          {"filtered", filtered}, {"removed", by_rule}, {"cases", lines.size()}, {"to_run", static_cast<std::int64_t>(lines.size()) - skipped_lines},
          {"negative", negative}, {"faults", faults},   {"skipped", skipped}, {"unknown_rules", unknown_rules},
          {"not_isolated", not_isolated}, {"gpu_minutes", gpu_minutes()}};
  if (covering) value["cover"] = to_json(*covering);
  return value;
}

Plan make_plan(const MatrixFile& file, const Catalogue& catalogue, std::string_view profile, const Machine& machine, const std::optional<Expression>& where) {
  const auto found = file.profiles.find(std::string(profile));
  if (found == file.profiles.end()) {
    std::vector<std::string> names;
    for (const auto& [name, known] : file.profiles) names.push_back(name);
    throw InputError({.what = "no profile `" + std::string(profile) + "` in this matrix", .got = std::string(profile), .want = names.empty() ? "a file with profiles" : "one of " + listed(names),
                      .why = "", .next = suggestion(profile, names, "add the profile, or choose another"), .place = {.source = file.source}});
  }
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
  // What NCCL registered stands in its log alone; the case's own NCCL_DEBUG below wins.
  if (text_of(axes, test_case, "model") == "collective") {
    environment["NCCL_DEBUG"] = "INFO";
    environment["NCCL_DEBUG_SUBSYS"] = "ENV,REG,COLL,TUNING";
  }
  for (const auto& [name, value] : test_case.values)
    if (name.starts_with(kPrefix)) environment[name.substr(kPrefix.size())] = std::get<std::string>(value);
  return environment;
}

}  // namespace graphproof::matrix
