#include "reports/print/watched_page.h"

#include <stdexcept>
#include <string_view>

#include "reports/print/terminal.h"
#include "reports/record/text/printable.h"

namespace graphproof::reports {

namespace page {
std::string_view embedded(std::string_view name);  // the parts of the page; made by CMake
}

namespace {

std::string element(const char* tag, const std::string& inside) {
  return std::string("<") + tag + ">" + inside + "</" + tag + ">";
}

std::string table_row(const char* cell, const std::vector<std::string>& texts) {
  std::string row;
  for (const std::string& text : texts) row += element(cell, html_text(text));
  return element("tr", row) + "\n";
}

std::string wide_table(const std::string& rows) {
  return "<div class=\"wide\"><table>\n" + rows + "</table></div>\n";
}

/// A word of a verdict or a result in the colour of an exit code's class of watched.css.
std::string badge(std::string_view word, const char* colour) {
  return std::string("<span class=\"verdict ") + colour + "\">" + html_text(std::string(word)) +
         "</span>";
}

const char* colour_class(record::ExitCode code) {
  if (code == record::ExitCode::ok) return "ok";
  return code == record::ExitCode::product ? "product" : "infrastructure";
}
const char* colour_class(record::Result result) {
  switch (result) {
    case record::Result::pass:
      return "ok";
    case record::Result::fail:
      return "product";
    case record::Result::unexercised:
      return "coverage";
    case record::Result::not_applicable:
      return "";
  }
  return "";
}

std::string facts(const WatchedReport& report) {
  const record::WatchedRun& run = report.run;
  std::string list;
  const auto fact = [&list](const char* label, const std::string& value) {
    if (!value.empty()) list += element("dt", label) + element("dd", html_text(value)) + "\n";
  };
  fact("command", command_text(run.command));
  fact("its end", ending_text(run));
  fact("time", clock_text(run.seconds));
  fact("started", run.started + " on " + run.host);
  fact("folder", run.folder);
  fact("profile", run.profile + (run.cupti ? "" : ", without CUPTI"));
  fact("processes watched", std::to_string(report.processes));
  fact("run", run.id);
  return element("dl", "\n" + list) + "\n";
}

std::string failing_part(const record::Failing& one) {
  std::string list;
  const auto part = [&list](const char* label, const std::string& value) {
    if (!value.empty()) list += element("dt", label) + element("dd", html_text(value));
  };
  part("got", one.message.got);
  part("want", one.message.want);
  part("why", one.message.why);
  part("next", one.message.next);
  const std::string who = one.check + (one.rank ? " on rank " + std::to_string(*one.rank) : "");
  return "<div class=\"failing\">" + (who.empty() ? "" : element("h3", html_text(who))) +
         element("p", html_text(one.message.what)) + element("dl", list) + "</div>\n";
}

std::string waiting_part(const std::vector<record::WaitingThread>& waiting) {
  std::string rows =
      table_row("th", {"process", "thread", "name", "inside the driver call", "seconds"});
  for (const record::WaitingThread& one : waiting)
    rows += table_row("td", {one.process, std::to_string(one.thread), one.name, one.call,
                             record::fixed(one.seconds, 0)});
  return element("h2", "Where it hung") + wide_table(rows);
}

std::string python_part(const std::map<std::string, std::vector<std::string>>& stacks) {
  std::string rows = table_row("th", {"process", "where Python is, the innermost call first"});
  for (const auto& [process, stack] : stacks) {
    std::string calls;
    for (const std::string& call : stack) calls += (calls.empty() ? "" : "\n") + call;
    rows += table_row("td", {process, calls});
  }
  return element("h2", "Where Python is") + wide_table(rows);
}

std::string ras_part(const std::vector<std::string>& ras) {
  std::string lines;
  for (const std::string& line : ras) lines += html_text(line) + "\n";
  return element("h2", "What NCCL says of its communicators") + element("pre", lines);
}

std::string checks_part(const std::vector<record::CheckResult>& checks) {
  std::string rows = table_row("th", {"result", "check", "rank", "what", "got"});
  for (const record::CheckResult& one : checks)
    rows += element("tr", element("td", badge(name(one.result), colour_class(one.result))) +
                              element("td", html_text(one.check)) +
                              element("td", one.rank ? std::to_string(*one.rank) : "") +
                              element("td", html_text(one.message.what)) +
                              element("td", html_text(one.message.got))) +
            "\n";
  return element("h2", "Checks") + wide_table(rows);
}

/// The kernels and the whole stack of a graph, folded.
std::string graph_details(const record::GraphRow& graph) {
  std::string lines;
  for (const std::string& frame : graph.stack) lines += html_text(frame) + "\n";
  for (const record::KernelCount& one : graph.kernels)
    lines += std::to_string(one.count) + " x " + html_text(one.kernel) + "\n";
  if (const std::string between = between_text(graph); !between.empty())
    lines += "before a replay: " + html_text(between) + "\n";
  if (lines.empty()) return "";
  return "<details><summary>stack and kernels</summary><pre>" + lines + "</pre></details>";
}

std::string graphs_part(const std::vector<record::GraphRow>& graphs) {
  std::vector<std::string> columns = graph_columns();
  columns.push_back("details");
  std::string rows = table_row("th", columns);
  for (const record::GraphRow& graph : graphs) {
    std::string row;
    for (const std::string& text : graph_cells(graph)) row += element("td", html_text(text));
    rows += element("tr", row + element("td", graph_details(graph))) + "\n";
  }
  return element("h2", "Graphs") + wide_table(rows);
}

std::string notes_part(const std::vector<std::string>& notes) {
  std::string items;
  for (const std::string& note : notes) items += element("li", html_text(note)) + "\n";
  return element("h2", "Not seen") + element("ul", "\n" + items);
}

void fill(std::string& page, std::string_view place, std::string_view text) {
  const std::size_t at = page.find(place);
  if (at == std::string::npos)
    throw std::logic_error("the page has no place " + std::string(place));
  page.replace(at, place.size(), text);
}

}  // namespace

std::string html_text(const std::string& text) {
  std::string safe;
  for (const char c : record::printable(text)) {
    if (c == '&')
      safe += "&amp;";
    else if (c == '<')
      safe += "&lt;";
    else if (c == '>')
      safe += "&gt;";
    else
      safe += c;
  }
  return safe;
}

std::string watched_page(const WatchedReport& report) {
  const record::ExitCode code = exit_code(report.outcome.verdict);
  std::string text(page::embedded("page/watched.html"));
  fill(text, "/*page.css*/", page::embedded("page/watched.css"));
  std::string inside = facts(report);
  if (!report.outcome.failing.empty()) inside += element("h2", "Failing checks");
  for (const record::Failing& one : report.outcome.failing) inside += failing_part(one);
  if (report.outcome.gap)
    inside += element("h2", "Without evidence") +
              failing_part({.check = "", .rank = {}, .message = *report.outcome.gap});
  if (!report.run.waiting.empty()) inside += waiting_part(report.run.waiting);
  if (report.run.stacks) inside += python_part(*report.run.stacks);
  if (report.run.ras) inside += ras_part(*report.run.ras);
  if (!report.checks.checks.empty()) inside += checks_part(report.checks.checks);
  if (!report.checks.graphs.empty()) inside += graphs_part(report.checks.graphs);
  if (const auto notes = unseen_notes(report); !notes.empty()) inside += notes_part(notes);
  // What processes wrote comes last, because it could contain the name of a place.
  const std::size_t main = text.find("<!--main-->");
  if (main == std::string::npos) throw std::logic_error("the page has no place for its content");
  text.replace(main, std::string_view("<!--main-->").size(), inside);
  fill(text, "<!--head-->",
       element("p", badge(name(report.outcome.verdict), colour_class(code)) + " " +
                        html_text(report.outcome.reason)) +
           element("p", "exit code " + std::to_string(record::value(code))));
  return text;
}

}  // namespace graphproof::reports
