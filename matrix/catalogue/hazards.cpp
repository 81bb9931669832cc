#include "matrix/catalogue/hazards.h"

#include <algorithm>

namespace graphproof::matrix {

HazardTable HazardTable::parse(const Document& document, const AxisTable& axes) {
  HazardTable table;
  const Scope scope{.axes = &axes, .defines = {}};
  const auto condition = [&](const Located& text) {
    return Expression::condition(text.string(), scope, text.origin());
  };
  const Located root(document);
  root.expect_keys({"schema", "cases", "disposable", "hazards", "predictions"}, {});
  root.at("schema").word({"graphproof-hazard-table/1"});
  table.cases_ = condition(root.at("cases"));
  const Located disposable = root.at("disposable");
  disposable.expect_keys({"when", "why", "limits"}, {});
  disposable.at("why").string();
  table.disposable_ = condition(disposable.at("when"));
  table.limits_ = parse_limits(disposable.at("limits"));

  const std::vector<Located> rows = root.at("hazards").items();
  for (const Located& row : rows) {
    row.expect_keys({"hazard", "title", "when", "expect", "basis", "why", "source"}, {"cure"});
    Hazard hazard{.id = row.at("hazard").string(),
                  .title = row.at("title").string(),
                  .when = condition(row.at("when")),
                  .expect = row.at("expect").string(),
                  .basis = row.at("basis").word({"seen", "predicted"}),
                  .why = row.at("why").string(),
                  .source = row.at("source").string(),
                  .cure = {}};
    if (hazard.expect != "pass" && !hazard.expect.starts_with("fail."))
      row.at("expect").fail("an expectation that is neither pass nor a failure", "pass, or fail.*",
                            "a case that meets the expectation ends as pass or xfail",
                            "write the verdict that is expected, such as fail.hang");
    if (table.find(hazard.id) != nullptr)
      row.at("hazard").fail("the hazard " + hazard.id + " appears twice", "an id of its own",
                            "reports name hazards by id", "choose another id");
    if (row.has("cure"))
      for (const auto& [axis, value] : row.at("cure").members())
        hazard.cure[axis] =
            parse_value(axes.at(axis, value.key_place()), axis, value.json(), value.place());
    if ((hazard.expect == "pass") != hazard.cure.empty())
      row.fail("a `cure` without an expected failure, or the reverse",
               "a `cure` if and only if a failure is expected", "", "add or remove `cure`");
    table.hazards_.push_back(std::move(hazard));
  }
  if (rows.empty() || table.hazards_.back().when.text() != "true")
    root.at("hazards").fail(
        "the last hazard does not always hold", "`\"when\": \"true\"` in the last row",
        "a case that meets no row would have no expectation", "add a last row that expects pass");

  for (const Located& row : root.at("predictions").items()) {
    row.expect_keys({"dialect", "covers", "rule", "refuses", "why", "source"}, {});
    table.predictions_.push_back({.dialect = row.at("dialect").string(),
                                  .covers = row.at("covers").string(),
                                  .rule = row.at("rule").string(),
                                  .refuses = condition(row.at("refuses")),
                                  .why = row.at("why").string(),
                                  .source = row.at("source").string()});
  }
  return table;
}

const Hazard* HazardTable::find(std::string_view id) const {
  const auto found = std::find_if(hazards_.begin(), hazards_.end(),
                                  [&](const Hazard& hazard) { return hazard.id == id; });
  return found == hazards_.end() ? nullptr : &*found;
}

const Hazard* HazardTable::of(const Case& test_case, const Machine& machine) const {
  if (cases_.holds(test_case, machine) != Truth::yes) return nullptr;
  const auto holds = [&](const Hazard& hazard) {
    return hazard.when.holds(test_case, machine) == Truth::yes;
  };
  return &*std::find_if(hazards_.begin(), hazards_.end(), holds);
}

bool HazardTable::disposable(const Case& test_case, const Machine& machine) const {
  return cases_.holds(test_case, machine) == Truth::yes &&
         disposable_.holds(test_case, machine) != Truth::no;
}

Case HazardTable::cured(const AxisTable& axes, const Hazard& hazard, const Case& test_case) {
  Case cured = test_case;
  for (const auto& [axis, value] : hazard.cure) set_value(axes, cured, axis, value);
  return cured;
}

}  // namespace graphproof::matrix
