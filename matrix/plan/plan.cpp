#include "matrix/plan/plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "matrix/cover/cover.h"
#include "matrix/cover/model/draw.h"
#include "matrix/cover/model/oracle.h"
#include "matrix/cover/model/product.h"
#include "matrix/expression/measured_limit.h"
#include "matrix/plan/matrix_model.h"
#include "matrix/plan/negative_rows.h"
#include "matrix/plan/recipes.h"

namespace graphproof::matrix {
namespace {

constexpr std::size_t kMostLines = 200'000;  // a plan is held in memory, about 3 KiB a line

class Planner {
 public:
  Planner(const MatrixFile& file, const Catalogue& catalogue, const Profile& profile,
          const Machine& machine, const std::optional<Expression>& where,
          const PlanChoices& choices)
      : file_(file),
        catalogue_(catalogue),
        profile_(profile),
        machine_(machine),
        where_(where),
        choices_(choices),
        maker_(catalogue, machine) {}

  Plan run() {
    plan_.profile = profile_.name;
    plan_.seed = choices_.seed.value_or(profile_.seed);
    plan_.budget_ms = profile_.budget_ms;
    plan_.matrix_source = file_.source;
    plan_.matrix_sha256 = file_.sha256;
    plan_.axes_version = catalogue_.axes.version();
    if (choices_.previous && !profile_.cover)
      throw InputError({.what = "profile `" + profile_.name + "` can't extend an earlier plan",
                        .got = profile_.cases,
                        .want = "a profile with `cover`",
                        .why = "a whole product has every row anyway, and rows drawn by another "
                               "seed are other ones",
                        .next = "leave out --extend, or add \"cover\": 2 to the profile",
                        .place = profile_.place});
    if (profile_.cases == "product")
      varying();
    else if (profile_.cases == "faults")
      faults();
    else if (profile_.cases == "recipes")
      recipes();
    else
      negatives();
    return std::move(plan_);
  }

 private:
  bool chosen(const Case& test_case) const {
    for (const std::optional<Expression>* filter : {&profile_.where, &where_})
      if (*filter && (*filter)->holds(test_case, machine_) != Truth::yes) return false;
    return true;
  }

  // Adds a case unless the plan has it: an include may repeat a row of the product.
  void add(PlannedCase planned) {
    if (planned.expect.kind == "pass") {
      state_limits(planned.test_case);
      state_tolerance(planned.test_case);
      for (const KnownIssue& issue : file_.known_issues) {
        if (issue.when.holds(planned.test_case, machine_) != Truth::yes) continue;
        planned.expect = {.kind = "known_issue",
                          .issue = issue.id,
                          .verdict = issue.expect,
                          .owner = issue.owner,
                          .until = issue.until};
        break;
      }
    }
    Limits limits = file_.limits;
    const Limits* const later[] = {&profile_.limits, &planned.limits};
    for (const Limits* more : later)
      for (const auto& [phase, limit] : *more) limits[phase] = limit;
    planned.limits = std::move(limits);
    // A case that destroys its communicators before its graphs leaves none for the next case of a
    // batch.
    const bool comm_first = text_of(catalogue_.axes, planned.test_case, "teardown") == "comm_first";
    if (profile_.isolation == "process" || comm_first) planned.isolation = "process";

    record::PlanLine line = maker_.line(planned);
    if (!ids_.insert(line.id).second) return;
    if (plan_.lines.size() >= kMostLines) too_many("more than " + std::to_string(kMostLines));
    if (line.skip) ++plan_.skipped[std::string(line.skip->verdict.text())];
    if (line.expect.kind == "rejected") ++plan_.negative;
    if (line.expect.kind == "fault") ++plan_.faults;
    plan_.lines.push_back(std::move(line));
  }

