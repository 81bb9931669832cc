// The upstream dialects that `check` knows, with their shipped options and rules.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "matrix/dialect/options.h"
#include "matrix/dialect/upstream_rules.h"

namespace graphproof::dialect {

struct Dialect {
  std::string name;      // megatron-lm, megatron-bridge, legacy
  std::string version;   // the version whose rules hold: given, or the newest
  std::string upstream;  // project and commit that the rows describe
  OptionTable options;
  UpstreamRules rules;

  const Rule& rule(std::string_view id) const;  // REQUIRES: it exists
};

/// `megatron-lm`, `megatron-bridge`, and `legacy`: Megatron-LM as it was before 2026-07-02, which
/// the older documents describe. Versions are days of upstream's main branch, 2026.8.22 or
/// 2026-08-22; empty is the newest. InputError.
Dialect load_dialect(const std::string& name, const std::string& version);
std::span<const std::string_view> dialect_names();

}  // namespace graphproof::dialect
