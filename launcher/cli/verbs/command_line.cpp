// The command line of the program: which verb it names, what its options say, and how errors are
// printed.
#include <algorithm>
#include <exception>

#include "launcher/cli/help/help_text.h"
#include "launcher/cli/verb.h"
#include "matrix/input/input_error.h"
#include "reports/record/text/message.h"

namespace graphproof::cli {
namespace {

/// CLI11 reports that an option is unknown, but not which one was probably meant.
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

const Verb& verb_named(const std::string& name) {
  for (const Verb& verb : verbs())
    if (verb.name == name) return verb;
  const std::vector<std::string> names = verb_names();
  throw matrix::InputError({"no verb `" + name + "`", name, "one of " + matrix::listed(names), "",
                            matrix::suggestion(name, names, "graphproof help")});
}

record::ExitCode run_verb(const std::vector<std::string>& arguments, Surroundings& surroundings) {
  if (arguments.empty() || arguments[0] == "--help" || arguments[0] == "-h") {
    surroundings.out << overview(verbs());
    return record::ExitCode::ok;
  }
  const Verb& verb = verb_named(arguments[0]);
  CLI::App app(std::string(verb.meaning), std::string(verb.name));
  app.allow_extras();
  const Action action = verb.declare(app);
  const auto dashes =
      verb.takes_words ? std::find(arguments.begin(), arguments.end(), "--") : arguments.end();
  if (dashes != arguments.end()) surroundings.words.assign(dashes + 1, arguments.end());
  try {
    // CLI11 takes the arguments in reverse order.
    app.parse(std::vector<std::string>(std::make_reverse_iterator(dashes),
                                       std::make_reverse_iterator(arguments.begin() + 1)));
  } catch (const CLI::CallForHelp&) {
    surroundings.out << help_text(verb, app);
    return record::ExitCode::ok;
  } catch (const CLI::ParseError& error) {
    throw bad_command_line(app, error);
  }
  if (const auto extras = app.remaining(); !extras.empty())
    throw unknown_option(app, extras.front());
  return action(surroundings);
}

}  // namespace

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
