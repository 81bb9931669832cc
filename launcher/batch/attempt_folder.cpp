#include "launcher/batch/attempt_folder.h"

#include <algorithm>
#include <cstdlib>
#include <system_error>

namespace graphproof::launcher {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kAttempt = "attempt-";

/// The number after `prefix` in a folder's name; 0 for every other name.
int number_of(const fs::path& folder, std::string_view prefix) {
  const std::string name = folder.filename();
  if (!name.starts_with(prefix) || name.find_first_not_of("0123456789", prefix.size()) != name.npos)
    return 0;
  return std::atoi(name.c_str() + prefix.size());
}

}  // namespace

fs::path attempt_folder(const std::string& case_id, int attempt) {
  return fs::path("cases") / case_id / (std::string(kAttempt) + std::to_string(attempt));
}

std::vector<int> attempt_numbers(const fs::path& run_folder, const std::string& case_id) {
  return numbers_in(run_folder / "cases" / case_id, kAttempt);
}

bool was_begun(const fs::path& folder) {
  std::error_code absent;
  return !fs::is_empty(folder, absent) && !absent;
}

std::vector<int> numbers_in(const fs::path& folder, std::string_view prefix) {
  std::vector<int> numbers;
  std::error_code absent;
  for (const auto& entry : fs::directory_iterator(folder, absent))
    if (const int number = number_of(entry.path(), prefix); number > 0) numbers.push_back(number);
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

}  // namespace graphproof::launcher
