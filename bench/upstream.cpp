// The verdicts of `check` on many configurations: reads one JSON object a line from the standard
// input, and prints a verdict a line. bench/agreement/compare.py holds them against those of
// Megatron-LM's own code.
//   {"words": ["--bf16"], "env": {"NAME": "VALUE"}, "stack": {"te_version": "2.12.0"}}
//   {"object": {"bf16": true}, "env": {}, "stack": {"te_version": "none"}}
#include <exception>
#include <iostream>
#include <string>

#include "matrix/dialect/check.h"
#include "matrix/dialect/command_line.h"
#include "matrix/dialect/config_file.h"

namespace graphproof {
namespace {

using nlohmann::json;

dialect::Verdict verdict_of(const dialect::Dialect& dialect, const json& input) {
  dialect::Reading reading;
  if (input.contains("words"))
    reading = dialect::read_command_line(dialect, input["words"], 0, false);
  else
    reading =
        dialect::read_config_file(dialect, matrix::parse_document(input["object"].dump(), "input"));
  for (const auto& [name, value] : input.at("env").items())
    reading.configuration.values["env." + name] = value.get<std::string>();
  for (const auto& [name, value] : input.at("stack").items())
    reading.configuration.set_stack(dialect.options, name, value.get<std::string>());
  return dialect::check(dialect, std::move(reading));
}

/// {"errors": [[STAGE, RULE]], "undecided": [RULE], "effective"}: what refuses, in the order in
/// which upstream meets it, and the errors that no given fact decides.
json line_of(const dialect::Verdict& verdict) {
  json line{{"errors", json::array()}, {"undecided", json::array()}};
  for (const dialect::Finding& finding : verdict.findings) {
    if (finding.refuses())
      line["errors"].push_back({dialect::stage_name(finding.stage), finding.rule});
    else if (finding.severity == "error")
      line["undecided"].push_back(finding.rule);
  }
  line["effective"] = dialect::effective_json(verdict.effective);
  return line;
}

int run(const std::string& name, const std::string& version) {
  const dialect::Dialect dialect = dialect::load_dialect(name, version);
  for (std::string text; std::getline(std::cin, text);)
    std::cout << line_of(verdict_of(dialect, json::parse(text))).dump() << "\n";
  return 0;
}

}  // namespace
}  // namespace graphproof

int main(int argc, char** argv) try {
  if (argc == 3) return graphproof::run(argv[1], argv[2]);
  std::cerr << "usage: graphproof-bench-upstream DIALECT VERSION <CONFIGURATIONS >VERDICTS\n";
  return 2;
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 2;
}