  // Gives the case the tolerances of the rules that are known to hold for it: where a fact of the
  // machine is unknown, results stay compared bit by bit. A tolerance that the case has already, as
  // a value of its axis, holds instead. Clean twins of faults stay what they are.
  void state_tolerance(Case& test_case) const {
    if (profile_.cases == "faults" || text_of(catalogue_.axes, test_case, "tolerance") != kBitwise)
      return;
    Tolerances tolerances;
    std::map<std::string, const OracleRule*> stated_by;
    for (const OracleRule& rule : file_.oracle) {
      if (rule.when.holds(test_case, machine_) != Truth::yes) continue;
      for (const auto& [name, tolerance] : rule.tolerances) {
        const auto [known, fresh] = tolerances.emplace(name, tolerance);
        if (!fresh && known->second != tolerance)
          refuse_contradiction(test_case, name, *stated_by.at(name), rule);
        stated_by.emplace(name, &rule);
      }
    }
    if (tolerances.empty()) return;
    Case tolerant = test_case;
    set_value(catalogue_.axes, tolerant, "tolerance", tolerances_text(tolerances));
    const std::vector<std::string> before = catalogue_.capabilities.missing(test_case, machine_);
    for (const std::string& missing : catalogue_.capabilities.missing(tolerant, machine_))
      if (std::ranges::find(before, missing) == before.end())
        throw InputError({.what = "a tolerance for a case that cannot have one",
                          .got = "`" + stated_by.begin()->second->when.text() + "` holds for " +
                                 case_name(catalogue_.axes, test_case),
                          .want = "only cases whose eager arm runs twice, so that its spread is "
                                  "known",
                          .why = missing,
                          .next = "narrow `when` of the rule, so that it does not hold for this "
                                  "case",
                          .place = stated_by.begin()->second->place});
    test_case = std::move(tolerant);
  }

  // The wider one would silently win.
  [[noreturn]] void refuse_contradiction(const Case& test_case, const std::string& name,
                                         const OracleRule& first, const OracleRule& second) const {
    const auto tolerance = [&](const OracleRule& one) {
      return tolerances_text({{name, one.tolerances.at(name)}}) + " for `" + one.when.text() + "`";
    };
    throw InputError(
        {.what = "two oracle rules contradict each other",
         .got = tolerance(first) + "; " + tolerance(second),
         .want = "one tolerance of " + name + " for " + case_name(catalogue_.axes, test_case),
         .why = "whichever is wider would hide what the other one shows",
         .next = "narrow `when` of one of them, so that no case meets both",
         .place = second.place});
  }

  // Gives the case the limits of the file. One that the case has already, as a value of its axis,
  // holds instead. Clean twins of faults stay what they are.
  void state_limits(Case& test_case) const {
    if (profile_.cases == "faults" || text_of(catalogue_.axes, test_case, "impl") == "none") return;
    for (const LimitAxis& limited : kLimitAxes) {
      if (text_of(catalogue_.axes, test_case, limited.axis) != kNoLimit) continue;
      std::string text;
      for (const StatedLimit& stated : file_.stated_limits)
        if (stated.axis == limited.axis && stated.when.holds(test_case, machine_) != Truth::no)
          text += (text.empty() ? "" : " and ") + stated.text;
      if (text.empty()) continue;
      Case limiting = test_case;
      set_value(catalogue_.axes, limiting, limited.axis, text);
      // What is not measured is not concerned; the capabilities say what that is.
      if (catalogue_.capabilities.missing(limiting, machine_).size() ==
          catalogue_.capabilities.missing(test_case, machine_).size())
        test_case = std::move(limiting);
    }
  }

  /// The filters of the profile and of the command line together.
  std::optional<Expression> filter() const {
    if (!profile_.where || !where_) return profile_.where ? profile_.where : where_;
    const std::string text = "(" + profile_.where->text() + ") and (" + where_->text() + ")";
    return Expression::condition(text, file_.scope, Origin::option("where", text));
  }

