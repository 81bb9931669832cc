// Where the history of runs is, and what its verbs share.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "launcher/cli/verb.h"
#include "reports/history/history.h"

namespace graphproof::cli {

/// --history FILE; by default runs/history.db.
void declare_history_file(CLI::App& app, std::optional<std::string>& file);

/// Where the history is.
std::filesystem::path history_path(const std::optional<std::string>& file,
                                   const Surroundings& surroundings);

/// Opens the history. For reading it must exist.
reports::History open_history(const std::optional<std::string>& file,
                              const Surroundings& surroundings, reports::Database::Mode mode);

/// Today in UTC, YYYY-MM-DD.
std::string today();

}  // namespace graphproof::cli
