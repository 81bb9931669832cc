// The files of the tree that are generated from tables in the code. `graphproof-generate` writes
// them, and generated_test holds the tree to them. A new one is a row in generated_files.cpp.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace graphproof::structure {

struct GeneratedFile {
  std::string path;                   // from the root of the tree
  std::function<std::string()> text;  // what the file has to hold
};

/// In the order of their paths, except that the files of one table stand together.
const std::vector<GeneratedFile>& generated_files();

}  // namespace graphproof::structure
