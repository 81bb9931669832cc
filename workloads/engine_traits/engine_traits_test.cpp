#include "workloads/engine_traits/engine_traits.h"

#include <gtest/gtest.h>

#include <set>

#include "matrix/catalogue/catalogue.h"

namespace graphproof::engines {
namespace {

TEST(EngineTraits, EachValueOfAxisImplHasOneRow) {
  const matrix::Catalogue catalogue = matrix::load_catalogue();
  const matrix::Axis& impl = *catalogue.axes.find("impl");
  std::set<std::string_view> rows;
  for (const EngineTraits& engine : kEngineTraits) rows.insert(engine.impl);
  EXPECT_EQ(rows.size(), kEngineTraits.size());
  EXPECT_EQ(rows, std::set<std::string_view>(impl.values.begin(), impl.values.end()));
}

TEST(EngineTraits, AnEngineThatCapturesNothingPromisesNothing) {
  for (const EngineTraits& engine : kEngineTraits) {
    SCOPED_TRACE(engine.impl);
    if (!engine.captures_modules()) {
      EXPECT_FALSE(engine.one_graph_a_layer);
      EXPECT_FALSE(engine.captures_delayed_weight_gradients);
      EXPECT_EQ(engine.limits.over_whole_step, 0);
    }
    if (engine.captures()) continue;
    EXPECT_FALSE(engine.records_first_step);
    EXPECT_FALSE(engine.captures_evaluation);
    EXPECT_FALSE(engine.serves_shape_buckets);
    EXPECT_EQ(engine.limits.over_floor, 0);
  }
}

TEST(EngineTraits, AnUnknownImplIsRefusedWithTheKnownOnes) {
  EXPECT_EQ(engine_names([](const EngineTraits& one) { return one.serves_shape_buckets; }),
            "full_iteration or callables");
  try {
    traits_of("compiled");
    FAIL() << "accepted";
  } catch (const std::invalid_argument& error) {
    EXPECT_EQ(std::string(error.what()),
              "engine: got impl compiled; want " + engine_names([](const EngineTraits&) {
                return true;
              }) + "; why: no other engine is built; next: choose one of them");
  }
}

}  // namespace
}  // namespace graphproof::engines
