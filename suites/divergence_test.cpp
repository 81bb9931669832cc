// The first divergent tensor, end to end on the simulated device: planted faults whose place is known, one rank of four
// that goes another way, and sound engines, in which nothing may be found.
#include <gtest/gtest.h>

#include "suites/batch_of_cases.h"

namespace graphproof::suites {
namespace {

class Divergence : public testing::Test {
 protected:
  matrix::Case named(const std::string& name) { return matrix::case_from_name(catalogue_.axes, name, "test"); }
  matrix::Case planted(const char* fault) { return matrix::planted_case(catalogue_.axes, *catalogue_.faults.find(fault)); }
  /// What `rank` says of the case.
  static nlohmann::json line(const BatchOfCases& batch, const std::string& id, int rank) {
    const auto evidence = batch.evidence(id, rank);
    const auto lines = evidence.of("divergence");
    if (lines.size() == 1) return lines.front()->fields;
    ADD_FAILURE() << "rank " << rank << " left " << lines.size() << " divergence lines of " << id;
    return {};
  }
  const matrix::Catalogue catalogue_ = matrix::load_catalogue();
};

TEST_F(Divergence, ThePlaceOfAPlantedFaultIsNamed) {
  const struct {
    const char* fault;
    int step, microbatch, layer;
    const char *module, *direction, *op, *tensor;
  } rows[] = {
      // The bias of the MLP's second half; the graph adds the residual instead.
      {"M15", 2, 0, 0, "mlp", "forward", "aten::add", "aten::add"},
      // The captured rate is that of the first replay, so the second differs.
      {"M23", 3, -1, -1, "optimizer", "", "aten::fill_", "aten::fill_"},
      {"M24", 3, -1, -1, "optimizer", "", "aten::fill_", "state:adam.step"},
      {"M32", 3, 0, 0, "attn", "forward", "", ""},
      // The second microbatch of a backward, whose order is that of the layers from the last.
      {"M36", 1, 1, 1, "mlp", "backward", "", "grad:layers.1"},
      {"M37", 1, 1, 1, "mlp", "backward", "", "grad:layers.1"},
      {"M74", 2, 0, 0, "moe_router", "forward", "", ""},
      // The copies of the step before, and a copy in place of a weight, are first used by attention.
      {"M160", 1, 0, 0, "attn", "forward", "", ""},
      {"M161", 1, 0, 0, "attn", "forward", "", ""},
  };
  std::vector<matrix::Case> cases;
  for (const auto& row : rows) cases.push_back(planted(row.fault));
  const BatchOfCases batch(catalogue_, "divergence", cases);
  EXPECT_EQ(batch.look_for_divergence(), 0);
  expect_evidence_fits_its_schema(batch);
  for (std::size_t i = 0; i < std::size(rows); ++i) {
    const auto& row = rows[i];
    const nlohmann::json found = line(batch, batch.batch().cases[i].id, 0);
    SCOPED_TRACE(std::string(row.fault) + ": " + found.dump());
    ASSERT_EQ(found.value("found", false), true);
    EXPECT_EQ(found["step"], row.step);
    EXPECT_EQ(found["microbatch"], row.microbatch);
    EXPECT_EQ(found["layer"], row.layer);
    if (*row.module) { EXPECT_EQ(found["module"], row.module); }
    EXPECT_EQ(found["direction"], row.direction);
    if (*row.op) { EXPECT_EQ(found["operator"], row.op); }
    if (found["mismatch"].is_object()) {
      EXPECT_TRUE(found["mismatch"]["tensor"].get<std::string>().starts_with(row.tensor));
      EXPECT_GE(found["mismatch"]["element"].get<int>(), 0);
    }
  }
}

TEST_F(Divergence, NothingIsFoundInASoundEngineAndTheResultsOfItsGraphsWereLookedAt) {
  const std::string moe = "model=moe,experts=4,topk=2,dispatch=drop_and_pad,dispatcher=alltoall,shared_expert=true";
  std::vector<matrix::Case> cases;
  for (const std::string& name : {
           std::string("impl=manual,microbatches=2,dropout=true"),
           std::string("impl=full_iteration,microbatches=2,precision=bf16,optimizer=adam,autograd_threads=on"),
           std::string("impl=manual,microbatches=2,dropout=true,recompute=selective(core_attn)"),
           std::string("impl=local,microbatches=2,dropout=true"),
           std::string("impl=local,modules=[attn,mlp],microbatches=2,dropout=true,precision=bf16,optimizer=adam"),
           std::string("impl=local,microbatches=2,recompute=selective(core_attn),autograd_threads=on,pool=per_graph"),
           "impl=local,modules=[attn,moe_router,moe_preprocess],microbatches=2,dropout=true," + moe,
           "impl=full_iteration,microbatches=2,dropout=true," + moe,
           // Graphs round in every microbatch, if in vain.
           std::string("impl=local,microbatches=2,fp8_weights=true"), "impl=local,modules=[attn],microbatches=2,fp8_weights=true," + moe})
    cases.push_back(named(name));
  const BatchOfCases batch(catalogue_, "agrees", cases);
  EXPECT_EQ(batch.look_for_divergence(), 0);
  expect_evidence_fits_its_schema(batch);
  for (const record::BatchCase& listed : batch.batch().cases) {
    const nlohmann::json found = line(batch, listed.id, 0);
    SCOPED_TRACE(listed.name + ": " + found.dump());
    EXPECT_EQ(found["found"], false);
    EXPECT_EQ(found["step"], 5) << "every step was looked at, and the capture inputs once more";
    EXPECT_GT(found["taps"].get<int>(), 500);
    EXPECT_EQ(found["why"], "every operator agrees when the arms run again and are looked at: a race, or memory that the copies have moved");
  }
}

// Microbatches overlap on the first stage and chunks take turns on both, so a place that only counts would be wrong.
TEST_F(Divergence, OfAPipelineIsNamedWithItsMicrobatchAndLayerOnEachStageAndNothingIsFoundInASoundOne) {
  const std::vector<matrix::Case> cases = {named("impl=local,pp=2,microbatches=4,fault=M37"),
                                           named("impl=full_iteration,pp=2,microbatches=4,dropout=true"),
                                           named("impl=local,pp=2,vpp=2,layers=4,microbatches=4,dropout=true")};
  const BatchOfCases batch(catalogue_, "stages", cases);
  EXPECT_EQ(batch.look_for_divergence(), 0);
  expect_evidence_fits_its_schema(batch);
  for (int rank = 0; rank < 2; ++rank) {
    const nlohmann::json found = line(batch, batch.batch().cases[0].id, rank);
    SCOPED_TRACE(found.dump());
    EXPECT_EQ(found["found"], true);
    EXPECT_EQ(found["step"], 1);
    EXPECT_EQ(found["microbatch"], 1) << "the second one, whose backward comes after the first's";
    EXPECT_EQ(found["layer"], rank);
    EXPECT_EQ(found["direction"], "backward");
    for (std::size_t sound : {1, 2}) {
      const nlohmann::json none = line(batch, batch.batch().cases[sound].id, rank);
      SCOPED_TRACE(none.dump());
      EXPECT_EQ(none["found"], false);
      EXPECT_GT(none["taps"].get<int>(), 200);
    }
  }
}

TEST_F(Divergence, WhereOneRankOfFourGoesAnotherWayAllStopTogetherAndThatOneNamesIt) {
  const BatchOfCases batch(catalogue_, "one-rank", {named("impl=manual,dp=4,microbatches=2")});
  record::Batch other = batch.batch();
  other.cases.front().axes["fault"] = "M23";
  other.cases.front().id = matrix::case_id(named("impl=manual,dp=4,microbatches=2,fault=M23"));
  const fs::path file = batch.file().parent_path() / "last.json";
  record::write_json(file, record::to_json(other));
  EXPECT_EQ(batch.look_for_divergence(file), 0);
  expect_evidence_fits_its_schema(batch);
  const std::string& id = batch.batch().cases.front().id;
  for (int rank = 0; rank < 3; ++rank) {
    const nlohmann::json found = line(batch, id, rank);
    EXPECT_EQ(found["found"], false) << found.dump();
    EXPECT_EQ(found["step"], 3);
    EXPECT_EQ(found["why"], "every operator of this rank agrees; rank 3 differs");
  }
  const nlohmann::json found = line(batch, id, 3);
  EXPECT_EQ(found["found"], true) << found.dump();
  EXPECT_EQ(found["step"], 3);
  EXPECT_EQ(found["module"], "optimizer");
}

}  // namespace
}  // namespace graphproof::suites
