// cover: runs the covering array generator, which plans use, on any combinatorial model.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <sstream>

#include "launcher/cli/cover_model_file.h"
#include "launcher/cli/input_file.h"
#include "launcher/cli/verb.h"
#include "matrix/cover/cover.h"
#include "matrix/cover/files/row_file.h"
#include "matrix/cover/model/oracle.h"
#include "matrix/input/input_error.h"
#include "matrix/input/located_json.h"
#include "reports/record/text/file.h"
#include "reports/record/text/printable.h"

namespace graphproof::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kStepsWithoutEnd = std::int64_t{1} << 60;  // then only --seconds decides
constexpr std::size_t kExplained = 50;                            // printed as text; --json has all

struct CoverOptions {
  ModelOptions model;
  int strength = 2, threads = 1, searches = 1, starts = 0;
  std::uint64_t seed = 1;
  std::optional<double> seconds;
  std::optional<std::int64_t> steps;
  std::string out, required, extend, cost;
  bool explain = false, json = false;
};

/// Reads {"parameter": {"value": cost}}. The cost of a row is the sum over its values; values that
/// are not named cost nothing. If no value has a cost, each row costs 1.
std::function<double(const cover::Row&)> read_costs(const std::string& path,
                                                    const cover::Model& model) {
  const matrix::Document document = matrix::parse_document(read_input(path), path);
  std::vector<std::vector<double>> costs;
  std::vector<std::string> names;
  for (const cover::Parameter& parameter : model.parameters) {
    names.push_back(parameter.name);
    costs.emplace_back(parameter.values.size(), 0.0);
  }
  double smallest = 0;
  for (const auto& [name, values] : matrix::Located(document).members()) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end())
      values.fail("no parameter `" + name + "`", "one of " + matrix::listed(names), "",
                  matrix::suggestion(name, names, "name a parameter of the model"));
    const auto at = static_cast<std::size_t>(found - names.begin());
    std::vector<std::string> known;
    for (const cover::Value& value : model.parameters[at].values) known.push_back(value.names[0]);
    for (const auto& [value, cost] : values.members()) {
      const auto where = std::find(known.begin(), known.end(), value);
      if (where == known.end())
        cost.fail("`" + name + "` has no value `" + value + "`", "one of " + matrix::listed(known),
                  "", matrix::suggestion(value, known, "name one of its values"));
      costs[at][static_cast<std::size_t>(where - known.begin())] = cost.number(0, 1e12);
    }
  }
  // A row without cost could be repeated for free. So every row has a small cost of its own, a
  // fraction of the cost of the most expensive value.
  for (const auto& each : costs)
    smallest = std::max(smallest, *std::max_element(each.begin(), each.end()));
  const double start = smallest > 0 ? smallest * 1e-6 : 1;
  return [costs = std::move(costs), start](const cover::Row& row) {
    double sum = start;
    for (std::size_t parameter = 0; parameter < row.size(); ++parameter)
      sum += costs[parameter][static_cast<std::size_t>(row[parameter])];
    return sum;
  };
}

std::vector<std::string> reason(const cover::Model& model, cover::Oracle& oracle,
                                const cover::Cells& cells) {
  std::vector<std::string> ids;
  for (const int constraint : oracle.reason(cells))
    ids.push_back(model.constraints[static_cast<std::size_t>(constraint)].id);
  return ids;
}

nlohmann::json demands_json(const cover::Model& model, const cover::Result& result) {
  nlohmann::json list = nlohmann::json::array();
  for (const cover::Demand& demand : result.demands) {
    nlohmann::json names = nlohmann::json::array();
    for (const int parameter : demand.parameters)
      names.push_back(model.parameters[static_cast<std::size_t>(parameter)].name);
    list.push_back({{"parameters", names},
                    {"strength", demand.strength},
                    {"raw", demand.raw},
                    {"valid", demand.valid},
                    {"covered", demand.valid},
                    {"unreachable", demand.raw - demand.valid}});
  }
  return list;
}

const char* word(cover::Origin origin) {
  switch (origin) {
    case cover::Origin::required:
      return "required";
    case cover::Origin::previous:
      return "previous";
    case cover::Origin::fresh:
      return "fresh";
  }
  return "";
}

