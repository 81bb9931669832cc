#include "suites/rank/configuration_agreement.h"

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "reports/record/text/message.h"

namespace graphproof::suites {
namespace {

/// A prefix of a digest that is long enough to compare by eye.
std::string shown(const std::vector<std::byte>& digest) {
  constexpr std::size_t kShown = 12;
  return std::string(reinterpret_cast<const char*>(digest.data()), std::min(digest.size(), kShown));
}

}  // namespace

void agree_on_configuration(comm::World& world, std::string_view digest, comm::Milliseconds limit) {
  const auto of_rank = world.gather("configuration", std::as_bytes(std::span(digest)), limit);
  std::string others;
  for (std::size_t rank = 1; rank < of_rank.size(); ++rank)
    if (of_rank[rank] != of_rank[0])
      others += ", rank " + std::to_string(rank) + " " + shown(of_rank[rank]);
  if (others.empty()) return;
  throw record::Error({.what = "the ranks' configurations differ",
                       .got = "SHA-256 of the batch file: rank 0 " + shown(of_rank[0]) + others,
                       .want = "one batch file, the same on every rank",
                       .why = "ranks that run different configurations issue different "
                              "collectives, and hang or train on different data",
                       .next = "compare batch.json as each of these ranks' nodes sees it: a shared "
                               "file system may show an old one"});
}

}  // namespace graphproof::suites
