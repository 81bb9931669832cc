// README.md and the pages of docs/guide and docs/reference promise commands; this runs them, on the
// simulated device and in order, in an empty folder. Lines marked "# needs GPUs" or "# needs Slurm"
// are only parsed (their options are shown to exist), and `./graphproof test` is what runs this
// test. A jsonc block whose first line is "// NAME.json" is a file that the commands find.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

struct Command {
  std::string arguments;
  bool needs_gpus = false;
};

/// The lines "$ ./graphproof ARGUMENTS" of the console blocks.
std::vector<Command> commands(const fs::path& document) {
  static const std::regex shown(R"(^ *\$ \./graphproof ([^#]*?)\s*(#\s*needs (GPUs|Slurm).*)?$)");
  std::vector<Command> found;
  std::ifstream in(document);
  std::smatch match;
  for (std::string line; std::getline(in, line);)
    if (std::regex_match(line, match, shown)) found.push_back({match[1], match[2].matched});
  return found;
}

/// README.md first, then the pages of both folders, by name.
std::vector<fs::path> documents(const fs::path& source) {
  std::vector<fs::path> pages;
  for (const char* folder : {"docs/guide", "docs/reference"})
    for (const fs::directory_entry& entry : fs::directory_iterator(source / folder))
      if (entry.path().extension() == ".md") pages.push_back(entry.path());
  std::sort(pages.begin(), pages.end());
  pages.insert(pages.begin(), source / "README.md");
  return pages;
}

void write_files(const fs::path& document, const fs::path& folder) {
  static const std::regex name(R"(^// (\w+\.json)$)");
  std::ifstream in(document);
  std::smatch match;
  for (std::string line; std::getline(in, line);) {
    if (line != "```jsonc" || !std::getline(in, line) || !std::regex_match(line, match, name))
      continue;
    std::ofstream file(folder / match[1].str());
    while (std::getline(in, line) && line != "```") file << line << "\n";
  }
}

std::string text_of(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(ReadmeTest, EveryShownCommandRuns) {
  const fs::path folder =
      fs::temp_directory_path() / ("graphproof-readme-" + std::to_string(getpid()));
  fs::create_directories(folder);
  const std::string program = std::string(std::getenv("GRAPHPROOF_BIN")) + "/graphproof";
  int ran = 0, parsed = 0;
  const fs::path source = std::getenv("GRAPHPROOF_SOURCE");
  std::vector<Command> shown;
  for (const fs::path& document : documents(source)) {
    write_files(document, folder);
    const std::vector<Command> of_document = commands(document);
    shown.insert(shown.end(), of_document.begin(), of_document.end());
  }
  for (const Command& command : shown) {
    if (command.arguments == "test") continue;
    const fs::path log = folder / "log";
    // A shell is right here: these are the words that a reader types into one.
    std::string arguments = command.arguments;
    // What follows `--` belongs to another program.
    if (command.needs_gpus)
      arguments.insert(std::min(arguments.find(" -- "), arguments.size()), " --help");
    const std::string line = "cd '" + folder.string() + "' && '" + program + "' " + arguments +
                             " >'" + log.string() + "' 2>&1";
    const int status = std::system(line.c_str());
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
        << "./graphproof " << command.arguments << " ended with " << status << "\n"
        << text_of(log);
    ++(command.needs_gpus ? parsed : ran);
  }
  EXPECT_GE(ran, 6) << "the documents were not read";
  EXPECT_GE(parsed, 1);
  fs::remove_all(folder);
}

}  // namespace
