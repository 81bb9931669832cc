// Evidence of the resources that a case used, memory, time and collectives, and of races.
#pragma once

#include "reports/record/evidence/table/field_table.h"

namespace graphproof::record {

/// A collective that a rank issued. `sequence` counts from 1 within a case.
struct CollectiveCall {
  std::int64_t sequence = 0;
  std::string op, group;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("sequence", &CollectiveCall::sequence, "its number within the case, from 1", 42, kCount);
    field("op", &CollectiveCall::op, "the operation", "all_reduce", kFilled);
    field("group", &CollectiveCall::group, "the process group", "tp");
  }
};

struct CollectivesLine {
  static constexpr std::string_view kKind = "collectives",
                                    kDoc = "The collectives that this rank issued in one arm.";
  std::string arm;
  std::int64_t count = 0;
  std::map<std::string, std::string> digest;
  std::optional<CollectiveCall> last;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("arm", &CollectivesLine::arm, "the arm, or the pair of arms that run in lockstep",
          "lockstep", kFilled);
    field("count", &CollectivesLine::count, "collectives issued", 42, kCount);
    field("digest", &CollectivesLine::digest,
          "by process group: digest of the collectives in order",
          JsonText{R"({"tp": "99aabbccddeeff00"})"}, kDigest);
    field("last", &CollectivesLine::last, "the last collective; null if there was none", {},
          {.null_when_empty = true});
  }
};

/// The collectives of one group that a device executed.
struct ExecutedGroup {
  std::string group;
  std::int64_t first_rank = 0, begun = 0, ended = 0;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("group", &ExecutedGroup::group, "the process group", "tp", kFilled);
    field("first_rank", &ExecutedGroup::first_rank,
          "the lowest rank of this rank's group of that "
          "name",
          0, kCount);
    field("begun", &ExecutedGroup::begun,
          "collectives that the device has begun since the group was made", 410, kCount);
    field("ended", &ExecutedGroup::ended, "how many of them it has ended", 410, kCount);
  }
};

struct ExecutedLine {
  static constexpr std::int64_t kSince = 15;
  static constexpr std::string_view
      kKind = "executed",
      kDoc =
          "The collectives that the device of this rank had executed before the teardown, those "
          "inside replays included.";
  std::vector<ExecutedGroup> groups;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("groups", &ExecutedLine::groups, "every group of two or more ranks that the rank is in");
  }
};

/// The communicators of one group over one transport.
struct GroupCommunicators {
  std::string group, transport;
  std::int64_t before = 0, made = 0, ended = 0, left = 0;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("group", &GroupCommunicators::group, "the groups of a name, with the ranks of each",
          "tp=0,1|2,3", kFilled);
    field("transport", &GroupCommunicators::transport, "the library that sends for the group",
          "nccl", kFilled);
    field("before", &GroupCommunicators::before, "communicators that existed when the arms began",
          1, kCount);
    field("made", &GroupCommunicators::made, "made while the arms ran", 0, kCount);
    field("ended", &GroupCommunicators::ended, "destroyed or aborted while the arms ran", 0,
          kCount);
    field("left", &GroupCommunicators::left, "communicators that exist after the teardown", 1,
          kCount);
  }
};

struct CommunicatorsLine {
  static constexpr std::int64_t kSince = 18;
  static constexpr std::string_view
      kKind = "communicators",
      kDoc =
          "How many communicators this rank had for each of its groups of two or more ranks, those "
          "of earlier cases of the batch included. Written after the teardown.";
  bool kept = false;
  std::vector<GroupCommunicators> groups;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("kept", &CommunicatorsLine::kept,
          "whether the teardown keeps the communicators for the next case of the batch", true);
    field("groups", &CommunicatorsLine::groups,
          "every group that has had a communicator since the process began");
  }
};

