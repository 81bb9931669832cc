// A verb of the command line: its name, its texts, and how its options are declared. One verb is
// one file; the table of all verbs is verbs/verb_table.cpp.
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

/// What a verb works with. Results go to `out`. What is only of interest while a person waits goes
/// to `err`. With --json a verb writes one JSON value to `out` and nothing else.
struct Surroundings {
  const matrix::Catalogue& catalogue;
  std::vector<std::string> command_line;
  std::ostream& out;
  std::ostream& err;
  bool terminal = false;  // whether `out` is a terminal
  int columns = 100;
  std::filesystem::path programs;  // folder of the rank programs and the judge
  std::filesystem::path runs = "runs";
  std::vector<std::string> words = {};  // the arguments after `--`
};

using Action = std::function<record::ExitCode(Surroundings&)>;

/// The headings under which the list of verbs shows them.
enum class VerbGroup { run, look_at_runs, understand, plan, cluster, maintain, internal };

/// A heading of help texts that several verbs use.
inline constexpr const char* kOutput = "Output";
/// The values of every option --device.
inline constexpr const char* kDevices = "auto|sim|cuda";

/// What the script ./graphproof has to build before it runs a verb. `program`: this program.
/// `judge`: the judge too. `probe`: the judge and the probe, which needs the headers of CUDA.
/// `ranks`: the judge and the rank programs, which need PyTorch and MPI. `tests`: everything.
enum class Needs { program, judge, probe, ranks, tests };

struct Verb {
  std::string_view name;
  VerbGroup group;
  Needs needs;
  std::string_view meaning;  // half a line, without a full stop
  std::string_view details;  // whole sentences below the usage line; may be empty
  std::string_view example;  // a command line that works as it stands, from the word graphproof on
  /// Declares options on the verb's own `app` and returns what runs once they are parsed. The
  /// option's type name is what its value is called in help texts; `a|b|c` lists all values.
  Action (*declare)(CLI::App& app);
  /// The verb takes the arguments after `--`, whatever they look like, as Surroundings::words.
  bool takes_words = false;
};

/// All verbs, in the order in which help texts list them.
std::span<const Verb> verbs();
/// Their names, in this order.
std::vector<std::string> verb_names();

/// The whole program except for what `main` owns: parses the command line, runs the verb, prints
/// errors. `arguments` do not include the program's name. Returns the exit code of the process.
int run_command_line(const std::vector<std::string>& arguments, Surroundings& surroundings);

Action declare_run(CLI::App& app);
Action declare_resume(CLI::App& app);
Action declare_rerun(CLI::App& app);
Action declare_repro(CLI::App& app);
Action declare_qualify(CLI::App& app);
Action declare_bisect(CLI::App& app);
Action declare_bringup(CLI::App& app);
Action declare_bundle(CLI::App& app);
Action declare_advise(CLI::App& app);
Action declare_watch(CLI::App& app);
Action declare_status(CLI::App& app);
Action declare_report(CLI::App& app);
Action declare_compare(CLI::App& app);
Action declare_list(CLI::App& app);
Action declare_history(CLI::App& app);
Action declare_baseline(CLI::App& app);
Action declare_explain(CLI::App& app);
Action declare_shrink(CLI::App& app);
Action declare_case(CLI::App& app);
Action declare_check(CLI::App& app);
Action declare_rules(CLI::App& app);
Action declare_plan(CLI::App& app);
Action declare_new_subject(CLI::App& app);
Action declare_cover(CLI::App& app);
Action declare_verify(CLI::App& app);
Action declare_order(CLI::App& app);
Action declare_merge(CLI::App& app);
Action declare_ci(CLI::App& app);
Action declare_agent(CLI::App& app);
Action declare_doctor(CLI::App& app);
Action declare_selftest(CLI::App& app);
Action declare_test(CLI::App& app);
Action declare_help(CLI::App& app);

}  // namespace graphproof::cli
