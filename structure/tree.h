// For the tests of this folder: the files of the tree and their texts.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace graphproof::structure {

/// The root of the tree: GRAPHPROOF_SOURCE, or the current folder.
const std::filesystem::path& root();

/// The text of a file; empty if it cannot be read.
std::string text_of(const std::filesystem::path& file);

/// The lines of a text, without their ends.
std::vector<std::string> lines_of(const std::string& text);

/// Every file of the tree that `wanted` takes, relative to the root and sorted. Left out: hidden
/// files, what was built, and recorded evidence.
std::vector<std::string> files(const std::function<bool(const std::filesystem::path&)>& wanted);

/// The C++ files of the tree.
std::vector<std::string> sources();

}  // namespace graphproof::structure
