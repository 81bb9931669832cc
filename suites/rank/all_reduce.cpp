#include "suites/rank/all_reduce.h"

#include <chrono>
#include <iostream>
#include <numeric>
#include <string>
#include <vector>

#include "fixtures/comm/collectives.h"
#include "fixtures/tensors/torch.h"
#include "reports/record/text/message.h"
#include "suites/rank/rank_process.h"

namespace graphproof::suites {
namespace {

constexpr std::int64_t kPhaseLimit_ms = 60000;
constexpr int kWarmUps = 3, kTimed = 10;
constexpr char kGroup[] = "all";
// On GPUs large enough to measure their links; over MPI large enough to test that it works.
constexpr std::int64_t kCudaBytes = 64 << 20, kSimBytes = 1 << 20;

}  // namespace

int measure_all_reduce(const RankProgram& program, const fixtures::Rank& place,
                       const std::filesystem::path& store) {
  record::Batch batch;
  batch.device = program.device;
  batch.world_size = place.world_size;
  batch.store = store;
  for (std::size_t i = 0; i < record::kPhaseCount; ++i)
    batch.limits_ms[static_cast<record::Phase>(i)] = kPhaseLimit_ms;
  RankProcess process(program, place, batch,
                      "");  // a batch without cases, which the rank makes itself
  process.start();
  std::vector<int> everyone(static_cast<std::size_t>(place.world_size));
  std::iota(everyone.begin(), everyone.end(), 0);
  process.groups().use({{.name = kGroup, .ranks = {everyone}}}, process.limit(record::Phase::init));

  const std::int64_t bytes = program.device == "cuda" ? kCudaBytes : kSimBytes;
  double ms = 0;
  bool right = false;
  {
    const c10::StreamGuard guard(process.device().stream_from_pool());
    at::Tensor x =
        at::ones({bytes / 4}, at::TensorOptions().device(process.device().torch_device()));
    comm::all_reduce_(x, kGroup);
    process.device().synchronize();
    right = at::equal(x, at::full_like(x, place.world_size));
    x.zero_();  // repeated sums would grow to infinity
    for (int i = 0; i < kWarmUps; ++i) comm::all_reduce_(x, kGroup);
    process.device().synchronize();
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kTimed; ++i) comm::all_reduce_(x, kGroup);
    process.device().synchronize();
    ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
             .count() /
         kTimed;
  }
  process.vote("all_reduce", right ? 0 : 1);
  process.finish();
  if (!right)
    throw record::ReadError(
        {.what = "an all-reduce of ones over " + std::to_string(place.world_size) + " ranks",
         .got = "another sum on rank " + std::to_string(place.rank),
         .want = std::to_string(place.world_size) + " in every element",
         .why = "no result of several ranks can be trusted on this host",
         .next = "run nccl-tests on it, and have its links looked at"});
  const double share = 2.0 * (place.world_size - 1) / place.world_size;
  if (place.rank == 0)
    std::cout << nlohmann::json{{"ranks", place.world_size},
                                {"bytes", bytes},
                                {"ms", ms},
                                {"bus_gb_s", share * static_cast<double>(bytes) / (ms * 1e6)}}
                     .dump()
              << std::endl;
  return kExitDone;
}

}  // namespace graphproof::suites
