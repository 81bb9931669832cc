// One result line of the journal: the verdict of one attempt at one case, and what it rests on.
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

/// How the attempt was run; no part of the case id.
struct RunContext {
  std::string device, isolation, engine, start, batch;

  bool operator==(const RunContext&) const = default;
};

struct CheckCounts {
  int pass = 0, fail = 0, unexercised = 0, not_applicable = 0;

  bool operator==(const CheckCounts&) const = default;
};

/// A failing check, or a failure that no check stands for (check is then "", for example a
/// refusal).
struct Failing {
  std::string check;
  std::optional<int> rank;
  Message message;

  bool operator==(const Failing&) const = default;
};

struct Record {
  std::string run_id, case_id, name;
  int attempt = 1;
  RunContext context;
  int ranks = 1;
  std::optional<Phase> phase;  // reached; nothing: no rank began
  Verdict verdict;
  Verdict observed;  // before an expectation (fault, hazard, known issue) was applied
  int rule = 0;      // of reports/outcome
  std::string reason;
  CheckCounts checks;
  std::vector<Failing> failing;
  std::map<std::string, double> figures;
  double seconds = 0;
  std::string artefacts;  // relative to the run folder
  std::string again;      // why this is not the first attempt; "" of a first one

  bool operator==(const Record&) const = default;
};

Json to_json(const Record& record);
/// With its newline.
std::string to_line(const Record& record);
Record record_from(const nlohmann::json& value, const std::string& where);

}  // namespace graphproof::record
