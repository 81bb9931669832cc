// rules: prints rules in full, graphproof's own or those of an upstream dialect, and says where
// each upstream rule is covered.
#include <fmt/format.h>

#include <map>
#include <memory>

#include "launcher/cli/verb.h"
#include "matrix/dialect/coverage.h"
#include "matrix/input/input_error.h"
#include "matrix/plan/listing.h"
#include "reports/record/text/printable.h"

namespace graphproof::cli {
namespace {

using nlohmann::json;

struct RulesOptions {
  std::string id, dialect, version;
  bool coverage = false, json = false;
};

/// The ids that a rule may name as covering it: checks, by name and by detector, and faults.
json rows_of(const RulesOptions& options, const matrix::Catalogue& catalogue) {
  if (options.dialect == "graphproof" || (options.dialect.empty() && !options.coverage))
    return matrix::list_rules(catalogue);
  const std::string dialect = options.dialect.empty()
                                  ? "megatron-bridge"
                                  : options.dialect;  // Bridge has the rules of Megatron-LM too
  return dialect::list_upstream_rules(dialect::load_dialect(dialect, options.version));
}

std::string listed(const json& ids) {
  std::string text;
  for (const json& id : ids) text += (text.empty() ? " " : ", ") + id.get<std::string>();
  return text;
}

void show_coverage(const json& rows, std::ostream& out) {
  std::map<std::string, int> counts;
  for (const json& row : rows) {
    const std::string coverage = row.at("coverage").get<std::string>();
    ++counts[coverage];
    out << fmt::format("{:<6} {:<8} {:<8} {:<28} {}\n", row.at("rule").get<std::string>(),
                       row.at("status").get<std::string>(), row.at("severity").get<std::string>(),
                       coverage + (coverage == "covered by" ? listed(row.at("covered_by")) : ""),
                       record::printable(row.at("what").get<std::string>()));
  }
  for (const json& row : rows)
    if (row.at("status") == "dead" || row.at("status") == "removed")
      out << fmt::format("{} is {}: {}\n", row.at("rule").get<std::string>(),
                         row.at("status").get<std::string>(),
                         record::printable(row.at("why").get<std::string>()));
  out << rows.size() << " rules";
  for (const auto& [coverage, count] : counts) out << ", " << count << " " << coverage;
  out << "\n";
}

record::ExitCode execute_rules(const RulesOptions& options, Surroundings& surroundings) {
  if (options.coverage && options.dialect == "graphproof")
    throw matrix::InputError({.what = "--coverage is about upstream rules",
                              .got = "--coverage --dialect graphproof",
                              .want = "an upstream dialect",
                              .why = "",
                              .next = "graphproof rules --coverage",
                              .place = {}});
  json rows = rows_of(options, surroundings.catalogue);
  if (!options.id.empty()) {
    std::vector<std::string> ids;
    json found = json::array();
    for (const json& row : rows) {
      ids.push_back(row.at("rule").get<std::string>());
      if (ids.back() == options.id) found.push_back(row);
    }
    if (found.empty())
      throw matrix::InputError({"no rule `" + options.id + "`", options.id,
                                "one of " + matrix::listed(ids), "",
                                matrix::suggestion(options.id, ids,
                                                   "graphproof list rules; those of upstream: "
                                                   "graphproof rules --dialect megatron-bridge")});
    rows = std::move(found);
  }
  if (options.json) {
    surroundings.out << rows.dump(2) << "\n";
    return record::ExitCode::ok;
  }
  if (options.coverage) {
    show_coverage(rows, surroundings.out);
    return record::ExitCode::ok;
  }
  for (const json& row : rows) {
    surroundings.out << row.at("rule").get<std::string>() << "\n";
    for (const auto& [key, value] : row.items())
      if (key != "rule" && !value.empty() && value != "")
        surroundings.out << fmt::format(
            "  {:<10} {}\n", key, value.is_string() ? value.get<std::string>() : value.dump());
  }
  return record::ExitCode::ok;
}

}  // namespace

Action declare_rules(CLI::App& app) {
  const auto options = std::make_shared<RulesOptions>();
  app.add_option("RULE", options->id, "the id of one rule (default: all rules)");
  app.add_option("--dialect", options->dialect, "whose rules (default: graphproof)")
      ->type_name("graphproof|megatron-lm|megatron-bridge|legacy|pytorch");
  app.add_option("--version", options->version,
                 "a day of upstream's main branch, such as 2026-08-22 (default: the newest)")
      ->type_name("DATE");
  app.add_flag("--coverage", options->coverage,
               "say where each upstream rule is covered: by a rule here, by a check of a run, or "
               "nowhere");
  app.add_flag("--json", options->json, "print a JSON list");
  return [options](Surroundings& surroundings) { return execute_rules(*options, surroundings); };
}

}  // namespace graphproof::cli