record::ExitCode execute_cover(const CoverOptions& options, Surroundings& surroundings) {
  const Clock::time_point began = Clock::now();
  const auto elapsed = [began] {
    return std::chrono::duration<double>(Clock::now() - began).count();
  };
  if (options.seconds && !(*options.seconds > 0))
    throw matrix::InputError({"--seconds is not positive", fmt::format("{}", *options.seconds),
                              "more than 0", "", "leave it out, or give it a positive number"});
  const cover::ModelFile file = read_model_file(options.model, surroundings);
  const cover::Model& model = file.model;
  for (const std::string& warning : file.warnings)
    surroundings.err << "warning: " << record::printable(warning) << "\n";

  cover::Options settings{.strength = options.strength,
                          .seed = options.seed,
                          .starts = options.starts,
                          .searches = options.searches,
                          .threads = options.threads};
  if (options.steps)
    settings.steps = *options.steps;
  else if (options.seconds)
    settings.steps = kStepsWithoutEnd;
  if (options.seconds) settings.stop = [&] { return elapsed() >= *options.seconds; };
  if (!options.required.empty())
    settings.required = cover::read_rows(read_input(options.required), options.required, model,
                                         cover::Unknown::leave_open);
  if (!options.extend.empty())
    settings.previous = cover::read_rows(read_input(options.extend), options.extend, model,
                                         cover::Unknown::leave_open);
  if (!options.cost.empty()) settings.cost = read_costs(options.cost, model);
  double first_seconds = -1;
  settings.progress = [&](const cover::Progress& progress) {
    if (first_seconds < 0) first_seconds = elapsed();
    if (surroundings.terminal && !options.json)
      surroundings.err << fmt::format("{:8.2f} s  {} rows\n", elapsed(), progress.rows);
  };
  const cover::Result result = cover::cover(model, settings);

  std::vector<cover::Row> rows;
  for (const cover::PlannedRow& row : result.rows) rows.push_back(row.cells);
  const bool lines = options.out.ends_with(".jsonl") || options.out.ends_with(".json");
  if (!options.out.empty()) {
    std::ostringstream text;
    cover::write_rows(text, model, rows,
                      lines ? cover::RowFormat::json_lines : cover::RowFormat::csv);
    record::write_atomically(options.out, text.str());
  }
  const bool proven = !settings.cost && static_cast<std::int64_t>(rows.size()) == result.at_least;

  if (options.json) {
    nlohmann::json report{{"model", options.model.path},
                          {"strength", options.strength},
                          {"seed", options.seed},
                          {"rows", rows.size()},
                          {"at_least", result.at_least},
                          {"proven_smallest", proven},
                          {"cost", result.cost},
                          {"steps", result.steps},
                          {"searched", result.searched},
                          {"seconds", elapsed()},
                          {"first_seconds", first_seconds},
                          {"combinations", demands_json(model, result)},
                          {"dropped", result.dropped},
                          {"warnings", file.warnings},
                          {"excluded_count", static_cast<std::int64_t>(result.excluded.size()) +
                                                 result.excluded_left_out}};
    nlohmann::json origins = nlohmann::json::array();
    for (const cover::PlannedRow& row : result.rows)
      if (row.origin != cover::Origin::fresh)
        origins.push_back({{"origin", word(row.origin)},
                           {"row", row.index + 1},
                           {"changed_cells", row.changed_cells}});
    report["kept"] = std::move(origins);
    if (options.out.empty()) {
      nlohmann::json list = nlohmann::json::array();
      for (const cover::Row& row : rows) {
        cover::Cells cells;
        for (std::size_t parameter = 0; parameter < row.size(); ++parameter)
          cells.push_back({static_cast<int>(parameter), row[parameter]});
        list.push_back(cells_json(model, cells));
      }
      report["table"] = std::move(list);
    }
    if (options.explain) {
      cover::Oracle oracle(model);
      nlohmann::json list = nlohmann::json::array();
      for (const cover::Cells& cells : result.excluded)
        list.push_back(
            {{"cells", cells_json(model, cells)}, {"because", reason(model, oracle, cells)}});
      report["excluded"] = std::move(list);
    }
    surroundings.out << report.dump(2) << "\n";
    return record::ExitCode::ok;
  }

