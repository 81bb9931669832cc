#include "launcher/cli/help/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <sstream>

#include "launcher/cli/help/generated_files.h"
#include "launcher/cli/help/help_text.h"

namespace graphproof::cli {
namespace {

constexpr std::size_t kScriptColumns = 100;
// Of an option's description in zsh, which shows it in one line.
constexpr std::size_t kShortText = 56;

/// What stands for a value that can't be completed, such as a number.
constexpr std::string_view kNotCompleted = "-";

// The type names of options whose values are looked up, as the scripts below spell them.
constexpr std::array kLookedUp = {"AXIS",   "CASE",    "EXPR", "FILE",
                                  "FOLDER", "PROFILE", "RUN",  "VERB"};

/// What completes the value of `option`: one of kLookedUp, a list of words, or kNotCompleted.
std::string completion_of(const CLI::Option& option) {
  if (const auto values = listed_values(option); !values.empty())
    return fmt::format("{}", fmt::join(values, " "));
  const std::string type = option.get_type_name();
  const std::string name = type.substr(0, type.find(':'));
  for (const std::string_view known : kLookedUp)
    if (name == known) return name;
  return std::string(kNotCompleted);
}

/// Words separated by blanks, on lines that continue at column `indent`.
std::string lines_of(const std::vector<std::string>& words, std::size_t begun, std::size_t indent) {
  std::string text;
  std::size_t column = begun;
  for (const std::string& word : words) {
    if (!text.empty()) {
      const bool fits = column + 1 + word.size() < kScriptColumns;
      text += fits ? std::string(" ") : "\n" + std::string(indent, ' ');
      column = fits ? column + 1 : indent;
    }
    text += word;
    column += word.size();
  }
  return text;
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : shown_options(app))
    names.push_back("--" + option->get_lnames().front());
  names.emplace_back("--help");
  return names;
}

bool shown(const DeclaredVerb& one) { return one.verb->group != VerbGroup::internal; }

std::vector<std::string> shown_names(std::span<const DeclaredVerb> verbs) {
  std::vector<std::string> names;
  for (const DeclaredVerb& one : verbs)
    if (shown(one)) names.emplace_back(one.verb->name);
  return names;
}

constexpr std::string_view kBashFunctions = R"bash(
# Prints the words that a value of KIND may be; ROOT is the folder of this source tree.
_graphproof_candidates() {  # KIND ROOT
  local path
  case $1 in
    - | FILE | FOLDER) ;;
    AXIS | EXPR) printf '%s\n' $_graphproof_axes ;;
    CASE) printf '%s=\n' $_graphproof_axes ;;
    PROFILE)
      for path in "$2"/matrix/profiles/*.json; do
        path=${path##*/}
        printf '%s\n' "${path%.json}"
      done
      ;;
    RUN)
      printf 'latest\n'
      for path in runs/*/run.json runs/*/watched.json; do
        [ -e "$path" ] || continue
        path=${path%/*}
        printf '%s\n' "${path##*/}"
      done
      ;;
    VERB) printf '%s\n' $_graphproof_verbs ;;
    *) printf '%s\n' $1 ;;
  esac
}

