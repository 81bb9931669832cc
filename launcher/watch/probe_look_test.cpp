// What a quick look at a probe's file tells, also of a file that is being written or is none.
#include "launcher/watch/probe_look.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "reports/record/testing/scratch_folder.h"

namespace graphproof::launcher {
namespace {

namespace layout = record::probe_file;

template <class Payload>
void append(std::string& bytes, layout::RecordType type, const Payload& payload) {
  const layout::RecordHeader record{.bytes = sizeof payload, .type = type};
  bytes.append(reinterpret_cast<const char*>(&record), sizeof record);
  bytes.append(reinterpret_cast<const char*>(&payload), sizeof payload);
}

/// The file of a process with one thread, which is inside `call` unless that is empty.
struct Written {
  layout::Header header;
  layout::ThreadCounters thread;
  layout::TallyCounters tally;

  explicit Written(const char* call) {
    std::memcpy(header.magic, layout::kMagic.data(), sizeof header.magic);
    header.header_bytes = sizeof header;
    header.pid = 4711;
    header.parent_pid = 4700;
    header.process_start_ticks = 99;
    std::strcpy(header.host, "node1");
    thread.tid = 4712;
    thread.last_call_ns = 5;
    std::strcpy(thread.name, "python3");
    std::strcpy(thread.inside, call);
  }
  std::string bytes() const {
    std::string records;
    append(records, layout::RecordType::thread, thread);
    append(records, layout::RecordType::tally, tally);
    layout::Header whole = header;
    whole.committed = records.size();
    return std::string(reinterpret_cast<const char*>(&whole), sizeof whole) + records;
  }
};

class ProbeLookTest : public testing::Test {
 protected:
  std::vector<ProbeLook> look_at(const std::string& bytes) const {
    std::ofstream(folder_.path() / "node1.4711.probe", std::ios::binary) << bytes;
    return look_at_probes(folder_.path());
  }
  std::uint64_t digest_of(const Written& written) const {
    return look_at(written.bytes()).at(0).digest;
  }

 private:
  const record::ScratchFolder folder_;
};

TEST_F(ProbeLookTest, NamesTheProcessAndTheDriverCallThatHasNotReturned) {
  const ProbeLook look = look_at(Written("cuStreamSynchronize").bytes()).at(0);
  EXPECT_EQ(look.name, "node1.4711");
  EXPECT_EQ(look.host, "node1");
  EXPECT_EQ(look.pid, 4711);
  EXPECT_EQ(look.parent, 4700);
  EXPECT_EQ(look.start_ticks, 99);
  ASSERT_EQ(look.open_calls.size(), 1u);
  EXPECT_EQ(look.open_calls[0].call, "cuStreamSynchronize");
  EXPECT_EQ(look.open_calls[0].thread, 4712);
  EXPECT_EQ(look.open_calls[0].name, "python3");
  EXPECT_EQ(look.open_calls[0].since_ns, 5);
  EXPECT_TRUE(look_at(Written("").bytes()).at(0).open_calls.empty());
}

TEST_F(ProbeLookTest, TheDigestChangesWithEveryCallButNotWithCountsOfRepeatedEvents) {
  const Written before("cuStreamSynchronize");
  Written called = before, polled = before, stepped = before;
  called.thread.last_call_ns = 6;
  polled.tally.count = 1'000;
  stepped.header.process.steps = 1;
  EXPECT_EQ(digest_of(before), digest_of(before));
  EXPECT_NE(digest_of(called), digest_of(before));
  EXPECT_NE(digest_of(stepped), digest_of(before));
  EXPECT_EQ(digest_of(polled), digest_of(before));
}

TEST_F(ProbeLookTest, AFileThatIsNotWholeOrNoProbesIsNoTrouble) {
  const std::string whole = Written("cuStreamSynchronize").bytes();
  for (std::size_t size = 0; size < whole.size(); size += 7)
    EXPECT_EQ(look_at(whole.substr(0, size)).size(), size < sizeof(layout::Header) ? 0u : 1u);
  EXPECT_TRUE(look_at(std::string(10'000, 'x')).empty());
  EXPECT_TRUE(look_at_probes("/nonexistent").empty());
}

}  // namespace
}  // namespace graphproof::launcher
