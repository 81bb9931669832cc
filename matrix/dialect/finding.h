// What `check` says of one rule, and the reading of a configuration with what the reader itself
// found.
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

#include "matrix/dialect/configuration.h"
#include "matrix/dialect/upstream_rules.h"
#include "matrix/input/input_error.h"

namespace graphproof::dialect {

struct Finding {
  std::string rule;
  Stage stage = Stage::config;
  std::string status, severity, option, what, got, want, why, next;
  matrix::Place place;   // line 0: the value was not written anywhere
  bool unknown = false;  // undecided: it reads something that nobody supplied
  bool first = false;    // the error that upstream stops at

  bool refuses() const {
    return severity == "error" && !unknown && (stage == Stage::cli || stage == Stage::config);
  }
  nlohmann::json json() const;
};

/// A finding of `rule` with its texts; got and want are the finder's.
Finding finding_of(const Rule& rule, Stage stage, std::string got, std::string want);

struct Reading {
  Configuration configuration;
  std::vector<Finding> findings;  // in the order in which upstream's reader would stop at them
  int unknown_keys = 0;           // of a file, which no option has
};

}  // namespace graphproof::dialect