struct PlacementLine {
  static constexpr std::string_view
      kKind = "placement",
      kDoc =
          "The place in physical memory of a buffer of the case's single collective, or with axis "
          "placement per_rank of a flat buffer of a training step: of its gradients, and with the "
          "distributed optimizer of its parameters; and of the first block that the first graph "
          "of an arm allocates in its pool, of which bytes and offset are the distance from the "
          "pool's beginning.";
  std::string arm, buffer;
  std::int64_t bytes = 1, offset = 0, span_bytes = 0;
  bool straddles = false;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("arm", &PlacementLine::arm, "the arm", "lockstep_graph", kFilled);
    field("buffer", &PlacementLine::buffer, "the buffer", "result",
          {.one_of = "input|result|gradients|parameters|pool"});
    field("bytes", &PlacementLine::bytes, "its size", 16777216, kPositive);
    field("offset", &PlacementLine::offset, "offset in its span of physical memory (bytes)",
          12582912, kCount);
    field("span_bytes", &PlacementLine::span_bytes, "size of that span", 20971520, kCount);
    field("straddles", &PlacementLine::straddles, "whether it extends past the end of the span",
          true);
  }
};

struct MemoryLine {
  static constexpr std::string_view kKind = "memory",
                                    kDoc =
                                        "Memory of the device and of the process, in bytes, and "
                                        "in a long job how many handles the process has.";
  std::string arm;
  std::int64_t step = 0;
  std::optional<std::string> when;
  std::int64_t allocated = 0, reserved = 0, pool = 0;
  std::optional<std::int64_t> device;
  std::int64_t resident = 0;
  std::optional<std::int64_t> heap, threads, files, regions;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("arm", &MemoryLine::arm, "the arm", "solo_graph", kFilled);
    field("step", &MemoryLine::step, "step of the arm, from 0; 0 outside steps", 4, kCount);
    field("when", &MemoryLine::when,
          "before the arm was built, after it was built, after a step, after its step was captured "
          "a second time, after it was dropped, or after its memory was returned",
          "step", {.one_of = "before|built|step|captured_again|dropped|returned", .since = 2});
    field("allocated", &MemoryLine::allocated, "bytes that tensors own", 1048576, kCount);
    field("reserved", &MemoryLine::reserved, "bytes that the allocator holds", 2097152, kCount);
    field("pool", &MemoryLine::pool, "bytes in graph pools", 4194304, kCount);
    field("device", &MemoryLine::device, "bytes in use on the device, as the driver counts",
          6291456, {.at_least = 0, .since = 2});
    field("resident", &MemoryLine::resident, "resident bytes of the process", 73400320, kCount);
    field("heap", &MemoryLine::heap, "bytes that the process has from malloc", 52428800,
          {.at_least = 0, .since = 14});
    field("threads", &MemoryLine::threads, "threads of the process", 5,
          {.at_least = 1, .since = 16});
    field("files", &MemoryLine::files, "its open descriptors", 24, {.at_least = 0, .since = 16});
    field("regions", &MemoryLine::regions, "regions that are mapped into its memory", 910,
          {.at_least = 1, .since = 16});
  }
};

struct CycleLine {
  static constexpr std::string_view
      kKind = "cycle",
      kDoc =
          "A cycle of a long job has ended: its graphs have replayed, its state was saved and "
          "loaded, and its results are compared next.";
  static constexpr std::int64_t kSince = 16;
  std::string arm;
  std::int64_t cycle = 0, step = 0, launches = 0, captures = 0, evaluations = 0, loads = 0;
  std::vector<double> losses;
  std::string params;
  std::optional<std::string> params_before_load;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("arm", &CycleLine::arm, "the arm", "soak_graph", kFilled);
    field("cycle", &CycleLine::cycle, "number of the cycle, from 0", 3, kCount);
    field("step", &CycleLine::step, "its last step", 199, kCount);
    field("launches", &CycleLine::launches, "graph launches of the arm so far", 192, kCount);
    field("captures", &CycleLine::captures, "captures of the arm so far", 8, kCount);
    field("evaluations", &CycleLine::evaluations, "batches evaluated so far", 16, kCount);
    field("loads", &CycleLine::loads, "checkpoints loaded so far", 4, kCount);
    field("losses", &CycleLine::losses, "losses of the last step", JsonText{"[4.59, 5.23]"});
    field("params", &CycleLine::params, "digest of the parameters", "0b1c2d3e00000000", kDigest);
    field("params_before_load", &CycleLine::params_before_load,
          "digest of the parameters that the checkpoint replaced", "0b1c2d3e00000001",
          {.pattern = kDigest.pattern, .since = 17});
  }
};

