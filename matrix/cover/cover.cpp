#include "matrix/cover/cover.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "matrix/cover/model/oracle.h"
#include "matrix/cover/part.h"
#include "matrix/cover/tuples.h"
#include "matrix/input/input_error.h"

namespace graphproof::cover {
namespace {

// How many rows an extended plan may have for each row of a fresh one. A row costs GPU time in
// every run.
constexpr double kExtendedShare = 1.03;
constexpr std::size_t kParts = 8;  // the earlier rows are given up in so many parts
// Searches before a part is given up: the first one may have missed the bound by a single row.
constexpr std::uint64_t kAttempts = 3;

[[noreturn]] void refuse(std::string what, std::string got, std::string want, std::string next) {
  throw matrix::InputError({std::move(what), std::move(got), std::move(want), "", std::move(next)});
}

std::string listed_ids(const Model& model, const std::vector<int>& constraints) {
  std::vector<std::string> ids;
  for (const int constraint : constraints)
    ids.push_back(model.constraints[static_cast<std::size_t>(constraint)].id);
  return matrix::listed(ids);
}

void check_row(const Model& model, const Row& row, const std::string& what) {
  if (static_cast<int>(row.size()) != model.visible_count())
    refuse(what + " has the wrong number of cells", std::to_string(row.size()),
           std::to_string(model.visible_count()), "one cell for each parameter");
  for (std::size_t parameter = 0; parameter < row.size(); ++parameter)
    if (row[parameter] != kAny &&
        (row[parameter] < 0 ||
         row[parameter] >= static_cast<int>(model.parameters[parameter].values.size())))
      refuse(what + " has a value that `" + model.parameters[parameter].name + "` does not",
             std::to_string(row[parameter]), "", "use one of its values");
}

void check(const Model& model, const Options& options) {
  check_model(model);
  if (model.visible_count() == 0)
    refuse("the model has no parameter", "", "one or more", "add parameters");
  if (options.strength < 1 || options.strength > kMaxStrength)
    refuse("the strength is out of range", std::to_string(options.strength),
           "1 to " + std::to_string(kMaxStrength), "most faults need 3 or fewer values together");
  if (options.threads < 1 || options.searches < 1)
    refuse("threads and searches are 1 or more",
           std::to_string(std::min(options.threads, options.searches)), "", "leave them out");
  for (std::size_t row = 0; row < options.required.size(); ++row)
    check_row(model, options.required[row], "required row " + std::to_string(row + 1));
  for (std::size_t row = 0; row < options.previous.size(); ++row)
    check_row(model, options.previous[row], "previous row " + std::to_string(row + 1));
  double values = 0;
  for (const Parameter& parameter : model.parameters)
    values += static_cast<double>(parameter.values.size());
  // Every pair of values takes a bit; refuse the model before anything is built.
  if (values * values / 8 > options.memory_bytes)
    refuse("the model has too many values", std::to_string(static_cast<long long>(values)),
           std::to_string(static_cast<long long>(std::sqrt(options.memory_bytes * 8))) +
               " or fewer in all parameters",
           "choose representatives of each range");
  Oracle oracle(model);
  if (!oracle.solve({}))
    refuse("no row fulfils all constraints", listed_ids(model, oracle.reason({})),
           "constraints that hold together",
           "drop or change one of these: without any of them the others can be fulfilled");
}

/// The demands of a model: its strength and its groups. Without the column `out` (-1: with all),
/// and with strengths that are smaller by `less`.
std::vector<PartDemand> demands_of(const Model& model, int strength, int out) {
  const int less = out < 0 ? 0 : 1;
  std::vector<PartDemand> demands;
  const auto add = [&](std::vector<int> columns, int wanted) {
    std::sort(columns.begin(), columns.end());
    columns.erase(std::remove(columns.begin(), columns.end(), out), columns.end());
    if (columns.empty()) columns = {out};
    demands.push_back({columns, std::clamp(wanted - less, 1, static_cast<int>(columns.size()))});
  };
  std::vector<int> all(static_cast<std::size_t>(model.visible_count()));
  std::iota(all.begin(), all.end(), 0);
  add(all, strength);
  for (const Group& group : model.groups)
    if (group.strength > strength &&
        (out < 0 || std::find(group.parameters.begin(), group.parameters.end(), out) !=
                        group.parameters.end()))
      add(group.parameters, group.strength);
  return demands;
}

bool is_negative(const Model& model, Cell cell) {
  return model.parameters[static_cast<std::size_t>(cell.parameter)]
      .values[static_cast<std::size_t>(cell.value)]
      .negative;
}

/// The negative values that a row has.
Cells negatives_of(const Model& model, const Row& row) {
  Cells cells;
  for (std::size_t parameter = 0; parameter < row.size(); ++parameter)
    if (const Cell cell{static_cast<int>(parameter), row[parameter]};
        cell.value != kAny && is_negative(model, cell))
      cells.push_back(cell);
  return cells;
}

/// The same model, in whose rows `only` is the one negative value; with an empty `only` rows have
/// none.
Model confined(const Model& model, const Cells& only) {
  Model part = model;
  Constraint constraint{"(invalid values apart)", {}};
  for (std::size_t parameter = 0; parameter < part.parameters.size(); ++parameter)
    for (std::size_t value = 0; value < part.parameters[parameter].values.size(); ++value) {
      const Cell cell{static_cast<int>(parameter), static_cast<int>(value)};
      if (!part.parameters[parameter].values[value].negative) continue;
      part.parameters[parameter].values[value].negative = false;
      constraint.clauses.push_back(
          {{cell.parameter, cell.value, !only.empty() && cell == only[0]}});
    }
  part.constraints.push_back(std::move(constraint));
  return part;
}

/// The rows with exactly these negative values. `indices` receives their indices in `rows`.
std::vector<Row> rows_with(const Model& model, const std::vector<Row>& rows, const Cells& negatives,
                           std::vector<int>& indices) {
  std::vector<Row> chosen;
  for (std::size_t at = 0; at < rows.size(); ++at)
    if (negatives_of(model, rows[at]) == negatives) {
      chosen.push_back(rows[at]);
      indices.push_back(static_cast<int>(at));
    }
  return chosen;
}

/// Covers the ordinary values in rows without a negative value, then each negative value with the
/// combinations that its strength asks for.
Result cover_with_negatives(const Model& model, const Options& options) {
  for (std::size_t row = 0; row < options.required.size(); ++row)
    if (negatives_of(model, options.required[row]).size() > 1)
      refuse("required row " + std::to_string(row + 1) + " has two negative values", "",
             "at most one", "split it into two rows");
  Result sum;
  std::vector<Cells> kinds{{}};
  for (int parameter = 0; parameter < model.visible_count(); ++parameter)
    for (std::size_t value = 0;
         value < model.parameters[static_cast<std::size_t>(parameter)].values.size(); ++value)
      if (const Cell cell{parameter, static_cast<int>(value)}; is_negative(model, cell))
        kinds.push_back({cell});
  const std::vector<PartDemand> whole = demands_of(model, options.strength, -1);
  const Problem problem(model);
  for (const PartDemand& demand : whole)
    sum.demands.push_back({demand.columns, demand.strength,
                           Tuples(problem, demand.columns, demand.strength).raw_count(problem), 0});
  std::vector<char> placed(options.previous.size(), 0);
  for (const Cells& kind : kinds) {
    const Model part_model = confined(model, kind);
    Oracle oracle(part_model);
    std::vector<int> required, previous;
    Options part_options = options;
    part_options.required = rows_with(model, options.required, kind, required);
    part_options.previous = rows_with(model, options.previous, kind, previous);
    part_options.progress = {};
    if (!oracle.solve({})) {
      if (!part_options.required.empty())
        refuse("required row " + std::to_string(required[0] + 1) + " is in no valid row", "", "",
               "change the row or the constraints");
      if (!kind.empty()) sum.excluded.push_back(kind);
      continue;
    }
    const std::vector<PartDemand> demands =
        demands_of(model, options.strength, kind.empty() ? -1 : kind[0].parameter);
    Result part = cover_part(part_model, demands, part_options);
    for (PlannedRow& row : part.rows) {
      if (row.origin == Origin::required) row.index = required[static_cast<std::size_t>(row.index)];
      if (row.origin == Origin::previous) row.index = previous[static_cast<std::size_t>(row.index)];
      if (row.origin == Origin::previous) placed[static_cast<std::size_t>(row.index)] = 1;
      sum.rows.push_back(std::move(row));
    }
    for (std::size_t at = 0, group = 0; at < part.demands.size(); ++at, ++group) {
      // The part of a negative value has only the groups that contain its parameter.
      const auto holds = [&](const PartDemand& demand) {
        return kind.empty() || std::find(demand.columns.begin(), demand.columns.end(),
                                         kind[0].parameter) != demand.columns.end();
      };
      while (!holds(whole[group])) ++group;
      sum.demands[group].valid += part.demands[at].valid;
    }
    for (Cells& cells : part.excluded) {
      const bool about_the_split = std::any_of(cells.begin(), cells.end(), [&](Cell cell) {
        return is_negative(model, cell) || (!kind.empty() && cell.parameter == kind[0].parameter);
      });
      if (about_the_split) continue;
      if (!kind.empty()) cells.push_back(kind[0]);
      sum.excluded.push_back(std::move(cells));
    }
    sum.excluded_left_out += part.excluded_left_out;
    sum.steps += part.steps;
    sum.at_least += part.at_least;
    sum.cost += part.cost;
    sum.searched = sum.searched && part.searched;
  }
  for (std::size_t at = 0; at < placed.size(); ++at)
    if (!placed[at]) sum.dropped.push_back(static_cast<int>(at));
  if (options.progress) options.progress({sum.rows.size(), sum.steps});
  return sum;
}

Result answer(const Model& model, const Options& options) {
  for (const Parameter& parameter : model.parameters)
    for (const Value& value : parameter.values)
      if (value.negative) return cover_with_negatives(model, options);
  return cover_part(model, demands_of(model, options.strength, -1), options);
}

/// Keeps as many of the earlier rows as an answer may have that is only a little larger than a
/// fresh one. They are given up from the end, because the last rows of a plan add least.
Result extended(const Model& model, const Options& options) {
  const auto size = [&](const Result& result) {
    return options.cost ? result.cost : static_cast<double>(result.rows.size());
  };
  const auto ended = [&] { return options.stop && options.stop(); };
  const auto keeping = [&](std::size_t kept, std::uint64_t seed) {
    Options tried = options;
    tried.seed = seed;
    tried.previous.resize(kept);
    Result result = answer(model, tried);
    for (std::size_t index = kept; index < options.previous.size(); ++index)
      result.dropped.push_back(static_cast<int>(index));
    return result;
  };
  Result all = keeping(options.previous.size(), options.seed);
  if (ended()) return all;
  Result fresh = keeping(0, options.seed);
  // One row more is always allowed: it is not worth giving up earlier rows for.
  const double most =
      size(fresh) * std::max(kExtendedShare, 1 + 1 / static_cast<double>(std::max<std::size_t>(
                                                         fresh.rows.size(), 1)));
  if (size(all) <= most) return all;
  for (std::size_t part = kParts; part > 0; --part)
    for (std::uint64_t attempt = part == kParts ? 1 : 0; attempt < kAttempts; ++attempt) {
      Result result =
          keeping((options.previous.size() * part + kParts - 1) / kParts, options.seed + attempt);
      if (size(result) <= most) return result;
      if (ended()) return all;
    }
  return fresh;
}

}  // namespace

Result cover(const Model& model, const Options& options) {
  check(model, options);
  return options.previous.empty() ? answer(model, options) : extended(model, options);
}

}  // namespace graphproof::cover
