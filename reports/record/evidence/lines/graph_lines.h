// Evidence of captures and replays: what a graph contains, the memory that it used, and its
// results.
#pragma once

#include "reports/record/evidence/table/field_table.h"

namespace graphproof::record {

/// How often a module that is captured on its own ran before its capture, by its own count.
struct ModuleRuns {
  std::int64_t forwards = 0, backwards = 0;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("forwards", &ModuleRuns::forwards, "forward passes", 4, kCount);
    field("backwards", &ModuleRuns::backwards, "backward passes", 4, kCount);
  }
};

struct CaptureLine {
  static constexpr std::string_view kKind = "capture",
                                    kDoc = "A graph was captured, or its capture failed.";
  std::string arm, graph, status;
  std::int64_t code = 0;
  std::string site, message, mode;
  double ms = 0;
  std::int64_t nodes = 0;
  std::map<std::string, std::int64_t> census;
  std::string signature;
  std::optional<std::vector<std::string>> unjoined;
  std::int64_t pool_bytes = 0;
  std::optional<std::int64_t> warmups, pools, generators, generators_wanted;
  std::vector<std::int64_t> counter_before, counter_after;
  std::optional<ModuleRuns> module_runs;
  std::optional<std::vector<std::string>> owned_inputs;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("arm", &CaptureLine::arm, "the arm", "lockstep_graph", kFilled);
    field("graph", &CaptureLine::graph, "name of the graph in its arm", "layers.0.attn.forward",
          kFilled);
    field("status", &CaptureLine::status, "whether the capture succeeded", "ok",
          {.one_of = "ok|error"});
    field("code", &CaptureLine::code, "code of the error; 0 without one", 0);
    field("site", &CaptureLine::site, "operator that was refused; empty without an error", "");
    field("message", &CaptureLine::message, "text of the error; empty without one", "");
    field("mode", &CaptureLine::mode, "capture mode", "thread_local",
          {.one_of = "global|thread_local|relaxed"});
    field("ms", &CaptureLine::ms, "time of the capture (ms)", 4.0, kCount);
    field("nodes", &CaptureLine::nodes, "nodes of the graph", 391, kCount);
    field("census", &CaptureLine::census, "nodes by their type",
          JsonText{R"({"event_record": 1, "event_wait": 0, "host": 0, "kernel": 380, "memcpy": 6,
                       "memset": 4})"},
          kCount);
    field("signature", &CaptureLine::signature,
          "digest of the nodes in order; empty after a failure", "5566778899aabbcc",
          kDigestOrEmpty);
    field("unjoined", &CaptureLine::unjoined, "work that the end of the graph does not wait for",
          JsonText{"[]"}, kFilled);
    field("pool_bytes", &CaptureLine::pool_bytes, "bytes that the capture added to graph pools",
          4194304, kCount);
    field("warmups", &CaptureLine::warmups,
          "runs of the captured work before the capture, as the engine reports", 2, kCount);
    field("pools", &CaptureLine::pools, "graph pools that the arm has used so far", 1,
          {.at_least = 0, .since = 2});
    field("generators", &CaptureLine::generators,
          "random generators registered with the arm's graphs so far", 2,
          {.at_least = 0, .since = 2});
    field("generators_wanted", &CaptureLine::generators_wanted,
          "random generators that the step draws from", 2, {.at_least = 0, .since = 2});
    field("counter_before", &CaptureLine::counter_before,
          "forward passes of each layer before the capture, counted on the device",
          JsonText{"[2, 2]"}, kCount);
    field("counter_after", &CaptureLine::counter_after, "the same after the capture",
          JsonText{"[2, 2]"}, kCount);
    field("module_runs", &CaptureLine::module_runs,
          "for a module that is captured on its own: how often it ran before", {},
          {.since = 9, .may_be_null = true});
    field("owned_inputs", &CaptureLine::owned_inputs,
          "for the forward of a module whose static inputs the engine owns: their addresses",
          JsonText{R"(["0x7f0000000200"])"}, {.filled = true, .since = 18});
  }
};

