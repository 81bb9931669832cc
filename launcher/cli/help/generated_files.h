// The files of the tree that are made from the declarations of the verbs. The script ./graphproof
// prints the help texts, so that help needs nothing built, and reads in needs.txt what it has to
// build for a verb. The program graphproof-generate writes the files (structure/generated_files.h).
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>

#include "launcher/cli/verb.h"
#include "matrix/case/axes.h"

namespace graphproof::cli {

/// The command that writes the files, which they name.
inline constexpr std::string_view kWriteCommand = "build/bin/graphproof-generate";

/// Paths relative to launcher/cli/help, and the text of each file.
std::map<std::string, std::string> generated_files(std::span<const Verb> verbs,
                                                   const matrix::AxisTable& axes);

}  // namespace graphproof::cli
