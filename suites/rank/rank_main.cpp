// The rank program. `--batch FILE` (or FILE alone) runs a batch. `--divergence FILE` runs its cases
// again and finds the first tensor in which the graph arm differs from eager. A rank starts
// `--resume FILE` for a job that resumes in a process of its own (resuming_process.h).
// `--fingerprint` prints the stack as one JSON object. `--all-reduce FOLDER` tests a sum over all
// ranks, for `graphproof doctor` (all_reduce.h). `--operators` lists the operators that the
// workloads call, and `--libraries` the library files that are mapped after they were called, one
// per line.
#include <malloc.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <set>
#include <string_view>
#include <vector>

#include "fixtures/comm/collectives.h"
#include "fixtures/comm/collectives_into.h"
#include "fixtures/comm/point_to_point.h"
#include "fixtures/device/operator_log.h"
#include "fixtures/tensors/torch.h"
#include "matrix/input/input_error.h"
#include "reports/record/text/message.h"
#include "suites/case/step_config.h"
#include "suites/rank/all_reduce.h"
#include "suites/rank/batch_run.h"
#include "suites/rank/fingerprint.h"
#include "suites/rank/resuming_process.h"

namespace {

using namespace graphproof;

constexpr std::string_view kUsage = "usage: graphproof-rank-" GRAPHPROOF_DEVICE_NAME
                                    " --batch FILE | --divergence FILE | --resume FILE | "
                                    "--all-reduce FOLDER | --fingerprint | --operators |"
                                    " --libraries";

/// A step with all features on, so that no operator is missing.
void run_every_operator(capture::Device& device) {
  workloads::ModelConfig model{
      .microbatches = 2, .qkv_bias = true, .linear_bias = true, .dropout = 0.1};
  const c10::StreamGuard guard(device.stream_from_pool());
  workloads::TrainStep step(model, {}, device, 1, {});
  const auto batch = workloads::make_batch(model, {}, 1, 0, device.torch_device());
  step.learning_rate(0.1);
  step.forward_backward(batch);
  step.optimizer_step();
  device.synchronize();
}

int print_operators() {
  const auto device = capture::make_device(0);
  std::set<std::string> names(comm::operator_names().begin(), comm::operator_names().end());
  names.insert(comm::into_operator_names().begin(), comm::into_operator_names().end());
  names.insert(comm::point_to_point_operator_names().begin(),
               comm::point_to_point_operator_names().end());
  {
    const capture::OperatorLog log;
    run_every_operator(*device);
    for (const std::string& name : log.names())
      if (name.starts_with("aten::") || name.starts_with("graphproof::")) names.insert(name);
  }
  for (const std::string& name : names) std::cout << name << "\n";
  return suites::kExitDone;
}

/// cuBLAS, cuDNN and others open parts of themselves when they are first needed, so a step runs
/// first.
int print_libraries() {
  run_every_operator(*capture::make_device(0));
  std::set<std::string> files;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const std::size_t path = line.find('/');
    if (path != line.npos && line.find(".so", path) != line.npos) files.insert(line.substr(path));
  }
  for (const std::string& file : files) std::cout << file << "\n";
  std::cout << std::flush;
  return suites::kExitDone;
}

int run(const std::vector<std::string_view>& arguments) {
  if (arguments.size() == 1 && arguments[0] == "--fingerprint") {
    std::cout << suites::fingerprint().dump() << std::endl;
    return suites::kExitDone;
  }
  if (arguments.size() == 1 && arguments[0] == "--operators") return print_operators();
  if (arguments.size() == 1 && arguments[0] == "--libraries") return print_libraries();
  const suites::RankProgram program{.device = GRAPHPROOF_DEVICE_NAME,
                                    .make_device = capture::make_device};
  if (arguments.size() == 2 && arguments[0] == "--all-reduce")
    return suites::measure_all_reduce(program, fixtures::this_rank(), arguments[1]);
  const bool again = arguments.size() == 2 && arguments[0] == "--divergence";
  const bool resumes = arguments.size() == 2 && arguments[0] == "--resume";
  const bool named = again || resumes || (arguments.size() == 2 && arguments[0] == "--batch");
  if (!named && (arguments.size() != 1 || arguments[0].starts_with("-"))) {
    std::cerr << kUsage << std::endl;
    return suites::kExitUsage;
  }
  const fixtures::Rank place = fixtures::this_rank();
  fixtures::separate_sharers_for_nccl(place);
  if (resumes) return suites::resume_case(program, place, arguments[1]);
  return suites::run_batch(program, place, arguments.back(),
                           again ? suites::Purpose::divergence : suites::Purpose::evidence);
}

}  // namespace

int main(int argc, char** argv) {
  // glibc raises this limit up to 32 MiB when large blocks are freed, and from then on keeps such
  // blocks in its heap. Resident memory would then change by megabytes with the blocks in between,
  // and check D31 would find growth where there is none.
  mallopt(M_MMAP_THRESHOLD, 128 * 1024);
  // If the launcher has gone, heartbeats are lost, but the rank must not end by SIGPIPE.
  std::signal(SIGPIPE, SIG_IGN);
  // PyTorch before 2.11 refuses deterministic products without it
  // (fixtures/device/cuda/device.cpp). A value that the user has set is kept.
  setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", 0);
  try {
    return run({argv + 1, argv + argc});
  } catch (const matrix::InputError& error) {
    std::cerr << "graphproof-rank: " << error.what() << std::endl;
    return suites::kExitUsage;
  } catch (const graphproof::record::ReadError& error) {
    std::cerr << "graphproof-rank: " << error.what() << std::endl;
    return suites::kExitUsage;
  } catch (const std::exception& error) {
    std::cerr << "graphproof-rank: " << error.what() << std::endl;
    // Does not return from main, because static destructors of MPI and CUDA may wait for peers.
    std::cout.flush();
    std::_Exit(suites::kExitOwnFault);
  }
}
