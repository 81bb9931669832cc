// Which subjects other than reference a host can run. The user's Python says it, whose PyTorch is
// under test: `PYTHON -m graphproof.subjects --json` prints for each subject whether its package is
// installed in a version that is supported, without importing it and without a context on a GPU.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/host/child.h"
#include "reports/record/run/run.h"

namespace graphproof::launcher {

/// The Pythons that may be the user's, in the order in which ./graphproof looks for one with
/// PyTorch: $GRAPHPROOF_PYTHON alone if it is set; otherwise python3, and the one in the private
/// folder.
std::vector<std::string> pythons(const Environment& own);

/// The words that ask `python`. `programs` is the folder of the programs of graphproof.
std::vector<std::string> subjects_command(const std::string& python,
                                          const std::filesystem::path& programs,
                                          const Environment& own);

/// Reads an answer. A subject of `names` that it leaves out is not available; other names are
/// ignored. Throws record::ReadError for a text without a JSON object or with another shape.
std::map<std::string, record::SubjectState> subjects_from(std::string_view text,
                                                          const std::vector<std::string>& names,
                                                          const std::string& where);

// An answer takes a second; the first one reads Python from cold storage.
inline constexpr std::int64_t kAskForSubjects_ms = 30000;

/// Asks `pythons` one after the other and fills in `stack.python` and `stack.subjects`: from the
/// first one that has a subject, or else from the first one. No answer means that no subject is
/// available, with what happened as the reason. `command` gives the command that asks a Python.
/// Waits for each answer, `deadline_ms` at most. REQUIRES: `pythons` is not empty.
void ask_for_subjects(record::Stack& stack, const std::vector<std::string>& names,
                      const std::vector<std::string>& pythons,
                      const std::function<Command(const std::string& python)>& command,
                      std::int64_t deadline_ms = kAskForSubjects_ms);

}  // namespace graphproof::launcher
