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

enum class Element { none, skipped, failure, error };

Element element_of(const record::Record& record) {
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

Junit::Junit(std::string profile, std::string run_name, std::vector<record::PlanLine> plan)
    : profile_(std::move(profile)), run_name_(std::move(run_name)), plan_(std::move(plan)) {}

void Junit::add(const record::Record& record) { records_.insert_or_assign(record.case_id, record); }

std::string Junit::text() const {
  pugi::xml_document document;
  pugi::xml_node declaration = document.prepend_child(pugi::node_declaration);
  declaration.append_attribute("version") = "1.0";
  declaration.append_attribute("encoding") = "UTF-8";
  pugi::xml_node suites = document.append_child("testsuites");
  pugi::xml_node suite = suites.append_child("testsuite");
  int failures = 0, errors = 0, skipped = 0;
  double seconds = 0;

  for (const record::PlanLine& line : plan_) {
    pugi::xml_node test = suite.append_child("testcase");
    test.append_attribute("classname") = record::printable("graphproof." + profile_).c_str();
    test.append_attribute("name") = record::printable(line.name + " [" + line.id + "]").c_str();
    const auto add = [&test](const char* element, const std::string& type,
                             const std::string& message, const std::string& body) {
      pugi::xml_node node = test.append_child(element);
      if (!type.empty()) node.append_attribute("type") = type.c_str();
      node.append_attribute("message") = record::printable(message).c_str();
      if (!body.empty()) node.text().set(body.c_str());
    };
    const std::string repro = "./graphproof repro " + run_name_ + "/" + line.id;
    const auto found = records_.find(line.id);
    if (found == records_.end()) {
      test.append_attribute("time") = "0.000";
      add("error", "not_run", "did not finish", "reproduce: " + record::printable(repro) + "\n");
      ++errors;
      continue;
    }
    const record::Record& record = found->second;
    test.append_attribute("time") = fixed(record.seconds).c_str();
    seconds += record.seconds;
    const std::string type(record.verdict.text());
    switch (element_of(record)) {
      case Element::none:
        break;
      case Element::skipped:
        ++skipped;
        add("skipped", "", type + ": " + record.reason, "");
        break;
      case Element::failure:
        ++failures;
        add("failure", type, record.reason, body(record, repro));
        break;
      case Element::error:
        ++errors;
        add("error", type, record.reason, body(record, repro));
    }
  }
  for (pugi::xml_node node : {suites, suite}) {
    node.append_attribute("name") = record::printable(profile_).c_str();
    node.append_attribute("tests") = static_cast<unsigned>(plan_.size());
    node.append_attribute("failures") = failures;
    node.append_attribute("errors") = errors;
    node.append_attribute("time") = fixed(seconds).c_str();
  }
  // The schema of JUnit knows this count of a suite, not of all suites.
  suite.append_attribute("skipped") = skipped;
  std::ostringstream text;
  document.save(text, "  ", pugi::format_default, pugi::encoding_utf8);
  return text.str();
}

void Junit::write(const std::filesystem::path& file) const {
  record::write_atomically(file, text());
}

}  // namespace graphproof::reports
