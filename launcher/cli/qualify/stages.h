// The runs of a qualification. Each is a command line of this program, started as a child, so that
// a stage that ends badly does not end the others, and one inside an image is started in the same
// way. What is done is seen from the folders alone, so the same calls continue an earlier session.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "launcher/host/signals.h"
#include "reports/qualification/qualification.h"

namespace graphproof::cli {

/// How stages are started. Paths are absolute.
struct StageCommands {
  std::filesystem::path folder;  // of the qualification
  std::string device;
  std::vector<std::string> options;  // of every run
  int parts = 8;                     // of each stage, where two images take turns
  std::string program;               // graphproof of this machine; merges the parts
  /// The words that start graphproof in each image, by A and B; or for "" on this machine.
  std::vector<std::pair<std::string, std::vector<std::string>>> starts;
};

/// What the doctor says in one stack: graphproof-doctor/1 with the libraries that ranks load.
/// Throws InputError that names `source` if it can't be started.
nlohmann::json ask_doctor(const std::vector<std::string>& start, const std::string& source,
                          const std::string& device);

/// Runs what is not done of the stages, in their order. With two images A and B take turns, and who
/// is first alternates too, so that a slow drift of the machine touches both alike. `say` gets a
/// line at the start of each run. SIGINT and SIGTERM are passed on to the running child, and no
/// other is started then. Returns whether it was interrupted.
bool run_stages(const StageCommands& commands, const std::vector<std::string>& stages,
                launcher::Signals& signals, const std::function<void(const std::string&)>& say);

/// What the folder has of a stage.
reports::Stage stage_from(const StageCommands& commands, const std::string& name,
                          const std::string& image);

/// The folder of the whole run of a stage.
std::filesystem::path stage_folder(const StageCommands& commands, const std::string& name,
                                   const std::string& image);

}  // namespace graphproof::cli
