#include "launcher/gpu/nccl_ras.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <string_view>
#include <utility>

namespace graphproof::launcher {
namespace {

constexpr char kOwnAddress[] = "localhost:28028";
constexpr std::string_view kQuestion = "verbose status\n";

std::optional<sockaddr_in> parsed(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  if (colon == address.npos) return std::nullopt;
  std::string host = address.substr(0, colon);
  if (host == "localhost") host = "127.0.0.1";
  std::uint16_t port = 0;
  const char* const last = address.data() + address.size();
  const auto [end, error] = std::from_chars(address.data() + colon + 1, last, port);
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_port = htons(port);
  if (error != std::errc() || end != last || inet_pton(AF_INET, host.c_str(), &place.sin_addr) != 1)
    return std::nullopt;
  return place;
}

}  // namespace

std::optional<std::string> ras_address(const Environment& environment) {
  const auto enabled = environment.find("NCCL_RAS_ENABLE"),
             address = environment.find("NCCL_RAS_ADDR");
  if (enabled == environment.end() || enabled->second == "0") return std::nullopt;
  return address == environment.end() ? kOwnAddress : address->second;
}

NcclRas::NcclRas(const std::string& address, std::filesystem::path file, std::int64_t now_ms)
    : file_(std::move(file)), deadline_ms_(now_ms + kAnswer_ms) {
  const auto place = parsed(address);
  if (!place) {
    end("NCCL's RAS service was not asked: NCCL_RAS_ADDR=" + address +
        " is no IPv4 address with a port");
    return;
  }
  socket_ = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (socket_ < 0 ||
      (connect(socket_, reinterpret_cast<const sockaddr*>(&*place), sizeof *place) != 0 &&
       errno != EINPROGRESS))
    end("NCCL's RAS service at " + address + " does not answer: " + std::strerror(errno));
}

NcclRas::~NcclRas() {
  if (socket_ >= 0) close(socket_);
}

void NcclRas::end(const std::string& trouble) {
  if (socket_ >= 0) close(socket_);
  socket_ = -1;
  std::ofstream(file_) << answer_ << trouble << (trouble.empty() ? "" : "\n");
}

bool NcclRas::step(std::int64_t now_ms) {
  if (socket_ < 0) return true;
  if (!asked_) {
    const auto sent = send(socket_, kQuestion.data(), kQuestion.size(), MSG_NOSIGNAL);
    asked_ = sent == static_cast<ssize_t>(kQuestion.size());
    // The socket is not connected yet, or no longer.
    if (sent < 0 && errno != EAGAIN && errno != ENOTCONN)
      end(std::string("NCCL's RAS service does not answer: ") + std::strerror(errno));
  }
  char part[4096];
  ssize_t got = -1;
  while (asked_ && socket_ >= 0 && static_cast<std::int64_t>(answer_.size()) < kMost_bytes &&
         (got = recv(socket_, part, sizeof part, 0)) > 0)
    answer_.append(part, static_cast<std::size_t>(got));
  if (socket_ >= 0 && (got == 0 || static_cast<std::int64_t>(answer_.size()) >= kMost_bytes))
    end("");
  if (socket_ >= 0 && now_ms >= deadline_ms_)
    end("NCCL's RAS service sent no more within " + std::to_string(kAnswer_ms / 1000) + " s");
  return socket_ < 0;
}

}  // namespace graphproof::launcher
