#include "matrix/catalogue/known_defects.h"

#include <algorithm>

#include "matrix/input/located_json.h"

namespace graphproof::matrix {
namespace {

std::vector<std::string> names_at(const Located& row, const char* key) {
  std::vector<std::string> names;
  if (!row.has(key)) return names;
  for (const Located& name : row.at(key).items()) names.push_back(name.string());
  return names;
}

/// "M02" is 2. Throws InputError for what is no number of a known defect.
int number_of(const Located& place) {
  const std::string defect = place.string();
  for (int number = 1; number <= kKnownDefects; ++number)
    if (defect == (number < 10 ? "M0" : "M") + std::to_string(number)) return number;
  place.fail("`" + defect + "` is no known defect", "M01 to M" + std::to_string(kKnownDefects),
             "other defects are planted under numbers of their own", "correct the number");
}

}  // namespace

KnownDefectTable KnownDefectTable::parse(const Document& document) {
  KnownDefectTable table;
  const Located root(document);
  root.expect_keys({"schema", "known_defects"}, {});
  root.at("schema").word({"graphproof-known-defects/1"});
  int before = 0;
  for (const Located& row : root.at("known_defects").items()) {
    row.expect_keys({"defect", "title"}, {"faults", "programs", "tests", "why_not"});
    const int number = number_of(row.at("defect"));
    if (number <= before)
      row.at("defect").fail("a row out of order", "numbers in ascending order, each once",
                            "a reader looks a defect up by its number", "move or remove the row");
    before = number;
    KnownDefect defect{.defect = row.at("defect").string(),
                       .title = row.at("title").string(),
                       .faults = names_at(row, "faults"),
                       .programs = names_at(row, "programs"),
                       .tests = names_at(row, "tests"),
                       .why_not = row.string_or("why_not", "")};
    const bool shown = !defect.faults.empty() || !defect.programs.empty() || !defect.tests.empty();
    if (shown == !defect.why_not.empty())
      row.fail("a defect that nothing shows and that has no reason, or one that has both",
               "`faults`, `programs` or `tests`, or else `why_not`",
               "a defect that nobody looked at would not be missed",
               "name what shows it, or say why nothing does");
    table.rows_.push_back(std::move(defect));
  }
  return table;
}

}  // namespace graphproof::matrix
