#include "reports/record/job/collective_progress.h"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <tuple>

namespace graphproof::record {
namespace {

/// That rank `who` is inside a collective which rank `for_whom` has not begun.
struct Wait {
  int who = 0, for_whom = 0;
  Collective collective;
};

bool inside(const GroupProgress& group) { return group.begun > group.ended; }

Collective last_of(const GroupProgress& group) {
  return {.sequence = group.sequence, .op = group.op, .group = group.group};
}

const GroupProgress* same_group(const CollectiveProgress& rank, const GroupProgress& group) {
  const auto found = std::ranges::find_if(rank, [&](const GroupProgress& one) {
    return one.group == group.group && one.first_rank == group.first_rank;
  });
  return found == rank.end() ? nullptr : &*found;
}

std::int64_t begun_in_all(const CollectiveProgress& rank) {
  std::int64_t begun = 0;
  for (const GroupProgress& group : rank) begun += group.begun;
  return begun;
}

std::vector<Wait> waits_of(const std::vector<CollectiveProgress>& ranks) {
  std::vector<Wait> waits;
  for (std::size_t who = 0; who < ranks.size(); ++who)
    for (const GroupProgress& group : ranks[who]) {
      if (!inside(group)) continue;
      for (std::size_t other = 0; other < ranks.size(); ++other) {
        const GroupProgress* its = same_group(ranks[other], group);
        if (its != nullptr && its->begun < group.begun)
          waits.push_back({.who = static_cast<int>(who),
                           .for_whom = static_cast<int>(other),
                           .collective = last_of(group)});
      }
    }
  return waits;
}

/// The ranks that wait for `rank`, directly or for a rank that does.
std::vector<int> waiting_for(int rank, const std::vector<Wait>& waits) {
  std::set<int> found, fresh{rank};
  while (!fresh.empty()) {
    std::set<int> next;
    for (const Wait& wait : waits)
      if (fresh.contains(wait.for_whom) && wait.who != rank && found.insert(wait.who).second)
        next.insert(wait.who);
    fresh = std::move(next);
  }
  return {found.begin(), found.end()};
}

/// The next collective of `rank`: one that another rank of its group has begun.
Collective next_of(std::size_t rank, const std::vector<CollectiveProgress>& ranks) {
  const std::int64_t next = begun_in_all(ranks[rank]) + 1;
  // Lower is likelier. A rank of the same program that is one collective further, and inside it, is
  // in the next one. A rank of another pipeline stage has another program, so its counts say
  // nothing; but a transfer that it has ended alone, as a sender may, is older than one in which it
  // waits.
  std::tuple<int, std::int64_t> best{3, 0};
  Collective found;
  for (const CollectiveProgress& other : ranks)
    for (const GroupProgress& group : other) {
      const GroupProgress* own = same_group(ranks[rank], group);
      if (own == nullptr || group.begun <= own->begun) continue;
      const bool transfer = group.op == "transfer";
      const std::int64_t counted = begun_in_all(other);
      const int unlikely = !transfer && inside(group) && counted == next ? 0 : transfer ? 1 : 2;
      const std::int64_t later = transfer ? group.ended <= own->begun : counted;
      if (std::tuple place(unlikely, later); place < best) {
        best = place;
        found = last_of(group);
        found.sequence -= group.begun - own->begun - 1;
      }
    }
  return found;
}

}  // namespace

Json to_json(const Collective& collective) {
  return {{"sequence", collective.sequence}, {"op", collective.op}, {"group", collective.group}};
}

Collective collective_from(const Fields& in) {
  return {.sequence = in.required<std::int64_t>("sequence"),
          .op = in.required<std::string>("op"),
          .group = in.required<std::string>("group")};
}

Json to_json(const CollectiveProgress& progress) {
  Json list = Json::array();
  for (const GroupProgress& one : progress)
    list.push_back({{"group", one.group},
                    {"first_rank", one.first_rank},
                    {"begun", one.begun},
                    {"ended", one.ended},
                    {"op", one.op},
                    {"sequence", one.sequence}});
  return list;
}

CollectiveProgress collective_progress_from(const Fields& in, std::string_view key) {
  CollectiveProgress progress;
  for (const Fields& one : in.objects(key))
    progress.push_back({.group = one.required<std::string>("group"),
                        .first_rank = one.required<int>("first_rank"),
                        .begun = one.required<std::int64_t>("begun"),
                        .ended = one.required<std::int64_t>("ended"),
                        .op = one.required<std::string>("op"),
                        .sequence = one.required<std::int64_t>("sequence")});
  return progress;
}

std::optional<Stall> stall_of(const std::vector<CollectiveProgress>& ranks) {
  const std::vector<Wait> waits = waits_of(ranks);
  std::set<int> waiters, waited_for;
  for (const Wait& wait : waits) {
    waiters.insert(wait.who);
    waited_for.insert(wait.for_whom);
  }
  std::optional<Stall> stall;
  for (const int rank : waited_for) {
    if (waiters.contains(rank)) continue;
    const CollectiveProgress& progress = ranks[static_cast<std::size_t>(rank)];
    const auto own = std::ranges::find_if(progress, inside);
    Stall found{.kind = own == progress.end() ? Stall::Kind::not_begun : Stall::Kind::inside,
                .rank = rank,
                .collective = own == progress.end() ? next_of(static_cast<std::size_t>(rank), ranks)
                                                    : last_of(*own),
                .waiting = waiting_for(rank, waits)};
    if (!stall || found.waiting.size() > stall->waiting.size()) stall = std::move(found);
  }
  if (stall) return stall;
  // Nobody waits for a rank that waits for nobody: all wait in a circle, or all are inside.
  for (const Wait& wait : waits) {
    std::vector<int> waiting = waiting_for(wait.who, waits);
    const bool circle = std::ranges::any_of(waits, [&](const Wait& other) {
      return other.who == wait.who && std::ranges::count(waiting, other.for_whom) > 0;
    });
    if (circle)
      return Stall{.kind = Stall::Kind::in_a_circle,
                   .rank = wait.who,
                   .collective = wait.collective,
                   .waiting = std::move(waiting)};
  }
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    for (const GroupProgress& group : ranks[rank])
      if (inside(group))
        return Stall{.kind = Stall::Kind::inside,
                     .rank = static_cast<int>(rank),
                     .collective = last_of(group),
                     .waiting = {}};
  // A sender may end a transfer alone. If it was its last collective, nobody waits for the
  // receiver.
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    if (const Collective next = next_of(rank, ranks); !next.group.empty())
      return Stall{.kind = Stall::Kind::not_begun,
                   .rank = static_cast<int>(rank),
                   .collective = next,
                   .waiting = {}};
  return std::nullopt;
}

std::string describe(const Collective& collective) {
  return collective.op + " number " + std::to_string(collective.sequence) + " of group " +
         collective.group;
}

}  // namespace graphproof::record
