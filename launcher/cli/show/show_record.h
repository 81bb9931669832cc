// Prints the record of a case, and the evidence of its attempt rank by rank.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <string>

#include "reports/record/run/record.h"

namespace graphproof::cli {

/// The last record of a case in the journal of a run.
std::optional<record::Record> last_record(const std::filesystem::path& run,
                                          const std::string& case_id);

/// Prints the verdict, the outcome rule that gave it, and each failing check with what / got / want
/// / why / next.
void show_record(const record::Record& record, std::ostream& out);

/// Prints the first divergent tensor (reports/analysis/divergence.h); nothing if `text` is empty.
void show_divergence(const std::string& text, std::ostream& out);

/// Prints the evidence of every rank: phases with their times, captures, comparisons that differ,
/// errors and refusals.
void show_evidence(const std::filesystem::path& attempt_folder, int ranks, std::ostream& out);
/// The same as JSON: for each rank {rank, complete, last_seen, phases, steps, captures,
/// compares, errors, refused, dropped}.
nlohmann::json evidence_digest(const std::filesystem::path& attempt_folder, int ranks);

}  // namespace graphproof::cli
