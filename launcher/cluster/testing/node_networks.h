// A network of its own for each node of a test's cluster: namespaces that a bridge joins with this
// host, and links that can be cut. Needs root and iproute2.
#pragma once

#include <string>
#include <vector>

namespace graphproof::cluster {

/// The networks of one test.
class NodeNetworks {
 public:
  /// Why this machine can have none; "" where it can.
  static std::string missing();

  /// Makes networks for nodes 1 to `nodes`. Throws std::runtime_error with the command that failed;
  /// nothing is left then.
  explicit NodeNetworks(int nodes);
  /// Removes the networks. REQUIRES: no process runs in them.
  ~NodeNetworks();
  NodeNetworks(const NodeNetworks&) = delete;
  NodeNetworks& operator=(const NodeNetworks&) = delete;

  /// The address of this host in their network, and of a node.
  std::string host_address() const { return net_ + ".1"; }
  std::string address(int node) const { return net_ + "." + std::to_string(10 + node); }
  /// The words that go before a command to run it in a node's network.
  std::vector<std::string> inside(int node) const { return {"ip", "netns", "exec", space(node)}; }
  /// Cuts the link: no packet passes until it is mended.
  void link(int node, bool up) const;

 private:
  std::string space(int node) const { return name_ + "n" + std::to_string(node); }
  std::string veth(int node) const { return name_ + "v" + std::to_string(node); }
  void remove() const;

  const int nodes_;
  std::string name_, net_;
};

}  // namespace graphproof::cluster
