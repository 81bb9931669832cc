// The texts of --help and of the verb `help`, rendered from the table of verbs and from the options
// that each verb declares.
#pragma once

#include <CLI/CLI.hpp>

#include <span>
#include <string>
#include <vector>

#include "launcher/cli/verb.h"

namespace graphproof::cli {

/// What `help` prints: every verb but the internal ones, in groups, one line each.
std::string overview(std::span<const Verb> verbs);

/// What `help VERB` prints: usage, options under their headings, an example. `app` has the options
/// of the verb.
std::string help_text(const Verb& verb, const CLI::App& app);

/// The options in the order of their declaration, without --help and hidden ones.
std::vector<const CLI::Option*> shown_options(const CLI::App& app);
std::vector<const CLI::Option*> positional_arguments(const CLI::App& app);

/// What the value of `option` is called in help texts, such as FILE or auto|sim|cuda; empty for a
/// flag. A positional argument is called by its name.
std::string value_name(const CLI::Option& option);

/// The values that `option` takes, where its type name lists them (auto|sim|cuda); otherwise empty.
std::vector<std::string> listed_values(const CLI::Option& option);

}  // namespace graphproof::cli
