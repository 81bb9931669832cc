// case: explains the name or id of a case, or finds the case nearest to a training configuration.
#include <memory>

#include "launcher/cli/device_option.h"
#include "launcher/cli/find_case.h"
#include "launcher/cli/like.h"
#include "launcher/cli/verb.h"
#include "matrix/input/input_error.h"
#include "matrix/plan/plan_line.h"
#include "reports/record/text/printable.h"

namespace graphproof::cli {
namespace {

struct CaseOptions {
  std::string reference, device = "auto";
  LikeOptions like;
  bool json = false;
};

void show(const record::PlanLine& line, const matrix::Case& test_case, std::ostream& out) {
  const nlohmann::json expect = record::to_json(line.expect);
  out << "id         " << line.id << "\n"
      << "name       " << record::printable(line.name) << "\n"
      << "canonical  " << record::printable(matrix::canonical_text(test_case)) << "\n"
      << "ranks      " << line.ranks << "\n"
      << "isolation  " << line.isolation << "\n"
      << "expected   " << expect.dump() << "\n";
}

record::ExitCode show_like(const CaseOptions& options, Surroundings& surroundings) {
  const matrix::Machine machine = machine_of(device_for_planning(options.device, surroundings));
  const Like made = like(options.like, machine, surroundings);
  const record::PlanLine line =
      matrix::plan_case(surroundings.catalogue, made.made.runnable, machine,
                        "like a configuration of " + made.dialect);
  if (options.json) {
    nlohmann::json value = json_of(made, surroundings);
    value["case"] = record::to_json(line);
    surroundings.out << value.dump(2) << "\n";
    return record::ExitCode::ok;
  }
  show(made, surroundings, surroundings.out);
  show(line, made.made.runnable, surroundings.out);
  return record::ExitCode::ok;
}

record::ExitCode execute_case(const CaseOptions& options, Surroundings& surroundings) {
  expect_like(options.like, surroundings, "case");
  if (options.like.given == !options.reference.empty())
    throw matrix::InputError(
        {.what = options.like.given ? "CASE together with --like" : "no case",
         .got = options.like.given ? options.reference : "neither CASE nor --like",
         .want = "one of them",
         .why = "",
         .next = "graphproof case impl=manual,tp=2, or graphproof case --like FILE",
         .place = {}});
  if (options.like.given) return show_like(options, surroundings);
  const FoundCase found = find_case(options.reference, surroundings);
  const launcher::Device device = device_for_planning(options.device, surroundings);
  const record::PlanLine line = matrix::plan_case(surroundings.catalogue, found.test_case,
                                                  machine_of(device), "asked for by name");
  if (options.json)
    surroundings.out << nlohmann::json(record::to_json(line)).dump(2) << "\n";
  else
    show(line, found.test_case, surroundings.out);
  return record::ExitCode::ok;
}

}  // namespace

Action declare_case(CLI::App& app) {
  const auto options = std::make_shared<CaseOptions>();
  app.add_option("CASE", options->reference,
                 "an id prefix, a name such as impl=manual,tp=2, or RUN/CASE")
      ->type_name("CASE");
  app.add_option("--device", options->device,
                 "auto takes the GPUs if there are any (default: auto)")
      ->type_name(kDevices);
  app.add_flag("--json", options->json, "print the case as a line of plan.jsonl");
  declare_like(app, options->like);
  return [options](Surroundings& surroundings) { return execute_case(*options, surroundings); };
}

}  // namespace graphproof::cli
