// For tests: a hand-made attempt in which every check passes, and the small changes that turn it
// into a defect.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "matrix/catalogue/catalogue.h"
#include "suites/checks/attempt/attempt.h"

namespace graphproof::checks {

using Line = record::EvidenceLine;

/// Axes of cases that many tests start from.
inline const nlohmann::json kTwoRanks = {
    {"impl", "full_iteration"}, {"tp", 2}, {"microbatches", 2}};
inline const nlohmann::json kChangingLengths = {
    {"impl", "full_iteration"}, {"microbatches", 2}, {"shape_buckets", 2}, {"warmup_steps", 1}};

/// A text or an integer of a line as it was written; "" or nothing where it has none.
std::string text(const Line& line, std::string_view field);
std::optional<std::int64_t> integer(const Line& line, std::string_view field);

/// Reads the lines of every rank by their tables again. After a change of lines as JSON.
void type_again(Attempt& attempt);

/// `axes` holds what differs from the defaults. Every rank finished, and wrote what the suites
/// write, or wrote at `revision`: 4 has arms eager_b and graph_b.
Attempt clean_attempt(const matrix::Catalogue& catalogue, const nlohmann::json& axes,
                      const std::string& device = "sim",
                      std::int64_t revision = record::kEvidenceRevision);

/// Which lines a change means: a missing rank or step is any, an empty arm too.
struct Where {
  std::optional<int> rank;
  std::string kind;
  std::string arm = {};
  std::optional<std::int64_t> step = std::nullopt;
  std::string name = {};  // `compared` of a line; of hyperparameter lines their `name`
};

/// Each throws std::logic_error when `where` means no line, so that a row can't change nothing
/// unseen.
void set(Attempt& attempt, const Where& where, const std::string& key, nlohmann::json value);
/// Takes a field out of the lines, as evidence of an older revision would lack it.
void unset(Attempt& attempt, const Where& where, const std::string& key);
void erase(Attempt& attempt, const Where& where);
/// Puts a line before the teardown.
void add(Attempt& attempt, int rank, nlohmann::json fields);
/// The rank died before it wrote the first line that `where` means: that and everything after it is
/// gone.
void die_before(Attempt& attempt, const Where& where);

}  // namespace graphproof::checks
