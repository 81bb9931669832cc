// What the first screen of a run says: the verdict in words, what is new since the last run, and
// the failures in groups, each with what its cases have in common and what cures it. The page, the
// Markdown page and the terminal show the same words.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "matrix/catalogue/catalogue.h"
#include "reports/analysis/causes.h"
#include "reports/analysis/cross_run.h"
#include "reports/analysis/groups.h"
#include "reports/outcome/run_result.h"
#include "reports/record/run/hazards.h"

namespace graphproof::reports {

/// What a case means for the run. Each kind has a colour and a sign on the page.
enum class Kind { product, coverage, infra, interrupted, expected, ok, skipped };
std::string_view name(Kind kind);
/// "failed", "not shown", ...
std::string_view label(Kind kind);
Kind kind_of(const CaseResult& one);

/// What cases with this verdict do, after "6 cases": "hang in replay". `count` chooses the form of
/// the verb.
std::string deed(record::Verdict verdict, std::size_t count);

/// One thing that is said of a group: "cure", "NCCL_GRAPH_REGISTER=0", "With it all 6 pass."
struct OverviewLine {
  std::string label;
  std::string code;  // to be copied or read letter by letter; may be empty
  std::string text;  // may be empty
};

/// A group of failures in words.
struct OverviewGroup {
  FailureGroup group;
  Kind kind = Kind::product;
  std::string headline;  // "6 cases hang in replay"
  std::vector<OverviewLine> lines;
};

/// See above.
struct Overview {
  Kind kind = Kind::product;
  std::string word;                   // "Not acceptable"
  std::string sentence;               // "2 of 12 cases fail in 1 way. 1 case is skipped."
  std::vector<OverviewGroup> groups;  // those that need attention first
  /// What is new since the last run, or why that is not known: a phrase each.
  std::vector<std::string> news;
};

/// What the words are made of, beyond the result.
struct OverviewFacts {
  const matrix::Catalogue& catalogue;
  const std::optional<record::Hazards>& hazards;
  const CrossRunFacts& cross_run;
  /// The error lines of an attempt; called for one case of each group at most.
  std::function<std::vector<ErrorFact>(const record::Record&)> errors_of;
};

Overview overview(const RunResult& run, const OverviewFacts& facts);

/// "12 planned = 10 ran + 0 rejected + 1 skipped + 1 not run; 0 of 20 required checks unexercised".
std::string coverage_text(const RunResult& run);

/// "NCCL 2.28.9 -> 2.29.2".
std::string text_of(const StackChange& change);

/// "1 case", "2 cases".
std::string plural(std::size_t count, const std::string& one);

}  // namespace graphproof::reports
