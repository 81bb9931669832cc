// Runs graphproof itself as a child, for verbs whose parts are runs of their own.
#pragma once

#include <filesystem>

#include "launcher/host/child.h"
#include "launcher/host/signals.h"

namespace graphproof::cli {

/// Runs a child to its end and returns its exit code; what it prints goes to `log`. Interrupts are
/// passed on. One that was killed has 5 if it was asked to stop, and otherwise 6; one that could
/// not be started has 3.
int run_child(const launcher::Command& command, const std::filesystem::path& log,
              launcher::Signals& signals);

}  // namespace graphproof::cli
