#include "launcher/watch/probe_look.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>
#include <string_view>

#include "reports/record/probe_file/probe_file.h"
#include "reports/record/text/file.h"

namespace graphproof::launcher {
namespace {

namespace layout = record::probe_file;

template <std::size_t N>
std::string text_of(const char (&field)[N]) {
  return std::string(field, strnlen(field, N));
}

void add(std::uint64_t& digest, std::string_view bytes) {
  // Any odd number spreads the digest of what came before over all bits.
  digest = digest * 0x9E3779B97F4A7C15ull + std::hash<std::string_view>()(bytes);
}

void add_open_call(ProbeLook& look, std::string_view payload) {
  layout::ThreadCounters thread;
  std::memcpy(&thread, payload.data(), std::min(payload.size(), sizeof thread));
  if (thread.inside[0] == '\0') return;
  look.open_calls.push_back({.thread = thread.tid,
                             .name = text_of(thread.name),
                             .call = text_of(thread.inside),
                             .since_ns = thread.last_call_ns});
}

std::optional<ProbeLook> look_at(const std::filesystem::path& file) {
  std::string bytes;
  try {
    bytes = record::read_text(file);
  } catch (const record::ReadError&) {
    return std::nullopt;
  }
  layout::Header header;
  if (bytes.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (std::string_view(header.magic, sizeof header.magic) != layout::kMagic) return std::nullopt;
  ProbeLook look{.name = file.stem(),
                 .host = text_of(header.host),
                 .pid = header.pid,
                 .start_ticks = header.process_start_ticks,
                 .parent = header.parent_pid,
                 .state = header.state};
  const std::uint64_t begin = std::max<std::uint64_t>(header.header_bytes, sizeof header);
  const std::uint64_t end = std::min<std::uint64_t>(begin + header.committed, bytes.size());
  const std::string_view all(bytes);
  add(look.digest, all.substr(0, sizeof header));
  for (std::uint64_t at = begin; at + sizeof(layout::RecordHeader) <= end;) {
    layout::RecordHeader record;
    std::memcpy(&record, bytes.data() + at, sizeof record);
    at += sizeof record;
    if (record.bytes > end - at) break;
    const std::string_view payload = all.substr(at, record.bytes);
    if (record.type == layout::RecordType::thread) add_open_call(look, payload);
    if (record.type != layout::RecordType::tally) add(look.digest, payload);
    at += layout::padded(record.bytes);
  }
  return look;
}

}  // namespace

std::string own_host() {
  char host[sizeof layout::Header::host] = "";
  gethostname(host, sizeof host - 1);
  return host;
}

std::vector<ProbeLook> look_at_probes(const std::filesystem::path& folder) {
  std::vector<ProbeLook> looks;
  for (const std::filesystem::path& file : layout::files_of(folder))
    if (auto look = look_at(file)) looks.push_back(std::move(*look));
  return looks;
}

}  // namespace graphproof::launcher
