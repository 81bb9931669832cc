// The map of the tree: what each folder with sources is, and which folders its files may include.
// The structure test holds the tree to it.
#pragma once

#include <string>
#include <vector>

namespace graphproof::structure {

struct Folder {
  std::string path;
  std::string purpose;
  /// Files of the folder may include these folders, and what these may include in turn.
  std::vector<std::string> may_include;
  /// So may its tests (*_test.cpp), and these in addition.
  std::vector<std::string> tests_may_include;
};

/// In the order of their paths.
const std::vector<Folder>& folders();

}  // namespace graphproof::structure
