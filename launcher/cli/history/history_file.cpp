#include "launcher/cli/history/history_file.h"

#include <ctime>

#include "launcher/run/run_folder.h"
#include "matrix/input/input_error.h"

namespace graphproof::cli {

namespace fs = std::filesystem;

void declare_history_file(CLI::App& app, std::optional<std::string>& file) {
  app.add_option("--history", file, "the file of the history (default: runs/history.db)")
      ->type_name("FILE");
}

fs::path history_path(const std::optional<std::string>& file, const Surroundings& surroundings) {
  return file ? fs::path(*file) : surroundings.runs / reports::kHistoryFile;
}

reports::History open_history(const std::optional<std::string>& file,
                              const Surroundings& surroundings, reports::Database::Mode mode) {
  const fs::path path = history_path(file, surroundings);
  std::error_code absent;
  if (mode == reports::Database::Mode::read && !fs::exists(path, absent))
    throw matrix::InputError({"there is no history", path.string(),
                              "a file that `graphproof history add` made", "",
                              "start one: graphproof history add"});
  if (mode == reports::Database::Mode::write && path.has_parent_path())
    fs::create_directories(path.parent_path(), absent);
  return reports::History(path, mode);
}

std::string today() { return launcher::utc_text(std::time(nullptr)).substr(0, 10); }

}  // namespace graphproof::cli
