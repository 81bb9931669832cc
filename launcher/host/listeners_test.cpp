#include "launcher/host/listeners.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

namespace graphproof::launcher {
namespace {

/// A socket that listens on a port that the kernel chose, and is closed with this object.
struct Server {
  explicit Server(int family) : socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in6 address{};
    address.sin6_family =
        static_cast<sa_family_t>(family);  // the port is at the same place in both
    socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof address;
    EXPECT_EQ(bind(socket, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(socket, 1), 0);
    EXPECT_EQ(getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port = ntohs(address.sin6_port);
  }
  ~Server() { close(socket); }
  int socket, port = 0;
};

bool listed(const Listeners& listeners, int port) {
  return std::any_of(listeners.begin(), listeners.end(),
                     [&](const auto& one) { return one.second == port; });
}

TEST(ListenersTest, APortIsItsProcessesForAsLongAsItListens) {
  int port4 = 0, port6 = 0;
  {
    const Server four(AF_INET), six(AF_INET6);
    port4 = four.port;
    port6 = six.port;
    for (const int port : {port4, port6}) {
      EXPECT_TRUE(listed(all_listeners(), port)) << port;
      EXPECT_TRUE(listed(listeners_of({getpid()}), port)) << port;
      EXPECT_FALSE(listed(listeners_of({1}), port)) << "another process's";
    }
  }
  for (const int port : {port4, port6}) EXPECT_FALSE(listed(all_listeners(), port)) << port;
}

TEST(ListenersTest, AConnectionIsNoListener) {
  const Server server(AF_INET);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(server.port));
  const int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(connect(client, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(listeners_of({getpid()}).size(), 1u);
  close(client);
}

}  // namespace
}  // namespace graphproof::launcher
