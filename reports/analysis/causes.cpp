#include "reports/analysis/causes.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <regex>
#include <string_view>
#include <system_error>

#include "reports/outcome/outcome.h"

namespace graphproof::reports {

std::string_view embedded(std::string_view name);

namespace {

using nlohmann::json;

struct Row {
  std::optional<int> code;
  std::string verdict;
  std::vector<std::string> words;
  Symptom symptom;
};

const std::vector<Row>& table() {
  static const std::vector<Row> kRows = [] {
    std::vector<Row> rows;
    const json file = json::parse(embedded("causes.json"), nullptr, true, /*ignore_comments=*/true);
    for (const json& one : file.at("causes")) {
      const json& when = one.at("when");
      Row row;
      if (when.contains("code")) row.code = when["code"].get<int>();
      row.verdict = when.value("verdict", "");
      row.words = when.value("text", std::vector<std::string>{});
      row.symptom.symptom = one.at("symptom");
      for (const json& each : one.at("likely"))
        row.symptom.likely.push_back({each.at("cause"), each.at("fix"), each.at("confirm")});
      rows.push_back(std::move(row));
    }
    return rows;
  }();
  return kRows;
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

/// Whether `verdict` is `family` or belongs to it: "fail.hang.replay" belongs to "fail.hang".
bool of_family(std::string_view verdict, std::string_view family) {
  return !family.empty() && verdict.starts_with(family) &&
         (verdict.size() == family.size() || verdict[family.size()] == '.');
}

/// The failing checks that `confirm` names in full (D07.static_addresses) or by detector (D07).
std::vector<std::string> named_in(const std::string& confirm, const record::Record& record) {
  static const std::regex kCheck("D[0-9]+(\\.[a-z_]+)?");
  std::vector<std::string> fired;
  for (std::sregex_iterator at(confirm.begin(), confirm.end(), kCheck), end; at != end; ++at) {
    const std::string name = at->str();
    for (const record::Failing& one : record.failing)
      if ((one.check == name || one.check.starts_with(name + ".")) &&
          std::find(fired.begin(), fired.end(), one.check) == fired.end())
        fired.push_back(one.check);
  }
  return fired;
}

Symptom ranked(Symptom symptom, const record::Record& record) {
  for (Cause& cause : symptom.likely) cause.fired = named_in(cause.confirm, record);
  std::stable_sort(
      symptom.likely.begin(), symptom.likely.end(),
      [](const Cause& left, const Cause& right) { return left.fired.size() > right.fired.size(); });
  return symptom;
}

}  // namespace

std::vector<ErrorFact> errors_of(const std::vector<record::Evidence>& ranks) {
  std::vector<ErrorFact> errors;
  for (const record::Evidence& evidence : ranks)
    for (const record::ErrorLine& line : evidence.of<record::ErrorLine>())
      errors.push_back({line.type, line.call, line.message, static_cast<int>(line.code)});
  return errors;
}

std::vector<Symptom> symptoms(const record::Record& record, const std::vector<ErrorFact>& errors) {
  std::string messages;
  for (const ErrorFact& error : errors) messages += lower(error.message) + "\n";
  for (const record::Failing& one : record.failing)
    messages += lower(one.message.what + "\n" + one.message.got) + "\n";
  const auto with_code = [&](const Row& row) {
    return row.code && std::any_of(errors.begin(), errors.end(), [&](const ErrorFact& error) {
             return error.type == "cuda" && error.code == *row.code;
           });
  };
  const auto with_words = [&](const Row& row) {
    return std::any_of(row.words.begin(), row.words.end(), [&](const std::string& words) {
      return messages.find(words) != std::string::npos;
    });
  };
  // What rules made of it says more than what was observed, if the table knows it: fail.eager.
  const auto with_own_verdict = [&](const Row& row) {
    return record.verdict != record.observed && of_family(record.verdict.text(), row.verdict);
  };
  const bool own = std::any_of(table().begin(), table().end(), with_own_verdict);
  const auto with_verdict = [&](const Row& row) {
    return own ? with_own_verdict(row) : of_family(record.observed.text(), row.verdict);
  };

  std::vector<Symptom> found;
  const auto add_first = [&](const auto& matches) {
    const auto row = std::find_if(table().begin(), table().end(), matches);
    if (row == table().end()) return;
    const bool known = std::any_of(found.begin(), found.end(), [&](const Symptom& one) {
      return one.symptom == row->symptom.symptom;
    });
    if (!known) found.push_back(ranked(row->symptom, record));
  };
  add_first(with_code);
  add_first(with_words);
  add_first(with_verdict);
  return found;
}

json to_json(const std::vector<Symptom>& symptoms) {
  json list = json::array();
  for (const Symptom& one : symptoms) {
    json likely = json::array();
    for (const Cause& cause : one.likely)
      likely.push_back({{"cause", cause.cause},
                        {"fix", cause.fix},
                        {"confirm", cause.confirm},
                        {"fired", cause.fired}});
    list.push_back({{"symptom", one.symptom}, {"likely", likely}});
  }
  return list;
}

}  // namespace graphproof::reports
