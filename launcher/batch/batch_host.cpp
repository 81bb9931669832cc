#include "launcher/batch/batch_host.h"

#include <algorithm>
#include <utility>

#include "matrix/plan/plan_line.h"

namespace graphproof::launcher {

BatchHost::BatchHost(const record::Run& run, BatchHostSetup setup)
    : run_(run),
      setup_(std::move(setup)),
      folders_(run.run_id),
      nvml_(setup_.gpus.empty() ? nullptr : Nvml::open()) {
  if (!nvml_) return;
  gpu_health_ = std::make_unique<GpuHealth>(*nvml_, setup_.gpus);
  cpus_ = cpus_of(*nvml_, setup_.gpus);
  exclusive_process_ =
      std::any_of(setup_.gpus.begin(), setup_.gpus.end(),
                  [&](const std::string& gpu) { return nvml_->exclusive_process(gpu); });
}

BatchRequest BatchHost::request(const CaseGroup& group, const std::string& name,
                                const std::vector<int>& slots, bool alone) const {
  BatchRequest request = batch_request(run_, setup_.run_folder, group, name);
  request.node_folder = folders_.node();
  request.shm_folder = folders_.shm();
  request.job.gpus_shared = run_.options.sharing.cases_per_gpu > 1 && !alone;
  // The driver counts the memory of a whole GPU, other cases' too.
  request.nvml = request.job.gpus_shared ? nullptr : nvml_.get();
  request.gpu_health = gpu_health_.get();
  request.processes = setup_.processes ? setup_.processes : &own_processes_;
  request.job.program = setup_.rank_program;
  if (matrix::subject_of(group.attempts.front().line) != matrix::kReference)
    request.job.python = run_.stack.python;
  for (const int slot : slots) {
    // Of a GPU that the ranks of the batch share it has several slots.
    const std::string name_of_gpu = gpu(slot);
    std::vector<std::string>& gpus = request.job.gpus;
    if (!setup_.gpus.empty() && std::find(gpus.begin(), gpus.end(), name_of_gpu) == gpus.end())
      gpus.push_back(name_of_gpu);
    if (cpus_.empty()) continue;
    const Cpus& near = cpus_.at(static_cast<std::size_t>(slot) % cpus_.size());
    request.job.cpus.insert(request.job.cpus.end(), near.begin(), near.end());
  }
  return request;
}

std::string BatchHost::gpu(int slot) const {
  if (setup_.gpus.empty()) return "";
  return setup_.gpus.at(static_cast<std::size_t>(slot) % setup_.gpus.size());
}

}  // namespace graphproof::launcher
