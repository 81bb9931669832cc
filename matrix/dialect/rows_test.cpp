// The shipped upstream rules: every rule's examples break or keep it as they claim, and no rule of
// the inventories is missing.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "matrix/dialect/check.h"
#include "matrix/dialect/command_line.h"
#include "matrix/dialect/config_file.h"
#include "matrix/dialect/dialect.h"
#include "matrix/input/input_error.h"

namespace graphproof::dialect {
namespace {

const Dialect& shipped(const std::string& name, const std::string& version) {
  static std::map<std::string, Dialect> dialects;
  const auto found = dialects.find(name + " " + version);
  return found != dialects.end()
             ? found->second
             : dialects.emplace(name + " " + version, load_dialect(name, version)).first->second;
}

// The newest version at which the rule is evaluated.
std::string version_of(const Rule& rule) {
  if (!rule.versions.only.empty()) return rule.versions.only.front();
  if (rule.versions.before.empty()) return "";
  std::vector<std::int64_t> numbers = matrix::parse_version(rule.versions.before)->numbers;
  numbers.back() -= 1;
  std::string text;
  for (const std::int64_t number : numbers)
    text += (text.empty() ? "" : ".") + std::to_string(number);
  return text;
}

bool configures(const Rule& rule) {
  return rule.placements.front().stage == Stage::config ||
         (rule.dialect == "megatron-bridge" && rule.placements.front().stage != Stage::cli);
}

Verdict verdict_of(const Dialect& dialect, const Rule& rule, const Example& example) {
  if (const auto* line = std::get_if<std::string>(&example)) {
    const std::vector<std::string> words = shell_words(*line);
    return check(dialect, read_command_line(dialect, words, 0, rule.dialect == "megatron-bridge"));
  }
  const nlohmann::json& object = std::get<nlohmann::json>(example);
  nlohmann::json options = nlohmann::json::object(), environment = nlohmann::json::object();
  std::vector<std::pair<std::string, std::string>> stack;
  for (const auto& [name, value] : object.items()) {
    const Option* option = dialect.options.find(name);
    const bool of_stack = (option != nullptr && option->where == Where::stack) ||
                          (option == nullptr && matrix::variable_type(name));
    if (name.starts_with("env."))
      environment[name.substr(4)] = value;
    else if (of_stack)
      stack.emplace_back(name, value.is_string() ? value.get<std::string>()
                               : value.is_null() ? "none"
                                                 : value.dump());
    else
      options[name] = value;
  }
  if (!environment.empty()) options["env"] = environment;
  Reading reading = read_config_file(dialect, matrix::parse_document(options.dump(), rule.id));
  if (!configures(rule)) {  // the same values as command line arguments
    Configuration arguments = Configuration::defaults(
        dialect.options,
        rule.dialect == "megatron-bridge" ? Surface::harness : Surface::command_line);
    for (const auto& [name, place] : reading.configuration.places)
      arguments.values[name] = reading.configuration.values.at(name);
    arguments.places = reading.configuration.places;
    arguments.unreadable = reading.configuration.unreadable;
    reading.configuration = std::move(arguments);
  }
  for (const auto& [name, value] : stack)
    reading.configuration.set_stack(dialect.options, name, value);
  return check(dialect, std::move(reading));
}

std::string text_of(const Example& example) {
  const auto* line = std::get_if<std::string>(&example);
  return line != nullptr ? *line : std::get<nlohmann::json>(example).dump();
}

std::string findings_text(const Verdict& verdict) {
  std::string text;
  for (const Finding& finding : verdict.findings)
    text += "  " + finding.rule + " " + finding.severity + (finding.unknown ? " undecided" : "") +
            (finding.first ? " first" : "") + ": " + finding.got + "\n";
  return text;
}

void expect_examples(const std::string& name) {
  for (const Rule& rule : shipped(name, "").rules.rules()) {
    if (name == "megatron-bridge" && rule.dialect != name) continue;
    const Dialect& dialect = shipped(name, version_of(rule));
    const auto reports = [&](const std::string& id) {
      return id == rule.id ||
             std::find(rule.decided_by.begin(), rule.decided_by.end(), id) != rule.decided_by.end();
    };
    for (const Example& example : rule.breaks) {
      const Verdict verdict = verdict_of(dialect, rule, example);
      const auto found =
          std::find_if(verdict.findings.begin(), verdict.findings.end(),
                       [&](const Finding& finding) { return reports(finding.rule); });
      if (found == verdict.findings.end() || found->unknown) {
        ADD_FAILURE() << rule.id << " is "
                      << (found == verdict.findings.end() ? "not found" : "undecided")
                      << " in what breaks it: " << text_of(example) << "\n"
                      << findings_text(verdict);
        continue;
      }
      // Examples of what is met after the configuration need not hold everything before.
      if (!found->refuses() || found->stage > Stage::config) continue;
      const auto first = std::find_if(verdict.findings.begin(), verdict.findings.end(),
                                      [](const Finding& finding) { return finding.first; });
      EXPECT_TRUE(rule.behind.empty() ? reports(first->rule) : first->rule == rule.behind)
          << rule.id << ", " << text_of(example) << ", first is " << first->rule << "\n"
          << findings_text(verdict);
    }
    for (const Example& example : rule.holds) {
      const Verdict verdict = verdict_of(dialect, rule, example);
      for (const Finding& finding : verdict.findings)
        EXPECT_FALSE(reports(finding.rule))
            << rule.id << "found in what should hold: " << text_of(example) << "\n"
            << findings_text(verdict);
    }
  }
}

std::vector<std::string> numbered(const char* prefix, int digits, int first, int last) {
  std::vector<std::string> ids;
  for (int i = first; i <= last; ++i) {
    std::string number = std::to_string(i);
    ids.push_back(
        prefix +
        std::string(static_cast<std::size_t>(std::max(0, digits - static_cast<int>(number.size()))),
                    '0') +
        number);
  }
  return ids;
}

std::vector<std::string> missing(const Dialect& dialect, const std::vector<std::string>& ids) {
  std::vector<std::string> result;
  for (const std::string& id : ids)
    if (dialect.rules.find(id) == nullptr) result.push_back(id);
  return result;
}

// The reader of the files refuses an id that appears twice.
TEST(DialectRows, NoRuleOfMegatronsInventoryIsMissing) {
  EXPECT_EQ(missing(shipped("megatron-lm", ""), numbered("R", 3, 1, 289)),
            std::vector<std::string>());
}

TEST(DialectRows, NoRuleOfBridgesInventoryIsMissing) {
  // The sections of Bridge's inventory: its own checks, those that it leaves to the core, silent
  // changes, the harness, the model cards, incidents.
  constexpr std::pair<const char*, int> kSections[] = {{"B", 37}, {"BM", 22}, {"BS", 14},
                                                       {"BP", 8}, {"BC", 15}, {"BI", 1}};
  for (const auto& [prefix, last] : kSections)
    EXPECT_EQ(missing(shipped("megatron-bridge", ""), numbered(prefix, 2, 1, last)),
              std::vector<std::string>());
}

TEST(DialectRows, ARestatedRuleIsReportedOnce) {
  const Dialect& bridge = shipped("megatron-bridge", "");
  for (const Rule& rule : bridge.rules.rules()) {
    EXPECT_TRUE(rule.decided_by.empty() || rule.parts.empty()) << rule.id;
  }
  const Verdict verdict = check(
      bridge,
      read_config_file(
          bridge,
          matrix::parse_document(
              R"({"cuda_graph_impl": "transformer_engine", "cuda_graph_modules": ["moe_router"]})",
              "test")));
  EXPECT_EQ(std::count_if(verdict.findings.begin(), verdict.findings.end(),
                          [](const Finding& finding) {
                            return finding.rule == "R073" || finding.rule == "BM09";
                          }),
            1);
}

std::string all_tests() {
  const char* source = std::getenv("GRAPHPROOF_SOURCE");
  std::string text;
  if (source == nullptr) return text;
  for (const char* folder : {"workloads", "fixtures"})
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(std::filesystem::path(source) / folder))
      if (entry.path().string().ends_with("_test.cpp")) {
        std::ifstream file(entry.path());
        text.append(std::istreambuf_iterator<char>(file), {});
      }
  return text;
}

TEST(DialectRows, ATestThatARuleNamesExists) {
  const std::string tests = all_tests();
  ASSERT_FALSE(tests.empty()) << "run by ctest, or set GRAPHPROOF_SOURCE to the repository";
  int named = 0;
  for (const Rule& rule : shipped("megatron-bridge", "").rules.rules())
    for (const std::string& id : rule.covered_by) {
      if (!id.starts_with("test ")) continue;
      ++named;
      const std::size_t dot = id.find('.');
      const std::string inside = id.substr(5, dot - 5) + ", " + id.substr(dot + 1) + ")";
      EXPECT_TRUE(tests.find("TEST(" + inside) != std::string::npos ||
                  tests.find("TEST_P(" + inside) != std::string::npos ||
                  tests.find("TEST_F(" + inside) != std::string::npos)
          << rule.id << " names " << id;
    }
  EXPECT_GT(named, 5);
}

TEST(DialectRows, ARowWithoutAnExampleOfEachKindIsRefused) {
  const auto refusal = [](const std::string& examples) {
    const std::string text =
        R"({"schema": "graphproof-dialect-rules/1", "dialect": "megatron-lm",
            "rules": [{"id": "R001", "stage": "run", "status": "live", "severity": "error",
                       "what": "a",
      "when": "bf16", "why": "b", "next": "c", "source": "d")" +
        examples + "}]}";
    const std::vector<matrix::Document> documents{matrix::parse_document(text, "row")};
    try {
      UpstreamRules::parse(documents, shipped("megatron-lm", "").options, "2026.8.22");
    } catch (const matrix::InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::pair<const char*, const char*> kRows[] = {
      {"", "has no example that breaks it, or none that holds"},
      {R"(, "examples": {"breaks": [], "holds": [{"bf16": false}]})",
       "has no example that breaks it, or none that holds"},
      {R"(, "examples": {"breaks": [{"bf16": true}], "holds": []})",
       "has no example that breaks it, or none that holds"},
      {R"(, "examples": {"breaks": [{"bf16": true}]})", "the key `holds` is missing"},
      {R"(, "examples": {"holds": [{"bf16": false}]})", "the key `breaks` is missing"}};
  for (const auto& [examples, message] : kRows)
    EXPECT_NE(refusal(examples).find(message), std::string::npos) << examples << refusal(examples);
  EXPECT_EQ(refusal(R"(, "examples": {"breaks": [{"bf16": true}], "holds": [{"bf16": false}]})"),
            "");
}

TEST(DialectRows, ALegacyDialectHasTheRulesThatWentSince) {
  EXPECT_TRUE(shipped("legacy", "").rules.find("R060")->active(shipped("legacy", "").version));
  EXPECT_FALSE(
      shipped("megatron-lm", "").rules.find("R060")->active(shipped("megatron-lm", "").version));
}

TEST(DialectRows, EveryMegatronExampleDoesWhatItSays) { expect_examples("megatron-lm"); }
TEST(DialectRows, EveryBridgeExampleDoesWhatItSays) { expect_examples("megatron-bridge"); }
TEST(DialectRows, EveryCaptureExampleDoesWhatItSays) { expect_examples("pytorch"); }

}  // namespace
}  // namespace graphproof::dialect
