#include "suites/checks/collectives/nccl_log.h"

#include <array>

namespace graphproof::checks {
namespace {

/// What a line of the log reports about a buffer.
enum class Meaning { registered, refused };

/// `text` is what the line has right before the address of the buffer.
struct Pattern {
  std::string_view text;
  Meaning meaning;
};
// "IPC registering buffer" only announces an attempt, and "Proxy rank N register" belongs to a
// registration by the peer, so neither is in this list.
constexpr std::array kPatterns = {
    Pattern{"IPC register buffer ", Meaning::registered},
    Pattern{"IPC reuse buffer ", Meaning::registered},
    Pattern{"NET register userbuff ", Meaning::registered},
    Pattern{"COLLNET register userbuff ", Meaning::registered},
    Pattern{"COLLNET reuse register userbuff ", Meaning::registered},
    Pattern{"successfully registered NVLS sendbuff ", Meaning::registered},
    Pattern{"reuse registered NVLS sendbuff ", Meaning::registered},
    Pattern{"failed to IPC register userbuff ", Meaning::refused},
    Pattern{"failed to NET register userbuff ", Meaning::refused},
    Pattern{"COLLNET failed to register userbuff ", Meaning::refused},
    Pattern{"failed to NVLS register sendbuff ", Meaning::refused},
    Pattern{"Skipping graph registration for buffer ", Meaning::refused},
};

/// The word up to the next separator; "" without one, because the rank may have died in the middle
/// of the word.
std::string word_at(std::string_view line, std::size_t begin) {
  const std::size_t end = line.find_first_of(" ,)", begin);
  return end == std::string_view::npos ? "" : std::string(line.substr(begin, end - begin));
}

void read_line(std::string_view line, NcclLog& log) {
  for (const Pattern& pattern : kPatterns) {
    const std::size_t at = line.find(pattern.text);
    if (at == std::string_view::npos) continue;
    const std::string address = word_at(line, at + pattern.text.size());
    if (address.starts_with("0x"))
      (pattern.meaning == Meaning::registered ? log.registered : log.refused).insert(address);
    return;
  }
  if (line.find(": opCount ") != std::string_view::npos) ++log.collectives;
  constexpr std::string_view kAlgorithm = "-> Algo ", kProtocol = " proto ";
  const std::size_t algorithm = line.find(kAlgorithm), protocol = line.find(kProtocol);
  if (algorithm != std::string_view::npos && protocol != std::string_view::npos)
    log.protocols.insert(word_at(line, algorithm + kAlgorithm.size()) + " " +
                         word_at(line, protocol + kProtocol.size()));
}

}  // namespace

NcclLog read_nccl_log(std::string_view log) {
  NcclLog result;
  constexpr std::string_view kInfo = " NCCL INFO ";
  while (!log.empty()) {
    const std::size_t end = log.find('\n');
    const std::string_view line = log.substr(0, end);
    log.remove_prefix(end == std::string_view::npos ? log.size() : end + 1);
    const std::size_t info = line.find(kInfo);
    if (info == std::string_view::npos) continue;
    ++result.info_lines;
    read_line(line.substr(info + kInfo.size()), result);
  }
  return result;
}

}  // namespace graphproof::checks