struct TimingLine {
  static constexpr std::string_view kKind = "timing", kDoc = "How long a step of a solo arm took.";
  std::string arm;
  std::int64_t step = 0;
  double wall_ms = 0, launch_ms = 0;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("arm", &TimingLine::arm, "the arm", "solo_graph", kFilled);
    field("step", &TimingLine::step, "step of the arm, from 0", 4, kCount);
    field("wall_ms", &TimingLine::wall_ms, "time until the device had finished (ms)", 1.71, kCount);
    field("launch_ms", &TimingLine::launch_ms, "time until the host had enqueued the step (ms)",
          0.12, kCount);
  }
};

struct BusyLine {
  static constexpr std::string_view kKind = "busy",
                                    kDoc =
                                        "How long the device was busy with one step of a solo arm.";
  std::string arm;
  std::int64_t step = 0;
  double device_ms = 0;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("arm", &BusyLine::arm, "the arm", "solo_graph", kFilled);
    field("step", &BusyLine::step, "step of the arm, from 0", 14, kCount);
    field("device_ms", &BusyLine::device_ms, "busy time (ms)", 1.52, kCount);
  }
};

struct PairedBlockLine {
  static constexpr std::string_view
      kKind = "paired_block",
      kDoc =
          "Times of some eager steps and of as many graph steps right before or after them, in a "
          "case that states a limit on times.";
  static constexpr std::int64_t kSince = 15;
  std::int64_t block = 0, blocks = 0, steps = 0, launches = 0;
  std::string first, clock;
  double eager_ms = 0, eager_launch_ms = 0, graph_ms = 0, graph_launch_ms = 0;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("block", &PairedBlockLine::block, "number of the block, from 0", 3, kCount);
    field("blocks", &PairedBlockLine::blocks, "how many blocks the case has", 16, kPositive);
    field("steps", &PairedBlockLine::steps, "steps of each arm in the block", 4, kPositive);
    field("first", &PairedBlockLine::first, "the arm whose steps came first", "eager",
          {.one_of = "eager|graph"});
    field("clock", &PairedBlockLine::clock,
          "wall: the clock of the host; model: the cost model of the simulated device", "wall",
          {.one_of = "wall|model"});
    field("eager_ms", &PairedBlockLine::eager_ms,
          "an eager step, until the device had finished (ms, mean of the block)", 6.12, kCount);
    field("eager_launch_ms", &PairedBlockLine::eager_launch_ms,
          "an eager step, until the host had enqueued it (ms)", 5.5, kCount);
    field("graph_ms", &PairedBlockLine::graph_ms, "a graph step, until the device had finished",
          1.71, kCount);
    field("graph_launch_ms", &PairedBlockLine::graph_launch_ms,
          "a graph step, until the host had enqueued it (ms)", 0.12, kCount);
    field("launches", &PairedBlockLine::launches,
          "graph launches in the block's graph steps, counted on the device", 4, kCount);
  }
};

struct RacesLine {
  static constexpr std::string_view
      kKind = "races",
      kDoc = "On the simulated device: accesses to the same bytes in no defined order.";
  std::int64_t accesses = 0, count = 0;
  std::vector<std::string> found;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("accesses", &RacesLine::accesses, "accesses checked", 18211, kCount);
    field("count", &RacesLine::count, "races among them", 1, kCount);
    field("found", &RacesLine::found, "the first races",
          JsonText{R"(["aten::copy_ writes 256 bytes on stream 2 that aten::index reads on stream )"
                   R"(1"])"},
          kFilled);
  }
};

/// The kinds of this file, in the order of the reference page.
using ResourceKinds =
    Kinds<CollectivesLine, ExecutedLine, CommunicatorsLine, PlacementLine, MemoryLine, CycleLine,
          TimingLine, BusyLine, PairedBlockLine, RacesLine>;

}  // namespace graphproof::record
