// The training configuration that a command line of graphproof names, as `FILE` or `-- ARGS...`,
// and the options that describe the job around it. Shared by the verbs that take a configuration.
#pragma once

#include <CLI/CLI.hpp>

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "launcher/cli/verb.h"
#include "matrix/case/case.h"
#include "matrix/case/machine.h"
#include "matrix/dialect/dialect.h"
#include "matrix/dialect/finding.h"
#include "matrix/input/located_json.h"

namespace graphproof::cli {

/// The options of a verb that takes a configuration.
struct ConfigurationOptions {
  std::string file, dialect, version, arch;  // `file` may also be the name of a case
  std::optional<std::int64_t> world_size;
  std::vector<std::string> environment, stack;  // NAME=VALUE each
};
/// Declares FILE, the dialect and the options that describe the job.
void declare(CLI::App& app, ConfigurationOptions& options);
/// The same without FILE.
void declare_job(CLI::App& app, ConfigurationOptions& options);

/// A configuration of an upstream project, from a command line or a file.
struct UpstreamConfiguration {
  dialect::Dialect dialect;
  bool detected = false;  // the dialect was not named
  dialect::Reading reading;
  std::vector<std::string> words;  // the command line; empty for a file
  std::size_t first_option = 0;    // index in `words`
  std::optional<matrix::Document> document;
};

/// A graphproof case.
struct OwnCase {
  matrix::Case test_case;
  matrix::Machine machine;
};

/// What the command line names.
struct TrainingConfiguration {
  std::variant<UpstreamConfiguration, OwnCase> value;
  std::string file;  // empty for a command line
};

/// Throws InputError if there is neither FILE nor `-- ARGS...` or both, if the file is absent or is
/// not valid JSON or YAML, and for a bad --stack or --env.
TrainingConfiguration read_training_configuration(const ConfigurationOptions& options,
                                                  const Surroundings& surroundings);

}  // namespace graphproof::cli
