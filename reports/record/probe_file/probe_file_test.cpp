// Files of probes as a dying process leaves them.
#include "reports/record/probe_file/probe_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "reports/record/testing/scratch_folder.h"
#include "reports/record/text/message.h"

namespace graphproof::record::probe_file {
namespace {

/// A file with a header and the records that are added.
class FileText {
 public:
  FileText() {
    std::memcpy(header.magic, kMagic.data(), sizeof header.magic);
    header.header_bytes = sizeof header;
    header.pid = 4711;
    std::strcpy(header.host, "node-1");
  }

  template <class Payload>
  FileText& add(RecordType type, const Payload& payload) {
    return add(type, std::string_view(reinterpret_cast<const char*>(&payload), sizeof payload));
  }
  FileText& add(RecordType type, std::string_view payload) {
    const RecordHeader record{.bytes = static_cast<std::uint32_t>(payload.size()), .type = type};
    records.append(reinterpret_cast<const char*>(&record), sizeof record);
    records += payload;
    records.resize(padded(records.size()));
    header.committed = records.size();
    return *this;
  }

  std::string text() const {
    return std::string(reinterpret_cast<const char*>(&header), sizeof header) + records;
  }

  Header header;
  std::string records;
};

Contents read_back(const std::string& text) {
  const ScratchFolder folder;
  const auto file = folder.path() / "node-1.4711.1.probe";
  std::ofstream(file) << text;
  return read(file);
}

TEST(ProbeFileTest, LinesAndCountersAreRead) {
  FileText file;
  file.add(RecordType::line, R"({"kind":"process","profile":"quick"})")
      .add(RecordType::executable, ExecutableCounters{.executable = 3, .launches = 12})
      .add(RecordType::thread, ThreadCounters{.tid = 4711, .name = "python3", .kernels = 5})
      .add(RecordType::tally, TallyCounters{.tally = 1, .count = 7});
  const Contents contents = read_back(file.text() + std::string(1000, '\0'));
  EXPECT_EQ(contents.header.pid, 4711);
  ASSERT_EQ(contents.of("process").size(), 1u);
  EXPECT_EQ(contents.of("process")[0]->fields["profile"], "quick");
  EXPECT_EQ(contents.executables.at(3).launches, 12);
  ASSERT_EQ(contents.threads.size(), 1u);
  EXPECT_STREQ(contents.threads[0].name, "python3");
  EXPECT_EQ(contents.tallies.at(1).count, 7);
  EXPECT_TRUE(contents.dropped.empty());
}

TEST(ProbeFileTest, WhatWasNotFinishedIsNotRead) {
  FileText file;
  file.add(RecordType::line, R"({"kind":"process"})");
  const std::string whole = file.text();
  file.add(RecordType::line, R"({"kind":"capture"})");
  file.header.committed = whole.size() - sizeof(Header);
  EXPECT_EQ(read_back(file.text()).lines.size(), 1u);
}

TEST(ProbeFileTest, ACopyThatWasCutOffLosesItsEndAlone) {
  FileText file;
  file.add(RecordType::line, R"({"kind":"process"})").add(RecordType::line, R"({"kind":"later"})");
  for (std::size_t cut = 1; cut < 24; ++cut) {
    const std::string text = file.text();
    const Contents contents = read_back(text.substr(0, text.size() - cut));
    EXPECT_GE(contents.lines.size(), 1u) << cut;
    EXPECT_FALSE(contents.dropped.empty()) << cut;
  }
}

TEST(ProbeFileTest, ALineThatIsNoObjectIsDropped) {
  FileText file;
  file.add(RecordType::line, "{broken")
      .add(RecordType::line, "[1]")
      .add(RecordType::line, R"({"kind":"process"})");
  const Contents contents = read_back(file.text());
  EXPECT_EQ(contents.lines.size(), 1u);
  EXPECT_EQ(contents.dropped.size(), 2u);
}

TEST(ProbeFileTest, CountersOfAnOlderProbeAreShorter) {
  FileText file;
  const std::int64_t fields[] = {2, 9};
  file.add(RecordType::executable,
           std::string_view(reinterpret_cast<const char*>(fields), sizeof fields));
  const Contents contents = read_back(file.text());
  EXPECT_EQ(contents.executables.at(2).launches, 9);
  EXPECT_EQ(contents.executables.at(2).uploads, 0);
}

TEST(ProbeFileTest, ARecordThatClaimsTooMuchEndsTheReading) {
  FileText file;
  file.add(RecordType::line, R"({"kind":"process"})");
  const RecordHeader huge{.bytes = 0xfffffff0, .type = RecordType::line};
  file.records.append(reinterpret_cast<const char*>(&huge), sizeof huge);
  file.header.committed = file.records.size();
  const Contents contents = read_back(file.text());
  EXPECT_EQ(contents.lines.size(), 1u);
  EXPECT_EQ(contents.dropped, std::vector<std::string>{"the last record was cut off"});
}

TEST(ProbeFileTest, OtherFilesAreRefused) {
  EXPECT_THROW(read_back(""), ReadError);
  EXPECT_THROW(read_back(std::string(4096, 'x')), ReadError);
  FileText file;
  file.header.version = 2;
  EXPECT_THROW(read_back(file.text()), ReadError);
  EXPECT_THROW(read("/nonexistent/file.probe"), ReadError);
}

TEST(ProbeFileTest, AFolderHasTheFilesOfItsProcesses) {
  const ScratchFolder folder;
  for (const char* name : {"b.2.1.probe", "a.1.1.probe", "other.txt"})
    std::ofstream(folder.path() / name) << "";
  const auto files = files_of(folder.path());
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[0].filename(), "a.1.1.probe");
  EXPECT_TRUE(files_of(folder.path() / "none").empty());
}

}  // namespace
}  // namespace graphproof::record::probe_file
