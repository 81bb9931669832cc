// The versions of upstream that have a rule, a part of one, or an option: days of its main branch,
// and releases, which have a version number and not all that their branch's day had or got.
#pragma once

#include <string>
#include <vector>

#include "matrix/input/located_json.h"

namespace graphproof::dialect {

/// The releases that can be named as a version, such as "0.19.2" of Megatron-Core.
std::vector<std::string> release_names();

/// Which versions have something.
struct Versions {
  std::string from, before;               // days of main: from <= day < before; empty is open
  std::vector<std::string> except, only;  // releases; if `only` has some, nothing else has it

  /// `version` is a day, written 2026.8.22, or a release. A release is compared with `from` and
  /// `before` by the day that its branch was made from main.
  bool include(const std::string& version) const;
};

/// Reads {"from": "2026.7.2", "before", "except": ["0.19.2"], "only"}. Throws InputError.
Versions read_versions(const matrix::Located& object);

}  // namespace graphproof::dialect
