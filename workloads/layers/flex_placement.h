// Where the rows of a dispatch go if their numbers are known on the device alone: the buffers of
// the flex dispatcher (moe.h), which follows the contract of DeepEP and HybridEP. Every buffer has
// the same size in every step, so a graph may hold the dispatch, and what lies beyond the rows that
// arrived is undefined.
//
// S senders, P receivers, M experts of a receiver; R rows of every sender, C rows of the receive
// buffer. A sender has a slot of R rows for each receiver, in which its rows for that receiver
// come first, expert by expert. A receiver gets one slot of each sender and packs their rows into
// its receive buffer, expert by expert and then sender by sender. Rows that find no place there
// are lost: their results are zero, and carried() and needed() tell.
#pragma once

#include <cstdint>

#include "fixtures/tensors/torch.h"

namespace graphproof::workloads {

/// The places of one dispatch, computed on the device from the numbers of rows. All indices come
/// from sums and stable sorts. Methods enqueue on the current stream, may be captured, never wait
/// for the host, and are differentiable in their first argument.
class FlexPlacement {
 public:
  struct Sizes {
    std::int64_t rows = 0;                  // R
    std::int64_t capacity = 0;              // C, at most S * R
    std::int64_t sender = 0, receiver = 0;  // this rank's index among the S and among the P
  };
  /// counts [S, P, M] int64 on the device: the rows from each sender to each receiver, by expert;
  /// those of a sender add up to R. numbers [S * R] int64: 0, 1, 2 ...
  FlexPlacement(const at::Tensor& counts, const at::Tensor& numbers, const Sizes& sizes);

  /// rows [R, H], ordered by receiver and expert, to [P * R, H], a slot for each receiver.
  at::Tensor slots(const at::Tensor& rows, double undefined) const;
  /// arrived [S * R, H], a slot of each sender, to the receive buffer [C, H]. Here and in the other
  /// methods the undefined rows hold `undefined`.
  at::Tensor received(const at::Tensor& arrived, double undefined) const;
  /// The receive buffer [C, H] to [M, C, H]: for each expert its rows, and zeros elsewhere.
  at::Tensor of_experts(const at::Tensor& buffer) const;
  /// The results [M, C, H] of all experts for all rows to those of the rows' own experts, [C, H].
  at::Tensor of_rows(const at::Tensor& results) const;
  /// results [C, H] to [S * R, H]: each in the place where its row had arrived.
  at::Tensor returned(const at::Tensor& results, double undefined) const;
  /// slots [P * R, H], as they come back from the receivers, to rows [R, H].
  at::Tensor rows(const at::Tensor& slots) const;

  /// [P * M] int64: this sender's rows that have a place at their receiver, by expert.
  const at::Tensor& carried() const { return carried_; }
  /// [] int64: the rows that were sent to this receiver. Those over C are lost.
  const at::Tensor& needed() const { return needed_; }

 private:
  at::Tensor slot_rows_, beyond_slot_;     // [P*R] int64; [P*R, 1] bool
  at::Tensor arrived_rows_, beyond_rows_;  // [C] int64; [C, 1] bool
  at::Tensor other_experts_;               // [M, C, 1] bool
  at::Tensor places_, lost_, never_sent_;  // [S*R] int64; [S*R, 1] bool
  at::Tensor places_in_slots_;             // [R] int64
  at::Tensor carried_, needed_;
};

}  // namespace graphproof::workloads
