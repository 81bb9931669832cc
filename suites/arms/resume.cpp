#include "suites/arms/resume.h"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>

#include "fixtures/inspect/host_copies.h"
#include "fixtures/inspect/tensor_file.h"
#include "fixtures/tensors/torch.h"
#include "suites/arms/arms.h"
#include "suites/case/arm_lines.h"
#include "suites/case/learning_rate.h"
#include "workloads/faults/plant.h"

namespace graphproof::suites {
namespace {

using fixtures::NamedTensor;
namespace fs = std::filesystem;

constexpr std::uint64_t kOtherSeed = 1;  // added to the seed of the run

/// The new model, its engine and its steps.
class ResumedJob {
 public:
  explicit ResumedJob(const CaseParts& parts)
      : parts_(parts),
        collectives_(parts, "resumed"),
        guard_(parts.stream),
        step_(parts.config.model, parts.config.layout, parts.device, parts.config.seed + kOtherSeed,
              faults::plant(parts.config.fault), parts.config.rng_backend),
        engine_(engines::make_engine(parts.config.engine, parts.device, parts.stream, step_,
                                     nullptr)) {}

  workloads::TrainStep& step() { return step_; }

  /// Runs step `index` and waits for it.
  void run(const char* name, std::int64_t index, const StepInput& input) {
    const bool warming_up = steps_++ < parts_.config.first_replay();
    parts_.scope.enter(warming_up ? Phase::warmup : Phase::replay, name, index);
    engine_->step(input.batch, learning_rate_schedule(parts_.config.model.optimizer).at(index));
    parts_.device.synchronize(parts_.stream);
  }

  /// Runs steps `first` .. steps-1 and compares them with `left`.
  void go_on(const char* name, std::int64_t first, const std::vector<StepInput>& inputs,
             std::span<const Snapshot> left) {
    for (std::int64_t index = first; index < parts_.config.steps; ++index) {
      const StepInput& input = inputs[static_cast<std::size_t>(index)];
      run(name, index, input);
      const Snapshot& before = left[static_cast<std::size_t>(index)];
      if (!before.empty())
        write_comparison(parts_, "lockstep_graph", name, name, index, input.word, before,
                         results());
    }
  }

  /// Writes the line `resumed`. `process`: of the job, if it has one of its own.
  void end(std::int64_t first, std::optional<std::int64_t> process) {
    parts_.scope.write(record::ResumedLine{.arm = "resumed",
                                           .step = first,
                                           .replays = engine_->counters().replays,
                                           .process = process});
    engine_->drop_graphs();
    collectives_.write();
  }

 private:
  Snapshot results() {
    std::vector<NamedTensor> tensors = engine_->outputs();
    for (const NamedTensor& mask : step_.masks()) tensors.push_back(mask);
    return fixtures::on_host(tensors);
  }

  const CaseParts& parts_;
  CountedCollectives collectives_;
  const c10::StreamGuard guard_;
  workloads::TrainStep step_;
  const std::unique_ptr<engines::Engine> engine_;
  std::int64_t steps_ = 0;  // so far
};

/// The files that a rank leaves for its new process: the checkpoint with the number of the next
/// step, and the results that it has to repeat, named STEP/TENSOR.
struct Files {
  Files(const fs::path& folder, const CaseParts& parts)
      : checkpoint(folder /
                   ("rank-" + std::to_string(world_rank(parts.config.layout)) + ".checkpoint")),
        results(folder / ("rank-" + std::to_string(world_rank(parts.config.layout)) + ".results")) {
  }
  const fs::path checkpoint, results;
};
constexpr const char* kNextStep = "next_step";

void write_results(const fs::path& file, std::span<const Snapshot> left, std::int64_t first) {
  std::vector<NamedTensor> tensors;
  for (auto step = static_cast<std::size_t>(first); step < left.size(); ++step)
    for (const NamedTensor& one : left[step])
      tensors.push_back({std::to_string(step) + "/" + one.name, one.tensor});
  fixtures::write_tensors(file, tensors);
}

std::vector<Snapshot> read_results(const fs::path& file, std::int64_t steps) {
  std::vector<Snapshot> left(static_cast<std::size_t>(steps));
  for (NamedTensor& one : fixtures::read_tensors(file)) {
    const std::size_t slash = one.name.find('/');
    left.at(std::stoul(one.name.substr(0, slash)))
        .push_back({one.name.substr(slash + 1), one.tensor});
  }
  return left;
}

/// Takes the number of the next step out of what was read of a checkpoint.
std::int64_t take_next_step(std::vector<NamedTensor>& read) {
  const auto found = std::ranges::find(read, kNextStep, &NamedTensor::name);
  if (found == read.end()) throw std::logic_error("the checkpoint has no number of a next step");
  const std::int64_t step = found->tensor.item<std::int64_t>();
  read.erase(found);
  return step;
}

void resume_in_new_process(const CaseParts& parts, std::span<const Snapshot> left,
                           const workloads::Checkpoint& checkpoint) {
  const StepConfig& config = parts.config;
  fs::create_directories(parts.new_process->folder);
  const Files files(parts.new_process->folder, parts);
  std::vector<NamedTensor> saved = checkpoint.contents();
  saved.push_back({kNextStep, at::scalar_tensor(config.resume_step(), at::kLong)});
  fixtures::write_tensors(files.checkpoint, saved);
  write_results(files.results, left, config.resume_step());
  // The new process loads libraries, makes a context of the device and joins the other ranks' ones.
  parts.scope.enter(Phase::init, "resumed", config.resume_step());
  parts.new_process->run();
  fs::remove(files.checkpoint);
  fs::remove(files.results);
}

}  // namespace

void run_resumed(const CaseParts& parts, const std::vector<StepInput>& inputs,
                 std::span<const Snapshot> left, const workloads::Checkpoint& checkpoint) {
  if (parts.new_process) return resume_in_new_process(parts, left, checkpoint);
  const std::int64_t first = parts.config.resume_step();
  parts.scope.enter(Phase::build, "resumed", first);
  ResumedJob job(parts);
  for (const char* name : {"resumed", "loaded"}) {
    checkpoint.load_into(job.step());
    job.go_on(name, first, inputs, left);
  }
  job.end(first, std::nullopt);
}

void resume_from_files(const CaseParts& parts, const fs::path& folder,
                       const std::function<void(const faults::ResumedJob&)>& before_loading) {
  const StepConfig& config = parts.config;
  parts.scope.enter(Phase::build, "resumed", config.resume_step());
  const std::vector<StepInput> inputs = make_inputs(parts);
  ResumedJob job(parts);
  const Files files(folder, parts);
  std::vector<NamedTensor> read = fixtures::read_tensors(files.checkpoint);
  const std::vector<Snapshot> left = read_results(files.results, config.steps);
  if (before_loading)
    before_loading({.read = read,
                    .step = job.step(),
                    .run =
                        [&](std::int64_t index) {
                          job.run("resumed", index, inputs[static_cast<std::size_t>(index)]);
                        },
                    .first_replay = config.first_replay()});
  const std::int64_t first = take_next_step(read);
  workloads::Checkpoint(std::move(read)).load_into(job.step());
  job.go_on("resumed", first, inputs, left);
  job.end(first, ::getpid());
}

}  // namespace graphproof::suites