_graphproof() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
  local verb=${COMP_WORDS[1]} command=${COMP_WORDS[0]} head='' kind='' root position=1 i
  COMPREPLY=()
  command=${command/#\~/$HOME}
  [[ $command == */* ]] || command=$(type -P "$command")
  root=${command%/*}
  [ -d "$root/matrix/profiles" ] || root=$root/../..  # build/bin/graphproof
  if ((COMP_CWORD == 1)); then
    mapfile -t COMPREPLY < <(compgen -W "$_graphproof_verbs" -- "$word")
    return
  fi
  # Bash splits words at `=`: `--device=sim` is three words, and so is `tp=2`.
  for ((i = 2; i < COMP_CWORD; ++i)); do
    case ${COMP_WORDS[i]} in
      --)
        compopt -o default
        return
        ;;
      =) ((++i)) ;;
      --*)
        if [[ -n ${_graphproof_values[$verb ${COMP_WORDS[i]}]-} &&
          ${COMP_WORDS[i + 1]} != '=' ]]; then
          ((++i))
        fi
        ;;
      *) ((++position)) ;;
    esac
  done
  if [[ $word == = || $before == = ]]; then
    if [[ $word == = ]]; then word=''; else before=${COMP_WORDS[COMP_CWORD - 2]}; fi
    [[ $before == --* ]] || ((--position))  # the argument before `=` is the one being written
  fi
  if [[ $before == --* ]]; then kind=${_graphproof_values[$verb $before]-}; fi
  if [[ -z $kind && $word == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "${_graphproof_options[$verb]-}" -- "$word")
    return
  fi
  if [[ -z $kind ]]; then
    kind=${_graphproof_values[$verb $position]-${_graphproof_values[$verb +]-}}
  fi
  case $kind in
    FILE) compopt -o default ;;
    FOLDER) compopt -o dirnames ;;
    CASE)
      compopt -o nospace
      # A case is several assignments: impl=manual,tp=2.
      if [[ $word == *,* ]]; then
        head=${word%,*},
      elif [[ ${COMP_WORDS[COMP_CWORD - 1]} == = || ${COMP_WORDS[COMP_CWORD]} == = ]]; then
        return
      fi
      ;;
  esac
  mapfile -t COMPREPLY < <(
    compgen -P "$head" -W "$(_graphproof_candidates "${kind:--}" "$root")" -- "${word#"$head"}"
  )
  if [[ -z $word && ${#COMPREPLY[@]} == 0 && $before != --* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "${_graphproof_options[$verb]-}")
  fi
}

complete -F _graphproof graphproof
)bash";

/// The first clause of a description, without characters that have a meaning for zsh.
std::string short_text(const std::string& description) {
  std::string text = description;
  for (const char* end : {"; ", " (", ", such as", ". "}) text = text.substr(0, text.find(end));
  if (text.size() > kShortText) text = text.substr(0, text.rfind(' ', kShortText)) + " ...";
  std::string plain;
  for (const char letter : text) {
    if (letter == ':') plain += ',';
    if (std::string_view("[]:'`\\").find(letter) == std::string_view::npos) plain += letter;
  }
  return plain;
}

/// The action of zsh's _arguments for a value.
std::string zsh_action(const std::string& completion) {
  if (completion == kNotCompleted) return " ";
  if (completion == "FILE") return "_files";
  if (completion == "FOLDER") return "_files -/";
  if (completion == "AXIS" || completion == "EXPR") return "_graphproof_axes";
  if (completion == "CASE") return "_graphproof_case";
  if (completion == "PROFILE") return "_graphproof_profiles";
  if (completion == "RUN") return "_graphproof_runs";
  if (completion == "VERB") return "_graphproof_verbs";
  return "(" + completion + ")";
}

std::string zsh_arguments(const DeclaredVerb& one) {
  std::string text = fmt::format("    {})\n      _arguments \\\n", one.verb->name);
  const auto line = [&](const std::string& spec) {
    text += fmt::format("        '{}' \\\n", spec);
  };
  for (const CLI::Option* option : shown_options(*one.app)) {
    std::string spec =
        fmt::format("{}--{}[{}]", option->get_items_expected_max() > 1 ? "*" : "",
                    option->get_lnames().front(), short_text(option->get_description()));
    if (!value_name(*option).empty()) spec += ":value:" + zsh_action(completion_of(*option));
    line(spec);
  }
  line("--help[print the help text of this verb]");
  for (const CLI::Option* argument : positional_arguments(*one.app))
    line(fmt::format("{}:{}:{}", argument->get_items_expected_max() > 1 ? "*" : "",
                     value_name(*argument), zsh_action(completion_of(*argument))));
  text.erase(text.size() - 3);  // the last line does not continue
  return text + "\n      ;;\n";
}

constexpr std::string_view kZshFunctions = R"zsh(
_graphproof_axes() {
  compadd -- $_graphproof_axis_names
}

_graphproof_case() {
  compset -P '*,'
  compadd -S = -- $_graphproof_axis_names
}

_graphproof_profiles() {
  local root=${_graphproof_command:h}
  [[ -d $root/matrix/profiles ]] || root=$root/../..
  compadd -- $root/matrix/profiles/*.json(N:t:r)
}

_graphproof_runs() {
  compadd -- latest runs/*/(run|watched).json(N:h:t)
}

_graphproof_verbs() {
  _describe verb _graphproof_verb_names
}
)zsh";

std::string comment_of(std::string_view use) {
  return fmt::format(
      "# Tab completion of ./graphproof. To use it:\n"
      "#   {}\n"
      "# Made from the declarations of the verbs by\n"
      "#   {}\n",
      use, kWriteCommand);
}

}  // namespace

std::string bash_completion(std::span<const DeclaredVerb> verbs, const matrix::AxisTable& axes) {
  std::string text = "# shellcheck shell=bash disable=SC2034,SC2086\n" +
                     comment_of("source launcher/cli/help/completion/graphproof.bash");
  text += "\n_graphproof_verbs='" + lines_of(shown_names(verbs), 19, 2) + "'\n";
  text += "_graphproof_axes='" + lines_of(axes.names(), 18, 2) + "'\n";
  text += "declare -gA _graphproof_options _graphproof_values\n";
  for (const DeclaredVerb& one : verbs) {
    if (!shown(one)) continue;
    const std::string_view verb = one.verb->name;
    text += fmt::format("\n_graphproof_options[{}]='\n  {}'\n", verb,
                        lines_of(option_names(*one.app), 2, 2));
    const auto value = [&](const std::string& of, const CLI::Option& option) {
      text += fmt::format("_graphproof_values[{} {}]='{}'\n", verb, of, completion_of(option));
    };
    for (const CLI::Option* option : shown_options(*one.app))
      if (!value_name(*option).empty()) value("--" + option->get_lnames().front(), *option);
    int position = 0;
    for (const CLI::Option* argument : positional_arguments(*one.app)) {
      ++position;
      value(argument->get_items_expected_max() > 1 ? "+" : std::to_string(position), *argument);
    }
  }
  return text + std::string(kBashFunctions);
}

std::string zsh_completion(std::span<const DeclaredVerb> verbs, const matrix::AxisTable& axes) {
  std::string text =
      "#compdef graphproof\n" +
      comment_of(
          "fpath=($PWD/launcher/cli/help/completion $fpath); autoload -U compinit; compinit");
  text += "\nlocal -a _graphproof_axis_names=(\n  " + lines_of(axes.names(), 2, 2) + "\n)\n";
  text += "local -a _graphproof_verb_names=(\n";
  for (const DeclaredVerb& one : verbs)
    if (shown(one))
      text +=
          fmt::format("  '{}:{}'\n", one.verb->name, short_text(std::string(one.verb->meaning)));
  text += ")\n" + std::string(kZshFunctions);
  text +=
      "\nlocal _graphproof_command=${~words[1]}\n"
      "if ((CURRENT == 2)); then\n"
      "  _graphproof_verbs\n"
      "else\n"
      "  shift words\n"
      "  ((CURRENT--))\n"
      "  case $words[1] in\n";
  for (const DeclaredVerb& one : verbs)
    if (shown(one)) text += zsh_arguments(one);
  return text + "  esac\nfi\n";
}

}  // namespace graphproof::cli
