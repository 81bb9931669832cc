// A verb of the command line: its name, what it is for, and how it is declared. One verb, one file;
// the table is in verbs.cpp.
#pragma once

#include <CLI/CLI.hpp>

#include <filesystem>
#include <functional>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "matrix/catalogue/catalogue.h"
#include "reports/record/verdict/exit_code.h"

namespace graphproof::cli {

/// What a verb works with. Results go to `out`, everything that only people read while they wait to
/// `err`; with --json `out` gets one JSON value and nothing else.
struct Surroundings {
  const matrix::Catalogue& catalogue;
  std::vector<std::string> command_line;
  std::ostream& out;
  std::ostream& err;
  bool terminal = false;  // out is one
  int columns = 100;
  std::filesystem::path programs;  // folder of the rank programs and the judge
  std::filesystem::path runs = "runs";
  std::vector<std::string> words = {};  // behind `--`
};

using Action = std::function<record::ExitCode(Surroundings&)>;

struct Verb {
  std::string_view name, meaning;
  /// Declares options on the verb's own `app` and returns what runs once they are parsed.
  Action (*declare)(CLI::App& app);
  /// Takes the words behind `--`, whatever they look like, as Surroundings::words.
  bool takes_words = false;
};

std::span<const Verb> verbs();

/// The whole program but for what `main` owns: parses, runs the verb, prints errors. `arguments`
/// without the program's name. The result is the exit code.
int run_command_line(const std::vector<std::string>& arguments, Surroundings& surroundings);

Action declare_run(CLI::App& app);
Action declare_resume(CLI::App& app);
Action declare_rerun(CLI::App& app);
Action declare_plan(CLI::App& app);
Action declare_case(CLI::App& app);
Action declare_explain(CLI::App& app);
Action declare_repro(CLI::App& app);
Action declare_shrink(CLI::App& app);
Action declare_list(CLI::App& app);
Action declare_check(CLI::App& app);
Action declare_rules(CLI::App& app);
Action declare_report(CLI::App& app);
Action declare_compare(CLI::App& app);
Action declare_status(CLI::App& app);
Action declare_doctor(CLI::App& app);
Action declare_selftest(CLI::App& app);
Action declare_cover(CLI::App& app);
Action declare_merge(CLI::App& app);
Action declare_ci(CLI::App& app);
Action declare_agent(CLI::App& app);
Action declare_verify(CLI::App& app);
Action declare_order(CLI::App& app);

}  // namespace graphproof::cli
