// The upstream dialects that `graphproof check` knows, with their options and rules.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "matrix/dialect/options.h"
#include "matrix/dialect/upstream_rules.h"

namespace graphproof::dialect {

/// A dialect at a version.
struct Dialect {
  std::string name;      // megatron-lm, megatron-bridge, legacy, pytorch
  std::string version;   // the version whose rules apply
  std::string upstream;  // the project and commit that the rules describe
  OptionTable options;
  UpstreamRules rules;

  /// REQUIRES: the rule exists.
  const Rule& rule(std::string_view id) const;
};

/// Loads `megatron-lm`, `megatron-bridge`, `legacy`, which is Megatron-LM before 2026-07-02, as
/// older documents describe it, or `pytorch`, the arguments of a capture, which has one version. A
/// version is a day of upstream's main branch, 2026.8.22 or 2026-08-22, or a release of
/// Megatron-Core (versions.h); empty means the newest. Throws InputError.
Dialect load_dialect(const std::string& name, const std::string& version);
std::span<const std::string_view> dialect_names();

}  // namespace graphproof::dialect
