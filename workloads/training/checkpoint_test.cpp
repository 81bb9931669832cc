#include "workloads/training/checkpoint.h"

#include <gtest/gtest.h>

#include <string>

#include "workloads/faults/plant.h"
#include "workloads/testing/step_under_test.h"

namespace graphproof::workloads {
namespace {

using fixtures::Fault;

ModelConfig small_job() {
  return {.hidden = 32,
          .heads = 4,
          .ffn = 64,
          .vocab = 64,
          .seq_length = 8,
          .dropout = 0.1,
          .precision = Precision::bf16,
          .optimizer = OptimizerKind::adam};
}

/// A job that trains on the batches of its data seed, independently of the seed of its weights.
struct Job {
  explicit Job(std::uint64_t seed, Fault fault = Fault::none,
               const ModelConfig& config_ = small_job())
      : config(config_),
        stream(device_under_test().stream_from_pool()),
        guard(stream),
        step(config, {}, device_under_test(), seed, faults::plant(fault)) {}
  void train(std::int64_t first, std::int64_t end) {
    for (std::int64_t i = first; i < end; ++i) {
      step.learning_rate(0.01);
      step.forward_backward(make_batch(config, {}, 3, i, device_under_test().torch_device()));
      step.optimizer_step();
    }
  }
  std::vector<std::vector<float>> left() {
    std::vector<std::vector<float>> values{on_host(step.losses())};
    for (const auto& tensor : step.parameters()) values.push_back(on_host(tensor.tensor));
    for (const auto& tensor : step.optimizer_state()) values.push_back(on_host(tensor.tensor));
    return values;
  }
  ModelConfig config;
  c10::Stream stream;
  c10::StreamGuard guard;
  TrainStep step;
};

TEST(Checkpoint, ContinuesWithTheSameBitsInAModelOfAnotherSeedUnlessRandomNumbersAreLeftOut) {
  for (const Fault fault : {Fault::none, Fault::checkpoint_without_random_numbers}) {
    Job first(1, fault), second(2);
    first.train(0, 2);
    const Checkpoint saved(first.step);
    first.train(2, 4);
    second.train(0, 1);
    saved.load_into(second.step);
    second.train(2, 4);
    EXPECT_EQ(second.left() == first.left(), fault == Fault::none) << fault;
  }
}

TEST(Checkpoint, ContinuesWithTheSameBitsFromItsContents) {
  Job first(1), second(2);
  first.train(0, 2);
  std::vector<fixtures::NamedTensor> contents = Checkpoint(first.step).contents();
  first.train(2, 4);
  const Checkpoint read(std::move(contents));
  read.load_into(second.step);
  second.train(2, 4);
  EXPECT_EQ(second.left(), first.left());
}

TEST(Checkpoint, IsCopiedIntoTheMemoryThatIsThere) {
  Job job(1);
  const Checkpoint saved(job.step);
  const void* before = job.step.parameters().front().tensor.const_data_ptr();
  saved.load_into(job.step);
  EXPECT_EQ(job.step.parameters().front().tensor.const_data_ptr(), before);
}

TEST(Checkpoint, OfAnotherConfigurationIsRefused) {
  Job job(1);
  const Checkpoint saved(job.step);
  ModelConfig wider = small_job(), plain = small_job();
  wider.ffn = 128;
  plain.optimizer = OptimizerKind::sgd;
  for (const auto& [config, message] : {std::pair{wider, "want the same name and shape"},
                                        std::pair{plain, "for a model that keeps"}}) {
    Job other(1, Fault::none, config);
    try {
      saved.load_into(other.step);
      ADD_FAILURE() << "loaded";
    } catch (const std::logic_error& error) {
      EXPECT_NE(std::string(error.what()).find(message), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace graphproof::workloads
