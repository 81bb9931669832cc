// For tests: a made attempt in which every check passes, and small changes that make checks fail.
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
inline const nlohmann::json kLongJob = {
    {"impl", "full_iteration"}, {"tp", 2}, {"microbatches", 2}, {"soak_steps", 500}};

/// A text or an integer of a line as it was written; "" or absent if the line has none.
std::string text(const Line& line, std::string_view field);
std::optional<std::int64_t> integer(const Line& line, std::string_view field);

/// Reads the lines of every rank as structs again. Needed after lines were changed as JSON.
void type_again(Attempt& attempt);

/// An attempt of a case with `axes`, which has only values that differ from the defaults. Every
/// rank finished and wrote the lines of evidence revision `revision`; those of 4 have arms eager_b
/// and graph_b.
Attempt clean_attempt(const matrix::Catalogue& catalogue, const nlohmann::json& axes,
                      const std::string& device = "sim",
                      std::int64_t revision = record::kEvidenceRevision);

/// Selects lines. An absent rank or step and an empty arm or name select any.
struct Where {
  std::optional<int> rank;
  std::string kind;
  std::string arm = {};
  std::optional<std::int64_t> step = std::nullopt;
  std::string name =
      {};  // the field `compared`; of hyperparameter lines their `name`, of captures their `graph`
};

/// Sets a field. This and the functions below throw std::logic_error if `where` selects no line, so
/// that no row changes nothing by mistake.
void set(Attempt& attempt, const Where& where, const std::string& key, nlohmann::json value);
/// Removes a field, as evidence of an older revision lacks it.
void unset(Attempt& attempt, const Where& where, const std::string& key);
/// Removes lines.
void erase(Attempt& attempt, const Where& where);
/// Adds a line before the teardown.
void add(Attempt& attempt, int rank, nlohmann::json fields);
/// Removes the first line that `where` selects and all later ones, as if the rank had died before
/// it wrote them.
void die_before(Attempt& attempt, const Where& where);

}  // namespace graphproof::checks
