#include "reports/print/compare_report.h"

#include <algorithm>
#include <cstdio>

#include "reports/print/markdown_parts.h"
#include "reports/print/static_page.h"
#include "reports/print/text_table.h"
#include "reports/print/watched_page.h"
#include "reports/record/text/printable.h"

namespace graphproof::reports {
namespace {

constexpr std::size_t kShownCases = 20;

using Rows = std::vector<std::vector<std::string>>;

/// A part of the report: lines of text, then a table. Neither is escaped yet.
struct Section {
  std::string title;
  std::vector<std::string> lines;
  std::vector<std::string> header = {};
  Rows rows = {};
};

std::string four_digits(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

std::string more(std::size_t all) {
  return all > kShownCases ? "and " + std::to_string(all - kShownCases) + " more; --json has all"
                           : "";
}

Section stack_section(const Comparison& all) {
  if (all.stack.empty()) return {"stack", {"the same"}};
  Section section{"stack", {}, {"part", all.left, all.right}};
  for (const StackChange& one : all.stack) section.rows.push_back({one.part, one.left, one.right});
  return section;
}

Section gate_section(const Comparison& all, const std::vector<Gate>& gates) {
  Section section{"gates", {}, {"gate", "result", "why"}};
  for (const Gate& gate : gates) {
    constexpr const char* kStates[] = {"held", "FAILED", "not judged"};
    const GateResult result = judge(gate, all);
    section.rows.push_back({gate.text, kStates[static_cast<int>(result.state)], result.why});
  }
  return section;
}

Section group_section(const NamedGroup& named, const ChangeGroup& group) {
  Section section{
      std::string(named.name) + " (" + named.meaning + "): " + std::to_string(group.cases.size()),
      {},
      {"case", "before", "now", "change", "name"}};
  if (const Explanation& one = group.explained_by; !one.expression.empty())
    section.lines.push_back("distinguished by " + one.expression + ": true for " +
                            std::to_string(one.inside) + " of them and " +
                            std::to_string(one.outside) + " of " + std::to_string(one.others) +
                            " others");
  if (const std::string rest = more(group.cases.size()); !rest.empty())
    section.lines.push_back(rest);
  for (std::size_t i = 0; i < std::min(group.cases.size(), kShownCases); ++i) {
    const CaseChange& one = group.cases[i];
    section.rows.push_back({one.case_id, one.left, one.right,
                            one.figure.empty() ? "" : one.figure + " x " + four_digits(one.ratio),
                            one.name});
  }
  return section;
}

Section drift_section(const Comparison& all) {
  Section section{"numbers", {}, {"case", "class", "what", "name"}};
  if (!all.no_drift.empty()) {
    section.lines.push_back("not compared: " + all.no_drift);
    return section;
  }
  std::string counts;
  for (const auto& [drift, count] : all.drift_counts)
    counts += (counts.empty() ? "" : ", ") + std::to_string(count) + " " + std::string(name(drift));
  section.lines.push_back(counts);
  if (const std::string rest = more(all.drift.size()); !rest.empty()) section.lines.push_back(rest);
  for (std::size_t i = 0; i < std::min(all.drift.size(), kShownCases); ++i) {
    const CaseDrift& one = all.drift[i];
    section.rows.push_back(
        {one.case_id, std::string(name(one.drift.drift_class)), one.drift.what, one.name});
  }
  return section;
}

Section figure_section(const Comparison& all) {
  Section section{"times and memory",
                  {},
                  {"figure", "cases", "now / before", "95 % interval", "largest", "of case"}};
  if (!all.no_figures.empty()) {
    section.lines.push_back("not compared: " + all.no_figures);
    return section;
  }
  if (all.figures.empty()) section.lines.push_back("no case has figures in both runs");
  for (const FigureChange& one : all.figures)
    section.rows.push_back(
        {one.figure, std::to_string(one.pairs), record::fixed(one.ratio, 3),
         one.interval
             ? record::fixed(one.interval->low, 3) + " to " + record::fixed(one.interval->high, 3)
             : "fewer than " + std::to_string(kFewestPairs) + " cases",
         record::fixed(one.largest, 2), one.largest >= 1.005 ? one.largest_case : ""});
  return section;
}

Section coverage_section(const Comparison& all) {
  Section section{"coverage",
                  {},
                  {"run", "cases planned", "with a verdict", "checks that found nothing to see"}};
  const auto row = [&](const std::string& run, const Covered& one) {
    section.rows.push_back({run, std::to_string(one.planned), std::to_string(one.shown),
                            std::to_string(one.checks_unexercised)});
  };
  row(all.left, all.covered_left);
  row(all.right, all.covered_right);
  const auto only = [&](const char* which, const std::vector<std::string>& names) {
    if (!names.empty())
      section.lines.push_back("only in the " + std::string(which) + " run: " +
                              std::to_string(names.size()) + " cases, first " + names.front());
  };
  only("first", all.only_left);
  only("second", all.only_right);
  return section;
}

std::vector<Section> sections(const Comparison& all, const std::vector<Gate>& gates) {
  std::vector<Section> list = {stack_section(all)};
  if (!gates.empty()) list.push_back(gate_section(all, gates));
  bool same = true;
  for (const NamedGroup& named : change_groups()) {
    const ChangeGroup& group = all.*named.group;
    if (group.cases.empty()) continue;
    list.push_back(group_section(named, group));
    same = false;
  }
  if (same) list.push_back({"cases", {"no case changed"}});
  list.push_back(drift_section(all));
  list.push_back(figure_section(all));
  list.push_back(coverage_section(all));
  return list;
}

std::string headline(const Comparison& all) {
  return all.left + " -> " + all.right + ": " + std::to_string(all.compared) + " cases compared";
}

std::string as_text(const Comparison& all, const std::vector<Section>& list) {
  std::string out = record::printable(headline(all)) + "\n";
  for (const Section& section : list) {
    out += record::printable(section.title) + "\n";
    for (const std::string& line : section.lines) out += "  " + record::printable(line) + "\n";
    if (section.rows.empty()) continue;
    std::vector<std::vector<Cell>> cells;
    const auto add = [&cells](const std::vector<std::string>& row, std::optional<Colour> colour) {
      std::vector<Cell> line;
      for (const std::string& one : row) line.push_back({record::printable(one), colour});
      cells.push_back(std::move(line));
    };
    add(section.header, std::nullopt);
    for (const auto& row : section.rows) add(row, std::nullopt);
    // A file and a pipe have no width: nothing is cut.
    out += table(cells, {.colour = false, .columns = 1000}, "  ");
  }
  return out;
}

std::string as_markdown(const Comparison& all, const std::vector<Section>& list) {
  std::string out = "# " + markdown_text(headline(all)) + "\n";
  for (const Section& section : list) {
    out += "\n## " + markdown_text(section.title) + "\n\n";
    for (const std::string& line : section.lines) out += "- " + markdown_text(line) + "\n";
    if (section.rows.empty()) continue;
    if (!section.lines.empty()) out += "\n";
    out += markdown_header([&] {
      std::vector<std::string> names;
      for (const std::string& one : section.header) names.push_back(markdown_text(one));
      return names;
    }());
    for (const auto& row : section.rows) {
      std::vector<std::string> cells;
      for (const std::string& one : row) cells.push_back(markdown_text(one));
      out += markdown_row(cells);
    }
  }
  return out;
}

std::string as_html(const Comparison& all, const std::vector<Section>& list) {
  std::string body;
  for (const Section& section : list) {
    body += "<h2>" + html_text(section.title) + "</h2>\n";
    for (const std::string& line : section.lines) body += "<p>" + html_text(line) + "</p>\n";
    if (section.rows.empty()) continue;
    Rows rows = section.rows;
    for (auto& row : rows)
      for (std::string& cell : row) cell = html_text(cell);
    body += html_table(section.header, rows);
  }
  return static_page(headline(all), body);
}

}  // namespace

std::string compare_report(const Comparison& comparison, const std::vector<Gate>& gates,
                           CompareFormat format) {
  const std::vector<Section> list = sections(comparison, gates);
  switch (format) {
    case CompareFormat::markdown:
      return as_markdown(comparison, list);
    case CompareFormat::html:
      return as_html(comparison, list);
    case CompareFormat::text:
      break;
  }
  return as_text(comparison, list);
}

}  // namespace graphproof::reports
