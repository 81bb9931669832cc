#include "launcher/cli/qualify/seal.h"

#include <algorithm>
#include <vector>

#include "launcher/cli/file_digest.h"
#include "matrix/case/case.h"
#include "reports/record/text/file.h"

namespace graphproof::cli {
namespace {

namespace fs = std::filesystem;

/// A line of sha256sum. A name with a backslash or a newline is escaped, which a backslash at the
/// beginning of the line says.
std::string line_of(const std::string& digest, const std::string& name) {
  std::string escaped;
  for (const char c : name)
    escaped += c == '\\' ? "\\\\" : c == '\n' ? "\\n" : c == '\r' ? "\\r" : std::string(1, c);
  return (escaped == name ? "" : "\\") + digest + "  " + escaped + "\n";
}

}  // namespace

Seal seal(const fs::path& folder) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_symlink() || !entry.is_regular_file()) continue;
    const std::string name = fs::relative(entry.path(), folder).string();
    if (!name.starts_with(kSums) && !name.starts_with("qualification.")) names.push_back(name);
  }
  std::ranges::sort(names);
  std::string text;
  for (const std::string& name : names) text += line_of(sha256_of_file(folder / name), name);
  record::write_atomically(folder / kSums, text);
  return {static_cast<int>(names.size()), matrix::sha256_hex(text)};
}

}  // namespace graphproof::cli
