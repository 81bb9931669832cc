// check: what upstream rejects, changes silently, or accepts although it is hazardous on this
// stack, and which versions of the stack are known to be bad for it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <memory>
#include <set>

#include "launcher/cli/known_bad_stacks.h"
#include "launcher/cli/training_configuration.h"
#include "matrix/catalogue/catalogue.h"
#include "matrix/dialect/check.h"
#include "matrix/dialect/command_line.h"
#include "matrix/dialect/migrate.h"
#include "matrix/dialect/sarif.h"
#include "reports/record/text/printable.h"

namespace graphproof::cli {
namespace {

using dialect::Finding;
using dialect::Verdict;
using nlohmann::json;
using record::printable;

struct CheckOptions : ConfigurationOptions {
  bool json = false, sarif = false, migrate = false, all = false;
};

constexpr record::ExitCode kRejected = record::ExitCode::product;

/// What graphproof's own rules say about a graphproof case, in the form of an upstream verdict.
Verdict own_verdict(const OwnCase& own, const matrix::Catalogue& catalogue) {
  Verdict verdict;
  for (const matrix::Finding& finding : catalogue.rules.evaluate(own.test_case, own.machine)) {
    dialect::Stage stage = dialect::Stage::config;
    for (const dialect::Stage candidate : {dialect::Stage::cli, dialect::Stage::config,
                                           dialect::Stage::construct, dialect::Stage::run})
      if (finding.stage == dialect::stage_name(candidate)) stage = candidate;
    verdict.findings.push_back({.rule = finding.rule,
                                .stage = stage,
                                .status = "live",
                                .severity = finding.severity,
                                .option = {},
                                .what = finding.what,
                                .got = finding.got,
                                .want = finding.want,
                                .why = finding.why,
                                .next = finding.next,
                                .place = {},
                                .unknown = finding.unknown});
    Finding& added = verdict.findings.back();
    added.first = verdict.accepted && added.severity == "error" &&
                  !added.unknown;  // the rank programs refuse in every stage
    if (added.first) verdict.accepted = false;
  }
  return verdict;
}

/// Versions that are known to be bad refuse nothing: upstream runs with them.
void add(const std::vector<Finding>& findings, Verdict& verdict) {
  verdict.findings.insert(verdict.findings.end(), findings.begin(), findings.end());
}

void show(const Finding& finding, std::ostream& out) {
  out << fmt::format(
      "{} {}{}{}{}: {}\n", finding.rule, finding.severity,
      finding.unknown ? ", unless your own script defines it" : "",
      finding.first ? ", the first one that upstream reaches" : "",
      finding.stage == dialect::Stage::construct || finding.stage == dialect::Stage::run
          ? fmt::format(", at {}", dialect::stage_name(finding.stage))
          : "",
      printable(finding.what));
  if (finding.place.line > 0)
    out << printable(fmt::format("  at    {}:{}:{}", finding.place.source, finding.place.line,
                                 finding.place.column))
        << "\n";
  for (const auto& [name, text] : {std::pair<const char*, const std::string*>{"got", &finding.got},
                                   {"want", &finding.want},
                                   {"why", &finding.why},
                                   {"next", &finding.next}})
    if (!text->empty()) out << fmt::format("  {:<5} {}\n", name, printable(*text));
}

/// The facts that undecided rules need and that are unknown, from texts such as
/// "te_version=unknown, fp8=hybrid".
std::set<std::string> missing_facts(const Verdict& verdict) {
  constexpr std::string_view kUnknown = "=unknown";
  std::set<std::string> names;
  for (const Finding& finding : verdict.findings) {
    if (!finding.unknown) continue;
    for (std::size_t begin = 0; begin < finding.got.size();) {
      const std::size_t end = std::min(finding.got.find(", ", begin), finding.got.size());
      const std::string_view one(finding.got.data() + begin, end - begin);
      if (one.ends_with(kUnknown)) names.emplace(one.substr(0, one.size() - kUnknown.size()));
      begin = end + 2;
    }
  }
  return names;
}

void show(const Verdict& verdict, const std::string& dialect, bool all, std::ostream& out) {
  std::vector<std::string> undecided;
  for (const Finding& finding : verdict.findings) {
    // An undecided rule lacks facts and is only counted. A flag that upstream's parser does not
    // have was written by the user and is always shown.
    if (finding.unknown && finding.rule != dialect::kUnknownFlag)
      undecided.push_back(finding.rule + " (" + finding.got + ")");
    else
      show(finding, out);
  }
  if (!undecided.empty()) {
    const std::set<std::string> facts = missing_facts(verdict);
    out << fmt::format(
        "{} rules undecided, because {} (give --arch, --world-size or --stack NAME=VALUE){}\n",
        undecided.size(),
        facts.empty() ? "a fact is not known"
                      : printable(fmt::format("these are not known: {}", fmt::join(facts, ", "))),
        all ? ":" : "; --all lists them");
    if (all)
      for (const std::string& text : undecided) out << "  " << printable(text) << "\n";
  }
  out << (verdict.accepted ? "accepted" : "rejected") << " by " << dialect << "\n";
}

/// The options to show out of several hundred: those that were given or rewritten, and the three
/// that control CUDA graphs.
json shown_options_of(const Verdict& verdict, const dialect::Configuration& read) {
  json shown = json::object();
  const json effective = dialect::effective_json(verdict.effective);
  for (const auto& [name, value] : effective.items()) {
    const auto before = read.values.find(name);
    const bool changed = before == read.values.end() ||
                         std::holds_alternative<matrix::Unknown>(before->second) ||
                         matrix::value_json(before->second) != value;
    const bool of_graphs = name == "cuda_graph_impl" || name == "cuda_graph_modules" ||
                           name == "inference_cuda_graph_scope";
    if (changed || of_graphs || read.places.count(name) != 0 || name.starts_with("env."))
      shown[name] = value;
  }
  return shown;
}

record::ExitCode migrate(const UpstreamConfiguration& upstream, const CheckOptions& options,
                         Surroundings& surroundings) {
  const dialect::Migration migration =
      upstream.document
          ? dialect::migrate_configuration(upstream.dialect, *upstream.document)
          : dialect::migrate_command_line(upstream.dialect, upstream.words, upstream.first_option);
  const std::string line =
      upstream.document ? migration.object.dump(2) : dialect::shell_line(migration.words);
  if (options.json) {
    json notes = json::array();
    for (const Finding& finding : migration.notes) notes.push_back(finding.json());
    const json migrated =
        upstream.document ? json::parse(migration.object.dump()) : json(migration.words);
    surroundings.out << json{{"possible", migration.possible},
                             {"migrated", migration.possible ? migrated : json()},
                             {"findings", notes}}
                            .dump(2)
                     << "\n";
  } else {
    for (const Finding& finding : migration.notes) show(finding, surroundings.err);
    if (migration.possible)
      surroundings.out << printable(line) << "\n";
    else
      surroundings.err << "not migrated: the older options contradict each other\n";
  }
  return migration.possible ? record::ExitCode::ok : kRejected;
}

record::ExitCode execute_check(const CheckOptions& options, Surroundings& surroundings) {
  const TrainingConfiguration configuration = read_training_configuration(options, surroundings);
  std::string dialect = "graphproof";
  Verdict verdict;
  json effective, shown;
  if (const auto* own = std::get_if<OwnCase>(&configuration.value)) {
    if (options.migrate)
      throw matrix::InputError({.what = "a graphproof case has no older options to migrate",
                                .got = "--migrate",
                                .want = "an upstream configuration",
                                .why = "",
                                .next = "drop --migrate",
                                .place = {}});
    verdict = own_verdict(*own, surroundings.catalogue);
    add(bad_stacks_of(*own, surroundings.catalogue.axes, matrix::load_bad_stacks()), verdict);
    effective = matrix::effective_values(surroundings.catalogue.axes, own->test_case);
    shown = json::parse(matrix::canonical_text(own->test_case));
  } else {
    const auto& upstream = std::get<UpstreamConfiguration>(configuration.value);
    if (options.migrate) return migrate(upstream, options, surroundings);
    verdict = dialect::check(upstream.dialect, upstream.reading);
    add(bad_stacks_of(verdict.effective, matrix::load_bad_stacks()), verdict);
    effective = dialect::effective_json(verdict.effective);
    shown = shown_options_of(verdict, upstream.reading.configuration);
    dialect = fmt::format("{} {}{}", upstream.dialect.name, upstream.dialect.version,
                          upstream.detected ? " (detected from the input)" : "");
  }
  if (options.sarif) {
    surroundings.out << dialect::sarif(verdict, configuration.file).dump(2) << "\n";
  } else if (options.json) {
    json result = verdict.json();
    result["effective"] = effective;
    result["dialect"] = dialect;
    surroundings.out << result.dump(2) << "\n";
  } else {
    show(verdict, dialect, options.all, surroundings.out);
    surroundings.out << "effective configuration (options that were given or rewritten):\n";
    for (const auto& [name, value] : shown.items())
      surroundings.out << printable(fmt::format("  {} = {}", name,
                                                value.is_null() ? "None" : value.dump()))
                       << "\n";
  }
  return verdict.accepted ? record::ExitCode::ok : kRejected;
}

}  // namespace

Action declare_check(CLI::App& app) {
  const auto options = std::make_shared<CheckOptions>();
  app.option_defaults()->group("The job that the configuration is for");
  declare(app, *options);
  app.option_defaults()->group(kOutput);
  app.add_flag("--migrate", options->migrate,
               "print today's spelling of older CUDA graph options, and judge nothing");
  app.add_flag("--all", options->all, "also list the rules that could not be decided");
  app.add_flag("--json", options->json, "print {accepted, findings, effective}");
  app.add_flag("--sarif", options->sarif, "print SARIF 2.1.0, for annotations in a code review");
  return [options](Surroundings& surroundings) { return execute_check(*options, surroundings); };
}

}  // namespace graphproof::cli
