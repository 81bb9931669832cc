#include "matrix/catalogue/catalogue.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "matrix/catalogue/guidance.h"
#include "matrix/catalogue/known_defects.h"

namespace graphproof::matrix {

// Generated from the files that CMakeLists.txt embeds.
std::string_view embedded(std::string_view name);
std::vector<std::string_view> embedded_names();

namespace {

constexpr std::string_view kProfileFolder = "profiles/", kExtension = ".json";

std::vector<std::string> embedded_profiles() {
  std::vector<std::string> profiles;
  for (std::string_view name : embedded_names()) {
    if (!name.starts_with(kProfileFolder)) continue;
    name.remove_prefix(kProfileFolder.size());
    name.remove_suffix(kExtension.size());
    profiles.emplace_back(name);
  }
  return profiles;
}

Document shipped(const std::string& name) {
  return parse_document(embedded(name), "matrix/" + name);
}

AxisTable axes_with(const Document& faults) {
  return AxisTable::parse(shipped("tables/axes.json"), {{"faults", FaultTable::ids(faults)}});
}

}  // namespace

AxisTable load_axes() { return axes_with(shipped("tables/faults.json")); }

CheckTable load_checks(const AxisTable& axes) {
  return CheckTable::parse(shipped("tables/checks.json"), axes);
}

GuidanceTable load_guidance(const AxisTable& axes) {
  return GuidanceTable::parse(shipped("tables/guidance.json"), axes);
}

KnownDefectTable load_known_defects() {
  return KnownDefectTable::parse(shipped("tables/known_defects.json"));
}

BadStackTable load_bad_stacks() { return BadStackTable::parse(shipped("tables/bad_stacks.json")); }

Catalogue load_catalogue() {
  Catalogue catalogue;
  const Document faults = shipped("tables/faults.json");
  catalogue.axes = axes_with(faults);
  catalogue.checks = load_checks(catalogue.axes);
  catalogue.faults = FaultTable::parse(faults, catalogue.axes, catalogue.checks);
  catalogue.subjects = SubjectTable::parse(shipped("tables/subjects.json"), catalogue.axes);
  catalogue.rules =
      RuleSet::parse(shipped("rules/graphproof.json"), catalogue.axes, catalogue.subjects);
  std::vector<Capability> others = catalogue.subjects.capabilities();
  std::ranges::move(faults_of_subjects(catalogue.axes, catalogue.faults),
                    std::back_inserter(others));
  catalogue.capabilities =
      CapabilityTable::parse(shipped("tables/capabilities.json"), catalogue.axes, others);
  catalogue.limits = parse_default_limits(shipped("tables/limits.json"));
  catalogue.hazards = HazardTable::parse(shipped("tables/hazards.json"), catalogue.axes);
  return catalogue;
}

const std::vector<std::string>& shipped_profiles() {
  static const std::vector<std::string> profiles = embedded_profiles();
  return profiles;
}

std::string_view shipped_profile_text(std::string_view profile) {
  return embedded(std::string(kProfileFolder) + std::string(profile) + std::string(kExtension));
}

}  // namespace graphproof::matrix
