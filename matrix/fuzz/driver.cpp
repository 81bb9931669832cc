// Runs a fuzz target without libFuzzer, with the same inputs on every machine: every file of a
// corpus folder, then inputs that are made from them by small changes. Usage: `TARGET FOLDER RUNS
// [SEED]`. An input that crashes the program is left in TARGET-last-input.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "matrix/cover/model/random.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

namespace fs = std::filesystem;
using graphproof::cover::Random;

constexpr std::size_t kMostBytes = 8192;  // of an input; longer inputs are slower and find no more
constexpr int kMostChanges = 6;           // in one input

std::vector<std::string> corpus_of(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<std::string> corpus;
  for (const fs::path& file : files) {
    std::ifstream in(file, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return corpus;
}

void change(std::string& text, const std::vector<std::string>& corpus, Random& random) {
  const auto place = [&](const std::string& of) {
    return of.empty() ? 0 : static_cast<std::size_t>(random.below(static_cast<int>(of.size())));
  };
  const std::string& other =
      corpus[static_cast<std::size_t>(random.below(static_cast<int>(corpus.size())))];
  switch (random.below(5)) {
    case 0:
      if (!text.empty()) text[place(text)] = static_cast<char>(random.below(256));
      break;
    case 1:
      text.erase(place(text), static_cast<std::size_t>(1 + random.below(16)));
      break;
    case 2:
      text.insert(place(text), 1, "{}[](),:\"'\\ 0149-+*/%<>=!.eaun\n"[random.below(32)]);
      break;
    case 3:
      text.insert(place(text),
                  other.substr(place(other), static_cast<std::size_t>(1 + random.below(32))));
      break;
    default: {
      const std::string part =
          text.substr(place(text), static_cast<std::size_t>(1 + random.below(64)));
      text.insert(place(text), part);
    }
  }
  if (text.size() > kMostBytes) text.resize(kMostBytes);
}

}  // namespace

int main(int count, char** words) {
  if (count < 3) {
    std::cerr << words[0] << " FOLDER RUNS [SEED]\n";
    return 2;
  }
  const std::vector<std::string> corpus = corpus_of(words[1]);
  const long runs = std::strtol(words[2], nullptr, 10);
  Random random(count > 3 ? std::strtoull(words[3], nullptr, 10) : 1);
  if (corpus.empty() || runs < 1) {
    std::cerr << words[1] << " has no file, or no runs are wanted\n";
    return 2;
  }
  const std::string last_input = std::string(words[0]) + "-last-input";
  // The file stays open, because creating it for each of thousands of inputs takes a minute.
  const int kept = ::open(last_input.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  const auto run = [&](const std::string& text) {
    if (::ftruncate(kept, 0) != 0 || ::pwrite(kept, text.data(), text.size(), 0) < 0) std::exit(2);
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
  };
  for (const std::string& text : corpus) run(text);
  for (long at = 0; at < runs; ++at) {
    std::string text =
        corpus[static_cast<std::size_t>(random.below(static_cast<int>(corpus.size())))];
    for (int changes = 1 + random.below(kMostChanges); changes > 0; --changes)
      change(text, corpus, random);
    run(text);
  }
  fs::remove(last_input);
  std::cout << corpus.size() << " corpus files and " << runs << " changed inputs\n";
  return 0;
}
