// case: what a name or an id means.
#include <memory>

#include "launcher/cli/planning.h"
#include "launcher/cli/verb.h"
#include "reports/printable.h"

namespace graphproof::cli {
namespace {

struct Options {
  std::string reference, device = "auto";
  bool json = false;
};

record::ExitCode execute(const Options& options, Surroundings& surroundings) {
  const FoundCase found = find_case(options.reference, surroundings);
  const launcher::Device device = device_or_bare(options.device, surroundings);
  const nlohmann::json line = matrix::plan_case(surroundings.catalogue, found.test_case, machine_of(device), "asked for by name");
  if (options.json) {
    surroundings.out << line.dump(2) << "\n";
    return record::ExitCode::ok;
  }
  surroundings.out << "id         " << line.at("id").get<std::string>() << "\n"
                   << "name       " << reports::printable(line.at("name").get<std::string>()) << "\n"
                   << "canonical  " << reports::printable(matrix::canonical_text(found.test_case)) << "\n"
                   << "ranks      " << line.at("ranks").dump() << "\n"
                   << "isolation  " << line.at("isolation").get<std::string>() << "\n"
                   << "expected   " << line.at("expect").dump() << "\n";
  return record::ExitCode::ok;
}

}  // namespace

Action declare_case(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  app.add_option("CASE", options->reference, "an id prefix, a name such as impl=manual,tp=2, or RUN/CASE")->required();
  app.add_option("--device", options->device, "auto, sim or cuda (default: auto)");
  app.add_flag("--json", options->json, "print the case as a line of plan.jsonl");
  return [options](Surroundings& surroundings) { return execute(*options, surroundings); };
}

}  // namespace graphproof::cli
