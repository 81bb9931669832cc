// How far a rank is in its collectives: the last one that its host issued, and what its device has
// counted. A replay issues nothing on the host, so only what the device counts shows where a replay
// stands.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "reports/record/text/fields.h"

namespace graphproof::record {

/// The last collective that a rank issued. `sequence` counts from 1 in each case.
struct Collective {
  std::int64_t sequence = 0;
  std::string op;
  std::string group;

  bool operator==(const Collective&) const = default;
};
Json to_json(const Collective& collective);
Collective collective_from(const Fields& in);

/// How many collectives of one group the device of a rank has begun and ended since the group's
/// communicator was made, those inside replays included. Every rank of the group counts the same
/// collectives, so their numbers can be compared.
struct GroupProgress {
  std::string group;
  int first_rank = 0;  // the lowest world rank of the group: groups of one name are disjoint
  std::int64_t begun = 0, ended = 0;
  /// The last collective that was begun: its operator, and its number in the group when the host
  /// issued it. A replay repeats the numbers of its capture. "" and 0 before the first one.
  std::string op;
  std::int64_t sequence = 0;

  bool operator==(const GroupProgress&) const = default;
};
/// By group name.
using CollectiveProgress = std::vector<GroupProgress>;
Json to_json(const CollectiveProgress& progress);
/// The list of key `key`.
CollectiveProgress collective_progress_from(const Fields& in, std::string_view key);

/// Why ranks wait in collectives.
struct Stall {
  /// not_begun: `rank` has not begun the collective in which the others wait for it. inside: every
  /// rank of the group has begun the collective, and at least one cannot end it. in_a_circle: ranks
  /// wait for each other in different collectives.
  enum class Kind { not_begun, inside, in_a_circle };
  Kind kind = Kind::not_begun;
  /// The rank that is stuck; the lowest one in a circle, and of those that are inside.
  int rank = 0;
  Collective collective;     // the one that it has not begun, or in which it is
  std::vector<int> waiting;  // the ranks that wait for it, directly or for one that does

  bool operator==(const Stall&) const = default;
};

/// The stall that explains why the ranks do not get on: a rank that waits for nobody, and for which
/// the others wait; or for which nobody waits, because the sender of the transfer that it has not
/// begun ended it alone and has nothing more to do. `ranks[r]` is the progress of rank r when
/// nothing moves any more. Nothing if no rank is inside a collective, and none is behind another.
///
/// Its own next collective is one that others have begun. Of several it is the one in which a rank
/// with the same program is after the same number of collectives; without such a rank a transfer
/// between stages, first one that its sender has ended alone; else the one after the fewest.
std::optional<Stall> stall_of(const std::vector<CollectiveProgress>& ranks);

/// "all_reduce number 17 of group tp".
std::string describe(const Collective& collective);

}  // namespace graphproof::record
