#include "reports/print/junit.h"

#include <pugixml.hpp>
#include <sstream>

#include "reports/outcome/outcome.h"
#include "reports/record/text/file.h"
#include "reports/record/text/printable.h"
#include "reports/record/verdict/verdict.h"

namespace graphproof::reports {
namespace {

using record::ExitCode;
using record::operator""_verdict;

/// The failing checks of a record, each part of a message on a line of its own.
std::string body(const record::Record& record, const std::string& repro) {
  std::string text;
  const auto line = [&text](const std::string& label, const std::string& part) {
    if (!part.empty()) text += label + record::printable(part) + "\n";
  };
  for (const record::Failing& one : record.failing) {
    const std::string who =
        one.check +
        (one.rank ? (one.check.empty() ? "rank " : " on rank ") + std::to_string(*one.rank) : "");
    line(who.empty() ? "" : who + ": ", one.message.what);
    line("  got:  ", one.message.got);
    line("  want: ", one.message.want);
    line("  why:  ", one.message.why);
    line("  next: ", one.message.next);
  }
  line("reproduce: ", repro);
  line("artefacts: ", record.artefacts);
  return text;
}

std::string fixed(double seconds) {
  std::ostringstream text;
  text.setf(std::ios::fixed);
  text.precision(3);
  text << seconds;
  return text.str();
}

}  // namespace

Junit::Element Junit::element_of(const record::Record& record) {
  switch (exit_code(record.verdict, record.rule)) {
    case ExitCode::ok:
      return record.verdict.in("skipped") || record.verdict == "unexercised"_verdict
                 ? Element::skipped
                 : Element::none;
    case ExitCode::infrastructure:
    case ExitCode::interrupted:
      return Element::error;
    default:
      return record.verdict == "not_run"_verdict ? Element::error : Element::failure;
  }
}

Junit::Junit(std::string profile, std::string run_name, const std::vector<record::PlanLine>& plan)
    : profile_(std::move(profile)), run_name_(std::move(run_name)) {
  for (const record::PlanLine& line : plan) add_case(line);
}

Junit::Junit(const RunResult& run) : profile_(run.run.profile), run_name_(run.run_name) {
  for (const CaseResult& one : run.cases) {
    add_case(one.plan);
    add(one.record);
  }
}

void Junit::add_case(const record::PlanLine& line) {
  index_of_.emplace(line.id, cases_.size());
  cases_.push_back({.id = line.id,
                    .name = line.name,
                    .body = "reproduce: " + record::printable(repro(line.id)) + "\n"});
}

std::string Junit::repro(const std::string& case_id) const {
  return "./graphproof repro " + run_name_ + "/" + case_id;
}

void Junit::add(const record::Record& record) {
  const auto found = index_of_.find(record.case_id);
  if (found == index_of_.end()) return;
  Case& one = cases_[found->second];
  one.element = element_of(record);
  one.type = record.verdict.text();
  one.message = record.reason;
  one.seconds = record.seconds;
  one.body.clear();
  if (one.element == Element::skipped) {
    one.message = one.type + ": " + record.reason;
    one.type.clear();
  } else if (one.element != Element::none) {
    one.body = body(record, repro(record.case_id));
  }
}

std::string Junit::text() const {
  pugi::xml_document document;
  pugi::xml_node declaration = document.prepend_child(pugi::node_declaration);
  declaration.append_attribute("version") = "1.0";
  declaration.append_attribute("encoding") = "UTF-8";
  pugi::xml_node suites = document.append_child("testsuites");
  pugi::xml_node suite = suites.append_child("testsuite");
  std::map<Element, int> counts;
  double seconds = 0;
  for (const Case& one : cases_) {
    pugi::xml_node test = suite.append_child("testcase");
    test.append_attribute("classname") = record::printable("graphproof." + profile_).c_str();
    test.append_attribute("name") = record::printable(one.name + " [" + one.id + "]").c_str();
    test.append_attribute("time") = fixed(one.seconds).c_str();
    seconds += one.seconds;
    ++counts[one.element];
    if (one.element == Element::none) continue;
    pugi::xml_node node = test.append_child(one.element == Element::skipped   ? "skipped"
                                            : one.element == Element::failure ? "failure"
                                                                              : "error");
    if (!one.type.empty()) node.append_attribute("type") = one.type.c_str();
    node.append_attribute("message") = record::printable(one.message).c_str();
    if (!one.body.empty()) node.text().set(one.body.c_str());
  }
  for (pugi::xml_node node : {suites, suite}) {
    node.append_attribute("name") = record::printable(profile_).c_str();
    node.append_attribute("tests") = static_cast<unsigned>(cases_.size());
    node.append_attribute("failures") = counts[Element::failure];
    node.append_attribute("errors") = counts[Element::error];
    node.append_attribute("time") = fixed(seconds).c_str();
  }
  // The schema of JUnit knows this count of a suite, not of all suites.
  suite.append_attribute("skipped") = counts[Element::skipped];
  std::ostringstream text;
  document.save(text, "  ", pugi::format_default, pugi::encoding_utf8);
  return text.str();
}

void Junit::write(const std::filesystem::path& file) const {
  record::write_atomically(file, text());
}

}  // namespace graphproof::reports
