// The sheet of a qualification as text, Markdown and HTML. All three have the same parts in the
// same order, which parts_of() collects once.
#include <fmt/format.h>

#include <algorithm>

#include "reports/print/markdown_parts.h"
#include "reports/print/static_page.h"
#include "reports/print/text_table.h"
#include "reports/print/watched_page.h"
#include "reports/qualification/qualification.h"
#include "reports/record/text/printable.h"

namespace graphproof::reports {
namespace {

// The JSON has all of them; a sheet must fit one page.
constexpr std::size_t kMostFailures = 8, kMostNotShown = 15;

struct Part {
  std::string title;
  std::vector<std::string> header;  // empty: a table without a header
  std::vector<std::vector<std::string>> rows;
  bool details = false;  // of interest to few: folded in the page, and not printed
};

std::string result_of(const Stage& stage) {
  if (!stage.summary) return "no result";
  if (!stage.shown()) return "not shown";
  if (stage.exit_code == record::ExitCode::ok) return "acceptable";
  return std::string(record::meaning(stage.exit_code));
}

std::string named(const std::string& name, const std::string& image) {
  return image.empty() ? name : name + " (" + image + ")";
}

Part stages_of(const Qualification& qualification) {
  Part part{"Stages", {"stage", "what it asks", "result", "cases", "seconds", "exit"}, {}};
  for (const Stage& stage : qualification.stages) {
    std::string cases, seconds;
    if (stage.summary) {
      for (const auto& [verdict, count] : stage.summary->counts)
        cases += fmt::format("{}{} {}", cases.empty() ? "" : ", ", count, verdict);
      seconds = record::fixed(stage.summary->wall_seconds, 0);
    }
    part.rows.push_back({named(stage.name, stage.image), stage.meaning, result_of(stage), cases,
                         seconds, std::to_string(record::value(stage.exit_code))});
  }
  return part;
}

Part failures_of(const nlohmann::ordered_json& value) {
  Part part{"Failures", {"stage", "case", "verdict", "look at it with"}, {}};
  std::size_t all = 0;
  for (const auto& stage : value.at("stages"))
    for (const auto& one : stage.at("failed"))
      if (++all <= kMostFailures)
        part.rows.push_back(
            {named(stage.at("name"), stage.at("image")), one.at("name"), one.at("verdict"),
             fmt::format("graphproof explain {}/{}", stage.at("run_id").get<std::string>(),
                         one.at("id").get<std::string>())});
  if (all > kMostFailures)
    part.rows.push_back({"", fmt::format("and {} more", all - kMostFailures), "", ""});
  return part;
}

Part comparisons_of(const Qualification& qualification) {
  Part part{"B against A", {"stage", "compared", "broke", "healed", "lost", "changed", "exit"}, {}};
  for (const StageComparison& one : qualification.comparisons) {
    if (!one.fault.empty()) continue;
    const auto count = [&](const char* key) {
      return std::to_string(one.comparison.at(key).at("cases").size());
    };
    part.rows.push_back({one.stage, one.comparison.at("compared").dump(), count("broke"),
                         count("healed"), count("lost"), count("changed"),
                         one.comparison.at("exit_code").dump()});
  }
  return part;
}

Part not_shown_part(const Qualification& qualification) {
  Part part{"Not shown", {"what", "why"}, {}};
  const std::vector<NotShown> list = not_shown(qualification);
  for (std::size_t i = 0; i < std::min(list.size(), kMostNotShown); ++i)
    part.rows.push_back({list[i].what, list[i].why});
  if (list.size() > kMostNotShown)
    part.rows.push_back(
        {fmt::format("and {} more", list.size() - kMostNotShown), "qualification.json lists all"});
  return part;
}

Part stack_of(const nlohmann::ordered_json& value) {
  Part part{"Stack", {"of", "part", "is"}, {}};
  for (const auto& one : value.at("stacks")) {
    const std::string image = one.at("image");
    const std::string source = one.at("source");
    const auto row = [&](const std::string& name, const std::string& text) {
      if (!text.empty()) part.rows.push_back({image, name, text});
    };
    row("image", source);
    row("host", one.at("host"));
    for (const auto& [name, version] : one.at("versions").items()) row(name, version);
    row("libraries", one.at("libraries").empty()
                         ? "not known"
                         : fmt::format("{} files; qualification.json has their digests",
                                       one.at("libraries").size()));
    const std::string incomplete = one.at("libraries_incomplete");
    if (!incomplete.empty()) row("libraries opened during a step", "not known: " + incomplete);
    for (const auto& trouble : one.at("troubles")) row("doctor", trouble);
  }
  return part;
}

Part libraries_of(const Qualification& qualification) {
  Part part{"Libraries that the ranks load", {"of", "file", "SHA-256"}, {}, true};
  for (const QualifiedStack& stack : qualification.stacks)
    for (const Library& library : stack.libraries)
      part.rows.push_back({stack.image, library.path, library.sha256});
  return part;
}

std::vector<Part> parts_of(const Qualification& qualification) {
  const nlohmann::ordered_json value = to_json(qualification);
  std::vector<Part> parts = {
      stages_of(qualification),      failures_of(value), comparisons_of(qualification),
      not_shown_part(qualification), stack_of(value),    libraries_of(qualification)};
  std::erase_if(parts, [](const Part& part) { return part.rows.empty(); });
  for (Part& part : parts)
    for (auto& row : part.rows)
      for (std::string& cell : row) cell = record::printable(cell);
  return parts;
}

std::vector<std::string> closing(const Qualification& qualification) {
  std::string command;
  for (const std::string& word : qualification.command)
    command += (command.empty() ? "" : " ") + word;
  return {fmt::format("Exit code {}: {}.", record::value(exit_code(qualification)),
                      record::meaning(exit_code(qualification))),
          fmt::format("Started {}, took {} s. Command: {}", qualification.started,
                      record::fixed(qualification.seconds, 0), record::printable(command)),
          fmt::format("Evidence: {} files, listed in SHA256SUMS, whose SHA-256 is {}. Verify it "
                      "with: sha256sum -c --quiet SHA256SUMS",
                      qualification.signed_files, qualification.signature)};
}

std::string title_of(const Qualification& qualification) {
  return "Qualification " + record::printable(qualification.id);
}

}  // namespace

std::string qualification_text(const Qualification& qualification) {
  std::string text = title_of(qualification) + "\n" + verdict(qualification) + "\n";
  for (const Part& part : parts_of(qualification)) {
    if (part.details) continue;
    std::vector<std::vector<Cell>> rows(1);
    for (const std::string& name : part.header) rows[0].push_back({name, Colour::dim});
    for (const auto& row : part.rows) {
      rows.emplace_back();
      for (const std::string& cell : row) rows.back().push_back({cell, {}});
    }
    // Reasons are sentences: a line that is cut would hide why something was not shown.
    text += "\n" + part.title + "\n" + table(rows, {.columns = 100'000}, "  ");
  }
  text += "\n";
  for (const std::string& line : closing(qualification)) text += line + "\n";
  return text;
}

std::string qualification_markdown(const Qualification& qualification) {
  std::string text = "# " + markdown_text(title_of(qualification)) + "\n\n**" +
                     markdown_text(verdict(qualification)) + "**\n";
  for (const Part& part : parts_of(qualification)) {
    text += "\n## " + part.title + "\n\n" + markdown_header(part.header);
    for (const auto& row : part.rows) {
      std::vector<std::string> cells;
      for (const std::string& cell : row) cells.push_back(markdown_text(cell));
      text += markdown_row(cells);
    }
  }
  text += "\n";
  for (const std::string& line : closing(qualification)) text += markdown_text(line) + "\n\n";
  return text;
}

std::string qualification_page(const Qualification& qualification) {
  std::string body =
      "<style>\ntd { white-space: normal; overflow-wrap: anywhere; vertical-align: top; }\n"
      "h2 { font-size: 1.05rem; margin: .9rem 0 .2rem; }\n"
      "@media print { :root { font-size: 9px; line-height: 1.25; } "
      "body { margin: 0; max-width: none; padding: 0; } h1 { margin: 0; } "
      "th, td { padding: .1rem .7rem .1rem 0; } details { display: none; } "
      "div { overflow: visible; } }\n"
      "@page { size: A4; margin: 12mm; }\n</style>\n<p><strong>" +
      html_text(verdict(qualification)) + "</strong></p>\n";
  for (const Part& part : parts_of(qualification)) {
    std::vector<std::vector<std::string>> rows;
    for (const auto& row : part.rows) {
      rows.emplace_back();
      for (const std::string& cell : row) rows.back().push_back(html_text(cell));
    }
    body += part.details ? "<details>\n<summary>" + part.title + "</summary>\n"
                         : "<h2>" + part.title + "</h2>\n";
    body += html_table(part.header, rows) + (part.details ? "</details>\n" : "");
  }
  for (const std::string& line : closing(qualification)) body += "<p>" + html_text(line) + "</p>\n";
  return static_page(title_of(qualification), body);
}

}  // namespace graphproof::reports
