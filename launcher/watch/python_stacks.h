// Where Python programs are while a command hangs. The probe's Python half offers a file in memory
// (memfd) and a signal: the signal makes faulthandler write the stacks of all threads into the
// file. It takes no lock of the interpreter, so it answers inside a driver call that never returns.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace graphproof::launcher {

/// The start of the file's name, before the number of the signal; fixtures/probe/probe.py has it
/// too.
inline constexpr const char* kStacksFile = "graphproof-stacks-";

/// The main thread's stack out of what faulthandler wrote: "FILE:LINE FUNCTION", the innermost call
/// first. Empty where there is none.
std::vector<std::string> main_thread_stack(const std::string& written);

/// Asks processes of this host, by pid, and waits for at most a second. Those that offer no file
/// are left alone. What each wrote is then in `folder`, in NAME.python. Returns the stacks of their
/// main threads, by name.
std::map<std::string, std::vector<std::string>> ask_python(
    const std::map<std::string, std::int64_t>& processes, const std::filesystem::path& folder);

}  // namespace graphproof::launcher
