// In which order a pipeline stage runs forwards and backwards, and which static buffers an
// ahead-of-time capture needs for it: 1F1B, interleaved over virtual stages (Narayanan et al.
// 2021), and the per-layer order in which the expert communication of one microbatch runs beside
// the computation of another. Pure; schedules and capture engines follow it.
//
// The behaviour is Megatron-LM's at d98e8a64 (get_pp_rank_microbatches, get_schedule_table,
// convert_schedule_table_to_order, get_overlap_moe_expert_parallel_comm_order,
// _get_sample_arguments); golden.json holds what those compute.
//
// Words: a chunk is one of the virtual stages that a rank holds, C of them. Entries of an order are
// numbers from 1: +c a forward and -c the backward of chunk c, of the microbatches in turn; in an
// expanded order c is a layer, numbered chunk by chunk, and -l - 0.5 is the weight gradient of
// layer l, delayed behind its data gradient -l.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace graphproof::order {

/// Thrown for what no pipeline can run. what() is all of it on one line.
struct Refused : std::invalid_argument {
  Refused(std::string subject_, std::string got_, std::string want_, std::string why_,
          std::string next_);
  std::string subject, got, want, why, next;
};

/// Where a rank stands and how much it runs. All positive, rank in 0 .. pp - 1.
struct Stage {
  std::int64_t pp = 1, rank = 0;
  std::int64_t chunks = 1;        // 1: no virtual stages
  std::int64_t microbatches = 1;  // of each chunk
  std::int64_t group = 0;  // microbatches that a chunk runs before the next chunk does; 0 is pp
};

/// Forwards before the first backward. `forward_only`: all of them. `overlap_ep`: interleaved, one
/// more, whose layers the first backward overlaps; the capture path does without. Refused for a
/// stage that is none; so do the functions below.
std::int64_t warmup_forwards(const Stage& stage, bool forward_only = false,
                             bool overlap_ep = false);

/// One forward, from 0.
struct Forward {
  std::int64_t microbatch = 0, chunk = 0;
  bool operator==(const Forward&) const = default;
};
/// A stage's forwards in order: group by group of microbatches, in each every chunk in turn; the
/// last group may be short.
std::vector<Forward> forwards(const Stage& stage);

/// `warmup` forwards, then a forward and a backward in turn, then the backwards that are left.
/// Backwards follow the same list, with the chunks from last to first. More warm-up than forwards
/// is all of them. Refused without forwards.
std::vector<double> chunk_order(std::int64_t warmup, std::int64_t chunks,
                                const std::vector<Forward>& forwards);

/// chunk_order() of a stage as it is captured.
std::vector<double> chunk_order(const Stage& stage);

/// A layer of a chunk, both from 0.
struct Layer {
  std::int64_t chunk = 0, layer = 0;
  bool operator==(const Layer&) const = default;
};
struct LayerOrder {
  std::vector<double> entries;
  std::vector<std::optional<Layer>> layers;  // of each entry; none for a backward
};
/// The layers of a chunk order. Between the first backward and the last forward each backward is
/// paired with the forward behind it, and their layers alternate, the forward's first.
/// `weight_gradients`: each follows its data gradient, the last one of a pair only after the pair.
/// Refused for an order without backwards, with a chunk that `layers_of_chunk` lacks, or that does
/// not alternate there.
LayerOrder layer_order(const std::vector<double>& chunk_order,
                       const std::vector<std::int64_t>& layers_of_chunk, bool weight_gradients);

/// Which static input buffer each slot uses, numbered by first use in time; a buffer is free again
/// when the data gradient has run, oldest first, for layers of the same signature. Slot of layer j
/// of chunk c in its k-th forward: layers before c * microbatches + k * layers of c + j.
/// `signatures`: of each layer, chunk by chunk; empty where all are alike. Refused for a backward
/// without its forward.
std::vector<std::int64_t> input_buffers(const std::vector<double>& order,
                                        const std::vector<std::int64_t>& layers_of_chunk,
                                        std::int64_t microbatches,
                                        const std::vector<std::string>& signatures = {});

/// Those of an expanded order, in which every layer is a chunk of its own.
std::vector<std::int64_t> input_buffers(const LayerOrder& order);

}  // namespace graphproof::order
