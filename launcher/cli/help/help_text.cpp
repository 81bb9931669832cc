#include "launcher/cli/help/help_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <utility>

namespace graphproof::cli {
namespace {

constexpr std::size_t kHelpColumns = 80;
// Where the text of an option begins. An option with a longer name has a line of its own.
constexpr std::size_t kOptionTextColumn = 26;

constexpr std::array<std::pair<VerbGroup, std::string_view>, 6> kHeadings = {{
    {VerbGroup::run, "Run cases"},
    {VerbGroup::look_at_runs, "Look at runs"},
    {VerbGroup::understand, "Understand a case, a failure, a rule or a configuration"},
    {VerbGroup::plan, "Plan"},
    {VerbGroup::cluster, "Spread over a cluster or a pipeline"},
    {VerbGroup::maintain, "Maintain this installation"},
}};

/// `text` wrapped at kHelpColumns. Its first line continues a line of which `begun` columns are
/// used; the others begin at column `indent`.
std::string wrapped(const std::string& text, std::size_t begun, std::size_t indent) {
  std::istringstream words(text);
  std::string result;
  std::size_t column = begun;
  bool first_word = true;
  for (std::string word; words >> word;) {
    if (!first_word && column + 1 + word.size() > kHelpColumns) {
      result += "\n" + std::string(indent, ' ');
      column = indent;
      first_word = true;
    }
    result += (first_word ? "" : " ") + word;
    column += word.size() + (first_word ? 0 : 1);
    first_word = false;
  }
  return result;
}

/// Option names and text in two columns.
std::string row(const std::string& left, const std::string& text) {
  std::string line = "  " + left;
  if (line.size() + 2 > kOptionTextColumn)
    line += "\n" + std::string(kOptionTextColumn, ' ');
  else
    line.resize(kOptionTextColumn, ' ');
  return line + wrapped(text, kOptionTextColumn, kOptionTextColumn) + "\n";
}

std::string usage(const Verb& verb, const CLI::App& app) {
  std::string text = fmt::format("Usage: ./graphproof {}", verb.name);
  for (const CLI::Option* argument : positional_arguments(app)) {
    const std::string name =
        value_name(*argument) + (argument->get_items_expected_max() > 1 ? "..." : "");
    text += " " + (argument->get_required() ? name : "[" + name + "]");
  }
  if (!shown_options(app).empty()) text += " [OPTIONS]";
  if (verb.takes_words) text += " [-- ARGS...]";
  return text + "\n";
}

}  // namespace

std::string overview(std::span<const Verb> verbs) {
  std::string text =
      "graphproof checks CUDA graphs for distributed training: it runs a matrix of\n"
      "configurations on real ranks, eager and from graphs, and gives each case one\n"
      "verdict. Without a GPU the cases run on a simulated device.\n"
      "\n"
      "Usage: ./graphproof VERB [OPTIONS]\n";
  for (const auto& [group, heading] : kHeadings) {
    text += fmt::format("\n{}\n", heading);
    for (const Verb& verb : verbs)
      if (verb.group == group) text += fmt::format("  {:<13}{}\n", verb.name, verb.meaning);
  }
  text +=
      "\n"
      "Begin with\n"
      "  ./graphproof run --profile smoke\n"
      "\n"
      "`./graphproof help VERB` explains a verb and its options.\n";
  return text;
}

std::string help_text(const Verb& verb, const CLI::App& app) {
  std::string text = usage(verb, app) + "\n";
  text += wrapped(fmt::format("{}: {}.", verb.name, verb.meaning), 0, 0) + "\n";
  if (!verb.details.empty()) text += "\n" + wrapped(std::string(verb.details), 0, 0) + "\n";
  if (const auto arguments = positional_arguments(app); !arguments.empty()) {
    text += "\n";
    for (const CLI::Option* argument : arguments)
      text += row(value_name(*argument), argument->get_description());
  }
  const std::vector<const CLI::Option*> options = shown_options(app);
  std::vector<std::string> headings;
  for (const CLI::Option* option : options)
    if (std::ranges::find(headings, option->get_group()) == headings.end())
      headings.push_back(option->get_group());
  for (const std::string& heading : headings) {
    text += "\n" + heading + "\n";
    for (const CLI::Option* option : options) {
      if (option->get_group() != heading) continue;
      const std::string value = value_name(*option);
      text += row("--" + option->get_lnames().front() + (value.empty() ? "" : " " + value),
                  option->get_description());
    }
  }
  if (!verb.example.empty()) text += fmt::format("\nExample\n  ./{}\n", verb.example);
  return text;
}

std::vector<const CLI::Option*> shown_options(const CLI::App& app) {
  return app.get_options([&](const CLI::Option* option) {
    return !option->get_positional() && !option->get_group().empty() &&
           option != app.get_help_ptr();
  });
}

std::vector<const CLI::Option*> positional_arguments(const CLI::App& app) {
  return app.get_options([](const CLI::Option* option) { return option->get_positional(); });
}

std::string value_name(const CLI::Option& option) {
  if (option.get_positional()) return option.get_name(true);
  if (option.get_type_size_max() == 0 || option.get_items_expected_max() == 0) return {};
  // CLI11 appends the descriptions of validators after a colon.
  const std::string name = option.get_type_name();
  return name.substr(0, name.find(':'));
}

std::vector<std::string> listed_values(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::string name = type.substr(0, type.find(':'));
  std::vector<std::string> values;
  if (name.find('|') == std::string::npos) return values;
  std::istringstream words(name);
  for (std::string word; std::getline(words, word, '|');) values.push_back(word);
  return values;
}

}  // namespace graphproof::cli
