// help: prints the list of verbs, or one verb with its options. The script ./graphproof prints the
// same texts from files (generated_files.h).
#include "launcher/cli/help/help_text.h"

#include <algorithm>
#include <memory>

#include "launcher/cli/help/declared_verb.h"
#include "launcher/cli/verb.h"
#include "matrix/input/input_error.h"

namespace graphproof::cli {
namespace {

struct HelpOptions {
  std::string verb;
  bool json = false;
};

record::ExitCode execute_help(const HelpOptions& options, Surroundings& surroundings) {
  std::string text;
  if (options.verb.empty()) text = overview(verbs());
  for (const DeclaredVerb& one : declared(verbs()))
    if (one.verb->name == options.verb) text = help_text(*one.verb, *one.app);
  if (text.empty())
    throw matrix::InputError({"no verb `" + options.verb + "`", options.verb,
                              "one of " + matrix::listed(verb_names()), "",
                              matrix::suggestion(options.verb, verb_names(), "graphproof help")});
  if (options.json)
    surroundings.out << nlohmann::json{{"verb", options.verb}, {"text", text}}.dump(2) << "\n";
  else
    surroundings.out << text;
  return record::ExitCode::ok;
}

}  // namespace

Action declare_help(CLI::App& app) {
  const auto options = std::make_shared<HelpOptions>();
  app.add_option("VERB", options->verb, "the verb to explain (default: list all verbs)")
      ->type_name("VERB");
  app.option_defaults()->group(kOutput);
  app.add_flag("--json", options->json, "print {verb, text} as JSON");
  return [options](Surroundings& surroundings) { return execute_help(*options, surroundings); };
}

}  // namespace graphproof::cli
