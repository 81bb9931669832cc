#include "suites/checks/process/sanitizer_log.h"

#include <algorithm>
#include <charconv>

namespace graphproof::checks {
namespace {

constexpr std::string_view kPrefix = "=========";
constexpr std::string_view kFrame = "Host Frame:";

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t\r");
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") + 1 - begin);
}

/// A line without its prefix.
struct LogLine {
  std::string_view text;
  bool detail = false;  // indented below the first line of a report
};
std::vector<LogLine> lines_of(std::string_view text) {
  std::vector<LogLine> lines;
  while (!text.empty()) {
    const auto end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    if (!line.starts_with(kPrefix)) continue;  // output of the program
    line.remove_prefix(kPrefix.size());
    lines.push_back({.text = trimmed(line), .detail = line.starts_with("  ")});
  }
  return lines;
}

/// A number, and what follows it.
struct CountOf {
  std::int64_t number = 0;
  std::string_view of;
};
/// The count behind `before` in a line that begins with that; nothing for another line.
std::optional<CountOf> count_in(std::string_view line, std::string_view before) {
  if (!line.starts_with(before)) return std::nullopt;
  line.remove_prefix(before.size());
  CountOf count;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), count.number);
  if (error != std::errc()) return std::nullopt;
  count.of = line.substr(static_cast<std::size_t>(end - line.data()));
  return count;
}

/// The number of errors in a line that is a whole summary. A second line says how many of them were
/// not printed; it is none.
std::optional<std::int64_t> summary(std::string_view line) {
  if (const auto errors = count_in(line, "ERROR SUMMARY: "))
    return errors->of == " error" || errors->of == " errors" ? std::optional(errors->number)
                                                             : std::nullopt;
  // The hazards that are not displayed are below the level of a warning.
  const auto hazards = count_in(line, "RACECHECK SUMMARY: ");
  return hazards && hazards->of.starts_with(" hazard") && hazards->of.ends_with(")")
             ? std::optional(hazards->number)
             : std::nullopt;
}

bool of_race(std::string_view line) {
  return line.find("Race reported between") != line.npos ||
         line.find("hazard detected") != line.npos;
}

/// Whether the tool says of itself, or of the program, that not everything was checked.
bool tells_trouble(std::string_view line) {
  constexpr std::string_view kBeginnings[] = {"Error: ",
                                              "ERROR: ",
                                              "Warning: ",
                                              "WARNING: ",
                                              "Fatal: ",
                                              "Internal Sanitizer ",
                                              "Target application ",
                                              "Unable to ",
                                              "Device not supported",
                                              "Detected an unsupported"};
  return !of_race(line) && std::ranges::any_of(kBeginnings, [&](std::string_view beginning) {
    return line.starts_with(beginning);
  });
}

/// The kernel of "kernel(int *)+0x60 in file.cu:9" or, before version 2023.1, of
/// "0x60 in file.cu:9:kernel(int *)".
std::string kernel_of(std::string_view place) {
  if (place.starts_with("0x")) {
    const auto in = place.find(" in ");
    return std::string(in == place.npos ? place : trimmed(place.substr(in + 4)));
  }
  return std::string(place.substr(0, place.rfind("+0x")));
}

/// The first line of a report: what happened, and for a race the place of the first access.
SanitizerReport begun(std::string_view line) {
  SanitizerReport report;
  const auto at = line.find("Race reported") == line.npos ? line.npos : line.find(" at ");
  report.kind = std::string(line.substr(0, at));
  if (at != line.npos) report.kernel = kernel_of(line.substr(at + 4));
  return report;
}

void add_detail(SanitizerReport& report, std::string_view line, bool& framed) {
  if (line.starts_with("at ") && report.kernel.empty()) {
    report.kernel = kernel_of(line.substr(3));
  } else if (report.address.empty() &&
             (line.starts_with("Address ") || line.starts_with("Access to ") ||
              line.starts_with("Uninitialized access to "))) {
    report.address = std::string(line);
  } else if (line.starts_with("and is ") && !report.address.empty()) {
    report.address += " " + std::string(line);
  } else if (line.starts_with(kFrame) && !framed) {
    const std::string frame(trimmed(line.substr(kFrame.size())));
    // Above the calls of PyTorch stands ours, which says more than any of them.
    framed = frame.find("graphproof") != frame.npos;
    if (framed || report.host_frame.empty()) report.host_frame = frame;
  }
}

}  // namespace

SanitizerLog read_sanitizer_log(std::string_view text) {
  SanitizerLog log;
  std::int64_t begun_count = 0, ended_count = 0, errors = 0;
  bool in_report = false, framed = false;
  const std::vector<LogLine> lines = lines_of(text);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto& [line, detail] = lines[i];
    if (detail && in_report) {
      add_detail(log.reports.back(), line, framed);
      continue;
    }
    in_report = false;
    if (line.empty() || detail) continue;
    if (line == "COMPUTE-SANITIZER") {
      ++begun_count;
    } else if (const auto count = summary(line)) {
      ++ended_count;
      errors += *count;
    } else if (tells_trouble(line)) {
      if (log.trouble.empty()) log.trouble = std::string(line);
    } else if (i + 1 < lines.size() && lines[i + 1].detail) {
      log.reports.push_back(begun(line));
      in_report = true;
      framed = false;
    }
  }
  if (begun_count > 0 && ended_count >= begun_count) log.errors = errors;
  return log;
}

// A row is added only with a source that shows that the kernel is sound.
std::span<const AllowedReport> allowed_reports() { return {}; }

bool allowed(const SanitizerReport& report, std::string_view tool,
             std::span<const AllowedReport> rows) {
  return std::ranges::any_of(rows, [&](const AllowedReport& row) {
    return row.tool == tool && report.kind.starts_with(row.kind) &&
           report.kernel.find(row.kernel) != report.kernel.npos;
  });
}

}  // namespace graphproof::checks