struct StateLine {
  static constexpr std::string_view
      kKind = "state",
      kDoc = "Parameters, optimizer state and generators before and after a capture.";
  std::string arm, what, before, after;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("arm", &StateLine::arm, "the arm", "lockstep_graph", kFilled);
    field("what", &StateLine::what, "what happened in between: capture", "capture", kFilled);
    field("before", &StateLine::before, "digest of the state before", "0b1c2d3e4f506172", kDigest);
    field("after", &StateLine::after, "digest of the state after", "0b1c2d3e4f506172", kDigest);
  }
};

/// A tensor whose address is not the one that a graph captured.
struct MovedTensor {
  std::string tensor, captured, now;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("tensor", &MovedTensor::tensor, "name of the tensor", "input:tokens", kFilled);
    field("captured", &MovedTensor::captured, "address that was captured", "0x7f0000000200",
          kFilled);
    field("now", &MovedTensor::now, "address before the replay", "0x7f0000000400", kFilled);
  }
};

struct AddressLine {
  static constexpr std::string_view
      kKind = "address",
      kDoc = "Before a replay: the addresses of the graph's static tensors.";
  std::string arm;
  std::int64_t step = 0;
  std::string graph;
  std::int64_t registered = 0;
  std::vector<MovedTensor> moved;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("arm", &AddressLine::arm, "the arm", "lockstep_graph", kFilled);
    field("step", &AddressLine::step, "step of the arm, from 0", 2, kCount);
    field("graph", &AddressLine::graph, "name of the graph", "training", kFilled);
    field("registered", &AddressLine::registered, "static tensors whose addresses are known", 31,
          kCount);
    field("moved", &AddressLine::moved, "those whose addresses differ now");
  }
};

struct PoisonLine {
  static constexpr std::string_view
      kKind = "poison",
      kDoc = "Outputs of a replay were filled with a canary before it, and inspected after it.";
  std::string arm;
  std::int64_t step = 0, outputs = 0, compared = 0, bytes = 0, canary_words = 0;
  std::optional<std::int64_t> launches, announced, inspected;
  std::optional<std::vector<std::string>> unregistered;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("arm", &PoisonLine::arm, "the arm", "lockstep_graph", kFilled);
    field("step", &PoisonLine::step, "step of the arm, from 0", 2, kCount);
    field("outputs", &PoisonLine::outputs, "compared tensors that were filled", 14, kCount);
    field("compared", &PoisonLine::compared, "tensors that the step's comparison reads", 14,
          kCount);
    field("bytes", &PoisonLine::bytes, "bytes filled", 65536, kCount);
    field("canary_words", &PoisonLine::canary_words, "canaries that were left after the replay", 0,
          kCount);
    field("launches", &PoisonLine::launches, "graph launches, counted on the device", 1,
          {.at_least = 0, .since = 9});
    field("announced", &PoisonLine::announced, "launches that the engine announced before", 1,
          {.at_least = 0, .since = 9});
    field("inspected", &PoisonLine::inspected, "launches whose outputs were inspected afterwards",
          1, {.at_least = 0, .since = 9});
    field("unregistered", &PoisonLine::unregistered,
          "tensors that the step returned and whose addresses are not registered", JsonText{"[]"},
          {.filled = true, .since = 9});
  }
};

struct ReplayLine {
  static constexpr std::string_view
      kKind = "replay",
      kDoc = "How often an arm has replayed its graphs up to a step, and what the layers counted.";
  std::string arm, graph;
  std::int64_t step = 0, replays = 0, fallbacks = 0, recaptures = 0;
  std::optional<std::int64_t> out_of_order;
  std::vector<std::int64_t> counter_before, counter_after, counter_per_replay;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("arm", &ReplayLine::arm, "the arm", "lockstep_graph", kFilled);
    field("graph", &ReplayLine::graph, "the graph implementation", "training", kFilled);
    field("step", &ReplayLine::step, "step of the arm, from 0", 2, kCount);
    field("replays", &ReplayLine::replays, "graph launches of the arm so far", 1, kCount);
    field("fallbacks", &ReplayLine::fallbacks,
          "steps after the warm-up that launched no graph, so far", 0, kCount);
    field("recaptures", &ReplayLine::recaptures, "captures after the first ones, so far", 0,
          kCount);
    field("out_of_order", &ReplayLine::out_of_order,
          "launches in another order than that of capture, so far", 0, kCount);
    field("counter_before", &ReplayLine::counter_before,
          "forward passes of each layer before the step, counted on the device; 0 for an arm that "
          "runs free",
          JsonText{"[4, 4]"}, kCount);
    field("counter_after", &ReplayLine::counter_after, "the same after the step",
          JsonText{"[6, 6]"}, kCount);
    field("counter_per_replay", &ReplayLine::counter_per_replay,
          "forward passes of each layer in one step", JsonText{"[2, 2]"}, kCount);
  }
};

