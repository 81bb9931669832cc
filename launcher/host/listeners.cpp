#include "launcher/host/listeners.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>

#include "launcher/host/processes.h"

namespace graphproof::launcher {
namespace {

constexpr int kListenState = 10;  // TCP_LISTEN of the kernel
// The kernel answers at once.
constexpr timeval kAnswer{.tv_sec = 1, .tv_usec = 0};

/// Asks the kernel for the listening sockets of one address family only. False where it does not
/// answer such a question.
bool ask(int socket, std::uint8_t family, Listeners& found) {
  struct {
    nlmsghdr header;
    inet_diag_req_v2 request;
  } question{};
  question.header.nlmsg_len = sizeof question;
  question.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  question.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  question.request.sdiag_family = family;
  question.request.sdiag_protocol = IPPROTO_TCP;
  question.request.idiag_states = 1u << kListenState;
  if (send(socket, &question, sizeof question, 0) != static_cast<ssize_t>(sizeof question))
    return false;
  alignas(nlmsghdr) std::array<char, 1 << 15> answer;
  for (;;) {
    const ssize_t got = recv(socket, answer.data(), answer.size(), 0);
    if (got <= 0) return false;
    auto left = static_cast<unsigned>(got);
    for (auto* message = reinterpret_cast<nlmsghdr*>(answer.data()); NLMSG_OK(message, left);
         message = NLMSG_NEXT(message, left)) {
      if (message->nlmsg_type == NLMSG_DONE) return true;
      if (message->nlmsg_type != SOCK_DIAG_BY_FAMILY) return false;
      const auto* seen = static_cast<const inet_diag_msg*>(NLMSG_DATA(message));
      found.emplace(std::to_string(seen->idiag_inode), ntohs(seen->id.idiag_sport));
    }
  }
}

std::optional<Listeners> by_netlink() {
  const int socket = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
  if (socket < 0) return std::nullopt;
  setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &kAnswer, sizeof kAnswer);
  Listeners found;
  const bool answered = ask(socket, AF_INET, found) && ask(socket, AF_INET6, found);
  close(socket);
  return answered ? std::optional(std::move(found)) : std::nullopt;
}

/// /proc/net/tcp: "sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode ...",
/// addresses in hex.
Listeners by_proc() {
  static constexpr std::string_view kListen = "0A";
  Listeners found;
  for (const char* file : {"/proc/self/net/tcp", "/proc/self/net/tcp6"}) {
    std::istringstream lines(proc_text(file));
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string number, local, remote, state, queues, timer, retries, user, timeout, inode;
      words >> number >> local >> remote >> state >> queues >> timer >> retries >> user >>
          timeout >> inode;
      const auto colon = local.rfind(':');
      if (state == kListen && colon != std::string::npos)
        found.emplace(inode, static_cast<int>(std::strtol(local.c_str() + colon + 1, nullptr, 16)));
    }
  }
  return found;
}

}  // namespace

// Asks by netlink first, because /proc/net/tcp walks every connection of the host, which takes
// milliseconds. Containers may forbid netlink.
Listeners all_listeners() {
  const std::optional<Listeners> found = by_netlink();
  return found ? *found : by_proc();
}

Listeners listeners_of(const std::vector<int>& pids) {
  static constexpr std::string_view kSocket = "socket:[";
  std::set<std::string> sockets;
  for (const int pid : pids)
    for (const std::string& target : open_files(pid))
      if (target.starts_with(kSocket))
        sockets.insert(target.substr(kSocket.size(), target.size() - kSocket.size() - 1));
  if (sockets.empty()) return {};
  Listeners found = all_listeners();
  std::erase_if(found, [&](const auto& listener) { return !sockets.contains(listener.first); });
  return found;
}

}  // namespace graphproof::launcher
