#include "matrix/catalogue/catalogue.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace graphproof::matrix {
namespace {

TEST(CatalogueTest, EmbeddedProfilesAreTheFilesOfTheTree) {
  const char* source = std::getenv("GRAPHPROOF_SOURCE");
  ASSERT_NE(source, nullptr) << "run by ctest, or set GRAPHPROOF_SOURCE to the repository";
  for (const std::string& profile : shipped_profiles()) {
    std::ifstream file(std::string(source) + "/matrix/profiles/" + profile + ".json");
    std::stringstream text;
    text << file.rdbuf();
    EXPECT_FALSE(text.str().empty()) << profile;
    EXPECT_EQ(shipped_profile_text(profile), text.str()) << profile;
  }
  EXPECT_EQ(shipped_profile_text("nothing"), "");
}

TEST(CatalogueTest, EveryFaultIsCaughtByAKnownDetector) {
  const Catalogue catalogue = load_catalogue();
  for (const FaultEntry& fault : catalogue.faults.faults())
    for (const std::string& device : fault.devices)
      EXPECT_FALSE(catalogue.checks.of_detector(fault.detector(device)).empty()) << fault.fault;
}

}  // namespace
}  // namespace graphproof::matrix
