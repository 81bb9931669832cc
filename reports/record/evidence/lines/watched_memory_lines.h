// Evidence of the memory and the communication of a watched process.
#pragma once

#include "reports/record/evidence/table/field_table.h"

namespace graphproof::record {

struct OperandBlock {
  std::string address;
  std::int64_t bytes = 0;
  std::vector<std::int64_t> pool;
  std::string node;
  std::string place;
  std::string how;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("address", &OperandBlock::address, "where the block begins", "0x7f0000000200", kFilled);
    field("bytes", &OperandBlock::bytes, "its size (bytes)", 512, kPositive);
    field("pool", &OperandBlock::pool, "pool of PyTorch's allocator", JsonText{R"([0, 0])"},
          kCount);
    field("node", &OperandBlock::node, "kernel, copy or fill that points to it", "scale");
    field("place", &OperandBlock::place,
          "where in the node: an address of a copy or fill, a whole parameter, or a field of a "
          "larger one, which may be padding",
          "parameter",
          {.one_of = "copy_source|copy_target|fill_target|allocation|parameter|field"});
    field("how", &OperandBlock::how,
          "how it was seen that the block is free; empty for a block that was free at the capture",
          "the block is free");
  }
};

struct OperandBlocksLine {
  static constexpr std::string_view kKind = "operand_blocks",
                                    kDoc =
                                        "Whether the blocks of PyTorch's allocator that a graph "
                                        "points to still have their owner.";
  std::int64_t executable = 0;
  std::string moment;
  std::int64_t step = 0;
  std::int64_t launches = 0;
  std::int64_t blocks = 0;
  bool known = false;
  bool pool_known = false;
  std::int64_t freed_blocks = 0;
  std::vector<OperandBlock> freed;
  std::optional<std::int64_t> outside;
  std::optional<std::int64_t> own_pool;
  std::optional<std::int64_t> free_at_capture;
  std::vector<OperandBlock> free_at_capture_blocks;
  std::optional<std::vector<OperandBlock>> largest;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("executable", &OperandBlocksLine::executable, "number of the executable graph", 1,
          kPositive);
    field("moment", &OperandBlocksLine::moment,
          "when this was looked up: after the capture, late for want of a snapshot then, after an "
          "update, in a later snapshot, or when a block was freed",
          "sample", {.one_of = "capture|late|update|sample|free"});
    field("step", &OperandBlocksLine::step, "training steps before", 12, kCount);
    field("launches", &OperandBlocksLine::launches, "launches of the graph before", 12, kCount);
    field("blocks", &OperandBlocksLine::blocks, "blocks outside its own pool that it points to", 14,
          kCount);
    field("known", &OperandBlocksLine::known,
          "whether the operands are those of the graph as it is now", true);
    field("pool_known", &OperandBlocksLine::pool_known, "whether its own pool is known", true);
    field("freed_blocks", &OperandBlocksLine::freed_blocks,
          "of these blocks, those that were freed", 1, kCount);
    field("freed", &OperandBlocksLine::freed, "the first of them");
    field("outside", &OperandBlocksLine::outside,
          "addresses outside PyTorch's allocator; only where operands were looked up", 2, kCount);
    field("own_pool", &OperandBlocksLine::own_pool,
          "addresses in its own pool, whose blocks are free by design; likewise", 40, kCount);
    field("free_at_capture", &OperandBlocksLine::free_at_capture,
          "blocks outside its own pool that were free right after the capture; likewise", 0,
          kCount);
    field("free_at_capture_blocks", &OperandBlocksLine::free_at_capture_blocks,
          "the first of them");
    field("largest", &OperandBlocksLine::largest,
          "the largest blocks that it points to, whether freed or not; only where operands were "
          "looked up");
  }
};

struct ReleasedOperand {
  std::string address;
  std::string node;
  std::string place;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("address", &ReleasedOperand::address, "the address", "0x7f0000000200", kFilled);
    field("node", &ReleasedOperand::node, "kernel, copy or fill that has it", "scale");
    field("place", &ReleasedOperand::place, "where in the node", "parameter",
          {.one_of = "copy_source|copy_target|fill_target|allocation|parameter|field"});
  }
};

