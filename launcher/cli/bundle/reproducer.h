// A program of PyTorch alone that repeats a case, for people who do not have graphproof.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "matrix/case/case.h"
#include "matrix/catalogue/catalogue.h"
#include "reports/record/job/plan.h"

namespace graphproof::cli {

struct Reproducer {
  std::string text;     // of reproducer.py; "" if there is none
  std::string command;  // that runs it
  std::string why_not;  // why there is none; "" if there is one
};

/// There is one for a single collective of subject reference and for a training step of subject
/// torch, if no axis has a value that the program does not know. `environment`: that of the user in
/// the run. The programs are in the Python package (graphproof/reproducers), which is in the folder
/// of `programs`. Throws InputError if that is missing.
Reproducer reproducer_of(const matrix::Case& test_case, const record::PlanLine& line,
                         std::uint64_t seed, const std::map<std::string, std::string>& environment,
                         const std::filesystem::path& programs);

}  // namespace graphproof::cli
