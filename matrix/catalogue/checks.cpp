#include "matrix/catalogue/checks.h"

#include <algorithm>

namespace graphproof::matrix {
namespace {

WatchedForm watched_form(const Located& value, const std::string& states) {
  value.expect_keys({"code", "needs", "sees"}, {"states", "arms_only"});
  WatchedForm form{.code = value.at("code").string(),
                   .states = value.string_or("states", states),
                   .needs = {},
                   .sees = value.at("sees").string(),
                   .arms_only = value.string_or("arms_only", "")};
  for (const Located& need : value.at("needs").items()) form.needs.push_back(need.string());
  return form;
}

}  // namespace

bool CheckEntry::shown_on(std::string_view device) const {
  return std::find(devices.begin(), devices.end(), device) != devices.end();
}

bool CheckEntry::required_of(const Case& test_case, std::string_view device) const {
  const Machine machine{.device = std::string(device), .slots = 0, .stack = {}};
  // An undecided condition requires the check: without the requirement a check that saw no evidence
  // would go unnoticed.
  if (subject_of(test_case) != kReference &&
      (!of_subjects || of_subjects->holds(test_case, machine) == Truth::no))
    return false;
  return shown_on(device) && required_when.holds(test_case, machine) != Truth::no;
}

CheckTable CheckTable::parse(const Document& document, const AxisTable& axes) {
  CheckTable table;
  const Scope scope{.axes = &axes, .defines = {}};
  const Located root(document);
  root.expect_keys({"schema", "checks"}, {});
  root.at("schema").word({"graphproof-check-table/1"});
  for (const Located& row : root.at("checks").items()) {
    const bool of_cases = !row.has("watched") || row.has("code");
    if (of_cases)
      row.expect_keys(
          {"check", "states", "verdict", "required_when", "devices", "code"},
          {"judged_when", "of_refused_cases", "of_subjects", "own_gpu", "since", "watched"});
    else
      row.expect_keys({"check", "states", "verdict", "watched"}, {});
    CheckEntry entry;
    entry.check = row.at("check").string();
    const std::size_t dot = entry.check.find('.');
    if (dot == std::string::npos || dot == 0 || entry.check[0] != 'D')
      row.at("check").fail("a check without its detector",
                           "DETECTOR.fact, such as D07.static_addresses", "",
                           "put the detector's id before a dot");
    if (table.find(entry.check) != nullptr)
      row.at("check").fail("the check `" + entry.check + "` appears twice", "each check once", "",
                           "remove one of them");
    entry.detector = entry.check.substr(0, dot);
    entry.states = row.at("states").string();
    entry.verdict = row.at("verdict").string();
    if (!entry.verdict.starts_with("fail."))
      row.at("verdict").fail("a failing check needs a failing verdict", "fail.*", "",
                             "correct the verdict");
    if (row.has("watched")) entry.watched = watched_form(row.at("watched"), entry.states);
    if (!of_cases) {
      entry.required_when = entry.judged_when =
          Expression::condition("false", scope, row.at("check").origin());
      table.checks_.push_back(std::move(entry));
      continue;
    }
    entry.required_when = Expression::condition(row.at("required_when").string(), scope,
                                                row.at("required_when").origin());
    const char* judged = row.has("judged_when") ? "judged_when" : "required_when";
    entry.judged_when =
        Expression::condition(row.at(judged).string(), scope, row.at(judged).origin());
    entry.code = row.at("code").string();
    if (row.has("of_refused_cases")) entry.of_refused_cases = row.at("of_refused_cases").boolean();
    if (row.has("of_subjects"))
      entry.of_subjects = Expression::condition(row.at("of_subjects").string(), scope,
                                                row.at("of_subjects").origin());
    for (const Located& device : row.at("devices").items())
      entry.devices.push_back(device.word({"sim", "cuda"}));
    if (row.has("own_gpu")) entry.own_gpu = row.at("own_gpu").boolean();
    if (row.has("since")) entry.since = row.at("since").integer(1, 1000);
    table.checks_.push_back(std::move(entry));
  }
  return table;
}

const CheckEntry* CheckTable::find(std::string_view check) const {
  const auto found = std::find_if(checks_.begin(), checks_.end(),
                                  [&](const CheckEntry& entry) { return entry.check == check; });
  return found == checks_.end() ? nullptr : &*found;
}

std::vector<const CheckEntry*> CheckTable::of_detector(std::string_view detector) const {
  std::vector<const CheckEntry*> entries;
  for (const CheckEntry& entry : checks_)
    if (entry.detector == detector) entries.push_back(&entry);
  return entries;
}

std::vector<std::string> CheckTable::judged(const Case& test_case) const {
  std::vector<std::string> names;
  for (const CheckEntry& entry : checks_)
    if (entry.judged_when.holds(test_case, Machine{}) != Truth::no) names.push_back(entry.check);
  return names;
}

std::vector<std::string> CheckTable::required(const Case& test_case,
                                              std::string_view device) const {
  std::vector<std::string> names;
  for (const CheckEntry& entry : checks_)
    if (entry.required_of(test_case, device)) names.push_back(entry.check);
  return names;
}

}  // namespace graphproof::matrix
