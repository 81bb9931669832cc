#include "structure/tree.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>

namespace graphproof::structure {

namespace fs = std::filesystem;

const fs::path& root() {
  static const fs::path path = [] {
    const char* text = std::getenv("GRAPHPROOF_SOURCE");
    return fs::path(text != nullptr ? text : ".");
  }();
  return path;
}

std::string text_of(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> files(const std::function<bool(const fs::path&)>& wanted) {
  std::vector<std::string> found;
  for (const fs::directory_entry& top : fs::directory_iterator(root())) {
    const std::string name = top.path().filename();
    if (name.front() == '.' || name.starts_with("build") || name == "runs") continue;
    if (top.is_regular_file() && wanted(top.path())) found.push_back(name);
    if (!top.is_directory()) continue;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(top)) {
      const fs::path relative = fs::relative(entry.path(), root());
      const bool recorded = relative.string().starts_with("suites/recorded/") &&
                            relative.parent_path() != "suites/recorded";
      if (entry.is_regular_file() && !recorded && wanted(entry.path())) found.push_back(relative);
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<std::string> sources() {
  return files([](const fs::path& file) {
    const std::string extension = file.extension();
    return extension == ".h" || extension == ".cpp" || extension == ".cu";
  });
}

}  // namespace graphproof::structure
