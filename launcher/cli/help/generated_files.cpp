#include "launcher/cli/help/generated_files.h"

#include <fmt/format.h>

#include "launcher/cli/help/completion.h"
#include "launcher/cli/help/declared_verb.h"
#include "launcher/cli/help/help_text.h"

namespace graphproof::cli {
namespace {

std::string_view word(Needs needs) {
  switch (needs) {
    case Needs::program:
      return "program";
    case Needs::judge:
      return "judge";
    case Needs::probe:
      return "probe";
    case Needs::ranks:
      return "ranks";
    case Needs::tests:
      return "tests";
  }
  return "";
}

std::string needs_table(std::span<const Verb> verbs) {
  std::string text = fmt::format(
      "# What ./graphproof builds before it runs a verb: this program, the judge too, the judge "
      "and\n"
      "# the probe, the judge and the rank programs, or everything that tests need. Written by\n"
      "#   {}\n",
      kWriteCommand);
  for (const Verb& verb : verbs) text += fmt::format("{} {}\n", verb.name, word(verb.needs));
  return text;
}

}  // namespace

std::map<std::string, std::string> generated_files(std::span<const Verb> verbs,
                                                   const matrix::AxisTable& axes) {
  const std::vector<DeclaredVerb> declared_verbs = declared(verbs);
  std::map<std::string, std::string> files;
  files["needs.txt"] = needs_table(verbs);
  files["text/overview.txt"] = overview(verbs);
  for (const DeclaredVerb& one : declared_verbs)
    files[fmt::format("text/{}.txt", one.verb->name)] = help_text(*one.verb, *one.app);
  files["completion/graphproof.bash"] = bash_completion(declared_verbs, axes);
  files["completion/_graphproof"] = zsh_completion(declared_verbs, axes);
  return files;
}

}  // namespace graphproof::cli
