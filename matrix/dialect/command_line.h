// Reads an upstream command line as argparse would: flags by their whole name, values by nargs and
// type, choices, repeated flags (the last one counts), `--flag=value`, negative numbers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "matrix/dialect/dialect.h"
#include "matrix/dialect/finding.h"

namespace graphproof::dialect {

/// What precedes the options: `K=V torchrun --nproc-per-node 8 pretrain_gpt.py`.
struct Program {
  std::vector<std::pair<std::string, std::string>> environment;
  std::optional<std::int64_t> world_size;  // if the options of torchrun and the like give it
  std::size_t first_option = 0;            // the index of the first word after it
};
Program read_program(const std::vector<std::string>& words);

/// The rule about a flag that upstream's parser does not have. Its finding is undecided
/// (`Finding::unknown`) if no flag resembles the one that was written.
inline constexpr const char* kUnknownFlag = "RN01";

/// Reads the options in `words` from index `begin` on. A value that is not accepted is a finding
/// and leaves the option unknown. `harness`: the flags are those of a performance harness.
Reading read_command_line(const Dialect& dialect, const std::vector<std::string>& words,
                          std::size_t begin, bool harness);

/// The words as one line, with quotes for a shell where needed.
std::string shell_line(const std::vector<std::string>& words);
/// Splits a line with shell quotes into words; for examples in data files.
std::vector<std::string> shell_words(const std::string& line);

}  // namespace graphproof::dialect
