// What public guides of CUDA graphs state, recommend or forbid, and what in this tree answers each
// statement (matrix/tables/guidance.json). docs/reference/guides.md lists it. The planned cases of
// an answer are counted by matrix/guidance/guidance_plans.h.
#pragma once

#include <string>
#include <vector>

#include "matrix/expression/expression.h"

namespace graphproof::matrix {

/// Planned cases: those of shipped profiles for which a condition holds.
struct GuidanceCases {
  Expression where = Expression::always();
  std::vector<std::string> profiles;  // each has at least one such case that runs
  std::string device;                 // where they run: sim, or cuda if they need a GPU
};

/// A statement with its answer. The ids are those of the tables that they name.
struct GuidanceRow {
  int row = 0;          // 1 and up, in file order
  std::string section;  // of the document
  std::string states;   // in our words
  std::vector<GuidanceCases> cases;
  /// Rules of cases (matrix/rules/graphproof.json). Each refuses a case of profile constraints for
  /// which `refused` holds.
  std::vector<std::string> rules;
  Expression refused = Expression::always();
  /// Rules of users' configurations: a folder of matrix/rules and an id, "megatron-lm R036".
  std::vector<std::string> configuration_rules;
  std::vector<std::string> checks;    // judge what the statement is about
  std::vector<std::string> faults;    // planted: each breaks what the statement asks for
  std::vector<std::string> programs;  // rows of suites/watch/programs.json, by their number
  std::vector<std::string> tests;     // SUITE.NAME
  std::string why_not;                // why it cannot be tested here
  std::string open;                   // what is missing, where nothing answers it yet

  bool answered() const { return why_not.empty() && open.empty(); }
};

struct GuidanceDocument {
  std::string title;  // as it was published
  std::string about;  // what it is
  std::vector<GuidanceRow> rows;
};

/// The documents in file order.
class GuidanceTable {
 public:
  /// Throws InputError, also if a row has nothing that answers it and no reason, or both.
  static GuidanceTable parse(const Document& document, const AxisTable& axes);
  const std::vector<GuidanceDocument>& documents() const { return documents_; }

 private:
  std::vector<GuidanceDocument> documents_;
};

/// The shipped table.
GuidanceTable load_guidance(const AxisTable& axes);

}  // namespace graphproof::matrix
