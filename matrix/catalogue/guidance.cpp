#include "matrix/catalogue/guidance.h"

#include <utility>

#include "matrix/input/located_json.h"

namespace graphproof::matrix {
namespace {

constexpr int kMostRows = 10'000;  // a number above it is a slip of the pen

std::vector<std::string> listed_names(const Located& row, const char* key) {
  std::vector<std::string> names;
  if (!row.has(key)) return names;
  for (const Located& name : row.at(key).items()) names.push_back(name.string());
  if (names.empty())
    row.at(key).fail("an empty list", "at least one name", "it would answer nothing",
                     "remove the key, or name something");
  return names;
}

class Reader {
 public:
  explicit Reader(const AxisTable& axes) : scope_{.axes = &axes, .defines = {}} {}

  GuidanceRow row(const Located& place) {
    place.expect_keys({"row", "section", "states"},
                      {"cases", "rules", "refused", "configuration_rules", "checks", "faults",
                       "programs", "tests", "why_not", "open"});
    GuidanceRow row{.row = static_cast<int>(place.at("row").integer(1, kMostRows)),
                    .section = place.at("section").string(),
                    .states = place.at("states").string(),
                    .cases = {},
                    .rules = listed_names(place, "rules"),
                    .configuration_rules = listed_names(place, "configuration_rules"),
                    .checks = listed_names(place, "checks"),
                    .faults = listed_names(place, "faults"),
                    .programs = listed_names(place, "programs"),
                    .tests = listed_names(place, "tests"),
                    .why_not = place.string_or("why_not", ""),
                    .open = place.string_or("open", "")};
    if (row.row <= before_)
      place.at("row").fail("a row out of order", "numbers in ascending order, each once",
                           "reports name rows by number", "move the row, or number it anew");
    before_ = row.row;
    if (place.has("cases"))
      for (const Located& cases : place.at("cases").items()) row.cases.push_back(cases_of(cases));
    if (place.has("refused") == row.rules.empty())
      place.fail("`rules` without `refused`, or the reverse", "both or neither",
                 "the rules have to refuse the cases for which `refused` holds", "add the other");
    if (place.has("refused")) row.refused = condition(place.at("refused"));
    expect_one_answer(place, row);
    return row;
  }

 private:
  Expression condition(const Located& text) const {
    return Expression::condition(text.string(), scope_, text.origin());
  }

  GuidanceCases cases_of(const Located& place) const {
    place.expect_keys({"where", "profiles"}, {"device"});
    return {.where = condition(place.at("where")),
            .profiles = listed_names(place, "profiles"),
            .device = place.has("device") ? place.at("device").word({"sim", "cuda"}) : "sim"};
  }

  static void expect_one_answer(const Located& place, const GuidanceRow& row) {
    const bool shown = !row.cases.empty() || !row.rules.empty() ||
                       !row.configuration_rules.empty() || !row.programs.empty() ||
                       !row.tests.empty();
    const int kinds = (shown ? 1 : 0) + (row.why_not.empty() ? 0 : 1) + (row.open.empty() ? 0 : 1);
    if (kinds != 1)
      place.fail("a statement with no answer and no reason, or with several kinds of them",
                 "`cases`, `rules`, `configuration_rules`, `programs` or `tests`; or else "
                 "`why_not`; or else `open`",
                 "a statement that nobody looked at would not be missed",
                 "name what answers it, say why nothing can, or say what is missing");
    if (!shown && (!row.checks.empty() || !row.faults.empty()))
      place.fail("checks or faults of a statement that nothing answers", "neither of them",
                 "a check judges cases or watched programs", "name its cases or programs too");
    if (!row.cases.empty() && row.checks.empty())
      place.fail("cases without a check", "the checks that judge the statement",
                 "a case that runs shows nothing by itself", "add `checks`");
  }

  Scope scope_;
  int before_ = 0;
};

}  // namespace

GuidanceTable GuidanceTable::parse(const Document& document, const AxisTable& axes) {
  GuidanceTable table;
  Reader reader(axes);
  const Located root(document);
  root.expect_keys({"schema", "documents"}, {});
  root.at("schema").word({"graphproof-guidance/1"});
  for (const Located& place : root.at("documents").items()) {
    place.expect_keys({"title", "about", "rows"}, {});
    GuidanceDocument read{
        .title = place.at("title").string(), .about = place.at("about").string(), .rows = {}};
    for (const Located& row : place.at("rows").items()) read.rows.push_back(reader.row(row));
    table.documents_.push_back(std::move(read));
  }
  return table;
}

}  // namespace graphproof::matrix
