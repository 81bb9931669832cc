#include "reports/print/watched_report.h"

#include <algorithm>

#include "reports/print/markdown_parts.h"
#include "reports/print/terminal.h"
#include "reports/record/text/printable.h"

namespace graphproof::reports {
namespace {

using record::CheckResult;
using record::GraphRow;
using record::printable;
using record::Result;

// Output beyond this would scroll away. The files of the run have all of it.
constexpr std::size_t kPrintedGraphs = 20, kPrintedNotes = 20, kReportedGraphs = 500;
// Of a stack: the innermost calls tell what the program waits for.
constexpr std::size_t kPrintedFrames = 6;
constexpr double kMebibyte = 1 << 20;

std::string or_dash(const std::optional<std::int64_t>& number) {
  return number ? std::to_string(*number) : "-";
}
std::string mebibytes(const std::optional<std::int64_t>& bytes) {
  return bytes ? record::fixed(static_cast<double>(*bytes) / kMebibyte, 1) : "-";
}
std::string percent(const std::optional<double>& share) {
  return share ? record::fixed(100 * *share, 1) + " %" : "-";
}
std::string range(const std::optional<std::int64_t>& least,
                  const std::optional<std::int64_t>& most) {
  if (!least || !most) return "-";
  return *least == *most ? std::to_string(*least)
                         : std::to_string(*least) + " to " + std::to_string(*most);
}

std::string joined(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += (all.empty() ? "" : ", ") + text;
  return all;
}

std::string nodes_text(const std::map<std::string, std::int64_t>& nodes) {
  std::vector<std::string> kinds;
  for (const auto& [kind, count] : nodes) kinds.push_back(std::to_string(count) + " " + kind);
  return kinds.empty() ? "-" : joined(kinds);
}

std::string kernels_text(const GraphRow& graph) {
  std::vector<std::string> kernels;
  for (const record::KernelCount& one : graph.kernels)
    kernels.push_back(std::to_string(one.count) + " x " + one.kernel);
  return joined(kernels);
}

/// Graphs in the terminal whose neighbours are listed; report.md has those of all.
constexpr std::size_t kPrintedBetween = 3;

/// What runs before a replay: a line for each graph of which something was seen.
std::vector<std::string> between_lines(const std::vector<const GraphRow*>& graphs) {
  std::vector<std::string> lines;
  for (const GraphRow* graph : graphs)
    if (const std::string text = between_text(*graph); !text.empty())
      lines.push_back("before a replay of graph " + std::to_string(graph->executable) + " of " +
                      graph->process + ": " + text);
  return lines;
}

Colour colour_of(Result result) {
  switch (result) {
    case Result::pass:
      return Colour::green;
    case Result::fail:
      return Colour::red;
    case Result::unexercised:
      return Colour::yellow;
    case Result::not_applicable:
      return Colour::dim;
  }
  return Colour::dim;
}

Colour colour_of(WatchedVerdict verdict) {
  const record::ExitCode code = exit_code(verdict);
  if (code == record::ExitCode::ok) return Colour::green;
  return code == record::ExitCode::product ? Colour::red : Colour::yellow;
}

/// The checks in the order of what a reader acts on: failures, then what was not exercised.
std::vector<const CheckResult*> ordered(const std::vector<CheckResult>& checks) {
  constexpr Result kOrder[] = {Result::fail, Result::unexercised, Result::pass,
                               Result::not_applicable};
  std::vector<const CheckResult*> list;
  for (const Result result : kOrder)
    for (const CheckResult& one : checks)
      if (one.result == result) list.push_back(&one);
  return list;
}

/// The graphs that were replayed most come first.
std::vector<const GraphRow*> ordered(const std::vector<GraphRow>& graphs) {
  std::vector<const GraphRow*> list;
  for (const GraphRow& one : graphs) list.push_back(&one);
  std::ranges::stable_sort(list, [](const GraphRow* left, const GraphRow* right) {
    return left->replays > right->replays;
  });
  return list;
}

/// What a check found, on one line: "WHAT; GOT".
std::string finding(const CheckResult& one) {
  return one.message.what + (one.message.got.empty() ? "" : "; " + one.message.got);
}

std::string rank_text(const CheckResult& one) { return one.rank ? std::to_string(*one.rank) : "-"; }

std::string failing_text(const record::Failing& one) {
  const std::string who =
      printable(one.check) + (one.rank ? " on rank " + std::to_string(*one.rank) : "");
  std::string text = "  " + who + (who.empty() ? "" : ": ") + printable(one.message.what) + "\n";
  const auto part = [&text](const char* label, const std::string& value) {
    if (!value.empty()) text += std::string("    ") + label + printable(value) + "\n";
  };
  part("got   ", one.message.got);
  part("want  ", one.message.want);
  part("why   ", one.message.why);
  part("next  ", one.message.next);
  return text;
}

std::string waiting_text(const record::WaitingThread& one) {
  return one.process + ": thread " + std::to_string(one.thread) +
         (one.name.empty() ? "" : " (" + one.name + ")") + " has been inside " + one.call +
         " for " + record::fixed(one.seconds, 0) + " s";
}

/// Where the program is, in Python, when it hangs: a line for each process.
std::vector<std::string> python_lines(const record::WatchedRun& run) {
  std::vector<std::string> lines;
  if (!run.stacks) return lines;
  for (const auto& [process, stack] : *run.stacks) {
    std::string line = process + ": Python is at ";
    for (std::size_t i = 0; i < std::min(stack.size(), kPrintedFrames); ++i)
      line += (i == 0 ? "" : ", called from ") + stack[i];
    lines.push_back(line + (stack.size() > kPrintedFrames ? ", ..." : ""));
  }
  return lines;
}

/// What NCCL said of a hang, below a line that says who speaks.
std::vector<std::string> ras_lines(const record::WatchedRun& run) {
  std::vector<std::string> lines;
  if (!run.ras) return lines;
  lines.push_back("what NCCL says of its communicators (hang/nccl-ras.txt has all of it):");
  for (const std::string& line : *run.ras) lines.push_back("  " + line);
  return lines;
}

std::string checks_table(const WatchedReport& report, const TerminalStyle& style) {
  std::vector<std::vector<Cell>> rows = {{{"result", Colour::dim},
                                          {"check", Colour::dim},
                                          {"rank", Colour::dim},
                                          {"what was seen", Colour::dim}}};
  for (const CheckResult* one : ordered(report.checks.checks))
    rows.push_back({{std::string(name(one->result)), colour_of(one->result)},
                    {printable(one->check), {}},
                    {rank_text(*one), {}},
                    {printable(finding(*one)), {}}});
  return rows.size() > 1 ? table(rows, style, "") + "\n" : "";
}

std::string graphs_table(const WatchedReport& report, const TerminalStyle& style) {
  const std::vector<const GraphRow*> graphs = ordered(report.checks.graphs);
  if (graphs.empty()) return "";
  std::vector<std::vector<Cell>> rows(1 + std::min(graphs.size(), kPrintedGraphs));
  for (std::size_t column = 0; column < graph_columns().size(); ++column) {
    std::vector<std::string> cells;
    for (std::size_t i = 0; i + 1 < rows.size(); ++i)
      cells.push_back(graph_cells(*graphs[i])[column]);
    // A column of facts that no graph has only takes room.
    if (std::ranges::all_of(cells, [](const std::string& cell) { return cell == "-"; })) continue;
    rows[0].push_back({graph_columns()[column], Colour::dim});
    for (std::size_t i = 0; i < cells.size(); ++i) rows[i + 1].push_back({printable(cells[i]), {}});
  }
  std::string text = table(rows, style, "");
  if (graphs.size() > kPrintedGraphs)
    text += "... and " + std::to_string(graphs.size() - kPrintedGraphs) +
            " more graphs, in report.md\n";
  text += "\n";
  const std::vector<std::string> between = between_lines(graphs);
  for (std::size_t i = 0; i < std::min(between.size(), kPrintedBetween); ++i)
    text += printable(between[i]) + "\n";
  if (between.size() > kPrintedBetween)
    text += "... and of " + std::to_string(between.size() - kPrintedBetween) +
            " more graphs, in report.md\n";
  return text + (between.empty() ? "" : "\n");
}

std::string command_line(const record::WatchedRun& run) {
  return run.command.empty() ? "not known" : command_text(run.command);
}

}  // namespace

std::string command_text(const std::vector<std::string>& command) {
  std::string text;
  for (const std::string& word : command) {
    const bool plain = !word.empty() && word.find_first_not_of(
                                            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVW"
                                            "XYZ0123456789_-./=:,+@%") == std::string::npos;
    std::string quoted = word;
    for (std::size_t at = 0; (at = quoted.find('\'', at)) != std::string::npos; at += 4)
      quoted.replace(at, 1, "'\\''");
    text += (text.empty() ? "" : " ") + (plain ? word : "'" + quoted + "'");
  }
  return text;
}

const std::vector<std::string>& graph_columns() {
  static const std::vector<std::string> kColumns = {
      "captured at", "process", "rank",    "graph",     "replays",  "per step",
      "of kernels",  "of time", "between", "pool, MiB", "own, MiB", "nodes"};
  return kColumns;
}

std::vector<std::string> graph_cells(const GraphRow& graph) {
  return {graph.captured_at.empty() ? "-" : graph.captured_at,
          graph.process,
          or_dash(graph.rank),
          std::to_string(graph.executable),
          std::to_string(graph.replays),
          range(graph.replays_per_step_least, graph.replays_per_step_most),
          percent(graph.launch_share),
          percent(graph.device_time_share),
          graph.kernels_between ? record::fixed(*graph.kernels_between, 1) : "-",
          mebibytes(graph.pool_bytes),
          mebibytes(graph.instantiation_bytes),
          nodes_text(graph.nodes)};
}

std::string between_text(const GraphRow& graph) {
  std::vector<std::string> parts;
  if (graph.between)
    for (const record::BetweenReplays& one : *graph.between)
      parts.push_back(record::fixed(one.per_replay, 1) + " x " + one.name);
  return joined(parts);
}

std::vector<std::string> unseen_notes(const WatchedReport& report) {
  std::vector<std::string> notes = report.run.notes;
  for (const record::UnwatchedProcess& one : report.run.unwatched)
    notes.push_back("process " + std::to_string(one.pid) + " (" + one.command +
                    ") was not watched: " + one.why);
  if (report.run.elsewhere)
    for (const record::StartedElsewhere& one : *report.run.elsewhere)
      notes.push_back("process " + std::to_string(one.pid) + " (" + one.command +
                      ") started programs from which no evidence came");
  if (report.run.without_cuda)
    notes.push_back("what these start was not looked for, since --without-cuda names them: " +
                    joined(*report.run.without_cuda));
  if (report.run.signalled)
    for (const record::SignalledProcess& one : *report.run.signalled)
      notes.push_back("what came after it: " + signalled_text(one));
  notes.insert(notes.end(), report.checks.notes.begin(), report.checks.notes.end());
  return notes;
}

record::Json watched_json(const WatchedReport& report) {
  record::Json value = {{"schema", "graphproof-watched-report/1"},
                        {"verdict", name(report.outcome.verdict)},
                        {"reason", report.outcome.reason},
                        {"exit_code", record::value(exit_code(report.outcome.verdict))},
                        {"processes", report.processes},
                        {"folder", report.folder.string()},
                        {"run", record::to_json(report.run)},
                        {"checks", record::to_json(report.checks)}};
  if (const auto& gap = report.outcome.gap)
    value["without_evidence"] = {{"what", gap->what},
                                 {"got", gap->got},
                                 {"want", gap->want},
                                 {"why", gap->why},
                                 {"next", gap->next}};
  return value;
}

std::string watched_text(const WatchedReport& report, const TerminalStyle& style) {
  const record::WatchedRun& run = report.run;
  std::string text;
  for (const record::Failing& one : report.outcome.failing) text += failing_text(one);
  if (report.outcome.gap)
    text += failing_text({.check = "", .rank = {}, .message = *report.outcome.gap});
  for (const record::WaitingThread& one : run.waiting)
    text += "  " + printable(waiting_text(one)) + "\n";
  for (const std::string& line : python_lines(run)) text += "  " + printable(line) + "\n";
  for (const std::string& line : ras_lines(run)) text += "  " + printable(line) + "\n";
  if (!text.empty()) text += "\n";
  text += checks_table(report, style) + graphs_table(report, style);
  const std::vector<std::string> notes = unseen_notes(report);
  for (std::size_t i = 0; i < std::min(notes.size(), kPrintedNotes); ++i)
    text += "note: " + printable(notes[i]) + "\n";
  if (notes.size() > kPrintedNotes)
    text += "... and " + std::to_string(notes.size() - kPrintedNotes) + " more, in report.md\n";
  text +=
      paint(std::string(name(report.outcome.verdict)), colour_of(report.outcome.verdict), style) +
      ": " + printable(report.outcome.reason) + "\n";
  text += "command: " + printable(ending_text(run)) + " after " + clock_text(run.seconds) + "; " +
          std::to_string(report.processes) +
          (report.processes == 1 ? " process was watched\n" : " processes were watched\n");
  text += "exit " + std::to_string(record::value(exit_code(report.outcome.verdict))) +
          " (watched run " + printable(run.id) + "; " +
          printable((report.folder / "report.md").string()) + ")\n";
  return text;
}

std::string watched_markdown(const WatchedReport& report) {
  const record::WatchedRun& run = report.run;
  std::string text = "# graphproof watch: " + std::string(name(report.outcome.verdict)) + "\n\n";
  text += markdown_text(report.outcome.reason) + ".\n\n";
  text += markdown_header({"", ""});
  const std::pair<const char*, std::string> facts[] = {
      {"command", markdown_code(command_line(run))},
      {"its end", markdown_text(ending_text(run))},
      {"time", clock_text(run.seconds)},
      {"started", markdown_text(run.started) + " on " + markdown_text(run.host)},
      {"folder", markdown_code(run.folder)},
      {"profile", run.profile + (run.cupti ? "" : ", without CUPTI")},
      {"processes watched", std::to_string(report.processes)},
      {"exit code of watch", std::to_string(record::value(exit_code(report.outcome.verdict)))},
      {"run", markdown_code(run.id)}};
  for (const auto& [label, value] : facts) text += markdown_row({label, value});
  if (!report.outcome.failing.empty()) text += "\n## Failing checks\n\n";
  for (const record::Failing& one : report.outcome.failing) text += markdown_failing(one);
  if (report.outcome.gap)
    text += "\n## Without evidence\n\n" +
            markdown_failing({.check = "", .rank = {}, .message = *report.outcome.gap});
  if (!run.waiting.empty() || run.stacks) text += "\n## Where it hung\n\n";
  for (const record::WaitingThread& one : run.waiting)
    text += "- " + markdown_text(waiting_text(one)) + "\n";
  for (const std::string& line : python_lines(run)) text += "- " + markdown_text(line) + "\n";
  if (run.ras) text += "\n## What NCCL says of its communicators\n\n";
  for (const std::string& line : run.ras.value_or(std::vector<std::string>{}))
    text += "- " + markdown_text(line) + "\n";
  if (!report.checks.checks.empty())
    text += "\n## Checks\n\n" + markdown_header({"result", "check", "rank", "what was seen"});
  for (const CheckResult* one : ordered(report.checks.checks))
    text += markdown_row({std::string(name(one->result)), markdown_code(one->check),
                          rank_text(*one), markdown_text(finding(*one))});
  const std::vector<const GraphRow*> graphs = ordered(report.checks.graphs);
  if (!graphs.empty()) {
    std::vector<std::string> columns = graph_columns();
    columns.push_back("kernels");
    text += "\n## Graphs\n\n" + markdown_header(columns);
  }
  for (std::size_t i = 0; i < std::min(graphs.size(), kReportedGraphs); ++i) {
    std::vector<std::string> cells = graph_cells(*graphs[i]);
    cells.push_back(kernels_text(*graphs[i]));
    for (std::string& cell : cells) cell = markdown_text(cell);
    text += markdown_row(cells);
  }
  if (graphs.size() > kReportedGraphs)
    text += "\nAnd " + std::to_string(graphs.size() - kReportedGraphs) +
            " more; checks.json lists all.\n";
  const std::vector<std::string> between = between_lines(graphs);
  if (!between.empty()) text += "\n## Between replays\n\n";
  for (std::size_t i = 0; i < std::min(between.size(), kReportedGraphs); ++i)
    text += "- " + markdown_text(between[i]) + "\n";
  if (!report.checks.figures.empty())
    text += "\n## Figures\n\n" + markdown_header({"figure", "value"});
  for (const auto& [figure, value] : report.checks.figures)
    text += markdown_row({markdown_code(figure), record::fixed(value, 3)});
  const std::vector<std::string> notes = unseen_notes(report);
  if (!notes.empty()) text += "\n## Not seen\n\n";
  for (const std::string& note : notes) text += "- " + markdown_text(note) + "\n";
  return text;
}

}  // namespace graphproof::reports