  // A product, a sample and a covering plan all choose rows of the product of the varying axes.
  void varying() {
    refuse_contradictions();
    // Without axes the product is one row, the default case. A file that lists cases does not want
    // it.
    if (!file_.axes.empty() || file_.include.empty()) chosen_rows();
    add_included();
    negative_cases();
  }

  void chosen_rows() {
    const Expansion expansion(file_, catalogue_, machine_, filter());
    const ExpansionCounts& counts = expansion.counts();
    plan_.raw = counts.raw;
    plan_.valid = counts.valid;
    plan_.filtered = counts.filtered;
    plan_.removed = counts.removed;
    plan_.idle = counts.idle;
    plan_.unknown_rules = counts.unknown;
    if (profile_.cover)
      covering();
    else if (profile_.sample > 0)
      sample();
    else
      product(expansion);
    if (choices_.explain && !profile_.cover && expansion.chosen().rows > 0) explain();
  }

  void product(const Expansion& expansion) {
    if (expansion.chosen().rows > static_cast<long double>(kMostLines))
      too_many(expansion.chosen().text());
    expansion.for_each([&](ExpandedRow&& row) {
      PlannedCase planned =
          maker_.planned(std::move(row.test_case), "product of profile " + profile_.name);
      planned.skip = std::move(row.skip);
      add(std::move(planned));
    });
  }

  // Draws cases that this machine can run, since most rows of many axes lack some capability.
  void sample() {
    if (plan_.valid.rows == plan_.filtered.rows) return;  // the filter leaves nothing to draw
    const cover::Model model =
        matrix_model(file_, catalogue_, machine_, filter(), Extent::runnable).model;
    const std::vector<cover::Row> rows = cover::draw_rows(
        model, static_cast<std::size_t>(profile_.sample), static_cast<std::uint64_t>(plan_.seed));
    if (rows.empty()) nothing_runs(model);
    for (const cover::Row& row : rows)
      add(maker_.planned(case_of(states_of(row), file_.axes, catalogue_.axes),
                         "drawn at random for profile " + profile_.name));
  }

  [[noreturn]] void nothing_runs(const cover::Model& model) const {
    cover::Oracle oracle(model);
    throw InputError(
        {.what = "no case of this product can run on this machine",
         .got = listed(not_covered(model, oracle, {}).reason) + ", which no row fulfils at once",
         .want = "at least one row that it can run",
         .why = "`sample` draws cases that run; without any one of these there would "
                "be some",
         .next = "loosen --where, list other values, or leave out `sample` to see "
                 "every row with the reason of its skip",
         .place = profile_.place});
  }

  void covering() {
    const CoverRequest& request = *profile_.cover;
    // The filter leaves nothing to cover. Whether the constraints leave something was checked
    // before.
    if (plan_.valid.rows == plan_.filtered.rows) return;
    Covering covering = cover_rows(file_, catalogue_, machine_, filter(), request, plan_.seed,
                                   choices_.previous.value_or(std::vector<Case>()));
    Extended extended{.dropped = covering.dropped};
    for (ExpandedRow& row : covering.rows) {
      std::string why = "covers combinations of " + std::to_string(request.strength) +
                        " in profile " + profile_.name;
      if (row.changed_cells) {
        ++(*row.changed_cells == 0 ? extended.kept : extended.repaired);
        why = *row.changed_cells == 0
                  ? "kept from the earlier plan"
                  : "repaired from the earlier plan: " + std::to_string(*row.changed_cells) +
                        " values changed";
      } else {
        ++extended.fresh;
      }
      add(maker_.planned(std::move(row.test_case), std::move(why)));
    }
    if (choices_.previous) plan_.extended = extended;
    covering.rows.clear();
    plan_.covering = std::move(covering);
  }

  // Finds the values, and the pairs of other values, that no valid row has.
  void explain() {
    const cover::Model model =
        matrix_model(file_, catalogue_, machine_, filter(), Extent::legal).model;
    cover::Oracle oracle(model);
    for (const cover::Cells& cells : cover::cover(model, {.strength = 2, .steps = 0}).excluded)
      plan_.unreachable.push_back(not_covered(model, oracle, cells));
  }

