// The training configuration that a command line means: `FILE` or `-- ARGS...`, with what was said
// of the machine. Shared by the verbs that take somebody's configuration.
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

struct ConfigurationOptions {
  std::string file, dialect, version, arch;  // file: FILE, or a case's name
  std::optional<std::int64_t> world_size;
  std::vector<std::string> environment, stack;  // K=V
};
/// FILE, and what declare_surroundings declares: the dialect and what surrounds the configuration.
void declare(CLI::App& app, ConfigurationOptions& options);
void declare_surroundings(CLI::App& app, ConfigurationOptions& options);

/// Options of an upstream dialect, from a command line or a file.
struct UpstreamConfiguration {
  dialect::Dialect dialect;
  bool detected = false;  // the dialect was not named
  dialect::Reading reading;
  std::vector<std::string> words;  // of a command line; empty for a file
  std::size_t first_option = 0;
  std::optional<matrix::Document> document;
};

/// A case of our own axes.
struct OwnCase {
  matrix::Case test_case;
  matrix::Machine machine;
};

struct TrainingConfiguration {
  std::variant<UpstreamConfiguration, OwnCase> value;
  std::string file;  // empty for a command line
};

/// Throws InputError for what can't be read: neither, both, no such file, broken JSON or YAML, a
/// bad --stack.
TrainingConfiguration read_training_configuration(const ConfigurationOptions& options,
                                                  const Surroundings& surroundings);

}  // namespace graphproof::cli