struct ConcurrentLaunchesLine {
  static constexpr std::string_view kKind = "concurrent_launches",
                                    kDoc =
                                        "Two executable graphs that share memory were launched on "
                                        "different streams with no order between the launches.";
  std::int64_t executable = 0;
  std::int64_t other = 0;
  std::string stream;
  std::int64_t step = 0;
  double seconds = 0;
  std::int64_t count = 0;
  std::int64_t pool_addresses = 0;
  std::vector<OperandBlock> blocks;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("executable", &ConcurrentLaunchesLine::executable,
          "number of the executable graph that was launched", 2, kPositive);
    field("other", &ConcurrentLaunchesLine::other,
          "number of the one that was launched before and might still run", 1, kPositive);
    field("stream", &ConcurrentLaunchesLine::stream, "stream of the later launch",
          "0x55d0c0ffee00");
    field("step", &ConcurrentLaunchesLine::step, "training steps before the first time", 12,
          kCount);
    field("seconds", &ConcurrentLaunchesLine::seconds,
          "the first time (s from the start of the probe)", 12.5, kCount);
    field("count", &ConcurrentLaunchesLine::count, "times", 20, kPositive);
    field("pool_addresses", &ConcurrentLaunchesLine::pool_addresses,
          "addresses in a pool of their own that both point to", 2, kCount);
    field("blocks", &ConcurrentLaunchesLine::blocks,
          "blocks outside pools that both point to, the largest first");
  }
};

struct OperandReleasedLine {
  static constexpr std::string_view
      kKind = "operand_released",
      kDoc = "Memory that an executable graph points to was given back to the driver.";
  std::int64_t executable = 0;
  std::string address;
  std::int64_t bytes = 0;
  std::string memory;
  std::string function;
  std::int64_t thread = 0;
  std::int64_t step = 0;
  std::int64_t words = 0;
  std::int64_t addresses = 0;
  std::vector<ReleasedOperand> operands;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("executable", &OperandReleasedLine::executable, "number of the executable graph", 1,
          kPositive);
    field("address", &OperandReleasedLine::address, "where the memory begins", "0x7f0000000000",
          kFilled);
    field("bytes", &OperandReleasedLine::bytes, "its size (bytes)", 4096, kPositive);
    field("memory", &OperandReleasedLine::memory, "kind of memory", "device",
          {.one_of = "device|stream_ordered|managed|mapped|pinned|registered"});
    field("function", &OperandReleasedLine::function, "driver call that gave it back",
          "cuMemFree_v2", kFilled);
    field("thread", &OperandReleasedLine::thread, "thread id", 4711, kPositive);
    field("step", &OperandReleasedLine::step, "training steps before", 12, kCount);
    field("words", &OperandReleasedLine::words, "words of the graph's parameters that point there",
          1, kPositive);
    field("addresses", &OperandReleasedLine::addresses,
          "those of them that are certainly addresses, not fields of larger parameters", 1, kCount);
    field("operands", &OperandReleasedLine::operands, "the first of them");
  }
};

struct PoolMemory {
  std::vector<std::int64_t> pool;
  std::int64_t segments = 0;
  std::int64_t total_bytes = 0;
  std::int64_t active_bytes = 0;
  std::int64_t allocated_bytes = 0;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("pool", &PoolMemory::pool,
          "pool of PyTorch's allocator; [0, 0] is the memory outside pools", JsonText{R"([0, 9])"},
          kCount);
    field("segments", &PoolMemory::segments, "segments", 3, kCount);
    field("total_bytes", &PoolMemory::total_bytes, "their size (bytes)", 6291456, kCount);
    field("active_bytes", &PoolMemory::active_bytes,
          "of it, in blocks that are in use or not yet reusable (bytes)", 4194304, kCount);
    field("allocated_bytes", &PoolMemory::allocated_bytes,
          "of it, in blocks that are allocated (bytes)", 4194304, kCount);
  }
};

