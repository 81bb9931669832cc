// The single collective in one process, with a transport that echoes, on the simulated device.
// suites/rank_program_test runs it on several ranks.
#include "workloads/training/collective.h"

#include <gtest/gtest.h>

#include <functional>

#include "fixtures/comm/process_groups.h"
#include "fixtures/comm/testing/echo_transport.h"
#include "fixtures/tensors/torch.h"
#include "fixtures/testing/cpu_device.h"

namespace graphproof::workloads {
namespace {

constexpr std::int64_t kPiece = std::int64_t{20} << 20;

/// The CPU with memory that consists of pieces, like an expandable segment. The borders are `shift`
/// bytes after the multiples of a piece.
class PiecewiseDevice final : public fixtures::CpuDevice {
 public:
  explicit PiecewiseDevice(std::int64_t shift) : shift_(static_cast<std::uint64_t>(shift)) {}
  capture::PhysicalSpan physical_span(std::uint64_t address) const override {
    return {.begin = (address - shift_) / kPiece * kPiece + shift_, .bytes = kPiece};
  }

 private:
  const std::uint64_t shift_;
};

class CollectiveTest : public testing::Test {
 protected:
  /// As rank `rank` of two.
  void as_rank(int rank) {
    groups_.reset();
    std::vector<std::unique_ptr<comm::Transport>> transports;
    transports.push_back(std::make_unique<comm::EchoTransport>(log_, rank));
    groups_ = std::make_unique<comm::ProcessGroups>(2, rank, std::move(transports));
    groups_->use({{.name = "dp", .ranks = {{0, 1}}}}, comm::Milliseconds(1000));
  }
  static CollectiveConfig config(const char* collective, bool per_rank = false,
                                 std::int64_t bytes = 1 << 16) {
    return {.collective = collective, .bytes = bytes, .per_rank = per_rank, .group = "dp"};
  }
  comm::EchoTransport::Log log_;
  std::unique_ptr<comm::ProcessGroups> groups_;
  fixtures::CpuDevice device_;
};

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "no error";
}

TEST_F(CollectiveTest, LargestBufferHasTheBytesOfTheAxis) {
  as_rank(0);
  struct Row {
    const char* collective;
    std::int64_t input, result;
  };
  const Row rows[] = {{"all_gather", 1 << 15, 1 << 16},
                      {"all_reduce", 1 << 16, 1 << 16},
                      {"all_reduce_in_place", 1 << 16, 1 << 16},
                      {"reduce_scatter", 1 << 16, 1 << 15},
                      {"send_recv", 1 << 16, 1 << 16}};
  for (const Row& row : rows) {
    Collective collective(config(row.collective), device_);
    EXPECT_EQ(collective.input().tensor.nbytes(), row.input) << row.collective;
    EXPECT_EQ(collective.result().tensor.nbytes(), row.result) << row.collective;
    EXPECT_EQ(collective.expected(0).nbytes(), row.result) << row.collective;
  }
}

TEST_F(CollectiveTest, ExpectedFollowsFromEverybodysInputs) {
  const auto input_of = [&](const char* collective, int rank, std::int64_t step) {
    as_rank(rank);
    Collective one(config(collective), device_);
    one.load(step);
    return one.input().tensor.clone();
  };
  for (const std::int64_t step : {0, 3}) {
    const at::Tensor first = input_of("all_reduce", 0, step),
                     second = input_of("all_reduce", 1, step);
    EXPECT_FALSE(at::equal(first, second)) << "ranks hold different values";
    as_rank(1);
    EXPECT_TRUE(
        at::equal(Collective(config("all_reduce"), device_).expected(step), first + second));
    EXPECT_TRUE(at::equal(Collective(config("all_reduce_in_place"), device_).expected(step),
                          first + second));
    EXPECT_TRUE(at::equal(Collective(config("send_recv"), device_).expected(step), first));
    EXPECT_TRUE(at::equal(Collective(config("reduce_scatter"), device_).expected(step),
                          (first + second).chunk(2)[1]));
    const at::Tensor parts[] = {input_of("all_gather", 0, step), input_of("all_gather", 1, step)};
    EXPECT_TRUE(at::equal(Collective(config("all_gather"), device_).expected(step),
                          at::cat({parts[0], parts[1]})));
  }
  EXPECT_FALSE(at::equal(input_of("all_reduce", 0, 0), input_of("all_reduce", 0, 1)))
      << "inputs change with the step";
}

TEST_F(CollectiveTest, IssueCallsItsCollectiveOnceAndTheInPlaceFormCopiesFirst) {
  const std::pair<const char*, const char*> rows[] = {{"all_gather", "all_gather dp 1"},
                                                      {"all_reduce", "all_reduce dp 1"},
                                                      {"all_reduce_in_place", "all_reduce dp 1"},
                                                      {"reduce_scatter", "reduce_scatter dp 1"},
                                                      {"send_recv", "send_recv dp 1"}};
  for (const auto& [collective, call] : rows) {
    as_rank(0);
    log_.calls.clear();
    Collective one(config(collective), device_);
    one.load(2);
    const at::Tensor input = one.input().tensor.clone();
    one.issue();
    EXPECT_EQ(log_.calls, std::vector<std::string>{call}) << collective;
    EXPECT_TRUE(at::equal(one.input().tensor, input))
        << collective << " leaves its input for the next replay";
  }
}

TEST_F(CollectiveTest, SymmetricBuffersBeginAtABorderOfTheMemoryOnEveryRank) {
  for (const std::int64_t shift : {std::int64_t{0}, std::int64_t{512}, kPiece / 2}) {
    for (int rank : {0, 1}) {
      as_rank(rank);
      PiecewiseDevice device(shift);
      const Collective placed(config("all_reduce", false, 16 << 20), device);
      for (const BufferPlace& place : placed.places()) {
        EXPECT_EQ(place.offset, 0) << place.buffer << " on rank " << rank;
        EXPECT_EQ(place.span_bytes, kPiece);
        EXPECT_FALSE(place.straddles);
      }
    }
  }
}

TEST_F(CollectiveTest, PerRankBuffersLieAcrossABorderOnOddRanksOnly) {
  for (const char* collective : {"all_gather", "all_reduce", "reduce_scatter", "send_recv"})
    for (int rank : {0, 1}) {
      as_rank(rank);
      PiecewiseDevice device(kPiece / 4);
      const Collective placed(config(collective, true, 16 << 20), device);
      for (const BufferPlace& place : placed.places()) {
        EXPECT_EQ(place.straddles, rank == 1) << collective << " " << place.buffer;
        EXPECT_EQ(place.offset, rank == 1 ? kPiece - place.bytes / 2 : 0)
            << collective << " " << place.buffer;
      }
    }
}

TEST_F(CollectiveTest, WithoutPiecesOnlyTheOffsetDiffers) {
  as_rank(1);
  const Collective per_rank(config("all_reduce", true), device_);
  for (const BufferPlace& place : per_rank.places()) {
    EXPECT_FALSE(place.straddles);
    EXPECT_EQ(place.span_bytes, 0);
  }
  EXPECT_NE(per_rank.places()[0].offset,
            Collective(config("all_reduce", false), device_).places()[0].offset);
}

TEST_F(CollectiveTest, WhatCannotBePlacedIsRefused) {
  as_rank(0);
  const auto make = [&](CollectiveConfig wanted) {
    return message_of([&] { Collective one(wanted, device_); });
  };
  EXPECT_EQ(make(config("all_to_all")),
            "collective `all_to_all`; want one of all_gather, all_reduce, all_reduce_in_place, "
            "reduce_scatter, send_recv");
  EXPECT_EQ(make(config("all_reduce", false, 1028)),
            "collective of 1028 bytes over 2 ranks; want at least two ranks and a multiple of 8 "
            "bytes up to 20971520, since a larger buffer straddles on every rank");
  EXPECT_NE(make(config("all_reduce", false, 21 << 20)).find("up to 20971520"), std::string::npos);
  CollectiveConfig alone = config("all_reduce");
  alone.group = "";
  EXPECT_NE(make(alone).find("over 1 ranks"), std::string::npos);
}

}  // namespace
}  // namespace graphproof::workloads
