#include "reports/record/run/checks.h"

#include "reports/record/text/file.h"

#include <array>

namespace graphproof::record {
namespace {

constexpr std::array<std::string_view, 4> kResultNames = {"pass", "fail", "unexercised",
                                                          "not_applicable"};

void add(Json& json, const Message& message) {
  json["what"] = message.what;
  json["got"] = message.got;
  json["want"] = message.want;
  json["why"] = message.why;
  json["next"] = message.next;
}

Message message_from(const Fields& in) {
  return {.what = in.required<std::string>("what"),
          .got = in.required<std::string>("got"),
          .want = in.required<std::string>("want"),
          .why = in.required<std::string>("why"),
          .next = in.required<std::string>("next")};
}

Phase phase_of(const Fields& in, std::string_view key) {
  const std::string text = in.required<std::string>(key);
  const auto phase = phase_from(text);
  if (!phase) in.reject(key, "`" + text + "`", "a phase");
  return *phase;
}

Json to_json(const RankEvidence& rank) {
  Json json = {{"rank", rank.rank}, {"complete", rank.complete}};
  json["last_phase"] = rank.last_phase ? Json(name(*rank.last_phase)) : Json();
  json["refused"] = nullptr;
  if (rank.refused) {
    Json refused = {{"rule", rank.refused->rule},
                    {"phase", name(rank.refused->phase)},
                    {"device_initialised", rank.refused->device_initialised}};
    add(refused, rank.refused->message);
    json["refused"] = refused;
  }
  json["error"] = nullptr;
  if (rank.error)
    json["error"] = {{"phase", name(rank.error->phase)}, {"arm", rank.error->arm},
                     {"type", rank.error->type},         {"code", rank.error->code},
                     {"call", rank.error->call},         {"message", rank.error->message}};
  return json;
}

RankEvidence rank_evidence_from(const Fields& in) {
  RankEvidence rank{.rank = in.required<int>("rank"),
                    .complete = in.required<bool>("complete"),
                    .last_phase = {},
                    .refused = {},
                    .error = {}};
  if (in.nullable<std::string>("last_phase")) rank.last_phase = phase_of(in, "last_phase");
  if (const auto refused = in.nullable_object("refused"))
    rank.refused = Refusal{.rule = refused->required<std::string>("rule"),
                           .phase = phase_of(*refused, "phase"),
                           .device_initialised = refused->required<bool>("device_initialised"),
                           .message = message_from(*refused)};
  if (const auto error = in.nullable_object("error"))
    rank.error = RankError{.phase = phase_of(*error, "phase"),
                           .arm = error->required<std::string>("arm"),
                           .type = error->word("type", {"cuda", "nccl", "mpi", "exception"}),
                           .code = error->required<std::int64_t>("code"),
                           .call = error->required<std::string>("call"),
                           .message = error->required<std::string>("message")};
  return rank;
}

}  // namespace

std::string_view name(Result result) { return kResultNames[static_cast<std::size_t>(result)]; }

std::optional<Result> result_from(std::string_view text) {
  for (std::size_t i = 0; i < kResultNames.size(); ++i)
    if (kResultNames[i] == text) return static_cast<Result>(i);
  return std::nullopt;
}

Json to_json(const CheckResult& result) {
  Json json = {{"check", result.check}, {"result", name(result.result)}};
  json["rank"] = result.rank ? Json(*result.rank) : Json();
  add(json, result.message);
  return json;
}

CheckResult check_result_from(const Fields& in) {
  return {
      .check = in.required<std::string>("check"),
      .result = *result_from(in.word("result", {"pass", "fail", "unexercised", "not_applicable"})),
      .rank = in.nullable<int>("rank"),
      .message = message_from(in)};
}

Json to_json(const Checks& checks) {
  Json ranks = Json::array(), results = Json::array();
  for (const RankEvidence& rank : checks.ranks) ranks.push_back(to_json(rank));
  for (const CheckResult& result : checks.checks) results.push_back(to_json(result));
  Json json = {{"schema", kChecksSchema}, {"case", checks.case_id},    {"attempt", checks.attempt},
               {"ranks", ranks},          {"figures", checks.figures}, {"checks", results}};
  if (!checks.harmless_because.empty()) json["harmless_because"] = checks.harmless_because;
  return json;
}

Checks checks_from(const nlohmann::json& value, const std::string& where) {
  const Fields in(value, where);
  in.schema(kChecksSchema);
  Checks checks{.case_id = in.required<std::string>("case"),
                .attempt = in.required<int>("attempt"),
                .ranks = {},
                .figures = in.required<std::map<std::string, double>>("figures"),
                .checks = {}};
  for (const Fields& rank : in.objects("ranks")) {
    checks.ranks.push_back(rank_evidence_from(rank));
    if (checks.ranks.back().rank != static_cast<int>(checks.ranks.size()) - 1)
      rank.reject("rank", std::to_string(checks.ranks.back().rank), "ranks in order, without gaps");
  }
  for (const Fields& result : in.objects("checks"))
    checks.checks.push_back(check_result_from(result));
  if (value.contains("harmless_because"))
    checks.harmless_because = in.required<std::string>("harmless_because");
  return checks;
}

namespace {

/// Takes the name and the result of each object in the list `checks` of the outermost object.
class ResultReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  std::map<std::string, Result> results;
  bool known_schema = false;

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool binary(binary_t&) override { return false; }
  bool string(string_t& value) override {
    if (depth_ == 1 && key_ == "schema") known_schema = value == kChecksSchema;
    if (depth_ == 3 && in_checks_ && key_ == "check") check_ = value;
    if (depth_ == 3 && in_checks_ && key_ == "result") result_ = result_from(value);
    return true;
  }
  bool key(string_t& value) override {
    key_ = value;
    if (depth_ == 1) in_checks_ = value == "checks";
    return true;
  }
  bool start_object(std::size_t) override { return begin(); }
  bool end_object() override {
    --depth_;
    if (depth_ != 2 || !in_checks_) return true;
    return !check_.empty() && result_ && results.emplace(check_, *result_).second;
  }
  bool start_array(std::size_t) override { return begin(); }
  bool end_array() override {
    --depth_;
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  bool begin() {
    ++depth_;
    if (depth_ == 3) {
      check_.clear();
      result_.reset();
    }
    return true;
  }

  int depth_ = 0;
  bool in_checks_ = false;
  std::string key_, check_;
  std::optional<Result> result_;
};

}  // namespace

std::map<std::string, Result> check_results_from(std::string_view text, const std::string& where) {
  ResultReader reader;
  if (nlohmann::json::sax_parse(text, &reader) && reader.known_schema)
    return std::move(reader.results);
  std::map<std::string, Result> results;
  for (const CheckResult& one : checks_from(parse_json(text, where), where).checks)
    results[one.check] = one.result;
  return results;
}

}  // namespace graphproof::record
