#include "launcher/watch/python_stacks.h"

#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <system_error>
#include <thread>

#include "reports/record/text/file.h"
#include "reports/record/text/printable.h"

namespace graphproof::launcher {
namespace {

namespace fs = std::filesystem;

constexpr int kStackLooks = 20;
constexpr std::chrono::milliseconds kStackLook{50};
constexpr std::string_view kTitleEnd = "(most recent call first):";

struct Offer {
  fs::path file;
  int signal = 0;
};

std::optional<Offer> offer_of(std::int64_t pid) {
  std::error_code error;
  const std::string begin = std::string("/memfd:") + kStacksFile;
  for (const auto& entry : fs::directory_iterator("/proc/" + std::to_string(pid) + "/fd", error)) {
    const std::string target = fs::read_symlink(entry.path(), error);
    if (error || !target.starts_with(begin)) continue;
    const int signal = std::atoi(target.c_str() + begin.size());
    // Any other signal may mean something to the program.
    if (signal >= SIGRTMIN && signal <= SIGRTMAX) return Offer{entry.path(), signal};
  }
  return std::nullopt;
}

std::string written_in(const fs::path& file) {
  try {
    return record::read_text(file);
  } catch (const record::ReadError&) {
    return "";  // the process is gone
  }
}

/// `  File "train.py", line 34 in <module>` as "train.py:34 <module>".
std::string frame_of(const std::string& line) {
  constexpr std::string_view kFile = "  File \"", kLine = "\", line ", kFunction = " in ";
  const std::size_t number = line.rfind(kLine);
  if (!line.starts_with(kFile) || number == std::string::npos) return "";
  const std::size_t function = line.find(kFunction, number);
  if (function == std::string::npos) return "";
  const std::size_t digits = number + kLine.size();
  return record::printable(line.substr(kFile.size(), number - kFile.size()) + ":" +
                           line.substr(digits, function - digits) + " " +
                           line.substr(function + kFunction.size()));
}

}  // namespace

std::vector<std::string> main_thread_stack(const std::string& written) {
  std::vector<std::string> frames;
  std::istringstream lines(written);
  for (std::string line; std::getline(lines, line);) {
    // The newest thread comes first, so the main thread is the last one.
    if (line.ends_with(kTitleEnd)) frames.clear();
    if (std::string frame = frame_of(line); !frame.empty()) frames.push_back(std::move(frame));
  }
  return frames;
}

std::map<std::string, std::vector<std::string>> ask_python(
    const std::map<std::string, std::int64_t>& processes, const fs::path& folder) {
  std::map<std::string, fs::path> asked;
  for (const auto& [name, pid] : processes)
    if (const auto offer = offer_of(pid);
        offer && ::kill(static_cast<pid_t>(pid), offer->signal) == 0)
      asked[name] = offer->file;
  std::map<std::string, std::string> written;
  for (int look = 0; look < kStackLooks; ++look) {
    std::map<std::string, std::string> now;
    for (const auto& [name, file] : asked) now[name] = written_in(file);
    bool whole = now == written;
    for (const auto& [name, text] : now) whole = whole && !text.empty();
    written = std::move(now);
    if (whole) break;
    std::this_thread::sleep_for(kStackLook);
  }
  std::map<std::string, std::vector<std::string>> stacks;
  for (const auto& [name, text] : written) {
    if (text.empty()) continue;
    record::write_atomically(folder / (name + ".python"), text);
    if (auto stack = main_thread_stack(text); !stack.empty()) stacks[name] = std::move(stack);
  }
  return stacks;
}

}  // namespace graphproof::launcher
