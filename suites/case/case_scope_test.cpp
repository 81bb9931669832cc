#include "suites/case/case_scope.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "fixtures/device/device.h"

namespace graphproof::suites {
namespace {

/// A scope with fake peers, whose votes a test sets.
class CaseScopeTest : public testing::Test {
 protected:
  void peers_vote(std::vector<int> peers) {
    scope_.votes_through([this, peers](Phase boundary, int code) {
      boundaries_.push_back(boundary);
      std::vector<int> codes{code};
      codes.insert(codes.end(), peers.begin(), peers.end());
      return codes;
    });
  }
  record::Evidence evidence() const { return record::read_evidence(file_); }
  ~CaseScopeTest() override { std::filesystem::remove(file_); }

  const std::filesystem::path file_ =
      std::filesystem::temp_directory_path() /
      ("graphproof-scope-" + std::to_string(getpid()) + "-" +
       testing::UnitTest::GetInstance()->current_test_info()->name());
  record::EvidenceWriter writer_{file_};
  fixtures::HeartbeatWriter heartbeat_{"", 0};
  CaseScope scope_{writer_, heartbeat_};
  std::vector<Phase> boundaries_;
};

TEST_F(CaseScopeTest, RanksAgreeAtTheEndOfASection) {
  peers_vote({0});
  scope_.section(Phase::build, [] {});
  const auto lines = evidence();
  const auto votes = lines.of<record::VoteLine>();
  ASSERT_EQ(votes.size(), 1u);
  EXPECT_EQ(votes[0].phase, Phase::build);
  EXPECT_EQ(votes[0].codes, (std::vector<std::int64_t>{0, 0}));
}

TEST_F(CaseScopeTest, AFailureIsWrittenAndVotedBeforeTheRankLeaves) {
  peers_vote({0});
  scope_.enter(Phase::warmup, "lockstep_graph", 1);
  EXPECT_THROW(scope_.section(Phase::replay,
                              [] {
                                throw capture::DeviceError("cuda", 700, "cudaStreamSynchronize",
                                                           "an illegal memory access");
                              }),
               CaseFailure);
  const auto lines = evidence();
  ASSERT_EQ(lines.of<record::ErrorLine>().size(), 1u);
  const record::ErrorLine& error = lines.of<record::ErrorLine>().front();
  EXPECT_EQ(error.phase, Phase::warmup);
  EXPECT_EQ(error.arm, "lockstep_graph");
  EXPECT_EQ(error.step, 1);
  EXPECT_EQ(error.type, "cuda");
  EXPECT_EQ(error.code, 700);
  EXPECT_EQ(error.call, "cudaStreamSynchronize");
  ASSERT_EQ(lines.of<record::VoteLine>().size(), 1u);
  EXPECT_EQ(lines.of<record::VoteLine>().front().codes, (std::vector<std::int64_t>{700, 0}));
}

TEST_F(CaseScopeTest, AFailureOfAPeerEndsTheCaseAndNamesThePeer) {
  peers_vote({0, 900});
  try {
    scope_.section(Phase::capture, [] {});
    FAIL() << "the case continued without its peer";
  } catch (const PeerFailure& failure) {
    EXPECT_NE(
        std::string(failure.what()).find("vote after phase capture; got rank 2 with code 900"),
        std::string::npos)
        << failure.what();
    EXPECT_NE(std::string(failure.what()).find("next: "), std::string::npos);
  }
  EXPECT_TRUE(evidence().of<record::ErrorLine>().empty()) << "this rank had no error";
}

TEST_F(CaseScopeTest, AFailureThatWasVotedInsideASectionIsNotVotedAgain) {
  peers_vote({0});
  EXPECT_THROW(scope_.section(Phase::replay,
                              [&] {
                                scope_.boundary(Phase::capture);
                                scope_.vote(900);
                                throw std::runtime_error("no graph");
                              }),
               CaseFailure);
  EXPECT_EQ(boundaries_, std::vector<Phase>{Phase::capture});
}

TEST_F(CaseScopeTest, AFailureIsVotedAtTheNextBoundary) {
  peers_vote({0});
  EXPECT_THROW(scope_.section(Phase::replay,
                              [&] {
                                scope_.boundary(Phase::capture);
                                throw std::runtime_error("died in the warm-up");
                              }),
               CaseFailure);
  EXPECT_EQ(boundaries_, std::vector<Phase>{Phase::capture});
}

TEST_F(CaseScopeTest, AFailureBeforeVotesArePossibleIsStillWritten) {
  EXPECT_THROW(scope_.section(Phase::init, [] { throw std::runtime_error("no GPU"); }),
               CaseFailure);
  EXPECT_EQ(evidence().of<record::ErrorLine>().size(), 1u);
  EXPECT_TRUE(evidence().of<record::VoteLine>().empty());
}

TEST_F(CaseScopeTest, AFailedVoteDoesNotHideTheFirstError) {
  scope_.votes_through([](Phase, int) -> std::vector<int> {
    throw capture::DeviceError("mpi", 0, "vote", "rank 1 is missing");
  });
  EXPECT_THROW(scope_.section(Phase::eager, [] { throw std::runtime_error("first"); }),
               CaseFailure);
  const auto lines = evidence();
  const auto errors = lines.of<record::ErrorLine>();
  ASSERT_EQ(errors.size(), 2u);
  EXPECT_EQ(errors.front().message, "first");
}

TEST_F(CaseScopeTest, TimeIsCountedForEachPhaseAndArm) {
  scope_.spent(Phase::validate, 3.5);
  scope_.enter(Phase::eager, "eager_a", 0);
  scope_.enter(Phase::eager, "solo_eager", 0);
  scope_.enter(Phase::eager, "eager_a", 1);
  scope_.write_phases();
  const auto lines = evidence();
  const auto phases = lines.of<record::PhaseLine>();
  ASSERT_EQ(phases.size(), 3u);
  EXPECT_EQ(phases[0].phase, Phase::validate);
  EXPECT_GE(phases[0].ms, 3.5);
  EXPECT_EQ(phases[1].arm, "eager_a");
  EXPECT_EQ(phases[2].arm, "solo_eager");
}

}  // namespace
}  // namespace graphproof::suites
