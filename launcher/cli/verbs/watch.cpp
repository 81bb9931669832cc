// watch: run any command under the probe and judge what its processes did with CUDA graphs.
#include <fmt/format.h>

#include <memory>
#include <optional>

#include "launcher/backend/programs.h"
#include "launcher/cli/duration_option.h"
#include "launcher/cli/verb.h"
#include "launcher/watch/watch.h"
#include "matrix/input/input_error.h"
#include "reports/print/watched_report.h"

namespace graphproof::cli {
namespace {

struct WatchOptions {
  std::string profile = "quick", run_dir, finish, against;
  std::string hang_after = "10m", form = "shell";
  std::vector<std::string> without_cuda;
  std::optional<double> graph_share;
  bool no_cupti = false, attach_only = false, json = false;
};

matrix::InputError no_value(const std::string& option, const std::string& got,
                            const std::string& want, const std::string& next) {
  return matrix::InputError(
      {.what = option + " cannot be used", .got = got, .want = want, .why = "", .next = next});
}

void check(const WatchOptions& options, const Surroundings& surroundings) {
  if (options.profile != "quick" && options.profile != "full")
    throw no_value("--profile", "`" + options.profile + "`", "quick or full",
                   "graphproof watch --help");
  if (options.graph_share && (*options.graph_share < 0 || *options.graph_share > 1))
    throw no_value("--graph-share", fmt::format("{}", *options.graph_share), "a share from 0 to 1",
                   "0.9 asks for 90 % of the kernels in graphs");
  if (!launcher::environment_form(options.form))
    throw no_value("--form", "`" + options.form + "`", "shell, env, docker or apptainer",
                   "graphproof watch --attach-only --form docker");
  if (options.form != "shell" && !options.attach_only)
    throw no_value("--form without --attach-only", options.form, "both of them",
                   "graphproof watch --attach-only --form " + options.form);
  if (!options.finish.empty() && !surroundings.words.empty())
    throw no_value("--finish together with a command", surroundings.words.front(), "the run alone",
                   "leave out `--` and what follows it");
  if (!options.finish.empty() && !options.against.empty())
    throw no_value("--finish together with --against", options.against, "one of them",
                   "give --against when the run begins");
  if (!options.finish.empty() && options.attach_only)
    throw no_value("--finish together with --attach-only", options.finish, "one of them",
                   "--attach-only begins a run, and --finish judges it");
}

/// Prints the lines for a shell to `out`, so that `eval` takes them, and the rest to `err`.
record::ExitCode attach(const launcher::WatchRequest& request, const WatchOptions& options,
                        Surroundings& surroundings) {
  launcher::WatchRequest unstarted = request;
  unstarted.command.clear();
  const launcher::PreparedWatch prepared = launcher::prepare_watch(unstarted);
  if (options.json)
    surroundings.out << nlohmann::json{{"schema", "graphproof-watched-environment/1"},
                                       {"folder", prepared.folder.string()},
                                       {"environment", prepared.variables}}
                            .dump(2)
                     << "\n";
  else
    surroundings.out << launcher::in_form(*launcher::environment_form(options.form),
                                          prepared.variables, prepared.folder);
  surroundings.err << fmt::format(
      "Set these where the program starts, on every node; the folder must be the same there: {}\n"
      "When the program has ended: graphproof watch --finish {}\n",
      prepared.folder.string(), prepared.folder.string());
  return record::ExitCode::ok;
}

record::ExitCode print(const reports::WatchedReport& report, bool json,
                       Surroundings& surroundings) {
  if (json)
    surroundings.out << reports::watched_json(report).dump(2) << "\n";
  else
    surroundings.out << reports::watched_text(
        report, {.colour = surroundings.terminal, .columns = surroundings.columns});
  surroundings.out.flush();
  return reports::exit_code(report.outcome.verdict);
}

record::ExitCode execute_watch(const WatchOptions& options, Surroundings& surroundings) {
  check(options, surroundings);
  const std::int64_t hang_after_ms = duration_option_ms(options.hang_after, "--hang-after");
  if (hang_after_ms <= 0)
    throw no_value("--hang-after", "`" + options.hang_after + "`",
                   "a duration above 0, such as 10m",
                   "a long one never ends a command that is slow");
  const auto notice = [&](const std::string& text) {
    surroundings.err << "graphproof: " << text << "\n" << std::flush;
  };
  const std::filesystem::path judge = launcher::judge_program(surroundings.programs);
  if (!options.finish.empty())
    return print(launcher::finish_watch(
                     launcher::find_watched_run(surroundings.runs, options.finish), judge, notice),
                 options.json, surroundings);
  const launcher::WatchRequest request = {
      .command = surroundings.words,
      .runs = surroundings.runs,
      .run_dir =
          options.run_dir.empty() ? std::nullopt : std::optional<std::string>(options.run_dir),
      .profile = options.profile,
      .cupti = !options.no_cupti,
      .graph_share = options.graph_share,
      .against = options.against.empty() ? std::nullopt
                                         : std::optional(launcher::find_watched_run(
                                               surroundings.runs, options.against)),
      .without_cuda = options.without_cuda,
      .programs = surroundings.programs,
      .output_to_error = options.json};
  if (options.attach_only) return attach(request, options, surroundings);
  launcher::check_command(request.command, launcher::own_environment());
  launcher::PreparedWatch prepared = launcher::prepare_watch(request);
  notice("watching; evidence and reports go to " + prepared.folder.string());
  // The command writes to the same streams from here on.
  surroundings.out.flush();
  return print(launcher::watch(std::move(prepared), judge, hang_after_ms, notice), options.json,
               surroundings);
}

}  // namespace

Action declare_watch(CLI::App& app) {
  const auto options = std::make_shared<WatchOptions>();
  app.add_option("--profile", options->profile,
                 "full also measures the time of the device and follows each block that PyTorch's "
                 "allocator is given back; it costs speed (default: quick)")
      ->type_name("quick|full");
  app.add_option("--graph-share", options->graph_share,
                 "fail if less than this share of the kernels (0 to 1) runs in graphs")
      ->type_name("SHARE");
  app.add_option(
         "--against", options->against,
         "fail if fewer replays or a smaller share of the kernels are in graphs than in this "
         "earlier watched run: its folder, its id or latest")
      ->type_name("RUN");
  app.add_option("--hang-after", options->hang_after,
                 "end a command of which nothing moves for this time (default: 10m)")
      ->type_name("DURATION");
  app.add_flag("--no-cupti", options->no_cupti,
               "leave CUPTI to the program, which profiles itself; driver calls are then not seen");
  app.add_option("--run-dir", options->run_dir,
                 "the folder of the run, absent or empty (default: runs/RUN_ID)")
      ->type_name("DIR");
  app.add_flag("--attach-only", options->attach_only,
               "start nothing; print the lines that make a shell's commands watched");
  app.add_option("--form", options->form,
                 "with --attach-only: lines for a shell, words before a command, or options for "
                 "docker run or apptainer exec (default: shell)")
      ->type_name("shell|env|docker|apptainer");
  app.add_option("--without-cuda", options->without_cuda,
                 "neither this program, such as ssh, nor what it starts uses CUDA, so that what is "
                 "not seen of it does not count; may be given again")
      ->type_name("PROGRAM")
      ->allow_extra_args(false);
  app.add_option("--finish", options->finish, "judge a watched run: after --attach-only, or again")
      ->type_name("RUN");
  app.add_flag("--json", options->json,
               "print one JSON object of graphproof-watched-report/1; what the command prints goes "
               "to standard error");
  return [options](Surroundings& surroundings) { return execute_watch(*options, surroundings); };
}

}  // namespace graphproof::cli
