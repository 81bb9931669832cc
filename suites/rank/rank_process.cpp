#include "suites/rank/rank_process.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "fixtures/comm/transport/file_world.h"
#include "fixtures/comm/transport/mpi.h"
#include "fixtures/comm/transport/transports.h"
#include "fixtures/comm/transport/vote.h"
#include "fixtures/process/fault.h"
#include "fixtures/tensors/torch.h"
#include "reports/record/job/rank_orders.h"
#include "reports/record/text/message.h"
#include "suites/rank/configuration_agreement.h"

namespace graphproof::suites {
namespace {

using std::chrono::milliseconds;

// How long a failed rank waits for its peers' vote: 10 s of the usual 150. Peers vote at once, or
// they wait for this rank in a collective and will never vote. When this rank exits, mpirun ends
// them, and the case ends with its error and not as a hang.
constexpr int kFailedShare = 15;

// Rank::from of ranks that graphproof-start has started.
constexpr char kOwnStarter[] = "GRAPHPROOF_*";

/// Whether the world uses MPI. Several ranks of the simulated device send tensors over MPI; GPUs
/// use NCCL, and a single rank sends nothing. Ranks that mpirun has started must use MPI in any
/// case, because mpirun waits for their MPI_Finalize.
std::unique_ptr<comm::World> make_world(const fixtures::Rank& place, const record::Batch& batch) {
  const bool without_mpi =
      place.from == kOwnStarter && (batch.device == "cuda" || place.world_size == 1);
  if (without_mpi)
    return std::make_unique<comm::FileWorld>(std::filesystem::path(batch.store) / "world",
                                             place.world_size, place.rank);
  return std::make_unique<comm::MpiWorld>(place.world_size, place.rank);
}

/// The value of the axis comm, which is the same for all cases of a batch (matrix::batch_key).
comm::Issuer issuer_of(const record::Batch& batch) {
  const auto comm_of = [](const record::BatchCase& listed) {
    return listed.axes.value("comm", "nccl");
  };
  if (batch.cases.empty()) return comm::Issuer::nccl;  // the all-reduce test of `graphproof doctor`
  const std::string first = comm_of(batch.cases.front());
  for (const record::BatchCase& listed : batch.cases)
    if (comm_of(listed) != first)
      throw record::Error({.what = "axis comm of the cases of batch " + batch.batch,
                           .got = first + " and, in case " + listed.name + ", " + comm_of(listed),
                           .want = "one value",
                           .why = "the communicators of a process are made once, by one of them",
                           .next = "give each value a batch of its own"});
  return first == "c10d" ? comm::Issuer::c10d : comm::Issuer::nccl;
}

comm::TransportOptions transport_options(const record::Batch& batch) {
  // A case with a fault has a batch of its own.
  const std::string fault =
      batch.cases.empty() ? "none" : batch.cases.front().axes.value("fault", "none");
  return {.issuer = issuer_of(batch),
          .fault = fixtures::fault_of(fault),
          .flight_pipes = batch.heartbeat_fifo.empty()
                              ? ""
                              : std::filesystem::path(batch.heartbeat_fifo).parent_path(),
          .flight_answers = batch.heartbeat_fifo.empty() ? "" : batch.log_folder};
}

}  // namespace

milliseconds patience(const record::Limits& limits) {
  constexpr milliseconds kMargin{30'000};
  std::int64_t longest = 0;
  for (const auto& [phase, ms] : limits) longest = std::max(longest, ms);
  return milliseconds(longest) + kMargin;
}

RankProcess::RankProcess(const RankProgram& program, const fixtures::Rank& place,
                         const record::Batch& batch, std::string digest,
                         std::unique_ptr<comm::World> world)
    : program_(program),
      place_(place),
      batch_(batch),
      digest_(std::move(digest)),
      patience_(suites::patience(batch.limits_ms)),
      world_(std::move(world)) {}

void RankProcess::start() {
  if (started()) return;
  if (!world_) world_ = make_world(place_, batch_);
  if (!digest_.empty()) agree_on_configuration(*world_, digest_, patience_);
  device_ = program_.make_device(place_.gpu);
  // Arms are compared byte for byte, so each operator must use one order of sums. Uninitialised
  // memory is not filled, because that would add kernels to captures.
  at::globalContext().setDeterministicAlgorithms(true, false);
  at::globalContext().setDeterministicFillUninitializedMemory(false);
  store_ = std::make_unique<fixtures::FileStore>(batch_.store);
  auto transports = comm::make_transports(*world_, *store_, place_.gpu, limit(record::Phase::init),
                                          transport_options(batch_));
  groups_ =
      std::make_unique<comm::ProcessGroups>(place_.world_size, place_.rank, std::move(transports));
  groups_->collective_limit(patience_);
}

std::vector<int> RankProcess::vote(std::string_view boundary, int code) {
  return comm::vote(*world_, boundary, code, code == 0 ? patience_ : patience_ / kFailedShare);
}

bool RankProcess::asked_to_stop() {
  const char* const file = std::getenv(record::kStopVariable);
  if (file == nullptr || *file == '\0') return false;
  const int seen = std::filesystem::exists(file) ? 1 : 0;
  return comm::vote(*world_, "next case", seen, patience_).front() != 0;
}

milliseconds RankProcess::limit(record::Phase phase) const {
  return milliseconds(batch_.limits_ms.at(phase));
}

void RankProcess::finish() {
  if (groups_) groups_->destroy(limit(record::Phase::teardown_comm));
  if (world_) world_->finalize(limit(record::Phase::teardown_process));
}

}  // namespace graphproof::suites
