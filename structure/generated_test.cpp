// Generated files are what the tables that they come from say today.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "reports/record/text/file.h"
#include "structure/generated_files.h"

namespace graphproof::structure {
namespace {

TEST(GeneratedFiles, AreWhatTheirTablesSay) {
  const char* source = std::getenv("GRAPHPROOF_SOURCE");
  const std::filesystem::path root = source != nullptr ? source : ".";
  for (const GeneratedFile& file : generated_files()) {
    const std::filesystem::path path = root / file.path;
    const std::string text = std::filesystem::exists(path) ? record::read_text(path) : "";
    EXPECT_TRUE(text == file.text())
        << file.path << " is not what its table says; next: run build/bin/graphproof-generate in "
        << "the root of the tree, and commit what it wrote";
  }
}

}  // namespace
}  // namespace graphproof::structure