struct OperandsLine {
  static constexpr std::string_view
      kKind = "operands",
      kDoc = "Before a replay: whether the memory that the graph's nodes name still has an owner.";
  std::string arm;
  std::int64_t step = 0, blocks = 0;
  std::vector<std::string> freed;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("arm", &OperandsLine::arm, "the arm", "lockstep_graph", kFilled);
    field("step", &OperandsLine::step, "step of the arm, from 0", 3, kCount);
    field("blocks", &OperandsLine::blocks, "blocks of memory inspected", 120, kCount);
    field("freed", &OperandsLine::freed, "those that were freed since the capture",
          JsonText{R"(["0x7f0000000200, 4096 bytes"])"}, kFilled);
  }
};

/// One thing in which two captures of the same work differ.
struct NodeDifference {
  std::int64_t node = 0;
  std::string name, what, first, second;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("node", &NodeDifference::node, "index of the node", 17, kCount);
    field("name", &NodeDifference::name, "its kernel or operator; may be empty",
          "aten::mul.Tensor");
    field("what", &NodeDifference::what,
          "what differs: nodes, kernel, launch, edges, number of arguments, or argument NAME",
          "argument other", kFilled);
    field("first", &NodeDifference::first, "in the first capture", "Double[] 1");
    field("second", &NodeDifference::second, "in the second capture", "Double[] 0.5");
  }
};

struct SecondCaptureLine {
  static constexpr std::int64_t kSince = 16;
  static constexpr std::string_view
      kKind = "second_capture",
      kDoc =
          "A graph that an arm captured a second time, after the host had moved on to another step "
          "with another learning rate and other inputs, compared with the first capture node by "
          "node. An engine that captured a graph only once has 0 nodes for the other time.";
  std::string arm, graph;
  std::int64_t step = 0, step_again = 0;
  double learning_rate = 0, learning_rate_again = 0;
  std::int64_t nodes = 0, nodes_again = 0;
  std::map<std::string, std::int64_t> kinds, kinds_again;
  std::int64_t edges = 0, edges_again = 0, arguments = 0, values = 0, unclear = 0, unread = 0;
  std::int64_t differing = 0;
  double ms = 0;
  std::vector<NodeDifference> found;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("arm", &SecondCaptureLine::arm, "the arm", "solo_graph", kFilled);
    field("graph", &SecondCaptureLine::graph, "name of the graph", "training", kFilled);
    field("step", &SecondCaptureLine::step, "step of the first capture, from 0", 2, kCount);
    field("step_again", &SecondCaptureLine::step_again, "step of the second one", 11, kCount);
    field("learning_rate", &SecondCaptureLine::learning_rate,
          "learning rate of the host in the step of the first capture", 0.09);
    field("learning_rate_again", &SecondCaptureLine::learning_rate_again,
          "learning rate in that of the second one", 0.045);
    field("nodes", &SecondCaptureLine::nodes, "nodes of the first capture", 391, kCount);
    field("nodes_again", &SecondCaptureLine::nodes_again, "nodes of the second one", 391, kCount);
    field("kinds", &SecondCaptureLine::kinds, "nodes of the first capture by type",
          JsonText{R"({"kernel": 380, "memcpy": 11})"}, kCount);
    field("kinds_again", &SecondCaptureLine::kinds_again, "nodes of the second one by type",
          JsonText{R"({"kernel": 380, "memcpy": 11})"}, kCount);
    field("edges", &SecondCaptureLine::edges, "edges between the nodes of the first capture", 395,
          kCount);
    field("edges_again", &SecondCaptureLine::edges_again, "edges of the second one", 395, kCount);
    field("arguments", &SecondCaptureLine::arguments, "arguments of nodes that were compared", 1730,
          kCount);
    field("values", &SecondCaptureLine::values,
          "of them numbers that the host passed by value; the others are memory", 520, kCount);
    field("unclear", &SecondCaptureLine::unclear,
          "arguments that differ in bytes that may be padding, which is no difference", 0, kCount);
    field("unread", &SecondCaptureLine::unread,
          "kernels of the first capture whose arguments cannot be read", 0, kCount);
    field("differing", &SecondCaptureLine::differing, "differences", 1, kCount);
    field("ms", &SecondCaptureLine::ms,
          "time of the second capture of all graphs of the arm, with reading and comparing (ms)",
          9.5, kCount);
    field("found", &SecondCaptureLine::found, "the first few of them");
  }
};

