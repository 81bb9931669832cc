// --like: turns a training configuration of a user into the nearest case that this machine can run,
// with an account of what was kept, made smaller and dropped, and of the rules that apply to the
// configuration.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <vector>

#include "launcher/cli/training_configuration.h"
#include "matrix/dialect/check.h"
#include "matrix/plan/nearest_case.h"

namespace graphproof::cli {

/// The options that name a configuration.
struct LikeOptions : ConfigurationOptions {
  bool given = false;  // the command line has --like, with a FILE or with arguments after `--`
};
void declare_like(CLI::App& app, LikeOptions& options);
/// Throws InputError if there are arguments after `--` and no --like: only --like gives these a
/// meaning.
void expect_like(const LikeOptions& options, const Surroundings& surroundings,
                 const std::string& verb);

/// The nearest case and how it was found.
struct Like {
  std::string dialect;
  dialect::Verdict verdict;  // what upstream says about the configuration as it is
  /// For a command line of the performance harness: the published recipe whose settings it uses.
  std::string recipe;
  matrix::NearestCase made;
  std::vector<std::string> left_out;  // options that were given and have no axis
};

/// Throws InputError for a configuration that cannot be read, and for a graphproof case, which is
/// its own nearest case.
Like like(const LikeOptions& options, const matrix::Machine& machine,
          const Surroundings& surroundings);

/// Prints a rejection by upstream, then the account, then the rules that apply.
void show(const Like& like, const Surroundings& surroundings, std::ostream& out);
nlohmann::json json_of(const Like& like, const Surroundings& surroundings);

}  // namespace graphproof::cli
