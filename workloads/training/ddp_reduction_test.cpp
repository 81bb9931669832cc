#include "workloads/training/ddp_reduction.h"

#include <gtest/gtest.h>

#include "fixtures/comm/process_groups.h"
#include "fixtures/comm/testing/echo_transport.h"
#include "fixtures/comm/torch_group.h"
#include "fixtures/tensors/torch.h"

namespace graphproof::workloads {
namespace {

// Two ranks, of which the second holds 5 x: the sum is 6 x and the mean 3 x.
constexpr double kEchoSum = 6, kEchoMean = 3;

class DdpReductionTest : public testing::Test {
 protected:
  DdpReductionTest() {
    std::vector<std::unique_ptr<comm::Transport>> transports;
    transports.push_back(std::make_unique<comm::EchoTransport>(log_, 0));
    groups_ = std::make_unique<comm::ProcessGroups>(2, 0, std::move(transports));
    groups_->use({{.name = "dp", .ranks = {{0, 1}}}}, comm::Milliseconds(1000));
    // 20, 40 and 200 KiB: more than one bucket.
    for (const std::int64_t rows : {20, 40, 200}) {
      parameters_.push_back(at::ones({rows, 256}).requires_grad_());
      buffer_.push_back(at::zeros({rows, 256}));
      parameters_.back().mutable_grad() = buffer_.back();
    }
  }
  /// One microbatch: adds `gradient` to each .grad.
  void backward(double gradient) {
    at::Tensor loss = at::zeros({});
    for (const at::Tensor& parameter : parameters_) loss = loss + (parameter * gradient).sum();
    loss.backward();
  }
  void zero() {
    for (at::Tensor& gradient : buffer_) gradient.zero_();
  }
  std::int64_t issued() const { return groups_->ledger().totals().count; }
  void expect_gradients(double want) const {
    for (std::size_t i = 0; i < buffer_.size(); ++i) {
      EXPECT_TRUE(at::equal(buffer_[i], at::full_like(buffer_[i], want)))
          << i << ": " << buffer_[i].view({-1})[0] << ", want " << want;
      EXPECT_EQ(parameters_[i].grad().data_ptr(), buffer_[i].data_ptr()) << "a gradient moved";
    }
  }

  comm::EchoTransport::Log log_{
      .calls = {}, .limit = {}, .torch = c10::make_intrusive<comm::EchoBackend>(0, 2, kEchoSum)};
  std::unique_ptr<comm::ProcessGroups> groups_;
  std::vector<at::Tensor> parameters_, buffer_;
};

TEST_F(DdpReductionTest, TheLastBackwardWritesTheMeansInPlace) {
  DdpReduction reduction(parameters_, comm::torch_group("dp", at::kCPU));
  EXPECT_EQ(reduction.buckets(), 2u);
  for (int step = 0; step < 14;
       ++step) {  // past the steps at which the reducer and its logger do more
    zero();
    reduction.begin_step();
    backward(1);
    expect_gradients(1);  // as inside no_sync
    reduction.begin_last_backward();
    backward(2);
    expect_gradients((1 + 2) * kEchoMean);
  }
}

TEST_F(DdpReductionTest, TheBucketsAreCutAnewOnceAtTheSecondStep) {
  DdpReduction reduction(parameters_, comm::torch_group("dp", at::kCPU));
  std::vector<std::int64_t> before_backward, after;
  for (int step = 0; step < 4; ++step) {
    groups_->ledger().reset();
    zero();
    reduction.begin_step();
    before_backward.push_back(issued());
    reduction.begin_last_backward();
    backward(1);
    after.push_back(issued() - before_backward.back());
  }
  EXPECT_EQ(before_backward[0], 0);
  EXPECT_GT(before_backward[1], 0) << "the order of gradients is not broadcast";
  EXPECT_EQ(log_.torch->waits_for_pending_works, 1)
      << "the first buckets live on in the watchdog's list";
  EXPECT_EQ(before_backward[2], 0);
  EXPECT_EQ(before_backward[3], 0);
  for (const std::int64_t sums : after) EXPECT_EQ(sums, 2) << "one sum a bucket";
}

TEST_F(DdpReductionTest, ItsHooksGoWithIt) {
  {
    DdpReduction reduction(parameters_, comm::torch_group("dp", at::kCPU));
  }
  backward(1);
  expect_gradients(1);
  EXPECT_EQ(issued(), 0);
}

}  // namespace
}  // namespace graphproof::workloads
