#include "matrix/catalogue/subjects.h"

#include <algorithm>
#include <set>

namespace graphproof::matrix {
namespace {

constexpr std::string_view kEveryOther = "*";  // every subject but reference
constexpr double kLongestSeconds = 86400;

/// The condition that the axis has its default.
std::string at_default(const Axis& axis) {
  switch (axis.type) {
    case AxisType::boolean:
      return "not " + axis.name;
    case AxisType::set:
      return "len(" + axis.name + ") == 0";
    case AxisType::integer:
      return axis.name + " == " + value_text(axis.default_value);
    default:
      return axis.name + " == \"" + std::get<std::string>(axis.default_value) + "\"";
  }
}

AxisMeaning meaning_from(const Located& entry, const Axis& axis, const Scope& scope) {
  entry.expect_keys({}, {"means", "can", "missing"});
  AxisMeaning meaning{.means = entry.string_or("means", ""),
                      .missing = entry.string_or("missing", ""),
                      .can = std::nullopt};
  if (entry.has("can"))
    meaning.can = Expression::condition(entry.at("can").string(), scope, entry.at("can").origin());
  else if (meaning.means.empty())
    meaning.can = Expression::condition(at_default(axis), scope, entry.origin());
  if (meaning.can.has_value() == meaning.missing.empty())
    entry.fail("an entry that does not say what the axis means, or why its values are limited",
               "`means`, `means` with `can` and `missing`, or `missing` alone",
               "the reason is what a skipped case shows", "add what is missing");
  return meaning;
}

bool begins_with_one_of(std::string_view text, const std::vector<std::string>& beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [&](const std::string& beginning) { return text.starts_with(beginning); });
}

}  // namespace

SubjectTable SubjectTable::parse(const Document& document, const AxisTable& axes) {
  SubjectTable table;
  const Scope scope{.axes = &axes, .defines = {}};
  const Located root(document);
  root.expect_keys({"schema", "subjects", "axes", "needs"}, {});
  root.at("schema").word({"graphproof-subjects/1"});
  for (const Located& row : root.at("subjects").items()) {
    row.expect_keys({"subject", "meaning", "implements"}, {"limits", "seconds"});
    Subject subject{.name = row.at("subject").string(), .meaning = row.at("meaning").string()};
    for (const Located& source : row.at("implements").items())
      subject.implements.push_back(source.string());
    if (row.has("limits")) subject.limits = parse_limits(row.at("limits"));
    if (row.has("seconds")) subject.seconds = row.at("seconds").number(0, kLongestSeconds);
    table.subjects_.push_back(std::move(subject));
  }
  std::vector<std::string> names;
  for (const Subject& subject : table.subjects_) names.push_back(subject.name);
  if (const Axis& axis = axes.at("subject", {}); names != axis.values)
    root.at("subjects")
        .fail("subjects that are not those of the axis", listed(axis.values),
              "every case of a subject without a row would have no meaning",
              "list them in the order of the axis");
  const auto subject_at = [&](const std::string& name, const Place& place) -> Subject& {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end())
      throw InputError({.what = "unknown subject `" + name + "`",
                        .got = name,
                        .want = "one of " + listed(names),
                        .why = "",
                        .next = suggestion(name, names, "choose one of them"),
                        .place = place});
    return table.subjects_[static_cast<std::size_t>(found - names.begin())];
  };

  std::set<std::string> seen;
  for (const Located& row : root.at("axes").items()) {
    row.expect_keys({"axes", "of"}, {});
    for (const Located& name : row.at("axes").items()) {
      const Axis& axis = axes.at(name.string(), name.place());
      if (!seen.insert(axis.name).second)
        name.fail("axis `" + axis.name + "` has two rows", "one row for each axis", "",
                  "join them");
      for (const auto& [of, entry] : row.at("of").members()) {
        if (of == kEveryOther) continue;
        subject_at(of, entry.key_place()).axes.emplace(axis.name, meaning_from(entry, axis, scope));
      }
      if (!row.at("of").has(kEveryOther)) continue;
      const AxisMeaning others = meaning_from(row.at("of").at(kEveryOther), axis, scope);
      for (Subject& subject : table.subjects_)
        if (subject.name != names.front()) subject.axes.emplace(axis.name, others);
    }
  }
  for (const Axis& axis : axes.axes())
    for (Subject& subject : table.subjects_)
      if (const auto found = subject.axes.find(axis.name); found != subject.axes.end()) {
        if (found->second.can)
          table.capabilities_.push_back({.subjects = {subject.name},
                                         .require = *found->second.can,
                                         .missing = found->second.missing});
      } else if (subject.name != names.front()) {
        root.at("axes").fail("axis `" + axis.name + "` means nothing for " + subject.name,
                             "an entry for every axis and subject",
                             "a case that sets it would run as something else than its name states",
                             "say what it means, or why the subject has no such choice");
      }
  for (const Located& row : root.at("needs").items()) {
    row.expect_keys({"subjects", "require", "missing"}, {"of_architecture"});
    Capability need{
        .subjects = {},
        .require =
            Expression::condition(row.at("require").string(), scope, row.at("require").origin()),
        .missing = row.at("missing").string(),
        .of_architecture = row.has("of_architecture") && row.at("of_architecture").boolean()};
    for (const Located& name : row.at("subjects").items())
      need.subjects.push_back(subject_at(name.string(), name.place()).name);
    table.capabilities_.push_back(need);
    table.needs_.push_back(std::move(need));
  }
  return table;
}

const Subject* SubjectTable::find(std::string_view name) const {
  const auto found = std::find_if(subjects_.begin(), subjects_.end(),
                                  [&](const Subject& subject) { return subject.name == name; });
  return found == subjects_.end() ? nullptr : &*found;
}

std::vector<std::string> SubjectTable::bound_by(std::string_view source) const {
  constexpr std::string_view kSeparator = "; ";
  std::vector<std::string_view> parts;
  for (std::size_t end = 0; end != std::string_view::npos;) {
    end = source.find(kSeparator);
    parts.push_back(source.substr(0, end));
    if (end != std::string_view::npos) source.remove_prefix(end + kSeparator.size());
  }
  std::vector<std::string> bound;
  for (const Subject& subject : subjects_)
    if (std::any_of(parts.begin(), parts.end(), [&](std::string_view part) {
          return begins_with_one_of(part, subject.implements);
        }))
      bound.push_back(subject.name);
  return bound;
}

}  // namespace graphproof::matrix
