#include "launcher/gpu/nccl_ras.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "reports/record/testing/scratch_folder.h"
#include "reports/record/text/file.h"

namespace graphproof::launcher {
namespace {

/// Listens on loopback and answers one client with `answer` once it has asked; closes the
/// connection if `whole`.
class FakeRas {
 public:
  FakeRas(std::string answer, bool whole) : listener_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in place{};
    place.sin_family = AF_INET;
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof place;
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&place), size), 0);
    EXPECT_EQ(listen(listener_, 1), 0);
    getsockname(listener_, reinterpret_cast<sockaddr*>(&place), &size);
    port_ = ntohs(place.sin_port);
    thread_ = std::jthread([this, answer = std::move(answer), whole] {
      client_ = accept(listener_, nullptr, nullptr);
      char part[64];
      while (question_.find('\n') == question_.npos) {
        const auto got = recv(client_, part, sizeof part, 0);
        if (got <= 0) break;
        question_.append(part, static_cast<std::size_t>(got));
      }
      EXPECT_EQ(send(client_, answer.data(), answer.size(), MSG_NOSIGNAL),
                static_cast<ssize_t>(answer.size()));
      if (whole) shutdown(client_, SHUT_RDWR);
    });
  }
  ~FakeRas() {
    thread_.join();
    close(client_);
    close(listener_);
  }
  std::string address() const { return "localhost:" + std::to_string(port_); }
  const std::string& question() const { return question_; }

 private:
  int listener_, client_ = -1, port_ = 0;
  std::string question_;
  std::jthread thread_;
};

/// The content of the file at the end. The clock of `ras` advances a round each millisecond.
std::string asked(const std::string& address) {
  const record::ScratchFolder folder;
  const auto file = folder.path() / "nccl-ras";
  NcclRas ras(address, file, 1000);
  for (std::int64_t now_ms = 1000; !ras.step(now_ms); now_ms += 5) {
    if (now_ms > 1000 + 2 * NcclRas::kAnswer_ms) return "it never ended";
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return record::read_text(file);
}

TEST(NcclRasTest, OnlyRanksThatWereGivenTheServiceAreAsked) {
  EXPECT_EQ(ras_address({}), std::nullopt);
  EXPECT_EQ(ras_address({{"NCCL_RAS_ENABLE", "0"}}), std::nullopt);
  EXPECT_EQ(ras_address({{"NCCL_RAS_ENABLE", "1"}}), "localhost:28028");
  EXPECT_EQ(ras_address({{"NCCL_RAS_ENABLE", "1"}, {"NCCL_RAS_ADDR", "127.0.0.1:1234"}}),
            "127.0.0.1:1234");
}

TEST(NcclRasTest, TheWholeAnswerIsKept) {
  const std::string answer = "Job summary\n" + std::string(100'000, '=') + "\nrank 2 is behind\n";
  FakeRas service(answer, true);
  EXPECT_EQ(asked(service.address()), answer);
  EXPECT_EQ(service.question(), "verbose status\n");
}

TEST(NcclRasTest, AServiceThatFallsSilentIsNotWaitedForForEver) {
  FakeRas service("Job summary\n", false);
  EXPECT_EQ(asked(service.address()), "Job summary\nNCCL's RAS service sent no more within 15 s\n");
}

TEST(NcclRasTest, TheFileSaysWhyThereIsNoAnswer) {
  EXPECT_EQ(asked("somewhere:28028"),
            "NCCL's RAS service was not asked: NCCL_RAS_ADDR=somewhere:28028 is no IPv4 address "
            "with a port\n");
  EXPECT_EQ(
      asked("localhost"),
      "NCCL's RAS service was not asked: NCCL_RAS_ADDR=localhost is no IPv4 address with a port\n");
  EXPECT_EQ(asked("127.0.0.1:1"), "NCCL's RAS service does not answer: Connection refused\n");
}

}  // namespace
}  // namespace graphproof::launcher
