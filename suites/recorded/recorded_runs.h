// For the tests of this folder: the folders of the unpacked recorded runs.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

namespace graphproof {

inline std::vector<std::filesystem::path> recorded_runs() {
  std::vector<std::filesystem::path> runs;
  std::istringstream list(std::getenv("GRAPHPROOF_RECORDED"));
  for (std::string run; std::getline(list, run, ':');) runs.emplace_back(run);
  return runs;
}

}  // namespace graphproof
