#include "suites/rank_process.h"

#include <algorithm>

#include "fixtures/comm/transports.h"
#include "fixtures/comm/vote.h"
#include "fixtures/torch.h"

namespace graphproof::suites {
namespace {

using std::chrono::milliseconds;

/// A wait among ranks ends later than any phase: the watcher, which sees all ranks, must be the first to speak.
milliseconds patience(const record::Limits& limits) {
  constexpr milliseconds kMargin{30'000};
  std::int64_t longest = 0;
  for (const auto& [phase, ms] : limits) longest = std::max(longest, ms);
  return milliseconds(longest) + kMargin;
}

}  // namespace

RankProcess::RankProcess(const RankProgram& program, const fixtures::Rank& place, const record::Batch& batch)
    : program_(program), place_(place), batch_(batch), patience_(patience(batch.limits_ms)) {}

void RankProcess::start() {
  if (started()) return;
  world_ = std::make_unique<comm::MpiWorld>(place_.world_size, place_.rank);
  device_ = program_.make_device(place_.local_rank);
  // Arms are compared byte for byte, so every operator must have one order of its sums. Uninitialised memory stays as
  // it is: filling it would add kernels to what is captured.
  at::globalContext().setDeterministicAlgorithms(true, false);
  at::globalContext().setDeterministicFillUninitializedMemory(false);
  store_ = std::make_unique<fixtures::FileStore>(batch_.store);
  auto transports = comm::make_transports(*world_, *store_, place_.local_rank, limit(record::Phase::init));
  groups_ = std::make_unique<comm::ProcessGroups>(place_.world_size, place_.rank, std::move(transports));
  groups_->collective_limit(patience_);
}

std::vector<int> RankProcess::vote(std::string_view boundary, int code) {
  return comm::vote(*world_, boundary, code, patience_);
}

milliseconds RankProcess::limit(record::Phase phase) const { return milliseconds(batch_.limits_ms.at(phase)); }

void RankProcess::finish() {
  if (groups_) groups_->destroy(limit(record::Phase::teardown_comm));
  if (world_) world_->finalize(limit(record::Phase::teardown_process));
}

}  // namespace graphproof::suites