struct NodeDumpLine {
  static constexpr std::int64_t kSince = 16;
  static constexpr std::string_view
      kKind = "node_dump",
      kDoc =
          "The rank wrote the nodes of its graphs to a text file next to its evidence, because "
          "something was wrong with them.";
  std::string arm, file, reason;
  std::int64_t bytes = 0;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("arm", &NodeDumpLine::arm, "the arm that captured them", "solo_graph", kFilled);
    field("file", &NodeDumpLine::file, "name of the file", "rank-0.nodes.txt", kFilled);
    field("bytes", &NodeDumpLine::bytes, "its length", 48211, kPositive);
    field("reason", &NodeDumpLine::reason, "what was wrong",
          "lockstep_graph differs from lockstep_eager", kFilled);
  }
};

struct HandedOutLine {
  static constexpr std::string_view
      kKind = "handed_out",
      kDoc = "What a step returned to its caller, as it was then and one step later.";
  std::string arm;
  std::int64_t step = 0;
  std::string what, digest, later_digest;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("arm", &HandedOutLine::arm, "the arm", "lockstep_graph", kFilled);
    field("step", &HandedOutLine::step, "step that returned it, from 0", 3, kCount);
    field("what", &HandedOutLine::what, "what was returned", "losses", kFilled);
    field("digest", &HandedOutLine::digest, "its digest then", "3f9ac1d20b7e6655", kDigest);
    field("later_digest", &HandedOutLine::later_digest, "its digest one step later",
          "3f9ac1d20b7e6655", kDigest);
  }
};

struct FailedCaptureLine {
  static constexpr std::string_view
      kKind = "failed_capture",
      kDoc = "A capture that failed and was abandoned, and what it left in its pool.";
  std::string arm, graph;
  std::int64_t code = 0;
  std::string site, message;
  std::int64_t pool_bytes = 0;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("arm", &FailedCaptureLine::arm, "the arm", "lockstep_graph", kFilled);
    field("graph", &FailedCaptureLine::graph, "name of the graph", "training", kFilled);
    field("code", &FailedCaptureLine::code, "code of the error", 900);
    field("site", &FailedCaptureLine::site, "operator that was refused", "aten::item");
    field("message", &FailedCaptureLine::message, "text of the error",
          "operation not permitted when stream is capturing");
    field("pool_bytes", &FailedCaptureLine::pool_bytes,
          "bytes left in its pool after reset and empty_cache", 0);
  }
};

struct ScribbledLine {
  static constexpr std::string_view
      kKind = "scribbled",
      kDoc =
          "Before a step all memory that the allocator caches and no tensor owns was filled with "
          "NaN, except graph pools.";
  std::string arm;
  std::int64_t step = 0, bytes = 0;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("arm", &ScribbledLine::arm, "the arm", "lockstep_graph", kFilled);
    field("step", &ScribbledLine::step, "step of the arm, from 0", 5, kCount);
    field("bytes", &ScribbledLine::bytes, "bytes filled", 24117248, kCount);
  }
};

