// A finding of `graphproof check`, and a configuration as it was read, with the findings of its
// reader.
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

#include "matrix/dialect/configuration.h"
#include "matrix/dialect/upstream_rules.h"
#include "matrix/input/input_error.h"

namespace graphproof::dialect {

/// A rule that a configuration breaks, or that is undecided.
struct Finding {
  std::string rule;
  Stage stage = Stage::config;
  std::string status, severity, option, what, got, want, why, next;
  matrix::Place place;   // of the value; line 0 if it was not written
  bool unknown = false;  // undecided: the rule reads a value that was not supplied
  bool first = false;    // whether upstream stops at this error
  /// Whether upstream refuses the configuration for it: its parser, its configuration objects, its
  /// constructors, or its training loop raises.
  bool refuses() const { return severity == "error" && !unknown; }
  nlohmann::json json() const;
};

/// A finding of `rule` with the rule's texts.
Finding finding_of(const Rule& rule, Stage stage, std::string got, std::string want);

/// A configuration as it was read.
struct Reading {
  Configuration configuration;
  std::vector<Finding> findings;  // in the order in which upstream's reader reports them
  int unknown_keys = 0;           // keys of a file that no option has
};

}  // namespace graphproof::dialect
