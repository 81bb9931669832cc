// The counts of `memory` lines.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "suites/checks/attempt/judgement.h"

namespace graphproof::checks {

/// The driver maps memory in pages of 2 MiB, so cudaMemGetInfo cannot show smaller differences.
inline constexpr double kDevicePageBytes = 2.0 * 1024 * 1024;

/// A count of a `memory` line, mostly of bytes, with the name of its field. Nothing where older
/// evidence lacks it.
struct Quantity {
  std::string_view name;
  std::optional<std::int64_t> (*of)(const record::MemoryLine& line);
};
using Bytes = std::optional<std::int64_t>;
inline constexpr Quantity kAllocated{
    "allocated", [](const record::MemoryLine& line) -> Bytes { return line.allocated; }};
inline constexpr Quantity kReserved{
    "reserved", [](const record::MemoryLine& line) -> Bytes { return line.reserved; }};
inline constexpr Quantity kPool{"pool",
                                [](const record::MemoryLine& line) -> Bytes { return line.pool; }};
inline constexpr Quantity kDevice{"device",
                                  [](const record::MemoryLine& line) { return line.device; }};
inline constexpr Quantity kHeap{"heap", [](const record::MemoryLine& line) { return line.heap; }};
inline constexpr Quantity kResident{
    "resident", [](const record::MemoryLine& line) -> Bytes { return line.resident; }};
inline constexpr Quantity kThreads{"threads",
                                   [](const record::MemoryLine& line) { return line.threads; }};
inline constexpr Quantity kFiles{"files",
                                 [](const record::MemoryLine& line) { return line.files; }};

/// The first line of an arm whose field `when` is this; null if there is none.
inline const record::MemoryLine* look(Judgement& judgement, const RankFiles& files,
                                      std::string_view arm, std::string_view when) {
  for (const record::MemoryLine* line : judgement.find<record::MemoryLine>(files, arm))
    if (line->when == when) return line;
  return nullptr;
}

}  // namespace graphproof::checks
