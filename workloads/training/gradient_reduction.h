// Reduces the gradients of each rank to those of the global batch: the mean over the data and
// context parallel ranks, for an expert the mean over the ranks that hold it, and with sequence
// parallelism the sum over the tensor parallel ranks of the gradients that each computed from its
// tokens.
//
// With overlap_grad_reduce it works as Megatron-LM's bucketed DDP. The shared gradients are cut
// into buckets. The backward of the last microbatch counts the additions to the gradients of a
// bucket, and a complete bucket is reduced on a side stream concurrently with the rest of the
// backward. The sums have the same bits as without overlap, because a bucket is a piece of the same
// buffer.
//
// With PyTorch's process group (comm c10d) the overlapped reduction is PyTorch's own
// (ddp_reduction.h). Its means may differ from ours in the last bit if the number of ranks is not a
// power of two.
//
// With distributed_optimizer a bucket is reduce-scattered: afterwards the buffer holds the mean in
// the elements that this rank owns, and zero elsewhere.
//
// The host checks gradients before they are reduced (host_checks.h), overlapped ones bucket by
// bucket, as Megatron-LM's start_grad_sync does, because after the last backward the reductions
// would write what the host reads. With PyTorch's reducer it checks all means after the reduction.
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

/// The reduction of one rank. Used by the thread that runs the step; with overlap its hooks run on
/// autograd's threads.
class GradientReduction {
 public:
  /// With overlap it registers hooks on the gradient accumulators of the parameters. It must be
  /// destroyed after the last backward, and before `checks` and `faults`.
  GradientReduction(const ModelConfig& config, const Layout& layout, const Parameters& parameters,
                    const GradientBuffer& gradients, HostChecks& checks, capture::Device& device,
                    faults::FaultHooks& faults);
  GradientReduction(const GradientReduction&) = delete;
  GradientReduction& operator=(const GradientReduction&) = delete;

  /// Before the first backward of a step.
  void begin_step();
  /// Before each backward. `last`: it completes the gradients of its chunk's parameters.
  void begin_backward(bool last);
  /// Called after the delayed gradient of `parameter`, which autograd does not add
  /// (delayed_gradients.h), has been enqueued.
  void added(const at::Tensor& parameter);
  /// After the last backward: enqueues the reductions that are still missing and makes the current
  /// stream wait for the side stream, which also joins the two in a capture. The host does not
  /// wait.
  void finish();

  /// After finish(), with distributed_optimizer, only for comparisons: enqueues the gather of all
  /// gradients on all ranks.
  void gather();

  std::size_t buckets() const { return ddp_ ? ddp_->buckets() : buckets_.size(); }
  /// How many buckets the latest step that the host ran or captured began to reduce during its
  /// backward. Empty without overlap, and with PyTorch's reducer.
  std::optional<std::int64_t> overlapped() const;

 private:
  struct Reduced {
    Bucket bucket;
    FlatRange own;               // as a range of own_, with the distributed optimizer
    std::int64_t additions = 0;  // the number of additions to its gradients in one backward
    std::int64_t missing = 0;    // those that the last backward of this step has not made yet
    bool done = false;
  };
  void register_hooks(const Parameters& parameters);
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
  std::vector<Reduced> buckets_;                             // empty with one data parallel rank
  std::unique_ptr<DdpReduction> ddp_;                        // instead of buckets_
  at::Tensor own_;  // [elements that this rank owns] fp32; undefined without distributed_optimizer
  bool last_ = false;
  std::int64_t overlapped_ = 0;
};

}  // namespace graphproof::workloads
