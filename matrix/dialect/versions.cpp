#include "matrix/dialect/versions.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "matrix/input/input_error.h"
#include "matrix/input/version.h"

namespace graphproof::dialect {
namespace {

struct Release {
  std::string_view name, day;
};
// 0.19.2 still has the rule that main removed on 2026-07-02 (R060).
constexpr Release kReleases[] = {{"0.19.2", "2026.7.1"}};

bool among(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string day_of(const std::string& version) {
  for (const Release& release : kReleases)
    if (version == release.name) return std::string(release.day);
  return version;
}

std::vector<std::string> read_releases(const matrix::Located& list) {
  std::vector<std::string> releases;
  for (const matrix::Located& name : list.items()) {
    releases.push_back(name.string());
    if (!among(release_names(), releases.back()))
      name.fail("a release that is not known here", "one of " + matrix::listed(release_names()), "",
                "add it to kReleases");
  }
  return releases;
}

}  // namespace

std::vector<std::string> release_names() {
  std::vector<std::string> names;
  for (const Release& release : kReleases) names.emplace_back(release.name);
  return names;
}

bool Versions::include(const std::string& version) const {
  if (among(except, version) || (!only.empty() && !among(only, version))) return false;
  const auto day = matrix::parse_version(day_of(version));
  assert(day);
  return (from.empty() || *day >= *matrix::parse_version(from)) &&
         (before.empty() || *day < *matrix::parse_version(before));
}

Versions read_versions(const matrix::Located& object) {
  object.expect_keys({}, {"from", "before", "except", "only"});
  Versions versions;
  for (const auto& [key, field] : {std::pair<const char*, std::string*>{"from", &versions.from},
                                   {"before", &versions.before}}) {
    if (!object.has(key)) continue;
    *field = object.at(key).string();
    if (!matrix::parse_version(*field))
      object.at(key).fail("a version that can't be read", "digits and dots", "",
                          "write it as 2026.7.2");
  }
  if (object.has("except")) versions.except = read_releases(object.at("except"));
  if (object.has("only")) versions.only = read_releases(object.at("only"));
  return versions;
}

}  // namespace graphproof::dialect
