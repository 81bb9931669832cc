#include "launcher/cli/verb.h"

#include <algorithm>
#include <array>
#include <exception>

#include "matrix/input/input_error.h"
#include "reports/record/text/message.h"

namespace graphproof::cli {
namespace {

constexpr std::array kVerbs = {
    Verb{"run", "plan, run and judge the cases of a profile or a matrix file", declare_run, true},
    Verb{"resume", "go on with a run that was interrupted or killed", declare_resume},
    Verb{"rerun", "run cases of a recorded run again, as a run of their own", declare_rerun},
    Verb{"plan", "show which cases a run would have, and what removed the others", declare_plan},
    Verb{
        "case",
        "read a case from its name: id, axes, ranks, expectation; or from a training configuration",
        declare_case, true},
    Verb{"explain", "the rules and checks that a case meets, and its verdict if it was run",
         declare_explain},
    Verb{"repro", "run one case again alone and show its evidence", declare_repro},
    Verb{"shrink",
         "which values of a failing case make it fail, and the smallest job that shows it",
         declare_shrink},
    Verb{"list", "axes, profiles, rules, checks, faults, runs or cases", declare_list},
    Verb{"check", "what upstream rejects, rewrites or lets pass of a training configuration",
         declare_check, true},
    Verb{"rules", "the rules in full, or one of them; ours or an upstream's", declare_rules},
    Verb{"report", "print a run's closing table again, and rebuild its reports", declare_report},
    Verb{"compare", "two runs side by side: what changed in the stack, broke, healed, slowed, grew",
         declare_compare},
    Verb{"merge", "join the runs of a plan's shards to one run", declare_merge},
    Verb{"ci", "print a pipeline that runs shards and merges them: gitlab, github or slurm",
         declare_ci},
    Verb{"status", "how far a run is, whether it still runs or not", declare_status},
    Verb{"doctor", "can this machine run cases?", declare_doctor},
    Verb{"selftest", "are ranks that lie caught here?", declare_selftest},
    Verb{"cover",
         "few rows that hold every combination of a few values: of a PICT or ACTS model, or a "
         "matrix file",
         declare_cover},
    Verb{"agent", "internal: serves a launcher on a node of a cluster", declare_agent},
    Verb{"verify", "do these rows cover what a model asks for?", declare_verify},
    Verb{"order",
         "in which order a pipeline stage captures its forwards and backwards, and its static "
         "buffers",
         declare_order},
};

std::vector<std::string> verb_names() {
  std::vector<std::string> names;
  for (const Verb& verb : kVerbs) names.emplace_back(verb.name);
  return names;
}

/// CLI11 knows that something is unknown, but not what was meant.
matrix::InputError unknown_option(const CLI::App& app, const std::string& got) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  const std::string verb = app.get_name();
  return matrix::InputError(
      {"`" + verb + "` does not take `" + got + "`", got, "one of " + matrix::listed(names), "",
       matrix::suggestion(got.substr(0, got.find('=')), names, "graphproof " + verb + " --help")});
}

matrix::InputError bad_command_line(const CLI::App& app, const CLI::ParseError& error) {
  const std::string verb = app.get_name();
  return matrix::InputError({"the command line of `" + verb + "` can't be read", error.what(),
                             "as in its help", "", "graphproof " + verb + " --help"});
}

int fail(Surroundings& surroundings, bool json, record::ExitCode code, const std::string& text,
         const nlohmann::json& value) {
  if (json) surroundings.out << value.dump(2) << "\n";
  surroundings.err << "graphproof: " << text << "\n";
  return record::value(code);
}

nlohmann::json as_json(const record::Message& message) {
  return {{"what", message.what},
          {"got", message.got},
          {"want", message.want},
          {"why", message.why},
          {"next", message.next}};
}

record::ExitCode run_verb(const std::vector<std::string>& arguments, Surroundings& surroundings) {
  CLI::App app("graphproof: qualifies CUDA graphs for distributed training and inference",
               "graphproof");
  app.require_subcommand(0, 1);
  std::vector<std::pair<CLI::App*, Action>> actions;
  for (const Verb& verb : kVerbs) {
    CLI::App* sub = app.add_subcommand(std::string(verb.name), std::string(verb.meaning));
    sub->allow_extras();
    actions.emplace_back(sub, verb.declare(*sub));
  }
  const std::vector<std::string> names = verb_names();
  if (!arguments.empty() && arguments[0].front() != '-' &&
      std::find(names.begin(), names.end(), arguments[0]) == names.end())
    throw matrix::InputError({"no verb `" + arguments[0] + "`", arguments[0],
                              "one of " + matrix::listed(names), "",
                              matrix::suggestion(arguments[0], names, "graphproof --help")});
  const auto chosen = [&]() -> const CLI::App& {
    for (const auto& [sub, action] : actions)
      if (!arguments.empty() && sub->get_name() == arguments[0]) return *sub;
    return app;
  };
  const bool takes_words = std::any_of(kVerbs.begin(), kVerbs.end(), [&](const Verb& verb) {
    return verb.takes_words && !arguments.empty() && verb.name == arguments[0];
  });
  const auto dashes =
      takes_words ? std::find(arguments.begin(), arguments.end(), "--") : arguments.end();
  if (dashes != arguments.end()) surroundings.words.assign(dashes + 1, arguments.end());
  try {
    app.parse(std::vector<std::string>(std::make_reverse_iterator(dashes), arguments.rend()));
  } catch (const CLI::Success& help) {
    app.exit(help, surroundings.out, surroundings.err);
    return record::ExitCode::ok;
  } catch (const CLI::ExtrasError&) {
    throw unknown_option(chosen(), app.remaining(true).front());
  } catch (const CLI::ParseError& error) {
    throw bad_command_line(chosen(), error);
  }
  for (const auto& [sub, action] : actions) {
    if (!sub->parsed()) continue;
    if (const auto extras = sub->remaining(); !extras.empty())
      throw unknown_option(*sub, extras.front());
    return action(surroundings);
  }
  surroundings.out << app.help();
  return record::ExitCode::ok;
}

}  // namespace

std::span<const Verb> verbs() { return kVerbs; }

int run_command_line(const std::vector<std::string>& arguments, Surroundings& surroundings) {
  const bool json = std::find(arguments.begin(), arguments.end(), "--json") != arguments.end();
  try {
    return record::value(run_verb(arguments, surroundings));
  } catch (const matrix::InputError& error) {
    return fail(surroundings, json, record::ExitCode::usage, error.what(), error.json());
  } catch (const record::ReadError& error) {
    return fail(surroundings, json, record::ExitCode::usage, error.what(),
                as_json(error.message()));
  } catch (const record::WriteError& error) {
    return fail(surroundings, json, record::ExitCode::infrastructure, error.what(),
                as_json(error.message()));
  } catch (const std::exception& error) {
    return fail(
        surroundings, json, record::ExitCode::own_fault,
        std::string("a fault of graphproof itself: ") + error.what(),
        {{"what", error.what()}, {"next", "report it with the command line and the run folder"}});
  }
}

}  // namespace graphproof::cli
