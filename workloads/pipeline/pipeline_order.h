// The order in which a pipeline stage runs forwards and backwards, and the static input buffers
// that an ahead-of-time capture needs for it. Covers 1F1B, its interleaved form over virtual stages
// (Narayanan et al. 2021), and the order by layers in which the expert communication of one
// microbatch overlaps the computation of another. Pure; the schedules and engines follow it.
//
// The behaviour is that of Megatron-LM at d98e8a64 (get_pp_rank_microbatches, get_schedule_table,
// convert_schedule_table_to_order, get_overlap_moe_expert_parallel_comm_order,
// _get_sample_arguments); golden.json holds results of those functions.
//
// A chunk is one of the C virtual stages of a rank. The entries of an order are numbers from 1: +c
// is a forward and -c a backward of chunk c, for its next microbatch. In an order by layers the
// number is that of a layer, counted chunk by chunk, and -l - 0.5 is the weight gradient of layer
// l, which runs apart from and after its data gradient -l.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace graphproof::order {

/// Thrown for a request that no pipeline can run. what() has all the fields on one line.
struct Refused : std::invalid_argument {
  Refused(std::string subject_, std::string got_, std::string want_, std::string why_,
          std::string next_);
  std::string subject, got, want, why, next;
};

/// The place of a rank in its pipeline and the amount of its work. All numbers are positive, but
/// `rank` is in 0 .. pp - 1 and `group` may be 0. The functions below throw Refused otherwise.
struct Stage {
  std::int64_t pp = 1, rank = 0;
  std::int64_t chunks = 1;        // 1: no virtual stages
  std::int64_t microbatches = 1;  // for each chunk
  std::int64_t group = 0;  // microbatches that a chunk runs before the next chunk does; 0 is pp
};

/// The number of forwards before the first backward; all forwards with `forward_only`.
/// `overlap_ep`: one more with several chunks, so that the first backward has a forward to overlap
/// with. Orders for a capture are made without it.
std::int64_t warmup_forwards(const Stage& stage, bool forward_only = false,
                             bool overlap_ep = false);

/// The forward of one chunk for one microbatch. Both are numbered from 0.
struct Forward {
  std::int64_t microbatch = 0, chunk = 0;
  bool operator==(const Forward&) const = default;
};
/// The forwards of a stage in order: one group of microbatches after the other, and within a group
/// one chunk after the other. The last group may be smaller.
std::vector<Forward> forwards(const Stage& stage);

/// `warmup` forwards (at most all), then alternately a forward and a backward, then the remaining
/// backwards. Backwards follow the same list with the chunks from last to first. Throws Refused for
/// an empty list of forwards.
std::vector<double> chunk_order(std::int64_t warmup, std::int64_t chunks,
                                const std::vector<Forward>& forwards);

/// The order of a stage, with its forwards() and warmup_forwards().
std::vector<double> chunk_order(const Stage& stage);

/// A layer of a chunk. Both are numbered from 0.
struct Layer {
  std::int64_t chunk = 0, layer = 0;
  bool operator==(const Layer&) const = default;
};
/// An order by layers.
struct LayerOrder {
  std::vector<double> entries;
  std::vector<std::optional<Layer>> layers;  // the layer of each forward entry, nullopt otherwise
};
/// Expands a chunk order by layers. Between the first backward and the last forward, each backward
/// is paired with the forward after it: their layers alternate, beginning with the forward's.
/// `weight_gradients`: each weight gradient follows its data gradient, and the last one of a pair
/// follows the pair. Throws Refused for an order without backwards, for a chunk that
/// `layers_of_chunk` lacks, and if forwards and backwards do not alternate where pairs are needed.
LayerOrder layer_order(const std::vector<double>& chunk_order,
                       const std::vector<std::int64_t>& layers_of_chunk, bool weight_gradients);

/// The number of the static input buffer that each forward of a layer uses. Buffers are numbered by
/// their first use. A buffer becomes free when its data gradient has run; the one that has been
/// free for longest is used next, by a layer of the same signature. The index of layer j of chunk c
/// in its k-th forward is (layers of earlier chunks) * microbatches + k * (layers of c) + j.
/// `signatures`: one for each layer, chunk by chunk; empty if all layers are alike. Throws Refused
/// for a backward that comes before its forward.
std::vector<std::int64_t> input_buffers(const std::vector<double>& order,
                                        const std::vector<std::int64_t>& layers_of_chunk,
                                        std::int64_t microbatches,
                                        const std::vector<std::string>& signatures = {});

/// The same for an order by layers, where every layer counts as a chunk.
std::vector<std::int64_t> input_buffers(const LayerOrder& order);

}  // namespace graphproof::order