struct DelayedStepsLine {
  static constexpr std::string_view kKind = "delayed_steps",
                                    kDoc =
                                        "Steps of an arm before which streams were delayed: its "
                                        "own stream in one step, all others "
                                        "in the next.";
  std::string arm;
  std::vector<std::int64_t> steps;
  double ms = 0;
  std::int64_t streams = 0, branches = 0;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("arm", &DelayedStepsLine::arm, "the arm", "free_graph", kFilled);
    field("steps", &DelayedStepsLine::steps, "the delayed steps, from 0", JsonText{"[2, 3, 4]"},
          kCount);
    field("ms", &DelayedStepsLine::ms, "length of each delay (ms)", 6.0, {.more_than = 0});
    field("streams", &DelayedStepsLine::streams, "other streams of the device that were delayed",
          31, kCount);
    field("branches", &DelayedStepsLine::branches, "delayed branches within the arm's graphs", 12,
          kCount);
  }
};

struct EvaluatedLine {
  static constexpr std::string_view
      kKind = "evaluated",
      kDoc = "What an arm did in all evaluations between two training steps.";
  std::string arm;
  std::int64_t step = 0, evaluations = 1, captures = 0, replays = 0;
  std::optional<std::int64_t> announced;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("arm", &EvaluatedLine::arm, "the arm", "lockstep_graph", kFilled);
    field("step", &EvaluatedLine::step, "training step after the evaluations, from 0", 3, kCount);
    field("evaluations", &EvaluatedLine::evaluations, "batches evaluated", 5, kPositive);
    field("captures", &EvaluatedLine::captures, "graphs captured for evaluation", 1, kCount);
    field("replays", &EvaluatedLine::replays, "graph launches", 3, kCount);
    field("announced", &EvaluatedLine::announced,
          "replays that were announced, so that addresses and outputs were inspected", 3,
          {.at_least = 0, .since = 5});
  }
};

struct ResumedLine {
  static constexpr std::string_view
      kKind = "resumed",
      kDoc = "A job that resumes from a checkpoint: its first step, its replays and its process.";
  std::string arm;
  std::int64_t step = 0, replays = 0;
  std::optional<std::int64_t> process;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("arm", &ResumedLine::arm, "the arm", "resumed", kFilled);
    field("step", &ResumedLine::step, "first step after the checkpoint", 2, kCount);
    field("replays", &ResumedLine::replays, "graph launches", 4, kCount);
    field("process", &ResumedLine::process,
          "process id of the job, where `resume_in: new_process` asks for one of its own", 4712,
          kCount);
  }
};

struct BucketLine {
  static constexpr std::string_view
      kKind = "bucket",
      kDoc = "A step of changing sequence length, and the cache of graphs after it.";
  std::string arm;
  std::int64_t step = 0, longest = 1, length = 1;
  bool replayed = false;
  std::int64_t captures = 0, replays = 0;
  std::vector<std::int64_t> resident, evicted;
  std::int64_t captured_bytes = 0, pool_bytes = 0;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("arm", &BucketLine::arm, "the arm", "buckets_graph", kFilled);
    field("step", &BucketLine::step, "step of the arm, from 0", 6, kCount);
    field("longest", &BucketLine::longest, "longest microbatch on any rank (tokens)", 11,
          kPositive);
    field("length", &BucketLine::length, "length to which the microbatches were padded (tokens)",
          12, kPositive);
    field("replayed", &BucketLine::replayed, "whether the step was a replay", true);
    field("captures", &BucketLine::captures, "captures of the arm so far", 3, kCount);
    field("replays", &BucketLine::replays, "graph launches of the arm so far", 4, kCount);
    field("resident", &BucketLine::resident,
          "lengths that have graphs, the most recently used one first", JsonText{"[12, 4]"},
          kPositive);
    field("evicted", &BucketLine::evicted, "lengths whose graphs this step evicted",
          JsonText{"[8]"}, kPositive);
    field("captured_bytes", &BucketLine::captured_bytes,
          "bytes that this step's captures added to graph pools", 4194304);
    field("pool_bytes", &BucketLine::pool_bytes, "bytes in the arm's graph pools after the step",
          6291456);
  }
};

struct EvictionsLine {
  static constexpr std::string_view
      kKind = "evictions",
      kDoc = "After a run of changing lengths: graphs evicted while the device still ran them.";
  std::string arm, run;
  std::int64_t step = 0, in_flight = 0;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("arm", &EvictionsLine::arm, "the arm", "buckets_graph", kFilled);
    field("run", &EvictionsLine::run, "the run: buckets, or buckets_free_run without waits",
          "buckets_free_run", kFilled);
    field("step", &EvictionsLine::step, "last step of the run", 12, kCount);
    field("in_flight", &EvictionsLine::in_flight,
          "lengths whose graphs were evicted before their latest replay had ended", 0, kCount);
  }
};

