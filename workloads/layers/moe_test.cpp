#include "workloads/layers/moe.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "workloads/parameters/draw.h"
#include "workloads/testing/reference_model.h"
#include "workloads/testing/step_under_test.h"

namespace graphproof::workloads::moe_test {
namespace {

using fixtures::Fault;

constexpr std::uint64_t kSeed = StepUnderTest::kSeed;
const ModelConfig kExperts{.layers = 2,
                           .hidden = 8,
                           .heads = 4,
                           .kv_groups = 2,
                           .ffn = 16,
                           .vocab = 12,
                           .seq_length = 5,
                           .microbatch_size = 2,
                           .microbatches = 2,
                           .linear_bias = true,
                           .experts = 4,
                           .topk = 2,
                           .shared_expert = true};

struct Bench : StepUnderTest {
  using StepUnderTest::StepUnderTest;

  std::map<std::string, std::vector<float>> ledgers() {
    std::map<std::string, std::vector<float>> values;
    for (const auto& [name, tensor] : step.ledgers()) values[name] = on_host(tensor);
    return values;
  }
};

double sum(const std::vector<float>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

TEST(Moe, EveryAssignmentIsCarriedOrCountedAsDropped) {
  Bench bench(kExperts);
  bench.mean_loss();
  const auto ledger = bench.ledgers();
  const double assignments = 2 * 2 * 5 * 2;  // microbatches, sequences, tokens, experts of a token
  const float capacity = 5 * 2 * 2 / 4;
  for (std::int64_t l = 0; l < 2; ++l) {
    double assigned = 0, carried = 0;
    for (std::int64_t e = 0; e < 4; ++e) {
      const auto index = static_cast<std::size_t>(l * 4 + e);
      assigned += ledger.at("experts:assigned")[index];
      carried += ledger.at("experts:carried")[index];
      EXPECT_LE(ledger.at("experts:carried")[index], 2 * capacity);
    }
    EXPECT_EQ(assigned, assignments);
    EXPECT_EQ(carried + ledger.at("experts:dropped")[static_cast<std::size_t>(l)], assignments);
  }
  EXPECT_GT(sum(ledger.at("experts:dropped")), 0)
      << "nothing is over capacity, so nothing is tested";
  EXPECT_EQ(on_host(bench.step.dropped()), ledger.at("experts:dropped"));
}

TEST(Moe, LedgerStartsAgainInEveryStep) {
  Bench bench(kExperts);
  bench.mean_loss();
  const auto first = bench.ledgers();
  bench.mean_loss();
  EXPECT_EQ(bench.ledgers(), first);
}

TEST(Moe, DroplessDispatchesCarryEveryAssignmentAndAgree) {
  ModelConfig dropless = kExperts;
  dropless.dropless = true;
  ModelConfig gathered = dropless;
  gathered.gather_tokens = true;
  ModelConfig flex = dropless;
  flex.flex = true;
  Bench carried(dropless), picked(gathered), placed(flex);
  const double loss = carried.mean_loss();
  EXPECT_NEAR(loss, picked.mean_loss(), 1e-6);
  EXPECT_NEAR(loss, placed.mean_loss(), 1e-6);
  for (std::size_t i = 0; i < carried.step.gradients().size(); ++i) {
    const auto want = on_host(carried.step.gradients()[i].tensor),
               got = on_host(placed.step.gradients()[i].tensor);
    for (std::size_t element = 0; element < want.size(); ++element)
      EXPECT_NEAR(got[element], want[element], 1e-6) << carried.step.gradients()[i].name;
  }
  for (Bench* bench : {&carried, &picked, &placed}) {
    const auto ledger = bench->ledgers();
    EXPECT_EQ(ledger.at("experts:carried"), ledger.at("experts:assigned"));
    EXPECT_EQ(sum(ledger.at("experts:carried")),
              2 * 2 * 2 * 5 * 2);  // layers, microbatches, sequences, tokens, experts of a token
    EXPECT_EQ(sum(ledger.at("experts:dropped")), 0);
  }
}

// The corrections move by the rate towards experts with fewer tokens than the mean, and change
// which experts are chosen in later steps.
TEST(Moe, ScoreCorrectionFollowsTheLoad) {
  ModelConfig config = kExperts;
  config.router_score_correction = true;
  Bench bench(config);
  const auto bias = [&] { return on_host(bench.step.optimizer_state().back().tensor); };
  EXPECT_EQ(bench.step.optimizer_state().back().name, "state:router_bias");
  EXPECT_EQ(bias(), std::vector<float>(8, 0));
  const double loss = bench.mean_loss();
  const auto assigned = bench.ledgers().at("experts:assigned");
  const auto moved = bias();
  int signs = 0;
  for (std::size_t i = 0; i < moved.size(); ++i) {
    const float mean = 2 * 2 * 5 * 2 / 4.0f;  // an even share of a layer's assignments
    EXPECT_FLOAT_EQ(moved[i], assigned[i] < mean ? 1e-3f : assigned[i] > mean ? -1e-3f : 0.0f) << i;
    signs += moved[i] != 0;
  }
  EXPECT_GT(signs, 0) << "an even load tests nothing";
  for (int i = 0; i < 300; ++i) bench.mean_loss();
  EXPECT_NE(bench.mean_loss(), loss) << "a correction of 0.3 moves tokens to other experts";
}

// The losses reach the gradients of the router and do not change the reported loss.
TEST(Moe, LossesOfTheRouterChangeGradientsAndNotTheLoss) {
  ModelConfig balanced = kExperts, small = kExperts;
  balanced.router_aux_loss = true;
  small.router_z_loss = true;
  Bench plain(kExperts), aux(balanced), z(small);
  const double loss = plain.mean_loss();
  EXPECT_EQ(aux.mean_loss(), loss);
  EXPECT_EQ(z.mean_loss(), loss);
  const auto router = [](Bench& bench) {
    for (const auto& [name, gradient] : bench.step.gradients())
      if (name == "grad:layers.1.mlp.router.weight") return on_host(gradient);
    return std::vector<float>();
  };
  EXPECT_NE(router(aux), router(plain));
  EXPECT_NE(router(z), router(plain));
  EXPECT_NE(router(z), router(aux));
}

TEST(Moe, OverflowIsReportedExactlyIfTokensAreDropped) {
  Bench bench(kExperts);
  bench.mean_loss();
  const auto ledger = bench.ledgers();
  for (std::size_t l = 0; l < 2; ++l)
    EXPECT_EQ(ledger.at("experts:overflowed")[l] > 0, ledger.at("experts:dropped")[l] > 0) << l;
  ModelConfig all = kExperts;
  all.experts = all.topk = 2;  // every token uses every expert, so the load is even
  Bench even(all);
  even.mean_loss();
  EXPECT_EQ(sum(even.ledgers().at("experts:dropped")), 0);
  EXPECT_EQ(sum(even.ledgers().at("experts:overflowed")), 0);
}

TEST(Moe, TwoRunsAreEqualBitForBit) {
  Bench first(kExperts), second(kExperts);
  first.mean_loss();
  second.mean_loss();
  for (std::size_t i = 0; i < first.step.gradients().size(); ++i)
    EXPECT_EQ(on_host(first.step.gradients()[i].tensor), on_host(second.step.gradients()[i].tensor))
        << first.step.gradients()[i].name;
}

TEST(Moe, GradientsEqualCentralDifferencesWhereNoTokenChangesItsExperts) {
  Bench bench(kExperts);
  bench.mean_loss();
  const auto routed = bench.ledgers();
  std::vector<std::vector<float>> gradients;
  for (const auto& gradient : bench.step.gradients()) gradients.push_back(on_host(gradient.tensor));
  ReferenceModel reference(kExperts, bench.step.parameters());
  reference.loss(bench.batch);
  const auto parameters = bench.step.parameters();
  std::map<std::string, int> checked;  // number of checked parameters, by name within the layer
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    const std::string& name = parameters[p].name;
    if (name.find(".mlp") == std::string::npos) continue;
    at::Tensor parameter = parameters[p].tensor.detach();
    const at::Tensor original = parameter.clone();
    const Draw draw(1, name);
    at::Tensor signs = at::empty(parameter.sizes(), at::kFloat);
    double expected = 0;
    for (std::int64_t i = 0; i < signs.numel(); ++i) {
      signs.mutable_data_ptr<float>()[i] = draw.uniform(i) < 0 ? -1.0f : 1.0f;
      expected += signs.const_data_ptr<float>()[i] * gradients[p][static_cast<std::size_t>(i)];
    }
    // A tenth of the width used for a dense model, so that fewer steps move a token to another
    // expert. The rounding of the loss then has ten times the effect, 1e-2.
    constexpr double kWidth = 2e-4;
    const at::Tensor offset = signs.to(bench.device.torch_device()) * kWidth;
    parameter.copy_(original + offset);
    const double above = bench.mean_loss();
    bool same_routes = bench.ledgers() == routed;
    parameter.copy_(original - offset);
    const double below = bench.mean_loss();
    same_routes &= bench.ledgers() == routed;
    parameter.copy_(original);
    if (!same_routes) continue;
    double norm = 0;
    for (const float g : gradients[p]) norm += double(g) * g;
    EXPECT_NEAR((above - below) / (2 * kWidth), expected, 1e-2 + 0.02 * std::sqrt(norm)) << name;
    ++checked[name.substr(name.find(".mlp"))];
  }
  for (const char* part : {".mlp.router.weight", ".mlp.shared.up.weight", ".mlp.experts.up.weight",
                           ".mlp.experts.down.bias"})
    EXPECT_GT(checked[part], 0) << part << ": every step moved a token";
}

TEST(Moe, Bf16RoutesInFp32AndIsNearTheFp32Model) {
  ModelConfig config = kExperts;
  config.experts = config.topk = 2;  // every token uses both, so no choice can differ
  const double wide = Bench(config).mean_loss();
  config.precision = Precision::bf16;
  Bench narrow(config);
  EXPECT_NEAR(narrow.mean_loss(), wide, 0.02 * wide);
  EXPECT_EQ(narrow.step.parameters()[0].tensor.scalar_type(), at::kBFloat16);
  EXPECT_EQ(narrow.step.gradients()[0].tensor.scalar_type(), at::kFloat);
}

// The fault shows only while recording: the dispatch has half the capacity, but counts with the
// whole.
TEST(Moe, FaultM74LosesTokensWithoutCountingThemWhileRecording) {
  Bench sound(kExperts), faulty(kExperts, Fault::dispatch_buffers_too_small);
  sound.mean_loss();
  faulty.mean_loss();
  EXPECT_EQ(faulty.ledgers(), sound.ledgers()) << "eager steps are sound";
  faulty.step.recording(true);
  faulty.mean_loss();
  faulty.step.recording(false);
  const auto ledger = faulty.ledgers();
  EXPECT_EQ(sum(ledger.at("experts:assigned")), sum(sound.ledgers().at("experts:assigned")));
  EXPECT_LT(sum(ledger.at("experts:carried")) + sum(ledger.at("experts:dropped")),
            sum(ledger.at("experts:assigned")));
}

TEST(Moe, RefusesLayoutsThatItCannotSplit) {
  struct Row {
    Layout layout;
    const char* message;
  };
  for (const Row& row :
       {Row{{.dp = 3, .ep = 3}, "got experts = 4 and ep = 3"},
        Row{{.dp = 2, .ep = 4}, "got tp * cp * dp = 2 and ep * etp = 4"},
        Row{{.dp = 2, .ep = 2, .etp = 2}, "got tp * cp * dp = 2 and ep * etp = 4"},
        Row{{.dp = 2, .etp = 2},
            "got etp = 2 and linear_bias; want one of them; why: a bias after a reduce-scatter"},
        Row{{.tp = 2, .tp_group = "tp"},
            "got experts = 4 and tp = 2 without sequence parallelism; want tp = 1 or sequence "
            "parallelism; why: rule R247"}}) {
    try {
      TrainStep step(kExperts, row.layout, device_under_test(), kSeed, {});
      step.forward_backward({});
      ADD_FAILURE() << "accepted: " << row.message;
    } catch (const std::invalid_argument& error) {
      EXPECT_NE(std::string(error.what()).find(row.message), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace graphproof::workloads::moe_test
