#include "reports/print/hazard_text.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "reports/analysis/hazards.h"
#include "reports/print/markdown.h"
#include "reports/record/text/printable.h"

namespace graphproof::reports {
namespace {

using record::HazardCell;
using record::Hazards;

std::string settings_text(const HazardCell& cell) {
  return std::string(cell.captured ? "captured " : "eager ") + cell.collective + ", allocator " +
         cell.allocator + ", placement " + cell.placement + ", NCCL_GRAPH_REGISTER " +
         cell.nccl_graph_register;
}

std::string hang_text(const HazardCell& cell) {
  if (!cell.hang) return "";
  std::string ranks;
  for (const int rank : cell.hang->ranks)
    ranks += (ranks.empty() ? "" : ", ") + std::to_string(rank);
  std::string text =
      "ranks " + ranks + " hung in phase " + std::string(record::name(cell.hang->phase));
  if (const auto& last = cell.hang->last_collective)
    text += ", last collective " + std::to_string(last->sequence) + " " + last->op + " in " +
            last->group;
  return text;
}

std::string cure_text(const HazardCell& cell) {
  if (!cell.cure) return "";
  const bool holds = cell.cure->verdict.in("pass");
  return "cure: " + cell.cure->setting +
         (holds ? ", with which it passes"
                : ", with which it ended " + std::string(cell.cure->verdict.text())) +
         " (" + cell.cure->case_id + ")";
}

/// How well one rule predicted the cells that gave a result.
struct Score {
  record::HazardPrediction rule;
  int agrees = 0, judged = 0;
  int needless = 0;  // cells that the rule refuses although they work
  int misses = 0;    // cells that the rule allows although they fail
};

std::vector<Score> scores(const Hazards& hazards) {
  std::vector<Score> all;
  for (const HazardCell& cell : hazards.cells)
    for (const record::HazardPrediction& one : cell.predictions) {
      auto found = std::find_if(all.begin(), all.end(), [&](const Score& score) {
        return score.rule.dialect == one.dialect && score.rule.rule == one.rule &&
               score.rule.covers == one.covers;
      });
      if (found == all.end()) found = all.insert(all.end(), {.rule = one});
      if (!one.agrees) continue;
      ++found->judged;
      found->agrees += *one.agrees;
      found->needless += !*one.agrees && one.refuses;
      found->misses += !*one.agrees && !one.refuses;
    }
  return all;
}

std::string score_text(const Score& score) {
  if (score.judged == 0) return "no cell gave a result";
  std::string text = "agrees with " + std::to_string(score.agrees) + " of " +
                     std::to_string(score.judged) + " cells";
  if (score.needless > 0) text += ", refuses " + std::to_string(score.needless) + " that work";
  if (score.misses > 0) text += ", allows " + std::to_string(score.misses) + " that fail";
  return text;
}

struct Totals {
  int shown = 0, bit = 0, surprising = 0;
};
Totals totals(const Hazards& hazards) {
  Totals all;
  for (const HazardCell& cell : hazards.cells) {
    const auto bit = bites(cell);
    all.shown += bit.has_value();
    all.bit += bit.value_or(false);
    all.surprising += bit && !(cell.verdict.in("pass") || cell.verdict.in("xfail"));
  }
  return all;
}

std::string head_text(const Hazards& hazards) {
  const Totals all = totals(hazards);
  return std::to_string(hazards.cells.size()) + " cells on " + hazards.device + ", NCCL " +
         hazards.nccl_version + ": " + std::to_string(all.shown) + " gave a result, " +
         std::to_string(all.bit) + " failed, " + std::to_string(all.surprising) +
         " not as expected";
}

bool worth_a_line(const HazardCell& cell) {
  const auto bit = bites(cell);
  return bit && (*bit || !(cell.verdict.in("pass") || cell.verdict.in("xfail")));
}

}  // namespace

std::string hazard_text(const Hazards& hazards, const TerminalStyle& style) {
  if (hazards.cells.empty()) return "";
  const auto paint = [&](const std::string& text, const char* code) {
    return style.colour ? std::string("\033[") + code + "m" + text + "\033[0m" : text;
  };
  std::string text = "hazards: " + record::printable(head_text(hazards)) + "\n";
  for (const HazardCell& cell : hazards.cells) {
    if (!worth_a_line(cell)) continue;
    const bool met = cell.verdict.in("xfail");
    text += "  " + paint(std::string(cell.verdict.text()), met ? "2" : "31") + "  " + cell.case_id +
            "  " + record::printable(settings_text(cell)) + "\n";
    text += "      " + std::string(cell.observed.text()) + ", expected " +
            record::printable(cell.expected) + " (" + record::printable(cell.hazard) + ", " +
            cell.basis + ")\n";
    for (const std::string& line :
         {hang_text(cell),
          cell.registration.empty() ? std::string() : "NCCL registered: " + cell.registration,
          cure_text(cell)})
      if (!line.empty()) text += "      " + record::printable(line) + "\n";
  }
  text += "upstream's rules\n";
  for (const Score& score : scores(hazards))
    text += "  " +
            record::printable(score.rule.dialect + " " + score.rule.rule + ", " +
                              score.rule.covers + ": " + score_text(score)) +
            "\n";
  return text;
}

std::string hazard_markdown(const Hazards& hazards) {
  if (hazards.cells.empty()) return "";
  const auto row = [](const std::vector<std::string>& cells) {
    std::string line = "|";
    for (const std::string& one : cells) line += " " + one + " |";
    return line + "\n";
  };
  std::string text = "## Hazards\n\n" + markdown_text(head_text(hazards)) + ".\n\n";
  for (const HazardCell& cell : hazards.cells) {
    if (!worth_a_line(cell)) continue;
    text += "- **" + markdown_text(std::string(cell.observed.text())) + "** " +
            markdown_text(settings_text(cell)) + " (case " + cell.case_id + ", expected " +
            markdown_text(cell.expected) + ")\n";
    for (const std::string& line :
         {hang_text(cell),
          cell.registration.empty() ? std::string() : "NCCL registered: " + cell.registration,
          cure_text(cell)})
      if (!line.empty()) text += "  - " + markdown_text(line) + "\n";
  }
  text += "\n" + row({"dialect", "rule", "covers", "result"}) + row({"---", "---", "---", "---"});
  for (const Score& score : scores(hazards))
    text += row({markdown_text(score.rule.dialect), markdown_text(score.rule.rule),
                 markdown_text(score.rule.covers), markdown_text(score_text(score))});

  std::vector<std::string> heads = {"collective", "graph",    "allocator", "register",
                                    "placement",  "expected", "observed",  "verdict"};
  for (const record::HazardPrediction& one : hazards.cells.front().predictions)
    heads.push_back(markdown_text(one.dialect + " " + one.rule));
  text += "\nRules: `refuses` or `allows`, and whether that agrees with the result.\n\n" +
          row(heads) + row(std::vector<std::string>(heads.size(), "---"));
  for (const HazardCell& cell : hazards.cells) {
    std::vector<std::string> cells = {markdown_text(cell.collective),
                                      cell.captured ? "captured" : "eager",
                                      cell.allocator,
                                      cell.nccl_graph_register,
                                      markdown_text(cell.placement),
                                      markdown_text(cell.expected),
                                      markdown_text(std::string(cell.observed.text())),
                                      markdown_text(std::string(cell.verdict.text()))};
    for (const record::HazardPrediction& one : cell.predictions)
      cells.push_back(std::string(one.refuses ? "refuses" : "allows") + (!one.agrees ? ""
                                                                         : *one.agrees
                                                                             ? ", agrees"
                                                                             : ", **disagrees**"));
    text += row(cells);
  }
  return text + "\n";
}

}  // namespace graphproof::reports
