// For tests: what is wrong with a text in a format that has no JSON schema.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace graphproof::reports {

inline std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// The exposition format line by line (prometheus.io/docs/instrumenting/exposition_formats), and
/// what the textfile collector asks in addition: no time stamps.
inline std::vector<std::string> prometheus_mistakes(const std::string& text) {
  static const std::regex comment(R"(# (HELP|TYPE) [a-zA-Z_:][a-zA-Z0-9_:]* .+)");
  static const std::string label = R"re([a-zA-Z_][a-zA-Z0-9_]*="([^"\\\n]|\\["\\n])*")re";
  static const std::regex sample(R"(([a-zA-Z_:][a-zA-Z0-9_:]*)\{()" + label +
                                 R"(,?)*\} -?[0-9.e+-]+)");
  std::vector<std::string> mistakes;
  if (!text.ends_with('\n')) mistakes.push_back("no newline at the end");
  std::string typed;
  std::set<std::string> seen;
  for (const std::string& line : lines_of(text)) {
    std::smatch match;
    if (line.starts_with("# TYPE ")) typed = line.substr(7, line.find(' ', 7) - 7);
    if (line.starts_with("#")) {
      if (!std::regex_match(line, comment)) mistakes.push_back(line);
    } else if (!std::regex_match(line, match, sample) || match[1] != typed) {
      mistakes.push_back(line);
    } else if (!seen.insert(line.substr(0, line.rfind(' '))).second) {
      mistakes.push_back("twice: " + line);
    }
  }
  return mistakes;
}

/// Workflow commands of GitHub: one a line, and no text that would be a second one.
inline std::vector<std::string> github_mistakes(const std::string& text) {
  static const std::regex command("::(error|notice) title=[^:,]*::.*");
  std::vector<std::string> mistakes;
  for (const std::string& line : lines_of(text))
    if (!std::regex_match(line, command) || line.find('\x1b') != std::string::npos)
      mistakes.push_back(line);
  return mistakes;
}

/// What xmllint says of a JUnit file by the schema of JUnit.
inline bool is_junit(const std::filesystem::path& file) {
  const char* source = std::getenv("GRAPHPROOF_SOURCE");
  const std::string command = "xmllint --noout --schema " + std::string(source ? source : ".") +
                              "/reports/print/formats/junit-10.xsd " + file.string() +
                              " > /dev/null 2>&1";
  return std::system(command.c_str()) == 0;
}

}  // namespace graphproof::reports
