// Tab completion for bash and zsh, rendered from the same declarations as the help texts. What
// changes without the program is looked up while the user types: profiles in matrix/profiles, runs
// in ./runs, files and folders.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "launcher/cli/help/declared_verb.h"
#include "matrix/case/axes.h"

namespace graphproof::cli {

/// To be sourced by bash: launcher/cli/help/completion/graphproof.bash.
std::string bash_completion(std::span<const DeclaredVerb> verbs, const matrix::AxisTable& axes);

/// To be found by zsh's compinit on its fpath: launcher/cli/help/completion/_graphproof.
std::string zsh_completion(std::span<const DeclaredVerb> verbs, const matrix::AxisTable& axes);

}  // namespace graphproof::cli
