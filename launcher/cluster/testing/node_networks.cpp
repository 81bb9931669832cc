#include "launcher/cluster/testing/node_networks.h"

#include <unistd.h>

#include <sstream>
#include <stdexcept>

#include "launcher/host/child.h"

namespace graphproof::cluster {
namespace {

using launcher::Environment;

constexpr std::int64_t kIpCommand_ms = 10000;

launcher::Output ip(const std::string& words) {
  Environment environment = launcher::own_environment();
  environment["PATH"] += ":/usr/sbin:/sbin";
  launcher::Command command{{"ip"}, environment};
  std::istringstream in(words);
  for (std::string word; in >> word;) command.arguments.push_back(word);
  return launcher::run_to_end(command, kIpCommand_ms);
}

void must(const std::string& words) {
  const launcher::Output output = ip(words);
  if (output.timed_out || output.exit != launcher::Exit{})
    throw std::runtime_error("ip " + words + " failed: " + output.error);
}

}  // namespace

std::string NodeNetworks::missing() {
  Environment environment = launcher::own_environment();
  environment["PATH"] += ":/usr/sbin:/sbin";
  if (launcher::find_program("ip", environment).empty()) return "this machine has no ip (iproute2)";
  const std::string probe = "gp" + std::to_string(getpid()) + "p";
  const launcher::Output output = ip("netns add " + probe);
  if (output.exit != launcher::Exit{})
    return "network namespaces are not permitted here: " + output.error;
  const launcher::Output link = ip("link add " + probe + " type bridge");
  ip("link del " + probe);
  ip("netns del " + probe);
  return link.exit == launcher::Exit{} ? "" : "bridges are not permitted here: " + link.error;
}

// A network that is not routed: from the addresses for private use, chosen by this process.
NodeNetworks::NodeNetworks(int nodes)
    : nodes_(nodes),
      name_("gp" + std::to_string(getpid())),
      net_("10.231." + std::to_string(getpid() % 250)) {
  try {
    must("link add " + name_ + "b type bridge");
    must("addr add " + host_address() + "/24 dev " + name_ + "b");
    must("link set " + name_ + "b up");
    for (int node = 1; node <= nodes_; ++node) {
      must("netns add " + space(node));
      must("link add " + veth(node) + " type veth peer name eth0 netns " + space(node));
      must("link set " + veth(node) + " master " + name_ + "b up");
      must("-n " + space(node) + " addr add " + address(node) + "/24 dev eth0");
      must("-n " + space(node) + " link set eth0 up");
      must("-n " + space(node) + " link set lo up");
    }
  } catch (...) {
    remove();
    throw;
  }
}

NodeNetworks::~NodeNetworks() { remove(); }

void NodeNetworks::link(int node, bool up) const {
  must("link set " + veth(node) + (up ? " up" : " down"));
}

void NodeNetworks::remove() const {
  for (int node = 1; node <= nodes_; ++node) {
    ip("link del " + veth(node));
    ip("netns del " + space(node));
  }
  ip("link del " + name_ + "b");
}

}  // namespace graphproof::cluster
