// A line of the journal: the verdict of one attempt at a case, and its reasons.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reports/record/run/checks.h"
#include "reports/record/text/fields.h"
#include "reports/record/verdict/phase.h"
#include "reports/record/verdict/verdict.h"

namespace graphproof::record {

inline constexpr std::string_view kRecordSchema = "graphproof-record/1";

/// How the attempt ran. This is not part of the case id.
struct RunContext {
  std::string device, isolation, engine, start, batch;

  bool operator==(const RunContext&) const = default;
};

/// How many checks had each result.
struct CheckCounts {
  int pass = 0, fail = 0, unexercised = 0, not_applicable = 0;

  bool operator==(const CheckCounts&) const = default;
};

/// A failing check, or a failure without a check, such as a refusal; `check` is then "".
struct Failing {
  std::string check;
  std::optional<int> rank;
  Message message;

  bool operator==(const Failing&) const = default;
};

/// The result of one attempt.
struct Record {
  std::string run_id, case_id, name;
  int attempt = 1;
  RunContext context;
  int ranks = 1;
  std::optional<Phase> phase;  // the last phase reached; nothing if no rank began
  Verdict verdict;
  Verdict observed;  // the verdict without the expectation (fault, hazard, known issue)
  int rule = 0;      // the rule of reports/outcome that decided
  std::string reason;
  CheckCounts checks;
  std::vector<Failing> failing;
  std::map<std::string, double> figures;
  double seconds = 0;
  std::string artefacts;  // the attempt folder, relative to the run folder
  std::string again;      // why this is not the first attempt; "" for a first one

  bool operator==(const Record&) const = default;
};

Json to_json(const Record& record);
/// The line with its newline.
std::string to_line(const Record& record);
Record record_from(const nlohmann::json& value, const std::string& where);

}  // namespace graphproof::record
