// The likely causes of a failure, their fixes and what would confirm each (causes.json). This helps
// people; no verdict depends on it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "reports/record/evidence/evidence.h"
#include "reports/record/run/record.h"

namespace graphproof::reports {

/// One row of causes.json for a symptom.
struct Cause {
  std::string cause, fix, confirm;
  std::vector<std::string> fired = {};  // failing checks of the case that `confirm` names
};
/// A kind of failure and what may have caused it.
struct Symptom {
  std::string symptom;
  /// Causes whose confirming checks failed come first, then the most common ones.
  std::vector<Cause> likely;
};

/// An `error` line in the evidence of an attempt.
struct ErrorFact {
  std::string type, call, message;
  int code = 0;
};
/// The error lines of all ranks, in rank order.
std::vector<ErrorFact> errors_of(const std::vector<record::Evidence>& ranks);

/// The symptoms that match the record and its errors: at most one by error code, one by text and
/// one by verdict (the observed one, unless the table knows the verdict that rules made of it).
/// Empty for a record that is as expected and has no error.
std::vector<Symptom> symptoms(const record::Record& record, const std::vector<ErrorFact>& errors);

nlohmann::json to_json(const std::vector<Symptom>& symptoms);

}  // namespace graphproof::reports
