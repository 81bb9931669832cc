// graphproof-generate [ROOT]: writes the generated files of the tree at ROOT, by default the
// current folder, and names each that it changed.
#include <exception>
#include <filesystem>
#include <iostream>
#include <string_view>

#include "reports/record/text/file.h"
#include "reports/record/verdict/exit_code.h"
#include "structure/generated_files.h"

int main(int argc, char** argv) {
  using namespace graphproof;
  const std::filesystem::path root = argc > 1 ? argv[1] : ".";
  try {
    for (const structure::GeneratedFile& file : structure::generated_files()) {
      const std::filesystem::path path = root / file.path;
      const std::string text = file.text();
      if (std::filesystem::exists(path) && record::read_text(path) == text) continue;
      std::filesystem::create_directories(path.parent_path());
      record::write_atomically(path, text, record::Survives::kill);
      std::cout << "wrote " << file.path << "\n";
    }
  } catch (const std::exception& error) {
    std::cerr << "graphproof-generate: " << error.what() << "\n";
    return static_cast<int>(record::ExitCode::own_fault);
  }
  return static_cast<int>(record::ExitCode::ok);
}
