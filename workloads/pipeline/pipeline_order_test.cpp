#include "workloads/pipeline/pipeline_order.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <set>

#include "workloads/pipeline/refusal_of.h"

namespace graphproof::order {
namespace {

using nlohmann::json;

class GoldenOrderTest : public testing::Test {
 protected:
  static json read() {
    std::ifstream file(std::filesystem::path(std::getenv("GRAPHPROOF_SOURCE")) /
                       "workloads/pipeline/golden.json");
    return json::parse(file, nullptr, /*allow_exceptions=*/true, /*ignore_comments=*/true);
  }
  inline static const json golden_ = read();  // read once, for all tests
};

std::vector<Forward> forwards_of(const json& list) {
  std::vector<Forward> forwards;
  for (const json& one : list) forwards.push_back({one.at(0), one.at(1)});
  return forwards;
}

TEST_F(GoldenOrderTest, WarmupAndNumberOfForwardsAreUpstreams) {
  EXPECT_EQ(golden_.at("warmup").size(), 860u);
  for (const json& row : golden_.at("warmup")) {
    const Stage stage{.pp = row.at(0),
                      .rank = row.at(1),
                      .chunks = row.at(2),
                      .microbatches = row.at(3),
                      .group = row.at(4)};
    EXPECT_EQ(forwards(stage).size(), row.at(7).get<std::size_t>()) << row;
    EXPECT_EQ(warmup_forwards(stage, row.at(5) == 1, row.at(6) == 1), row.at(8).get<std::int64_t>())
        << row;
  }
}

TEST_F(GoldenOrderTest, ForwardsAreUpstreamsScheduleTable) {
  EXPECT_EQ(golden_.at("forwards").size(), 9u);
  for (const json& row : golden_.at("forwards"))
    EXPECT_EQ(forwards({.chunks = row.at("chunks"),
                        .microbatches = row.at("microbatches"),
                        .group = row.at("group")}),
              forwards_of(row.at("forwards")))
        << row;
}

TEST_F(GoldenOrderTest, ChunkOrdersAreUpstreams) {
  EXPECT_EQ(golden_.at("orders").size(), 47u);
  for (const json& row : golden_.at("orders")) {
    std::vector<Forward> table;
    if (row.contains("pp")) {
      const Stage stage{.pp = row.at("pp"),
                        .rank = row.at("rank"),
                        .chunks = row.at("chunks"),
                        .microbatches = row.at("microbatches"),
                        .group = row.at("group")};
      table = forwards(stage);
      EXPECT_EQ(warmup_forwards(stage), row.at("warmup").get<std::int64_t>()) << row.at("id");
      EXPECT_EQ(chunk_order(stage), row.at("order").get<std::vector<double>>()) << row.at("id");
    } else {
      table = forwards_of(row.at("forwards"));
    }
    if (row.at("order").is_null()) {
      EXPECT_THROW(chunk_order(row.at("warmup"), row.at("chunks"), table), Refused) << row.at("id");
      continue;
    }
    EXPECT_EQ(chunk_order(row.at("warmup"), row.at("chunks"), table),
              row.at("order").get<std::vector<double>>())
        << row.at("id");
  }
}

TEST_F(GoldenOrderTest, LayerOrdersTheirTagsAndBuffersAreUpstreams) {
  EXPECT_EQ(golden_.at("layer_orders").size(), 53u);
  for (const json& row : golden_.at("layer_orders")) {
    const auto chunks = row.at("chunk_order").get<std::vector<double>>();
    const auto layers = row.at("layers").get<std::vector<std::int64_t>>();
    if (row.at("order").is_null()) {
      EXPECT_THROW(layer_order(chunks, layers, row.at("weight_gradients")), Refused)
          << row.at("id");
      continue;
    }
    const LayerOrder order = layer_order(chunks, layers, row.at("weight_gradients"));
    EXPECT_EQ(order.entries, row.at("order").get<std::vector<double>>()) << row.at("id");
    ASSERT_EQ(order.layers.size(), row.at("tags").size()) << row.at("id");
    for (std::size_t i = 0; i < order.layers.size(); ++i) {
      const json tag =
          order.layers[i] ? json{order.layers[i]->chunk, order.layers[i]->layer} : json();
      EXPECT_EQ(tag, row.at("tags")[i]) << row.at("id") << " entry " << i;
    }
    if (!row.at("buffers").is_null()) {
      EXPECT_EQ(input_buffers(order), row.at("buffers").get<std::vector<std::int64_t>>())
          << row.at("id");
    }
  }
}

TEST_F(GoldenOrderTest, InputBuffersAreUpstreams) {
  EXPECT_EQ(golden_.at("buffers").size(), 20u);
  for (const json& row : golden_.at("buffers"))
    EXPECT_EQ(
        input_buffers(row.at("order").get<std::vector<double>>(),
                      row.at("layers").get<std::vector<std::int64_t>>(), row.at("microbatches"),
                      row.at("signatures").get<std::vector<std::string>>()),
        row.at("buffers").get<std::vector<std::int64_t>>())
        << row.at("id");
}

Stage any_stage() {
  Stage stage{.pp = *rc::gen::inRange<std::int64_t>(1, 9)};
  stage.rank = *rc::gen::inRange<std::int64_t>(0, stage.pp);
  stage.chunks = stage.pp > 1 ? *rc::gen::inRange<std::int64_t>(1, 4) : 1;
  stage.group = *rc::gen::inRange<std::int64_t>(stage.pp, 2 * stage.pp + 1);
  stage.microbatches = *rc::gen::inRange<std::int64_t>(1, 17);
  return stage;
}

TEST(PipelineOrder, IsWarmupThenPairsThenTheRestAndRunsEveryBackwardAfterItsForward) {
  EXPECT_TRUE(rc::check([] {
    const Stage stage = any_stage();
    const std::vector<double> order = chunk_order(stage);
    const std::int64_t total = stage.chunks * stage.microbatches, warmup = warmup_forwards(stage);
    RC_ASSERT(static_cast<std::int64_t>(order.size()) == 2 * total);
    std::vector<std::int64_t> pending(static_cast<std::size_t>(stage.chunks), 0);
    for (std::size_t i = 0; i < order.size(); ++i) {
      std::int64_t& chunk = pending.at(static_cast<std::size_t>(std::abs(order[i])) - 1);
      chunk += order[i] > 0 ? 1 : -1;
      RC_ASSERT(chunk >= 0);
      const auto at = static_cast<std::int64_t>(i);
      const bool forward = at < warmup || (at < 2 * total - warmup && (at - warmup) % 2 == 0);
      RC_ASSERT((order[i] > 0) == forward);
    }
    RC_ASSERT(
        std::all_of(pending.begin(), pending.end(), [](std::int64_t count) { return count == 0; }));
  }));
}

TEST(PipelineOrder, OfNeighbouringStagesMeetsSoThatNoneWaitsForever) {
  // Each stage runs its order. A forward needs the forward of the previous stage, a backward the
  // backward of the next stage.
  EXPECT_TRUE(rc::check([] {
    Stage stage = any_stage();
    stage.chunks = 1;
    std::vector<std::vector<double>> orders;
    for (stage.rank = 0; stage.rank < stage.pp; ++stage.rank) orders.push_back(chunk_order(stage));
    std::vector<std::size_t> next(orders.size(), 0);
    std::vector<std::int64_t> forwards(orders.size(), 0), backwards(orders.size(), 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t s = 0; s < orders.size(); ++s) {
        if (next[s] == orders[s].size()) continue;
        const bool forward = orders[s][next[s]] > 0;
        const bool ready = forward ? s == 0 || forwards[s] < forwards[s - 1]
                                   : s + 1 == orders.size() || backwards[s] < backwards[s + 1];
        if (!ready) continue;
        ++(forward ? forwards : backwards)[s];
        ++next[s];
        moved = true;
      }
    }
    for (std::size_t s = 0; s < orders.size(); ++s) RC_ASSERT(next[s] == orders[s].size());
  }));
}

TEST(PipelineOrder, OfLayersHoldsEachLayerOnceAMicrobatchAndItsWeightGradientAfterItsDataGradient) {
  EXPECT_TRUE(rc::check([] {
    const Stage stage = any_stage();
    const bool weight_gradients = *rc::gen::arbitrary<bool>();
    std::vector<std::int64_t> layers;
    for (std::int64_t c = 0; c < stage.chunks; ++c)
      layers.push_back(*rc::gen::inRange<std::int64_t>(1, 4));
    const std::vector<double> entries =
        layer_order(chunk_order(stage), layers, weight_gradients).entries;
    const std::int64_t all = std::accumulate(layers.begin(), layers.end(), std::int64_t{0});
    RC_ASSERT(static_cast<std::int64_t>(entries.size()) ==
              (weight_gradients ? 3 : 2) * stage.microbatches * all);
    for (std::int64_t l = 1; l <= all; ++l) {
      std::int64_t forward = 0, backward = 0, weight = 0;
      for (const double entry : entries) {
        forward += entry == static_cast<double>(l);
        backward += entry == -static_cast<double>(l);
        weight += entry == -static_cast<double>(l) - 0.5;
        RC_ASSERT(backward <= forward && weight <= backward);
      }
      RC_ASSERT(forward == stage.microbatches && backward == forward &&
                weight == (weight_gradients ? forward : 0));
    }
  }));
}

TEST(PipelineOrder, NeedsLayersTimesOneMoreThanTheWarmupBuffersWhereAllLayersAreAlike) {
  EXPECT_TRUE(rc::check([] {
    const Stage stage = any_stage();
    const std::int64_t layers = *rc::gen::inRange<std::int64_t>(1, 4);
    const auto buffers =
        input_buffers(chunk_order(stage),
                      std::vector<std::int64_t>(static_cast<std::size_t>(stage.chunks), layers),
                      stage.microbatches);
    const std::set<std::int64_t> distinct(buffers.begin(), buffers.end());
    RC_ASSERT(static_cast<std::int64_t>(distinct.size()) ==
              layers * std::min(warmup_forwards(stage) + 1, stage.microbatches * stage.chunks));
  }));
}

TEST(PipelineOrder, RefusesAnInvalidRequestWithAdvice) {
  const std::pair<std::string, const char*> rows[] = {
      {refusal_of([] { forwards({.pp = 2, .rank = 2}); }), "a pipeline's rank; got 2; want 0 to 1"},
      {refusal_of([] { forwards({.microbatches = 0}); }),
       "a pipeline's microbatches; got 0; want 1 or more"},
      {refusal_of([] { chunk_order({.chunks = 0}); }), "a pipeline's chunks; got 0"},
      {refusal_of([] { chunk_order(1, 1, {}); }), "got no forwards"},
      {refusal_of([] { layer_order({1, 2}, {1, 1}, false); }), "got no backward"},
      {refusal_of([] { layer_order({1, -1, 2, -2}, {1}, false); }), "got chunk 2 of 1"},
      {refusal_of([] { layer_order({1, 1, -1, -1, 1, -1}, {1}, false); }),
       "got two forwards or two backwards in a row"},
      {refusal_of([] { input_buffers({-1, 1}, {1}, 1); }),
       "got a backward of chunk 1 before its forward"}};
  for (const auto& [message, part] : rows) {
    EXPECT_NE(message.find(part), std::string::npos) << message << " lacks " << part;
    EXPECT_NE(message.find("; next: "), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace graphproof::order
