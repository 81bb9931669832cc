// From a symptom to its likely causes, their fixes and what would confirm them
// (causes/causes.json). A help for people: no verdict depends on it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "reports/record/evidence/evidence.h"
#include "reports/record/run/record.h"

namespace graphproof::reports {

struct Cause {
  std::string cause, fix, confirm;
};
struct Symptom {
  std::string symptom;
  std::vector<Cause> likely;  // the most common first
};

/// An `error` line of an attempt's evidence.
struct ErrorFact {
  std::string type, call, message;
  int code = 0;
};
/// Those of all ranks, in rank order.
std::vector<ErrorFact> errors_of(const std::vector<record::Evidence>& ranks);

/// What the record and its errors look like: first by error code, then by text, then by verdict
/// (observed, where an expectation changed it). Nothing for a record that is as wanted and has no
/// error.
std::vector<Symptom> symptoms(const record::Record& record, const std::vector<ErrorFact>& errors);

nlohmann::json to_json(const std::vector<Symptom>& symptoms);

}  // namespace graphproof::reports
