#include "workloads/engines/speed/pool_bytes.h"

#include <c10/core/CachingDeviceAllocator.h>

#include "fixtures/tensors/torch.h"
#include "workloads/engines/capture/engine.h"

namespace graphproof::speed {
namespace {

using engines::EngineConfig, engines::PoolSharing;

constexpr auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);

PoolRow measure(capture::Device& device, c10::DeviceAllocator& allocator,
                const workloads::ModelConfig& model, const std::string& name,
                const EngineConfig& config) {
  const c10::Stream stream = device.stream_from_pool();
  const c10::StreamGuard guard(stream);
  workloads::TrainStep step(model, {}, device, 1);
  const auto engine = engines::make_engine(config, device, stream, step, nullptr);
  const auto batch = workloads::make_batch(model, {}, 1, 0, device.torch_device());
  constexpr int kStepsToReplay = 3;
  for (int i = 0; i < kStepsToReplay; ++i) engine->step(batch, 0.01);
  device.synchronize();
  device.empty_cache();
  const auto index = device.torch_device().index();
  const std::int64_t between_bytes = allocator.getDeviceStats(index).allocated_bytes[kAll].current;
  allocator.resetPeakStats(index);
  engine->step(batch, 0.01);
  device.synchronize();
  const PoolRow row{
      .engine = name,
      .pool_bytes = device.memory().pool,
      .step_peak_bytes = allocator.getDeviceStats(index).allocated_bytes[kAll].peak - between_bytes,
      .reserved_bytes = device.memory().reserved};
  engine->drop_graphs();
  return row;
}

}  // namespace

std::vector<PoolRow> pool_bytes(capture::Device& device, const workloads::ModelConfig& model) {
  auto* allocator =
      dynamic_cast<c10::DeviceAllocator*>(c10::GetAllocator(device.torch_device().type()));
  if (!allocator) return {};
  std::vector<std::pair<std::string, EngineConfig>> measured;
  for (const engines::EngineTraits& engine : engines::kEngineTraits) {
    const std::string impl(engine.impl), name = name_of(engine);
    measured.emplace_back(name, EngineConfig{.impl = impl, .warmup_steps = 1});
    if (engine.chooses_pools)
      measured.emplace_back(
          name + ", a pool a graph",
          EngineConfig{.impl = impl, .pool = PoolSharing::per_graph, .warmup_steps = 1});
  }
  std::vector<PoolRow> rows;
  for (const auto& [name, config] : measured) {
    rows.push_back(measure(device, *allocator, model, name, config));
    device.synchronize();
    device.empty_cache();
  }
  return rows;
}

}  // namespace graphproof::speed
