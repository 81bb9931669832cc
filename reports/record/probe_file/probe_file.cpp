#include "reports/record/probe_file/probe_file.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <system_error>

#include "reports/record/text/file.h"

namespace graphproof::record::probe_file {
namespace {

/// Copies a struct of counters out of a record. A record of an older probe may be shorter: its
/// missing fields stay 0.
template <class Counters>
Counters counters_of(std::string_view payload) {
  Counters counters;
  std::memcpy(&counters, payload.data(), std::min(payload.size(), sizeof counters));
  return counters;
}

void add_line(Contents& contents, std::string_view payload) {
  nlohmann::json fields = nlohmann::json::parse(payload, nullptr, false);
  if (!fields.is_object() || !fields.contains("kind") || !fields["kind"].is_string()) {
    contents.dropped.push_back("a line is no JSON object with a kind: " +
                               std::string(payload.substr(0, 80)));
    return;
  }
  std::string kind = fields["kind"].get<std::string>();
  contents.lines.push_back({.kind = std::move(kind), .fields = std::move(fields)});
}

void add_record(Contents& contents, RecordType type, std::string_view payload) {
  switch (type) {
    case RecordType::line:
      return add_line(contents, payload);
    case RecordType::executable: {
      const auto counters = counters_of<ExecutableCounters>(payload);
      contents.executables[counters.executable] = counters;
      return;
    }
    case RecordType::thread:
      contents.threads.push_back(counters_of<ThreadCounters>(payload));
      return;
    case RecordType::tally: {
      const auto counters = counters_of<TallyCounters>(payload);
      contents.tallies[counters.tally] = counters;
      return;
    }
    case RecordType::series:
      contents.series.push_back(counters_of<SeriesCounters>(payload));
      return;
  }
  contents.dropped.push_back("a record has the unknown type " +
                             std::to_string(static_cast<std::uint32_t>(type)));
}

[[noreturn]] void refuse(const std::filesystem::path& file, std::string got) {
  throw ReadError({.what = file.string() + " is no file of a probe",
                   .got = std::move(got),
                   .want = "a file that begins with " + std::string(kMagic) + ", version " +
                           std::to_string(kVersion),
                   .why = "",
                   .next = "name the folder that the watched processes wrote into"});
}

}  // namespace

std::vector<const Line*> Contents::of(std::string_view kind) const {
  std::vector<const Line*> found;
  for (const Line& line : lines)
    if (line.kind == kind) found.push_back(&line);
  return found;
}

Contents read(const std::filesystem::path& file) {
  const std::string bytes = read_text(file);
  Contents contents{.file = file,
                    .header = {},
                    .lines = {},
                    .executables = {},
                    .threads = {},
                    .tallies = {},
                    .series = {},
                    .dropped = {}};
  if (bytes.size() < sizeof(Header)) refuse(file, std::to_string(bytes.size()) + " bytes");
  std::memcpy(&contents.header, bytes.data(), sizeof(Header));
  Header& header = contents.header;
  if (std::string_view(header.magic, sizeof header.magic) != kMagic)
    refuse(file, "another beginning");
  if (header.version != kVersion) refuse(file, "version " + std::to_string(header.version));
  // A torn header must not make a reader run off the end of its texts.
  header.host[sizeof header.host - 1] = header.why_off[sizeof header.why_off - 1] = '\0';
  const std::uint64_t begin = std::max<std::uint64_t>(header.header_bytes, sizeof(Header));
  const std::uint64_t end = std::min<std::uint64_t>(begin + header.committed, bytes.size());
  if (end < begin + header.committed) contents.dropped.push_back("the file was cut off");
  for (std::uint64_t at = begin; at + sizeof(RecordHeader) <= end;) {
    RecordHeader record;
    std::memcpy(&record, bytes.data() + at, sizeof record);
    at += sizeof record;
    if (record.bytes > end - at) {
      contents.dropped.push_back("the last record was cut off");
      break;
    }
    add_record(contents, record.type, std::string_view(bytes).substr(at, record.bytes));
    at += padded(record.bytes);
  }
  for (ThreadCounters& thread : contents.threads)
    thread.name[sizeof thread.name - 1] = thread.inside[sizeof thread.inside - 1] = '\0';
  return contents;
}

std::vector<std::filesystem::path> files_of(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none))
    if (entry.path().extension() == kExtension) files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

}  // namespace graphproof::record::probe_file
