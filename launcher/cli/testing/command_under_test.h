// For tests of verbs: runs a command line in this process, in a folder that belongs to the test.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "launcher/cli/verb.h"
#include "reports/record/testing/scratch_folder.h"

namespace graphproof::cli {

/// What a command line printed.
struct Printed {
  int exit_code = 0;
  std::string out, err;
};

/// The fixture. `cli` is the whole program except for its main().
struct CommandUnderTest : testing::Test {
  Printed cli(const std::vector<std::string>& arguments) const {
    std::ostringstream out, err;
    Surroundings surroundings{.catalogue = catalogue,
                              .command_line = arguments,
                              .out = out,
                              .err = err,
                              .programs = top / "bin",
                              .runs = top / "runs"};
    const int exit_code = run_command_line(arguments, surroundings);
    return {exit_code, out.str(), err.str()};
  }
  /// Writes a file into the folder and returns its path.
  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(top / name) << text;
    return top / name;
  }

  const matrix::Catalogue catalogue = matrix::load_catalogue();
  // Not in /dev/shm, the default of ScratchFolder, because the launcher looks for leftovers of
  // ranks there.
  const record::ScratchFolder scratch{"/tmp"};
  const std::filesystem::path top = scratch.path();
};

}  // namespace graphproof::cli
