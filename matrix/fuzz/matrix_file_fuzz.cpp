// Reads arbitrary bytes as a matrix file. It must be read, or refused with a place and advice; a
// file that was read must be planned or refused.
#include <cassert>
#include <cstdint>
#include <string>
#include <string_view>

#include "matrix/plan/plan.h"

using namespace graphproof::matrix;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Catalogue catalogue = load_catalogue();
  const std::string text(reinterpret_cast<const char*>(data), size);
  const FileReader none = [](const std::string& path) -> std::string {
    throw InputError({.what = "no file " + path,
                      .got = "",
                      .want = "",
                      .why = "",
                      .next = "name a file",
                      .place = {}});
  };
  try {
    MatrixFile file = parse_matrix_file(text, "m.json", catalogue, none);
    const Machine machine{.device = "sim", .slots = 4, .stack = {}};
    for (auto& [name, profile] : file.profiles) {
      // A profile may ask for a long search; a fuzz run has to be short.
      if (profile.sample > 0 || profile.cover) profile.cover.reset();
      profile.sample = 3;
      if (profile.cases == "product") make_plan(file, catalogue, name, machine, std::nullopt);
    }
  } catch (const InputError& error) {
    assert(!error.problem().next.empty());
  }
  return 0;
}
