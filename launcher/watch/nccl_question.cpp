#include "launcher/watch/nccl_question.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <sstream>
#include <thread>

#include "launcher/gpu/nccl_ras.h"
#include "launcher/host/clocks.h"
#include "reports/record/text/file.h"
#include "reports/record/text/printable.h"

namespace graphproof::launcher {
namespace {

// One communicator with differing ranks takes about ten lines.
constexpr std::size_t kMostFindings = 40;
constexpr std::chrono::milliseconds kLook{20};
constexpr const char* kOwnAddress = "localhost:28028";  // NCCL's default
/// Every answer of NCCL has this heading.
constexpr const char* kHeading = "Job summary";

std::string trimmed(std::string line) {
  while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
  return line;
}

}  // namespace

std::optional<std::string> watched_ras_address(const Environment& environment) {
  const auto enabled = environment.find("NCCL_RAS_ENABLE"),
             address = environment.find("NCCL_RAS_ADDR");
  if (enabled != environment.end() && enabled->second == "0") return std::nullopt;
  return address == environment.end() ? kOwnAddress : address->second;
}

std::string own_ras_address() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return "";
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof place;
  const bool found = bind(socket, reinterpret_cast<const sockaddr*>(&place), size) == 0 &&
                     getsockname(socket, reinterpret_cast<sockaddr*>(&place), &size) == 0;
  close(socket);
  return found ? "127.0.0.1:" + std::to_string(ntohs(place.sin_port)) : "";
}

std::vector<std::string> ras_findings(const std::string& answer) {
  std::vector<std::string> findings;
  bool inside = false, summary = false;
  std::string first, before;
  std::istringstream lines(answer);
  for (std::string line; std::getline(lines, line); before = line) {
    line = trimmed(line);
    if (first.empty()) first = line;
    if (line == kHeading) summary = true;
    // A heading is underlined with its own length.
    if (!line.empty() && line.find_first_not_of('=') == std::string::npos &&
        line.size() == before.size()) {
      if (inside && !findings.empty() && findings.back() == before) findings.pop_back();
      inside = before == "Errors" || before == "Warnings";
      continue;
    }
    if (!inside || line.empty()) continue;
    if (findings.size() == kMostFindings) {
      findings.push_back("... and more");
      return findings;
    }
    findings.push_back(record::printable(line));
  }
  if (!findings.empty()) return findings;
  if (summary) return {"NCCL's RAS service reports no error and no warning"};
  return {first.empty() ? "NCCL's RAS service sent nothing" : record::printable(first)};
}

std::optional<std::vector<std::string>> ask_nccl(const Environment& environment,
                                                 const std::filesystem::path& file,
                                                 bool uses_nccl) {
  const std::optional<std::string> address = watched_ras_address(environment);
  if (!address) {
    if (!uses_nccl) return std::nullopt;
    return std::vector<std::string>{"NCCL's RAS service was not asked: NCCL_RAS_ENABLE=0"};
  }
  NcclRas ras(*address, file, steady_ms());
  while (!ras.step(steady_ms())) std::this_thread::sleep_for(kLook);
  std::string answer;
  try {
    answer = record::read_text(file);
  } catch (const record::ReadError& error) {
    answer = error.what();
  }
  if (!uses_nccl && answer.find(kHeading) == std::string::npos) return std::nullopt;
  return ras_findings(answer);
}

}  // namespace graphproof::launcher
