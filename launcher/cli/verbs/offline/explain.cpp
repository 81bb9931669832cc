// explain: prints the rules that apply to a case, the checks that it must pass, and its record.
#include <fmt/format.h>

#include <memory>

#include "launcher/cli/device_option.h"
#include "launcher/cli/find_case.h"
#include "launcher/cli/show/show_record.h"
#include "launcher/cli/verb.h"
#include "matrix/plan/listing.h"
#include "reports/analysis/case_detail.h"
#include "reports/analysis/causes.h"
#include "reports/analysis/divergence.h"
#include "reports/record/text/printable.h"

namespace graphproof::cli {
namespace {

struct ExplainOptions {
  std::string reference, device = "auto";
  bool json = false;
};

std::string text_of(const nlohmann::json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

void print(const nlohmann::json& explained, std::ostream& out) {
  out << "case   " << text_of(explained.at("id")) << "\nname   "
      << record::printable(text_of(explained.at("name"))) << "\nranks  "
      << explained.at("ranks").dump() << "\naxes   ";
  std::string axes;
  for (const auto& [axis, value] : explained.at("axes").items())
    axes += (axes.empty() ? "" : " ") + axis + "=" + text_of(value);
  out << record::printable(axes) << "\n";
  int holding = 0;
  out << "rules\n";
  for (const nlohmann::json& rule : explained.at("rules")) {
    const std::string result = text_of(rule.at("result"));
    holding += result == "holds";
    if (result != "breaks" && result != "unknown") continue;
    out << fmt::format("  {:<8} {:<5} {}\n", result, text_of(rule.at("rule")),
                       text_of(rule.value("what", nlohmann::json(""))));
    for (const char* part : {"got", "want", "why", "next"})
      if (const std::string text = text_of(rule.value(part, nlohmann::json(""))); !text.empty())
        out << fmt::format("             {:<5} {}\n", std::string(part) + ":", text);
  }
  out << "  " << holding << " rules apply and hold\n";
  if (!explained.at("refusal").is_null())
    out << "refused by " << text_of(explained.at("refusal").at("rule")) << " in phase validate\n";
  if (const auto& missing = explained.at("missing"); !missing.empty())
    out << "not possible here: " << missing.dump() << "\n";
  out << "required checks\n";
  for (const nlohmann::json& check : explained.at("required_checks"))
    out << "  " << text_of(check) << "\n";
}

void print(const std::vector<reports::Symptom>& symptoms, std::ostream& out) {
  for (const reports::Symptom& one : symptoms) {
    out << "likely causes of " << one.symptom << "\n";
    int number = 0;
    for (const reports::Cause& cause : one.likely)
      out << fmt::format("  {}. {}\n     fix:     {}\n     confirm: {}\n", ++number, cause.cause,
                         cause.fix, cause.confirm);
  }
}

record::ExitCode execute_explain(const ExplainOptions& options, Surroundings& surroundings) {
  const FoundCase found = find_case(options.reference, surroundings);
  const launcher::Device device = device_for_planning(options.device, surroundings);
  nlohmann::json explained =
      matrix::explain(surroundings.catalogue, found.test_case, machine_of(device));
  std::optional<record::Record> record;
  if (found.run) record = last_record(*found.run, found.line->id);
  std::vector<record::Evidence> ranks;
  if (record && !record->artefacts.empty())
    ranks = record::read_evidence_of_attempt(*found.run / record->artefacts);
  std::vector<reports::Symptom> seen;
  if (record) seen = reports::symptoms(*record, reports::errors_of(ranks));
  const std::string node_dumps = reports::node_dumps_text(ranks);
  const std::string divergence =
      record && !record->artefacts.empty()
          ? reports::divergence_text(*found.run / record->artefacts, record->ranks)
          : "";
  if (options.json) {
    explained["symptoms"] = reports::to_json(seen);
    explained["divergence"] = divergence;
    explained["node_dumps"] = node_dumps;
    explained["record"] =
        record ? nlohmann::json::parse(record::to_json(*record).dump()) : nlohmann::json(nullptr);
    surroundings.out << explained.dump(2) << "\n";
    return record::ExitCode::ok;
  }
  print(explained, surroundings.out);
  if (!record) {
    surroundings.out << "verdict: none recorded"
                     << (found.run ? " in " + found.run->filename().string() : "") << "\n";
    return record::ExitCode::ok;
  }
  show_record(*record, surroundings.out);
  show_divergence(divergence, surroundings.out);
  if (!node_dumps.empty())
    surroundings.out << "nodes of the graphs: " << record->artefacts << "/" << node_dumps << "\n";
  print(seen, surroundings.out);
  return record::ExitCode::ok;
}

}  // namespace

Action declare_explain(CLI::App& app) {
  const auto options = std::make_shared<ExplainOptions>();
  app.add_option("CASE", options->reference,
                 "an id prefix, a name such as impl=manual,tp=2, or RUN/CASE")
      ->required()
      ->type_name("CASE");
  app.add_option("--device", options->device,
                 "auto takes the GPUs if there are any (default: auto)")
      ->type_name(kDevices);
  app.add_flag("--json", options->json, "print one JSON object");
  return [options](Surroundings& surroundings) { return execute_explain(*options, surroundings); };
}

}  // namespace graphproof::cli