struct HostCopiesLine {
  static constexpr std::string_view
      kKind = "host_copies",
      kDoc =
          "What was copied from the host between two replays of a graph, in one of the few "
          "intervals "
          "that are looked at, and what of it nothing read up to the second replay after it.";
  std::int64_t executable = 0;
  std::int64_t launches = 0;
  std::int64_t copies = 0;
  std::int64_t unread = 0;
  std::int64_t unread_bytes = 0;
  bool unclear = false;
  std::string why;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("executable", &HostCopiesLine::executable, "number of the executable graph", 1,
          kPositive);
    field("launches", &HostCopiesLine::launches,
          "launches of the graph up to the second replay after the interval", 9, kPositive);
    field("copies", &HostCopiesLine::copies, "copies from the host outside graphs", 1, kPositive);
    field(
        "unread", &HostCopiesLine::unread,
        "of these, those into whose memory no launched graph, no kernel outside graphs and no copy "
        "had an address",
        1, kCount);
    field("unread_bytes", &HostCopiesLine::unread_bytes, "their memory (bytes)", 8192, kCount);
    field("unclear", &HostCopiesLine::unclear,
          "whether something may have read them unseen: kernels whose parameters cannot be read, "
          "those of NCCL, and uses of the block that a copy filled in part",
          false);
    field("why", &HostCopiesLine::why,
          "what made it so, the first of it, with the name of the kernel; empty otherwise", "");
  }
};

struct MemoryPoolsLine {
  static constexpr std::string_view
      kKind = "memory_pools",
      kDoc = "What PyTorch's allocator held, at snapshots 1, 2, 4, 8, ...";
  std::int64_t snapshot = 0;
  double seconds = 0;
  std::vector<PoolMemory> pools;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("snapshot", &MemoryPoolsLine::snapshot, "number of the snapshot, from 1", 4, kPositive);
    field("seconds", &MemoryPoolsLine::seconds, "when (s from the start of the probe)", 12.5,
          kCount);
    field("pools", &MemoryPoolsLine::pools, "its pools");
  }
};

struct MemorySeriesLine {
  static constexpr std::string_view
      kKind = "memory_series",
      kDoc = "What the process held, at points that are evenly spread over its launches of graphs.";
  std::string what;
  std::vector<std::int64_t> launches;
  std::vector<double> seconds;
  std::vector<std::int64_t> values;

  template <class Visitor>
  static void fields(Visitor& field) {
    field(
        "what", &MemorySeriesLine::what,
        "resident: memory of the process that belongs to no file (bytes); device and host: memory "
        "that the driver gave out (bytes); descriptors: open files; allocated and reserved: by "
        "PyTorch's allocator (bytes)",
        "resident", {.one_of = "resident|device|host|descriptors|allocated|reserved"});
    field("launches", &MemorySeriesLine::launches,
          "launches of graphs before each point; of PyTorch's allocator, replays",
          JsonText{R"([1, 2, 3])"}, kCount);
    field("seconds", &MemorySeriesLine::seconds,
          "when each point was taken (s from the start of the probe)",
          JsonText{R"([12.5, 12.6, 12.7])"});
    field("values", &MemorySeriesLine::values, "what was held",
          JsonText{R"([1048576, 1052672, 1056768])"}, kCount);
  }
};

struct CommunicatorLine {
  static constexpr std::string_view kKind = "communicator", kDoc = "A communicator of NCCL.";
  std::string communicator;
  std::string name;
  std::int64_t nodes = 0;
  std::int64_t ranks = 0;
  std::int64_t rank = 0;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("communicator", &CommunicatorLine::communicator,
          "NCCL's hash of it, the same on all its ranks", "0xabcd", kFilled);
    field("name", &CommunicatorLine::name, "name that the program gave it", "tp");
    field("nodes", &CommunicatorLine::nodes, "machines", 1, kCount);
    field("ranks", &CommunicatorLine::ranks, "ranks", 2, kPositive);
    field("rank", &CommunicatorLine::rank, "rank of this process", 0, kCount);
  }
};