struct HostWorkLine {
  static constexpr std::int64_t kSince = 22;
  static constexpr std::string_view kKind = "host_work",
                                    kDoc =
                                        "What a captured graph takes from the host, which other "
                                        "threads worked during its capture, and which of its nodes "
                                        "nothing orders.";
  std::string arm, graph;
  std::map<std::string, std::int64_t> host_memory, host_functions, other_threads;
  std::vector<std::string> unordered;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("arm", &HostWorkLine::arm, "the arm", "lockstep_graph", kFilled);
    field("graph", &HostWorkLine::graph, "name of the graph in its arm", "training", kFilled);
    field("host_memory", &HostWorkLine::host_memory,
          "sides of copies that are memory of the host, by its kind: pinned or pageable",
          JsonText{R"({"pinned": 8})"});
    field("host_functions", &HostWorkLine::host_functions,
          "host functions, by the file that holds them",
          JsonText{R"({"/opt/nccl/lib/libnccl.so.2": 2})"});
    field("other_threads", &HostWorkLine::other_threads,
          "operators that threads other than the capturing one called during the capture, by the "
          "name of the thread",
          JsonText{R"({"pt_autograd_0": 212})"});
    field("unordered", &HostWorkLine::unordered,
          "pairs of nodes with no path between them, of which one, a copy or a fill, writes memory "
          "that the other uses; of the simulated device see `races`",
          JsonText{"[]"});
  }
};

struct ExecUpdatesLine {
  static constexpr std::int64_t kSince = 22;
  static constexpr std::string_view
      kKind = "exec_updates",
      kDoc =
          "Captures of an arm that update the executable graph of an earlier capture in place of "
          "instantiating, all numbers so far.";
  std::string arm, run;
  std::int64_t step = 0, captures = 0, most_alive = 0, updates = 0;
  std::map<std::string, std::int64_t> refused;
  std::int64_t stale_launches = 0, given_up_in_flight = 0;
  std::optional<std::int64_t> kept_clusters;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("arm", &ExecUpdatesLine::arm, "the arm", "buckets_graph", kFilled);
    field("run", &ExecUpdatesLine::run, "the run: soak, stash, buckets, or buckets_free_run",
          "buckets", kFilled);
    field("step", &ExecUpdatesLine::step, "latest step of the arm", 12, kCount);
    field("captures", &ExecUpdatesLine::captures, "captures that succeeded", 4, kCount);
    field("most_alive", &ExecUpdatesLine::most_alive, "most graphs that existed at the same time",
          2, kCount);
    field("updates", &ExecUpdatesLine::updates, "updates that the device accepted", 2, kCount);
    field("refused", &ExecUpdatesLine::refused,
          "updates that the device refused, by its reason (cudaGraphExecUpdateResult)",
          JsonText{R"({"cudaGraphExecUpdateErrorTopologyChanged": 1})"});
    field("stale_launches", &ExecUpdatesLine::stale_launches,
          "launches of executable graphs that still had the work of an earlier capture", 0, kCount);
    field("given_up_in_flight", &ExecUpdatesLine::given_up_in_flight,
          "updates of executable graphs that ran when the memory of their graph was given up", 0,
          kCount);
    field(
        "kept_clusters", &ExecUpdatesLine::kept_clusters,
        "accepted updates after which the device would launch kernels in the thread block clusters "
        "of the earlier work; absent in older evidence",
        0, kCount);
  }
};

/// The kinds of this file, in the order of the reference page.
using GraphKinds = Kinds<CaptureLine, StateLine, AddressLine, PoisonLine, ReplayLine, OperandsLine,
                         SecondCaptureLine, NodeDumpLine, HandedOutLine, FailedCaptureLine,
                         ScribbledLine, DelayedStepsLine, EvaluatedLine, ResumedLine, BucketLine,
                         EvictionsLine, HostWorkLine, ExecUpdatesLine>;

}  // namespace graphproof::record
