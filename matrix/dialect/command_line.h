// Reads an upstream command line as argparse would, without running it: flags by their whole name,
// values by nargs and type, choices, repeated flags (the last counts), `--flag=value`, negative
// numbers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "matrix/dialect/dialect.h"
#include "matrix/dialect/finding.h"

namespace graphproof::dialect {

/// What stands before the options: `K=V torchrun --nproc-per-node 8 pretrain_gpt.py`.
struct Program {
  std::vector<std::pair<std::string, std::string>> environment;
  std::optional<std::int64_t> world_size;  // processes, where the starter's options say how many
  std::size_t first_option = 0;            // index of the first word after it
};
Program read_program(const std::vector<std::string>& words);

/// The rule of a flag that upstream's parser does not have. Undecided (`Finding::unknown`) where no
/// flag resembles it.
inline constexpr const char* kUnknownFlag = "RN01";

/// Options of `words` from index `begin` on. Values that can't be taken are findings and leave the
/// option unknown.
Reading read_command_line(const Dialect& dialect, const std::vector<std::string>& words,
                          std::size_t begin, bool harness);

/// The words as one line, quoted for a shell where needed.
std::string shell_line(const std::vector<std::string>& words);
/// The words of a line with shell quotes; for examples in data files.
std::vector<std::string> shell_words(const std::string& line);

}  // namespace graphproof::dialect
