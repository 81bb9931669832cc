#include "workloads/training/ddp_reduction.h"

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/logger.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>

#include <algorithm>
#include <tuple>

#include "fixtures/comm/torch_group.h"
#include "fixtures/tensors/torch.h"

namespace graphproof::workloads {
namespace {

// DDP's defaults are 1 and 25 MiB. They are smaller here so that small models have several buckets.
constexpr std::int64_t kDdpFirstBucketBytes = 1 << 15, kDdpBucketBytes = 1 << 17;

std::shared_ptr<c10d::Reducer> make_reducer(std::vector<at::Tensor> parameters,
                                            c10::intrusive_ptr<c10d::ProcessGroup> group) {
  const std::vector<bool> sparse(parameters.size(), false);
  auto buckets = std::get<0>(c10d::compute_bucket_assignment_by_size(
      parameters,
      {static_cast<std::size_t>(kDdpFirstBucketBytes), static_cast<std::size_t>(kDdpBucketBytes)},
      sparse));
  // As in DDP: gradients are expected in the reverse order of the parameters, until the first
  // backward shows the actual order.
  std::reverse(buckets.begin(), buckets.end());
  return std::make_shared<c10d::Reducer>(
      std::move(parameters), std::move(buckets), std::move(group), sparse, kDdpBucketBytes,
      /*find_unused_parameters=*/false, /*gradient_as_bucket_view=*/false,
      /*param_names=*/std::unordered_map<std::size_t, std::string>{}, kDdpFirstBucketBytes,
      /*skip_all_reduce_unused_params=*/false, /*use_python_reducer=*/false,
      /*bucket_bytes_cap_list=*/std::vector<std::int64_t>{});
}

}  // namespace

DdpReduction::DdpReduction(std::vector<at::Tensor> parameters,
                           c10::intrusive_ptr<c10d::ProcessGroup> group)
    : group_(std::move(group)),
      reducer_(make_reducer(parameters, group_)),
      logger_(std::make_shared<c10d::Logger>(reducer_)) {
  reducer_->set_logger(logger_);
  const int device = std::max(0, static_cast<int>(parameters.front().device().index()));
  logger_->set_construction_data_and_log("graphproof", {device}, device,
                                         /*broadcast_buffers=*/false, /*has_sync_bn=*/false,
                                         /*static_graph=*/false);
}

DdpReduction::~DdpReduction() = default;

void DdpReduction::begin_step() {
  logger_->set_runtime_stats_and_log();
  reducer_->prepare_for_forward();
  if (reducer_->rebuild_buckets()) comm::wait_for_watchdog(group_);
}

void DdpReduction::begin_last_backward() { reducer_->prepare_for_backward({}); }

std::size_t DdpReduction::buckets() const { return reducer_->get_grad_buckets().size(); }

}  // namespace graphproof::workloads
