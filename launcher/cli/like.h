// --like: a user's training configuration becomes the nearest case that this machine can run, with
// an account of what was kept, shrunk and dropped, and of the rules that the configuration meets.
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

struct LikeOptions : ConfigurationOptions {
  bool given = false;  // --like stood on the command line, with a FILE or with words behind `--`
};
void declare_like(CLI::App& app, LikeOptions& options);
/// Words behind `--` mean a configuration only beside --like. Throws InputError.
void expect_like(const LikeOptions& options, const Surroundings& surroundings,
                 const std::string& verb);

struct Like {
  std::string dialect;
  dialect::Verdict verdict;  // of upstream, on the configuration as it is
  std::string
      recipe;  // of a performance harness: the published recipe whose settings it starts from
  matrix::NearestCase made;
  std::vector<std::string> left_out;  // options that were given and that no axis says
};

/// Throws InputError for what can't be read, and for a graphproof case, which needs no likeness.
Like like(const LikeOptions& options, const matrix::Machine& machine,
          const Surroundings& surroundings);

/// A rejection first, then the account, then the rules.
void show(const Like& like, const Surroundings& surroundings, std::ostream& out);
nlohmann::json json_of(const Like& like, const Surroundings& surroundings);

}  // namespace graphproof::cli