  [[noreturn]] void too_many(const std::string& got) const {
    throw InputError(
        {.what = "too many cases for one run",
         .got = got,
         .want = "at most " + std::to_string(kMostLines),
         .why = "the plan is held in memory",
         .next = "narrow it with --where, ask for \"cover\" or \"sample\", or list fewer values",
         .place = profile_.place});
  }

  void add_included() {
    for (const Included& included : file_.include) {
      if (!chosen(included.test_case)) continue;
      PlannedCase planned = maker_.planned(included.test_case, "included by the matrix file");
      // No constraint removes it, but one may say why this machine skips it.
      for (const Constraint& constraint : file_.constraints)
        if (constraint.skip_as && !planned.skip &&
            constraint.require.holds(included.test_case, machine_) == Truth::no)
          planned.skip = {.verdict = *constraint.skip_as,
                          .why = constraint.id + ": " + constraint.why};
      add(std::move(planned));
    }
  }

  void negative_cases() {
    NegativeRows negative = negative_rows(file_, catalogue_, machine_);
    for (NegativeRow& row : negative.rows) {
      if (!chosen(row.test_case)) continue;
      add({.test_case = std::move(row.test_case),
           .why = "negative case of " + row.rule,
           .expect = {.kind = "rejected", .rule = row.rule}});
    }
    plan_.not_isolated = std::move(negative.not_isolated);
  }

  void faults() {
    for (const FaultEntry& fault : catalogue_.faults.faults()) {
      plan_.raw.rows += 1;
      const Case planted = planted_case(catalogue_.axes, fault);
      if (!chosen(planted)) {
        plan_.filtered.rows += 1;
        continue;
      }
      plan_.valid.rows += 1;
      add(maker_.planned(planted, "planted fault " + fault.fault));
      add(maker_.planned(fault.twin, "clean twin of " + fault.fault));
    }
  }

  void negatives() {
    for (const Rule& rule : catalogue_.rules.rules()) {
      if (rule.status != "live" || rule.severity != "error") continue;
      if (rule.breaks.empty()) plan_.not_isolated.push_back(rule.id + ": no negative case");
      for (const Case& example : rule.breaks) {
        // What other subjects must refuse is refused by their own code, and planned with them.
        if (subject_of(example) != kReference) continue;
        plan_.raw.rows += 1;
        if (!chosen(example)) {
          plan_.filtered.rows += 1;
          continue;
        }
        plan_.valid.rows += 1;
        add({.test_case = example,
             .why = "negative case of " + rule.id,
             .expect = {.kind = "rejected", .rule = rule.id}});
      }
    }
  }

