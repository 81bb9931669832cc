#include "launcher/backend/subjects.h"

#include <algorithm>
#include <sstream>
#include <system_error>

#include "launcher/backend/local_command.h"
#include "reports/record/text/fields.h"
#include "reports/record/text/file.h"

namespace graphproof::launcher {
namespace {

namespace fs = std::filesystem;

using Subjects = std::map<std::string, record::SubjectState>;

std::string value_of(const Environment& environment, const std::string& name) {
  const auto found = environment.find(name);
  return found == environment.end() ? "" : found->second;
}

/// The last line of what a program that failed printed; it says what is wrong.
std::string last_line(const std::string& text) {
  std::istringstream lines(text);
  std::string last;
  for (std::string line; std::getline(lines, line);)
    if (line.find_first_not_of(" \t\r") != std::string::npos) last = line;
  return last;
}

Subjects none_available(const std::vector<std::string>& names, const std::string& why) {
  Subjects subjects;
  for (const std::string& name : names) subjects[name] = {.version = "", .why = why};
  return subjects;
}

Subjects answer(const Command& command, const std::string& python,
                const std::vector<std::string>& names, std::int64_t deadline_ms) {
  const std::string where = python + " -m graphproof.subjects --json";
  Output output;
  try {
    output = run_to_end(command, deadline_ms);
  } catch (const std::system_error& error) {
    return none_available(names, where + " did not start: " + error.what());
  }
  if (output.timed_out)
    return none_available(
        names, where + " did not answer in " + std::to_string(deadline_ms / 1000) + " s");
  if (output.exit != Exit{})
    return none_available(
        names, where + " ended with " + (output.exit.signalled ? "signal " : "exit code ") +
                   std::to_string(output.exit.value) + ": " + last_line(output.error));
  try {
    return subjects_from(output.out, names, where);
  } catch (const record::ReadError& error) {
    return none_available(names, error.what());
  }
}

bool has_one(const Subjects& subjects) {
  return std::any_of(subjects.begin(), subjects.end(),
                     [](const auto& one) { return one.second.available; });
}

}  // namespace

std::vector<std::string> pythons(const Environment& own) {
  if (const std::string asked = value_of(own, "GRAPHPROOF_PYTHON"); !asked.empty()) return {asked};
  fs::path home = value_of(own, "GRAPHPROOF_HOME");
  if (home.empty()) {
    const std::string cache = value_of(own, "XDG_CACHE_HOME");
    home = (cache.empty() ? fs::path(value_of(own, "HOME")) / ".cache" : fs::path(cache)) /
           "graphproof";
  }
  return {"python3", home / "python/bin/python"};
}

std::vector<std::string> subjects_command(const std::string& python, const fs::path& programs,
                                          const Environment& own) {
  return {"/usr/bin/env",
          "PYTHONPATH=" + python_path(programs, own),
          python,
          "-m",
          "graphproof.subjects",
          "--json"};
}

Subjects subjects_from(std::string_view text, const std::vector<std::string>& names,
                       const std::string& where) {
  // Python may print warnings before it.
  const std::size_t begin = text.find('{');
  const nlohmann::json read =
      record::parse_json(begin == text.npos ? text : text.substr(begin), where);
  const record::Fields in(read, where);
  Subjects subjects = none_available(names, where + " does not name it");
  for (const std::string& name : names) {
    if (!in.has(name)) continue;
    const record::Fields one = in.object(name);
    subjects[name] = {.available = one.required<bool>("available"),
                      .version = one.optional<std::string>("version").value_or(""),
                      .why = one.optional<std::string>("why").value_or("")};
    if (!subjects[name].available && subjects[name].why.empty())
      subjects[name].why = where + " gives no reason";
  }
  return subjects;
}

void ask_for_subjects(record::Stack& stack, const std::vector<std::string>& names,
                      const std::vector<std::string>& pythons,
                      const std::function<Command(const std::string& python)>& command,
                      std::int64_t deadline_ms) {
  stack.python.clear();
  for (const std::string& python : pythons) {
    Subjects subjects = answer(command(python), python, names, deadline_ms);
    const bool found = has_one(subjects);
    if (!found && !stack.python.empty()) continue;
    stack.python = python;
    stack.subjects = std::move(subjects);
    if (found) return;
  }
}

}  // namespace graphproof::launcher
