// rules: what is refused and why, in full.
#include <fmt/format.h>

#include <memory>

#include "launcher/cli/verb.h"
#include "matrix/input_error.h"
#include "matrix/listing.h"

namespace graphproof::cli {
namespace {

struct Options {
  std::string id;
  bool json = false;
};

record::ExitCode execute(const Options& options, Surroundings& surroundings) {
  nlohmann::json rows = matrix::list_rules(surroundings.catalogue);
  if (!options.id.empty()) {
    std::vector<std::string> ids;
    nlohmann::json found = nlohmann::json::array();
    for (const nlohmann::json& row : rows) {
      ids.push_back(row.at("rule").get<std::string>());
      if (ids.back() == options.id) found.push_back(row);
    }
    if (found.empty())
      throw matrix::InputError({"no rule `" + options.id + "`", options.id, "one of " + matrix::listed(ids), "",
                                matrix::suggestion(options.id, ids, "graphproof list rules")});
    rows = std::move(found);
  }
  if (options.json) {
    surroundings.out << rows.dump(2) << "\n";
    return record::ExitCode::ok;
  }
  for (const nlohmann::json& row : rows) {
    surroundings.out << row.at("rule").get<std::string>() << "\n";
    for (const auto& [key, value] : row.items())
      if (key != "rule" && !value.empty() && value != "")
        surroundings.out << fmt::format("  {:<9} {}\n", key, value.is_string() ? value.get<std::string>() : value.dump());
  }
  return record::ExitCode::ok;
}

}  // namespace

Action declare_rules(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  app.add_option("RULE", options->id, "one rule's id (default: all)");
  app.add_flag("--json", options->json, "print a JSON list");
  return [options](Surroundings& surroundings) { return execute(*options, surroundings); };
}

}  // namespace graphproof::cli