  // One line for each distinct graph setting, one for the nearest case that runs where a setting
  // can't run here, and one for the nearest case of Megatron-Core.
  void recipes() {
    struct Setting {
      Case test_case;
      std::vector<std::string> names;  // of the recipes
      std::string differs;             // from the recipes: what was dropped or replaced
    };
    std::vector<Setting> asked, nearest, real;
    const auto add_name = [](std::vector<Setting>& list, const Case& test_case,
                             const std::string& name, const std::string& differs) {
      const auto found = std::find_if(
          list.begin(), list.end(), [&](const Setting& one) { return one.test_case == test_case; });
      Setting& one =
          found != list.end() ? *found : list.emplace_back(Setting{test_case, {}, differs});
      one.names.push_back(name);
    };
    for (const Recipe& recipe : shipped_recipes()) {
      plan_.raw.rows += 1;
      if (!recipe.uses_graphs()) continue;
      const NearestCase made = nearest_case(recipe.values, catalogue_, machine_);
      std::string dropped, replaced;
      for (const Mapped& one : made.account) {
        std::string* text = one.kind == Mapped::Kind::dropped    ? &dropped
                            : one.kind == Mapped::Kind::replaced ? &replaced
                                                                 : nullptr;
        if (text != nullptr)
          *text += (text->empty() ? "" : "; ") + one.from + (one.to.empty() ? "" : " -> " + one.to);
      }
      add_name(asked, made.asked, recipe.name, dropped.empty() ? "" : ", without " + dropped);
      if (made.missing.empty() && made.runnable != made.asked)
        add_name(nearest, made.runnable, recipe.name, replaced);
    }
    for (const Setting& one : asked) {
      const RunnableCase through = through_megatron_core(one.test_case, catalogue_, machine_);
      if (!through.missing.empty() || catalogue_.rules.refusal(through.test_case, machine_))
        continue;
      std::string given_up;
      for (const Replacement& given : through.replaced)
        given_up += (given_up.empty() ? ": " : "; ") + given.from + " -> " + given.to;
      for (const std::string& name : one.names) add_name(real, through.test_case, name, given_up);
    }
    const auto names = [](const Setting& one) {
      return std::to_string(one.names.size()) +
             (one.names.size() == 1 ? " recipe, " : " recipes, such as ") + one.names.front();
    };
    const auto add_all = [&](const std::vector<Setting>& list, const auto& why) {
      for (const Setting& one : list) {
        if (!chosen(one.test_case)) {
          plan_.filtered.rows += 1;
          continue;
        }
        plan_.valid.rows += 1;
        add(maker_.planned(one.test_case, why(one)));
      }
    };
    add_all(asked, [&](const Setting& one) { return "asked for by " + names(one) + one.differs; });
    add_all(nearest, [&](const Setting& one) {
      return "the nearest case that runs to " + names(one) + ": " + one.differs;
    });
    add_all(real, [&](const Setting& one) {
      return "the nearest case of Megatron-Core to " + names(one) + one.differs;
    });
  }

  /// Refuses mistakes that are mistakes on every machine: constraints that leave no row, and an
  /// axis or a value that no valid row has.
  void refuse_contradictions() const {
    for (const Extent extent : {Extent::anywhere, Extent::legal}) {
      const cover::Model model =
          matrix_model(file_, catalogue_, machine_, std::nullopt, extent).model;
      cover::Oracle oracle(model);
      if (!oracle.solve({})) impossible(model, oracle);
      if (extent == Extent::anywhere && !choices_.explain) refuse_unreachable(model, oracle);
    }
  }

  void refuse_unreachable(const cover::Model& model, cover::Oracle& oracle) const {
    const cover::Product product(model);
    const std::vector<std::vector<char>> held = product.held();
    const auto reached = [&](int parameter, int value) {
      if (!held[static_cast<std::size_t>(parameter)][static_cast<std::size_t>(value)]) return false;
      return product.valid().exact || oracle.solve(cover::Cells{{parameter, value}});
    };
    for (std::size_t i = 0; i < file_.axes.size(); ++i) {
      const VaryingAxis& axis = file_.axes[i];
      std::vector<int> never;
      for (std::size_t value = 0; value < axis.values.size(); ++value)
        if (!reached(static_cast<int>(i), static_cast<int>(value)))
          never.push_back(static_cast<int>(value));
      // Rules are expected to forbid some of the subsets of a subset_of.
      if (never.empty() || (axis.subset && never.size() < axis.values.size())) continue;
      const bool whole = never.size() == axis.values.size();
      const cover::Cells cells{{static_cast<int>(i), never.front()}};
      const NotCovered reason = not_covered(model, oracle, cells);
      throw InputError({.what = whole ? "no valid row can have axis `" + axis.name + "`"
                                      : "no valid row can have `" + axis.name +
                                            " == " + reason.values.front().second + "`",
                        .got = std::to_string(never.size()) + " of " +
                               std::to_string(axis.values.size()) + " values that no valid row has",
                        .want = "values that some valid row has",
                        .why = "forbidden by " + listed(reason.reason),
                        .next = "remove the value, or loosen one of these; `plan --explain "
                                "unreachable` shows all of them",
                        .place = axis.origins[static_cast<std::size_t>(never.front())].at(0)});
    }
  }

