// Tests of the first divergent tensor, end to end on the simulated device: planted faults with a
// known place, one rank of four that differs, and correct engines, for which nothing may be found.
#include <gtest/gtest.h>

#include "suites/testing/batch_of_cases.h"

namespace graphproof::suites {
namespace {

class Divergence : public testing::Test {
 protected:
  matrix::Case named(const std::string& name) {
    return matrix::case_from_name(catalogue_.axes, name, "test");
  }
  matrix::Case planted(const char* fault) {
    return matrix::planted_case(catalogue_.axes, *catalogue_.faults.find(fault));
  }
  /// The `divergence` line of `rank`.
  static nlohmann::json line(const BatchOfCases& batch, const std::string& id, int rank) {
    const auto evidence = batch.evidence(id, rank);
    const auto lines = evidence.of<record::DivergenceLine>();
    if (lines.size() == 1) return record::line_json(lines.front());
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
      // The bias of the MLP's second projection. The graph adds the residual in its place.
      {"M15", 2, 0, 0, "mlp", "forward", "aten::add", "aten::add"},
      // The captured rate is that of the first replay, so the second replay differs.
      {"M23", 3, -1, -1, "optimizer", "", "aten::fill_", "aten::fill_"},
      {"M24", 3, -1, -1, "optimizer", "", "aten::fill_", "state:adam.step"},
      {"M32", 3, 0, 0, "attn", "forward", "", ""},
      // The second microbatch of a backward, which visits the layers from the last to the first.
      {"M36", 1, 1, 1, "mlp", "backward", "", "grad:layers.1"},
      {"M37", 1, 1, 1, "mlp", "backward", "", "grad:layers.1"},
      {"M74", 2, 0, 0, "moe_router", "forward", "", ""},
      // Attention is the first to use the copies of the previous step, or a copy instead of a
      // weight.
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
    if (*row.module) {
      EXPECT_EQ(found["module"], row.module);
    }
    EXPECT_EQ(found["direction"], row.direction);
    if (*row.op) {
      EXPECT_EQ(found["operator"], row.op);
    }
    if (found["mismatch"].is_object()) {
      EXPECT_TRUE(found["mismatch"]["tensor"].get<std::string>().starts_with(row.tensor));
      EXPECT_GE(found["mismatch"]["element"].get<int>(), 0);
    }
  }
}

// Engines that capture whole layers, parts of them, or chains of parts.
TEST_F(Divergence, OfCapturedPartsNamesTheLayerAndTheOperatorThatDiffers) {
  // Only the second of three layers has rounded weights, and no replay rounds them again. A
  // captured part shows only its own weights.
  const std::string rounded =
      "layers=3,microbatches=2,fp8_weights=true,first_last_layers_bf16=true,fault=M160";
  // The graph carries the tokens of half the room. The first operator that uses its mask differs.
  const std::string routed =
      "microbatches=2,model=moe,experts=4,topk=2,dispatch=drop_and_pad,dispatcher=alltoall,fault="
      "M74";
  const std::string router = "modules=[attn,moe_router,moe_preprocess],";
  const struct {
    std::string name;
    int layer;
    const char *module, *direction, *op, *tensor;
  } rows[] = {
      {"impl=transformer_engine," + rounded, 1, "attn", "forward", "aten::mm", "aten::mm"},
      {"impl=transformer_engine,modules=[attn]," + rounded, 1, "attn", "forward", "aten::mm",
       "aten::mm"},
      {"impl=transformer_engine,modules=[mlp]," + rounded, 1, "mlp", "forward", "aten::mm",
       "aten::mm"},
      {"impl=callables," + rounded, 1, "attn", "forward", "aten::mm", "aten::mm"},
      {"impl=callables,modules=[mlp]," + rounded, 1, "mlp", "forward", "aten::mm", "aten::mm"},
      {"impl=local,modules=[attn]," + rounded, 1, "attn", "forward", "aten::mm", "aten::mm"},
      {"impl=local,modules=[mlp]," + rounded, 1, "mlp", "forward", "aten::mm", "aten::mm"},
      {"impl=transformer_engine," + routed, 0, "moe_router", "forward", "aten::mul", "aten::mul"},
      {"impl=transformer_engine," + router + routed, 0, "moe_router", "forward", "aten::mul",
       "aten::mul"},
      {"impl=callables," + router + routed, 0, "moe_router", "forward", "aten::mul", "aten::mul"},
      {"impl=local," + router + routed, 0, "moe_router", "forward", "aten::mul", "aten::mul"},
  };
  std::vector<matrix::Case> cases;
  for (const auto& row : rows) cases.push_back(named(row.name));
  const BatchOfCases batch(catalogue_, "parts", cases);
  EXPECT_EQ(batch.look_for_divergence(), 0);
  expect_evidence_fits_its_schema(batch);
  for (std::size_t i = 0; i < std::size(rows); ++i) {
    const auto& row = rows[i];
    const nlohmann::json found = line(batch, batch.batch().cases[i].id, 0);
    SCOPED_TRACE(row.name + ": " + found.dump());
    ASSERT_EQ(found.value("found", false), true);
    EXPECT_EQ(found["microbatch"], 0);
    EXPECT_EQ(found["layer"], row.layer);
    EXPECT_EQ(found["module"], row.module);
    EXPECT_EQ(found["direction"], row.direction);
    EXPECT_EQ(found["operator"], row.op);
    EXPECT_EQ(found["mismatch"]["tensor"], row.tensor);
  }
}

// Attention's delayed weight gradients are the third graph of its layer. The faults leave it out,
// launch it before the backward, or add it twice.
TEST_F(Divergence,
       OfDelayedWeightGradientsIsNamedWithTheirLayerOnEveryRankAndNothingIsFoundInASoundOne) {
  const struct {
    const char* fault;
    int microbatch;
    const char *direction, *tensor;
  } rows[] = {
      // Only eager has the part of each microbatch; both have the reduced result.
      {"M112", -1, "", "grad:layers.0.attention.qkv.weight"},
      // Launched before the backward, the third graph multiplies tensors that are not computed yet.
      // Which tensor of the backward differs first is no property of the fault: it was the weight
      // gradients, and is a product of attention since other tensors share the pool.
      {"M113", 0, "backward", ""},
      {"M114", 0, "backward", "grad:layers.0.attention.projection.weight"},
  };
  std::vector<matrix::Case> cases;
  for (const auto& row : rows) cases.push_back(planted(row.fault));
  cases.push_back(cases.front());
  cases.back().values.erase("fault");
  cases.back().values.erase("seq_length");  // as many tokens as channels, so gradients of inputs
                                            // and weights have equal shapes
  const BatchOfCases batch(catalogue_, "delayed", cases);
  EXPECT_EQ(batch.look_for_divergence(), 0);
  expect_evidence_fits_its_schema(batch);
  for (std::size_t i = 0; i < std::size(rows); ++i)
    for (int rank = 0; rank < 2; ++rank) {
      const nlohmann::json found = line(batch, batch.batch().cases[i].id, rank);
      SCOPED_TRACE(std::string(rows[i].fault) + ": " + found.dump());
      ASSERT_EQ(found.value("found", false), true);
      EXPECT_EQ(found["step"], 2);
      EXPECT_EQ(found["microbatch"], rows[i].microbatch);
      EXPECT_EQ(found["layer"], 0);
      EXPECT_EQ(found["direction"], rows[i].direction);
      if (*rows[i].tensor != '\0') {
        EXPECT_EQ(found["mismatch"]["tensor"], rows[i].tensor);
      }
    }
  for (int rank = 0; rank < 2; ++rank) {
    const nlohmann::json none = line(batch, batch.batch().cases.back().id, rank);
    SCOPED_TRACE(none.dump());
    EXPECT_EQ(none["found"], false);
    EXPECT_GT(none["taps"].get<int>(), 1000);
  }
}

// The fault leaves out the gathering of parameters once parts are captured, so each rank computes
// with old values of the other's parameters.
TEST_F(Divergence, OfStaleParametersIsNamedAtTheirFirstUse) {
  const BatchOfCases batch(catalogue_, "old", {planted("M93")});
  EXPECT_EQ(batch.look_for_divergence(), 0);
  const std::string& id = batch.batch().cases.front().id;
  const nlohmann::json first = line(batch, id, 0), second = line(batch, id, 1);
  EXPECT_EQ(first["layer"], 0) << first.dump();
  EXPECT_EQ(first["module"], "attn");
  EXPECT_EQ(first["operator"], "aten::mm");
  EXPECT_EQ(second["module"], "embedding") << second.dump();
  EXPECT_EQ(second["operator"], "aten::index");
}

TEST_F(Divergence, NothingIsFoundInACorrectEngineWhoseGraphsWereInspected) {
  const std::string moe =
      "model=moe,experts=4,topk=2,dispatch=drop_and_pad,dispatcher=alltoall,shared_expert=true";
  std::vector<matrix::Case> cases;
  for (const std::string& name :
       {// Recomputation makes nodes on autograd's own thread, which has its own count. Both counts
        // are low in the first case.
        "impl=callables,modules=[attn,moe_router,moe_preprocess],microbatches=4,recompute="
        "selective(core_attn),autograd_threads=on,dropout=true," +
            moe,
        std::string("impl=manual,microbatches=2,dropout=true"),
        std::string(
            "impl=full_iteration,microbatches=2,precision=bf16,optimizer=adam,autograd_threads=on"),
        std::string("impl=manual,microbatches=2,dropout=true,recompute=selective(core_attn)"),
        std::string("impl=local,microbatches=2,dropout=true"),
        std::string("impl=local,modules=[attn,mlp],microbatches=2,dropout=true,precision=bf16,"
                    "optimizer=adam"),
        std::string("impl=local,microbatches=2,recompute=selective(core_attn),autograd_threads=on,"
                    "pool=per_graph"),
        "impl=local,modules=[attn,moe_router,moe_preprocess],microbatches=2,dropout=true," + moe,
        "impl=full_iteration,microbatches=2,dropout=true," + moe,
        // Graphs round the weights in every microbatch, although once would be enough.
        std::string("impl=local,microbatches=2,fp8_weights=true"),
        "impl=local,modules=[attn],microbatches=2,fp8_weights=true," + moe,
        std::string(
            "impl=transformer_engine,microbatches=2,dropout=true,precision=bf16,optimizer=adam"),
        std::string("impl=transformer_engine,modules=[mlp],microbatches=2,dropout=true,recompute="
                    "selective(core_attn),autograd_threads=on"),
        "impl=transformer_engine,modules=[attn,moe_router,moe_preprocess],microbatches=2,dropout="
        "true," +
            moe,
        // The first step is a rehearsal.
        std::string("impl=transformer_engine,microbatches=2,dropout=true,warmup_steps=0"),
        std::string("impl=callables,microbatches=2,dropout=true,clip_grad=true,precision=fp16"),
        // Copies that engines make outside the step must not be taken for results of the optimizer,
        // which has scalars of its own here.
        std::string("impl=full_iteration,microbatches=2,precision=fp16,optimizer=adam,optimizer_"
                    "graph=true"),
        std::string("impl=local,microbatches=2,precision=fp16,loss_scale=static,optimizer=adam,"
                    "optimizer_graph=true"),
        // The first node that recomputation makes belongs to no operator.
        std::string("impl=local,modules=[attn,mlp],microbatches=2,recompute=selective(mlp,"
                    "layernorm),grad_accumulation_fusion=true"),
        std::string("impl=callables,modules=[mlp],microbatches=2,recompute=selective(mlp,layernorm)"
                    ",grad_accumulation_fusion=true,autograd_threads=on"),
        "impl=local,modules=[moe_router,moe_preprocess],microbatches=4,recompute=selective(moe)," +
            moe})
    cases.push_back(named(name));
  const BatchOfCases batch(catalogue_, "agrees", cases);
  EXPECT_EQ(batch.look_for_divergence(), 0);
  expect_evidence_fits_its_schema(batch);
  for (const record::BatchCase& listed : batch.batch().cases) {
    const nlohmann::json found = line(batch, listed.id, 0);
    SCOPED_TRACE(listed.name + ": " + found.dump());
    EXPECT_EQ(found["found"], false);
    EXPECT_EQ(found["step"], 5) << "all steps, and the capture inputs once more";
    EXPECT_GT(found["taps"].get<int>(), 500);
    EXPECT_EQ(found["why"],
              "every operator agrees when the arms run again with taps: a race, or memory whose "
              "addresses the taps have changed");
  }
}

// Microbatches overlap on the first stage and chunks alternate on both, so counting alone would
// find a wrong place.
TEST_F(Divergence,
       OfAPipelineIsNamedWithItsMicrobatchAndLayerOnEachStageAndNothingIsFoundInASoundOne) {
  const std::vector<matrix::Case> cases = {
      named("impl=local,pp=2,microbatches=4,fault=M37"),
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

TEST_F(Divergence, IfOneRankOfFourDiffersAllStopTogetherAndThatRankNamesThePlace) {
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