struct NcclCallLine {
  static constexpr std::string_view kKind = "nccl_call", kDoc = "Calls of NCCL that are alike.";
  std::string communicator;
  std::string function;
  std::string datatype;
  std::int64_t elements = 0;
  std::int64_t peer = 0;
  std::optional<bool> captured;
  std::int64_t capture = 0;
  std::int64_t count = 0;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("communicator", &NcclCallLine::communicator, "NCCL's hash of the communicator", "0xabcd",
          kFilled);
    field("function", &NcclCallLine::function, "the call", "AllReduce", kFilled);
    field("datatype", &NcclCallLine::datatype, "type of the elements", "ncclFloat32");
    field("elements", &NcclCallLine::elements, "elements of one call", 1024, kCount);
    field("peer", &NcclCallLine::peer, "root or peer; -1 for none", 0, {.at_least = -1});
    field("captured", &NcclCallLine::captured,
          "whether they were captured; absent if NCCL does not report it", true);
    field("capture", &NcclCallLine::capture,
          "number of the capture; 0 for none or if it is unknown", 1, kCount);
    field("count", &NcclCallLine::count, "calls", 7, kCount);
  }
};

struct NcclRegistrationLine {
  static constexpr std::string_view kKind = "nccl_registration",
                                    kDoc =
                                        "Buffer registrations of one process in the log of NCCL.";
  std::string file;
  std::int64_t registered = 0;
  std::int64_t ipc = 0;
  std::int64_t nvls = 0;
  std::int64_t network = 0;
  std::int64_t graph_skipped = 0;
  std::vector<std::string> notes;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("file", &NcclRegistrationLine::file, "the log", "nccl.node-1.4711", kFilled);
    field("registered", &NcclRegistrationLine::registered, "buffers registered by the user", 2,
          kCount);
    field("ipc", &NcclRegistrationLine::ipc, "registrations for peers on the machine", 1, kCount);
    field("nvls", &NcclRegistrationLine::nvls, "registrations for NVLink SHARP", 1, kCount);
    field("network", &NcclRegistrationLine::network, "registrations for the network", 0, kCount);
    field("graph_skipped", &NcclRegistrationLine::graph_skipped,
          "registrations of a captured call that NCCL skipped", 1, kCount);
    field("notes", &NcclRegistrationLine::notes,
          "the first lines about skipped or failed registrations",
          JsonText{R"(["Skipping graph registration"])"});
  }
};

struct LiveGraphsLine {
  static constexpr std::string_view
      kKind = "live_graphs",
      kDoc =
          "Executable graphs that were alive when a communicator or process group was torn down.";
  std::string what;
  double seconds = 0;
  std::int64_t executables = 0;
  std::int64_t executables_with_nccl = 0;
  std::vector<std::int64_t> with_nccl;
  std::vector<std::string> stack;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("what", &LiveGraphsLine::what, "what was torn down", "destroy_process_group", kFilled);
    field("seconds", &LiveGraphsLine::seconds, "when (s from the start of the probe)", 60.5,
          kCount);
    field("executables", &LiveGraphsLine::executables, "executable graphs alive", 2, kCount);
    field("executables_with_nccl", &LiveGraphsLine::executables_with_nccl,
          "of these, those with kernels of NCCL", 1, kCount);
    field("with_nccl", &LiveGraphsLine::with_nccl, "the first of them", JsonText{R"([1])"});
    field("stack", &LiveGraphsLine::stack,
          "Python stack, the innermost call first; empty if there is none",
          JsonText{R"(["train.py:88 main"])"});
  }
};

/// The kinds of this file, in the order of the reference page.
using WatchedMemoryKinds =
    Kinds<OperandBlocksLine, ConcurrentLaunchesLine, OperandReleasedLine, HostCopiesLine,
          MemoryPoolsLine, MemorySeriesLine, CommunicatorLine, NcclCallLine, NcclRegistrationLine,
          LiveGraphsLine>;

}  // namespace graphproof::record
