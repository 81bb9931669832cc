#include "reports/record/evidence/evidence.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <system_error>
#include <utility>

#include "reports/record/evidence/former_names.h"
#include "reports/record/text/file.h"

namespace graphproof::record {
namespace {

/// Reads a line into the typed lines of its kind.
using LineReader = std::optional<Misfit> (*)(const nlohmann::json& fields, Evidence& evidence);

template <LineKind T>
std::optional<Misfit> read_into(const nlohmann::json& fields, Evidence& evidence) {
  auto& lines = std::get<std::vector<T>>(evidence.typed.lines);
  auto misfit = read_line(fields, lines.emplace_back());
  if (misfit) lines.pop_back();
  return misfit;
}

template <class... Lines>
std::map<std::string_view, LineReader> readers_of(Kinds<Lines...>) {
  return {{Lines::kKind, read_into<Lines>}...};
}

const std::map<std::string_view, LineReader>& readers() {
  static const std::map<std::string_view, LineReader> kReaders = readers_of(LineKinds());
  return kReaders;
}

}  // namespace

std::string evidence_file_name(int rank) {
  return "rank-" + std::to_string(rank) + ".evidence.jsonl";
}

EvidenceWriter::EvidenceWriter(std::filesystem::path file) : file_(std::move(file)) {
  std::error_code ignored;  // open() names what is wrong
  if (file_.has_parent_path()) std::filesystem::create_directories(file_.parent_path(), ignored);
  descriptor_ = ::open(file_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644);
  if (descriptor_ < 0)
    throw WriteError({.what = "cannot create evidence file " + file_.string(),
                      .got = std::strerror(errno),
                      .want = "a new file",
                      .why = "evidence of two attempts must never mix",
                      .next = "use a fresh attempt folder, or make it writable"});
}

EvidenceWriter::~EvidenceWriter() { ::close(descriptor_); }

void EvidenceWriter::append(std::string_view kind, const Json& line) {
  const std::string text = line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  const std::lock_guard lock(mutex_);
  std::string_view rest = text;
  while (!rest.empty()) {
    const ssize_t written = ::write(descriptor_, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0)
      throw WriteError({.what = "cannot write evidence to " + file_.string(),
                        .got = std::strerror(errno),
                        .want = "line " + std::to_string(lines_ + 1) + " (" + std::string(kind) +
                                ") written whole",
                        .why = "a case without its evidence cannot be judged",
                        .next = "free space on its file system, then run again"});
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  ++lines_;
  bytes_ += static_cast<std::int64_t>(text.size());
}

void EvidenceWriter::end(bool complete, Phase last_phase, std::int64_t t_ms) {
  write(EndLine{.complete = complete, .lines = lines(), .last_phase = last_phase, .t_ms = t_ms});
}

std::int64_t EvidenceWriter::lines() const {
  const std::lock_guard lock(mutex_);
  return lines_;
}

std::int64_t EvidenceWriter::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

std::int64_t Evidence::revision() const {
  for (const EvidenceLine& line : lines) {
    if (line.kind != StartLine::kKind) continue;
    const auto revision = line.fields.find("revision");
    return revision != line.fields.end() && revision->is_number_integer()
               ? revision->get<std::int64_t>()
               : 1;
  }
  return kEvidenceRevision;
}

bool Evidence::reached_its_end() const {
  if (!dropped.empty() || lines.empty() || lines.front().kind != StartLine::kKind ||
      lines.back().kind != EndLine::kKind)
    return false;
  const nlohmann::json& end = lines.back().fields;
  return end.value("complete", nlohmann::json()) == true &&
         end.value("lines", nlohmann::json()) == lines.size() - 1;
}

std::string to_text(const DamagedLine& damaged) {
  return "line " + std::to_string(damaged.line) + " of kind `" + damaged.kind +
         "`: " + to_text(damaged.misfit);
}

void type_lines(Evidence& evidence) {
  evidence.typed = {};
  evidence.damaged.clear();
  const bool knows_every_kind = evidence.revision() == kEvidenceRevision;
  const bool has_former_names = evidence.revision() < kNamesSince;
  for (EvidenceLine& line : evidence.lines) {
    if (has_former_names) use_todays_names(line.kind, line.fields);
    const auto reader = readers().find(line.kind);
    if (reader == readers().end()) {
      if (knows_every_kind)
        evidence.damaged.push_back({line.kind, line.line, {"kind", line.kind, "a known kind"}});
    } else if (auto misfit = reader->second(line.fields, evidence)) {
      evidence.damaged.push_back({line.kind, line.line, std::move(*misfit)});
    }
  }
}

Evidence read_evidence(const std::filesystem::path& file) {
  const Lines raw = read_lines(file);
  Evidence evidence;
  evidence.file = file;
  for (std::size_t i = 0; i < raw.lines.size(); ++i) {
    nlohmann::json value = nlohmann::json::parse(raw.lines[i], nullptr, false);
    const bool line_of_a_kind =
        value.is_object() && value.contains("kind") && value["kind"].is_string();
    if (!line_of_a_kind) {
      evidence.dropped.push_back(file.filename().string() + " line " + std::to_string(i + 1) +
                                 " is no evidence line: " + raw.lines[i].substr(0, 80));
      continue;
    }
    std::string kind = value["kind"];
    evidence.lines.push_back({.kind = std::move(kind), .fields = std::move(value), .line = i + 1});
  }
  if (raw.torn_bytes > 0)
    evidence.dropped.push_back(file.filename().string() + " line " +
                               std::to_string(raw.lines.size() + 1) + " is torn after " +
                               std::to_string(raw.torn_bytes) +
                               " bytes: its rank was stopped while writing");
  type_lines(evidence);
  return evidence;
}

std::vector<Evidence> read_evidence_of_attempt(const std::filesystem::path& attempt_folder) {
  std::vector<std::filesystem::path> files;
  std::error_code missing;
  for (std::filesystem::directory_iterator entry(attempt_folder, missing), end;
       !missing && entry != end; entry.increment(missing))
    if (entry->path().string().ends_with(".evidence.jsonl")) files.push_back(entry->path());
  // rank-10 after rank-9.
  std::sort(files.begin(), files.end(), [](const auto& left, const auto& right) {
    const std::string a = left.filename(), b = right.filename();
    return std::pair(a.size(), a) < std::pair(b.size(), b);
  });
  std::vector<Evidence> all;
  for (const auto& file : files) all.push_back(read_evidence(file));
  return all;
}

}  // namespace graphproof::record
