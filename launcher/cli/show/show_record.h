// One record, and the evidence of its attempt rank by rank, as text for people.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <string>

#include "reports/record/run/record.h"

namespace graphproof::cli {

/// The case's last record in a run's journal.
std::optional<record::Record> last_record(const std::filesystem::path& run,
                                          const std::string& case_id);

/// Verdict, the outcome rule that gave it, and each failing check with what / got / want / why /
/// next.
void show_record(const record::Record& record, std::ostream& out);

/// The first divergent tensor (reports/analysis/divergence.h); nothing for an empty text.
void show_divergence(const std::string& text, std::ostream& out);

/// What every rank left behind: phases with their times, captures, comparisons that differ, errors
/// and refusals.
void show_evidence(const std::filesystem::path& attempt_folder, int ranks, std::ostream& out);
/// The same as JSON: a list by rank of {rank, complete, last_seen, phases, steps, captures,
/// compares, errors, refused, dropped}.
nlohmann::json evidence_digest(const std::filesystem::path& attempt_folder, int ranks);

}  // namespace graphproof::cli