  [[noreturn]] void impossible(const cover::Model& model, cover::Oracle& oracle) const {
    const NotCovered reason = not_covered(model, oracle, {});
    Place place = profile_.place;
    for (const Constraint& constraint : file_.constraints)
      if (constraint.place.line > 0 && std::find(reason.reason.begin(), reason.reason.end(),
                                                 constraint.id) != reason.reason.end()) {
        place = constraint.place;
        break;
      }
    throw InputError({.what = "an impossible matrix: no row is valid",
                      .got = listed(reason.reason) + ", which no row fulfils at once",
                      .want = "at least one valid row",
                      .why = "a run in which nothing ran would look like a pass; without any one "
                             "of these there would be rows",
                      .next = "loosen one of them, or list other values",
                      .place = place});
  }

  const MatrixFile& file_;
  const Catalogue& catalogue_;
  const Profile& profile_;
  const Machine& machine_;
  const std::optional<Expression>& where_;
  const PlanChoices& choices_;
  PlanLineMaker maker_;
  Plan plan_;
  std::set<std::string> ids_;
};

}  // namespace

double Plan::gpu_minutes() const {
  double minutes = 0;
  for (const record::PlanLine& line : lines)
    if (!line.skip) minutes += line.ranks * line.expected_seconds / 60;
  return minutes;
}

nlohmann::json Plan::summary() const {
  nlohmann::json by_rule = nlohmann::json::array();
  for (const Removed& one : removed)
    by_rule.push_back({{"rule", one.rule}, {"rows", one.rows.json()}, {"exact", one.rows.exact}});
  std::int64_t skipped_lines = 0;
  for (const auto& [verdict, lines] : skipped) skipped_lines += lines;
  nlohmann::json value = {{"profile", profile},
                          {"seed", seed},
                          {"raw", raw.json()},
                          {"valid", valid.json()},
                          {"filtered", filtered.json()},
                          {"counts_exact", raw.exact && valid.exact},
                          {"removed", by_rule},
                          {"idle", idle},
                          {"cases", lines.size()},
                          {"to_run", static_cast<std::int64_t>(lines.size()) - skipped_lines},
                          {"negative", negative},
                          {"faults", faults},
                          {"skipped", skipped},
                          {"unknown_rules", unknown_rules},
                          {"not_isolated", not_isolated},
                          {"gpu_minutes", gpu_minutes()}};
  if (!unreachable.empty()) {
    value["unreachable"] = nlohmann::json::array();
    for (const NotCovered& one : unreachable) value["unreachable"].push_back(to_json(one));
  }
  if (extended)
    value["extended"] = {{"kept", extended->kept},
                         {"repaired", extended->repaired},
                         {"dropped", extended->dropped},
                         {"new", extended->fresh}};
  if (covering) value["cover"] = to_json(*covering);
  return value;
}

Plan make_plan(const MatrixFile& file, const Catalogue& catalogue, std::string_view profile,
               const Machine& machine, const std::optional<Expression>& where,
               const PlanChoices& choices) {
  const auto found = file.profiles.find(std::string(profile));
  if (found == file.profiles.end()) {
    std::vector<std::string> names;
    for (const auto& [name, known] : file.profiles) names.push_back(name);
    throw InputError({.what = "no profile `" + std::string(profile) + "` in this matrix",
                      .got = std::string(profile),
                      .want = "one of " + listed(names),
                      .why = "",
                      .next = suggestion(profile, names, "add the profile, or choose another"),
                      .place = {.source = file.source}});
  }
  return Planner(file, catalogue, found->second, machine, where, choices).run();
}

}  // namespace graphproof::matrix