  if (options.out.empty()) cover::write_rows(surroundings.out, model, rows, cover::RowFormat::csv);
  std::ostream& notes = options.out.empty() ? surroundings.err : surroundings.out;
  notes << fmt::format("{} rows in {:.2f} s, {} steps; {}\n", rows.size(), elapsed(), result.steps,
                       proven ? "proven to be the fewest possible"
                              : fmt::format("at least {} are needed", result.at_least));
  for (const cover::Demand& demand : result.demands)
    notes << fmt::format(
        "  {} parameters, {} at a time: {:.0f} combinations, {:.0f} covered, {:.0f} unreachable\n",
        demand.parameters.size(), demand.strength, demand.raw, demand.valid,
        demand.raw - demand.valid);
  if (settings.cost) notes << fmt::format("  cost {:g}\n", result.cost);
  if (!result.searched)
    notes << "  too large to search within memory: this is the result of the first construction\n";
  const auto kept = std::count_if(
      result.rows.begin(), result.rows.end(),
      [](const cover::PlannedRow& row) { return row.origin == cover::Origin::previous; });
  if (!options.extend.empty())
    notes << fmt::format("  {} rows kept, {} dropped, {} new\n", kept, result.dropped.size(),
                         rows.size() - static_cast<std::size_t>(kept));
  cover::Oracle oracle(model);
  std::size_t shown = 0;
  for (const cover::Cells& cells : result.excluded) {
    // A single value that no row can have is most often a mistake, so it is always reported.
    if (cells.size() > 1 && !options.explain) continue;
    if (++shown > kExplained) break;
    std::string text;
    const nlohmann::json values = cells_json(model, cells);
    for (const auto& [name, value] : values.items())
      text += (text.empty() ? "" : ", ") + name + "=" + value.get<std::string>();
    notes << "  no valid row has " << record::printable(text) << ": "
          << record::printable(matrix::listed(reason(model, oracle, cells))) << "\n";
  }
  return record::ExitCode::ok;
}

}  // namespace

Action declare_cover(CLI::App& app) {
  const auto options = std::make_shared<CoverOptions>();
  app.option_defaults()->group("The model and the rows");
  declare(app, options->model);
  app.add_option("--strength", options->strength,
                 "how many parameters are combined, 1 to 6 (default: 2)")
      ->type_name("T");
  app.add_option("--require", options->required,
                 "rows that must be in the result, as CSV or JSON lines; empty cells are free")
      ->type_name("FILE");
  app.add_option("--extend", options->extend,
                 "rows of an earlier result to keep as far as they are still valid, as CSV or JSON "
                 "lines")
      ->type_name("FILE");
  app.add_option("--cost", options->cost,
                 "JSON {parameter: {value: cost}}: make the total cost small, not the number of "
                 "rows")
      ->type_name("FILE");
  app.option_defaults()->group("The search");
  app.add_option("--seconds", options->seconds,
                 "stop after this time with the best result so far (default: --steps decides)")
      ->type_name("SECONDS");
  app.add_option("--steps", options->steps,
                 "moves of the search (default: 200000, or no limit with --seconds)")
      ->type_name("N");
  app.add_option("--seed", options->seed, "the same seed gives the same result (default: 1)")
      ->type_name("N");
  app.add_option("--threads", options->threads,
                 "work on several starts and searches at once; the result is the same (default: 1)")
      ->type_name("N");
  app.add_option("--searches", options->searches,
                 "independent searches, of which the best result is taken (default: 1)")
      ->type_name("N");
  app.add_option("--starts", options->starts,
                 "first results to choose from (default: by the size of the model)")
      ->type_name("N");
  app.option_defaults()->group(kOutput);
  app.add_option("--out", options->out,
                 "write the rows to this file: JSON lines if it ends in .jsonl or .json, otherwise "
                 "CSV (default: CSV on standard output)")
      ->type_name("FILE");
  app.add_flag("--explain", options->explain,
               "say why each combination that no row can have is impossible");
  app.add_flag("--json", options->json, "print a JSON report");
  return [options](Surroundings& surroundings) { return execute_cover(*options, surroundings); };
}

}  // namespace graphproof::cli
