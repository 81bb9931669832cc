// From each rank's gradients to those of the global batch: the mean over the data and context
// parallel ranks, an expert's over the ranks that hold it, and with sequence parallelism the sum
// over the tensor parallel ranks of what each computed from its tokens.
//
// With overlap_grad_reduce, as Megatron-LM's bucketed DDP: the shared gradients are cut into
// buckets, the last microbatch's backward counts what is added to its parameters' gradients, and a
// full bucket is reduced on a stream of its own while backward goes on. The sums are those without
// overlap, bit for bit: a bucket is a piece of the same buffer.
//
// Over PyTorch's process group (comm c10d) overlapped reduction is PyTorch's own: ddp_reduction.h.
// Its means may differ from ours in the last bit where the number of ranks is no power of two.
//
// With distributed_optimizer a bucket is reduce-scattered: afterwards the buffer holds the mean
// where this rank owns an element, and zero elsewhere.
//
// The host looks at gradients before they are reduced (host_checks.h), overlapped ones bucket by
// bucket, as Megatron-LM's start_grad_sync does: behind the last backward others would write what
// it reads. PyTorch's reducer is behind it by then; of its means it looks at all.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "fixtures/device/device.h"
#include "workloads/config/model_config.h"
#include "workloads/parameters/buckets.h"
#include "workloads/parameters/parameters.h"
#include "workloads/streams/side_stream.h"
#include "workloads/training/ddp_reduction.h"
#include "workloads/training/host_checks.h"

namespace graphproof::workloads {

class GradientReduction {
 public:
  /// With overlap it hangs hooks on the parameters' gradient accumulators; it is destroyed after
  /// the last backward, and before `checks` and `faults`.
  GradientReduction(const ModelConfig& config, const Layout& layout, const Parameters& parameters,
                    const GradientBuffer& gradients, HostChecks& checks, capture::Device& device,
                    faults::FaultHooks& faults);
  GradientReduction(const GradientReduction&) = delete;
  GradientReduction& operator=(const GradientReduction&) = delete;

  /// Before the first backward of a step.
  void begin_step();
  /// Before each backward; `last`: the gradients of its chunk's parameters are complete after it.
  void begin_backward(bool last);
  /// Behind such a backward: enqueued was what it had left to do for a parameter whose gradient
  /// autograd does not add (delayed_gradients.h).
  void added(const at::Tensor& parameter);
  /// After the last backward: enqueues what is not reduced yet and makes the current stream wait
  /// for the buckets. A capture that forked to the buckets' stream is joined here. No host
  /// synchronisation.
  void finish();

  /// After finish(), with distributed_optimizer, for comparisons alone: enqueues every rank's own
  /// part to all ranks.
  void gather();

  std::size_t buckets() const { return ddp_ ? ddp_->buckets() : buckets_.size(); }
  /// How many of them the latest step that the host ran began to reduce while its backward went on,
  /// in a capture too; nothing without overlap, and where PyTorch's reducer does it.
  std::optional<std::int64_t> overlapped() const;

 private:
  struct Reduced {
    Bucket bucket;
    FlatRange own;               // of own_; of the distributed optimizer
    std::int64_t additions = 0;  // that a backward makes to its gradients
    std::int64_t missing = 0;    // of those in this step's last backward
    bool done = false;
  };
  void hang_hooks(const Parameters& parameters);
  void added(std::size_t bucket);
  void reduce(Reduced& bucket);
  void issue(const Reduced& bucket);
  void keep_own();

  const ModelConfig config_;
  const Layout layout_;
  const GradientBuffer& gradients_;
  HostChecks& checks_;
  faults::FaultHooks& faults_;
  const SideStream side_;
  std::map<const c10::TensorImpl*, std::size_t> bucket_of_;  // by parameter; with overlap
  std::vector<Reduced> buckets_;       // none where there is one data parallel rank
  std::unique_ptr<DdpReduction> ddp_;  // instead of buckets_
  at::Tensor own_;  // [elements that this rank owns] fp32; undefined without distributed_optimizer
  bool last_ = false;
  std::int64_t overlapped_ = 0;
};

}  // namespace graphproof::workloads
