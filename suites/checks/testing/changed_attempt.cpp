// The functions of clean_attempt.h that change evidence which has been written.
#include <algorithm>
#include <functional>
#include <stdexcept>

#include "suites/checks/attempt/concat.h"
#include "suites/checks/testing/clean_attempt.h"

namespace graphproof::checks {
namespace {

using nlohmann::json;

bool meant(const Line& line, const Where& where) {
  return line.kind == where.kind && (where.arm.empty() || text(line, "arm") == where.arm) &&
         (!where.step || integer(line, "step") == where.step) &&
         (where.name.empty() || text(line, line.kind == "hyperparameter" ? "name"
                                           : line.kind == "capture"      ? "graph"
                                                                    : "compared") == where.name);
}

/// Corrects the count of lines in the end line, because a row that changes lines is not about lost
/// ones.
void seal(record::Evidence& evidence) {
  if (!evidence.lines.empty() && evidence.lines.back().kind == "end")
    evidence.lines.back().fields["lines"] = evidence.lines.size() - 1;
}

/// Calls `change` with the evidence of every rank that `where` may select. Throws if no evidence
/// was changed.
void each(Attempt& attempt, const Where& where,
          const std::function<bool(record::Evidence&)>& change) {
  bool any = false;
  for (RankFiles& files : attempt.ranks) {
    if (!files.evidence || (where.rank && *where.rank != files.rank)) continue;
    any |= change(*files.evidence);
    record::type_lines(*files.evidence);
  }
  if (!any)
    throw std::logic_error(
        concat("no evidence line of kind ", where.kind, ", arm `", where.arm, "`"));
}

}  // namespace

std::string text(const Line& line, std::string_view field) {
  const auto found = line.fields.find(field);
  return found != line.fields.end() && found->is_string() ? found->get<std::string>() : "";
}

std::optional<std::int64_t> integer(const Line& line, std::string_view field) {
  const auto found = line.fields.find(field);
  if (found == line.fields.end() || !found->is_number_integer()) return std::nullopt;
  return found->get<std::int64_t>();
}

void type_again(Attempt& attempt) {
  for (RankFiles& files : attempt.ranks)
    if (files.evidence) record::type_lines(*files.evidence);
}

void set(Attempt& attempt, const Where& where, const std::string& key, json value) {
  each(attempt, where, [&](record::Evidence& evidence) {
    bool any = false;
    for (Line& line : evidence.lines) {
      if (!meant(line, where)) continue;
      line.fields[key] = value;
      any = true;
    }
    return any;
  });
}

void unset(Attempt& attempt, const Where& where, const std::string& key) {
  each(attempt, where, [&](record::Evidence& evidence) {
    bool any = false;
    for (Line& line : evidence.lines)
      if (meant(line, where)) any |= line.fields.erase(key) > 0;
    return any;
  });
}

void erase(Attempt& attempt, const Where& where) {
  each(attempt, where, [&](record::Evidence& evidence) {
    const bool any =
        std::erase_if(evidence.lines, [&](const Line& line) { return meant(line, where); }) > 0;
    seal(evidence);
    return any;
  });
}

void add(Attempt& attempt, int rank, json fields) {
  std::vector<Line>& lines = attempt.ranks.at(static_cast<std::size_t>(rank)).evidence->lines;
  auto place = lines.begin();
  while (place != lines.end() && place->kind != "teardown" && place->kind != "end") ++place;
  std::string kind = fields.at("kind");
  lines.insert(place, {.kind = std::move(kind), .fields = std::move(fields), .line = 0});
  record::Evidence& evidence = *attempt.ranks.at(static_cast<std::size_t>(rank)).evidence;
  seal(evidence);
  record::type_lines(evidence);
}

void die_before(Attempt& attempt, const Where& where) {
  each(attempt, where, [&](record::Evidence& evidence) {
    for (std::size_t index = 0; index < evidence.lines.size(); ++index) {
      if (!meant(evidence.lines[index], where)) continue;
      evidence.lines.resize(index);
      return true;
    }
    return false;
  });
}

}  // namespace graphproof::checks
