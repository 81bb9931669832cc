// The pages of docs/reference that follow from tables in the code. Each function returns the whole
// text of its page and throws what loading the tables throws.
#pragma once

#include <string>

namespace graphproof::structure {

std::string axes_page();      // from matrix/tables/axes.json
std::string checks_page();    // from matrix/tables/checks.json and faults.json
std::string faults_page();    // from matrix/tables/faults.json
std::string guides_page();    // from matrix/tables/guidance.json, and the plans of profiles
std::string rules_page();     // from matrix/rules/graphproof.json
std::string subjects_page();  // from matrix/tables/subjects.json
/// The words in which the code of subjects refuses, by rule, from matrix/rules/graphproof.json: the
/// rank program of subjects recognises a refusal by them.
std::string refusals_of_subjects();
std::string verdicts_page();  // from reports/record/verdict, reports/outcome, tables/limits.json

}  // namespace graphproof::structure
