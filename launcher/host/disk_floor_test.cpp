#include "launcher/host/disk_floor.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "reports/record/testing/scratch_folder.h"
#include "reports/record/text/message.h"

namespace graphproof::launcher {
namespace {

constexpr std::int64_t kMoreThanAnyDisk = std::numeric_limits<std::int64_t>::max();

TEST(DiskFloorTest, ADiskWithLessThanTheFloorIsAWriteErrorThatSaysHowToGoOn) {
  const record::ScratchFolder folder;
  DiskFloor floor(folder.path(), kMoreThanAnyDisk);
  try {
    floor.check(5000);
    FAIL() << "no error";
  } catch (const record::WriteError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("is nearly full"), std::string::npos) << text;
    EXPECT_NE(text.find("graphproof resume " + folder.path().string()), std::string::npos) << text;
  }
}

TEST(DiskFloorTest, ADiskWithRoomPasses) {
  const record::ScratchFolder folder;
  DiskFloor floor(folder.path(), 1);
  EXPECT_NO_THROW(floor.check(5000));
}

TEST(DiskFloorTest, ItLooksAtMostOnceASecondUnlessItIsAskedTo) {
  const record::ScratchFolder folder;
  DiskFloor floor(folder.path(), kMoreThanAnyDisk);
  EXPECT_THROW(floor.check(5000), record::WriteError);
  EXPECT_NO_THROW(floor.check(5999));
  EXPECT_THROW(floor.check_now(5999), record::WriteError);
  EXPECT_NO_THROW(floor.check(6998));
  EXPECT_THROW(floor.check(6999), record::WriteError);
}

TEST(DiskFloorTest, AFolderThatCannotBeAskedPasses) {
  DiskFloor floor("/nonexistent", kMoreThanAnyDisk);
  EXPECT_NO_THROW(floor.check_now(0)) << "writing there says what is wrong";
}

}  // namespace
}  // namespace graphproof::launcher
