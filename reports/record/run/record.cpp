#include "reports/record/run/record.h"

namespace graphproof::record {
namespace {

Verdict verdict_of(const Fields& in, std::string_view key) {
  const std::string text = in.required<std::string>(key);
  const auto verdict = Verdict::from(text);
  if (!verdict) in.reject(key, "`" + text + "`", "a verdict of reports/record/verdict/verdict.h");
  return *verdict;
}

}  // namespace

Json to_json(const Record& record) {
  Json failing = Json::array();
  for (const Failing& one : record.failing)
    failing.push_back({{"check", one.check},
                       {"rank", one.rank ? Json(*one.rank) : Json()},
                       {"what", one.message.what},
                       {"got", one.message.got},
                       {"want", one.message.want},
                       {"why", one.message.why},
                       {"next", one.message.next}});
  const RunContext& context = record.context;
  return {{"schema", kRecordSchema},
          {"run_id", record.run_id},
          {"case", record.case_id},
          {"name", record.name},
          {"attempt", record.attempt},
          {"context",
           {{"device", context.device},
            {"isolation", context.isolation},
            {"engine", context.engine},
            {"start", context.start},
            {"batch", context.batch}}},
          {"ranks", record.ranks},
          {"phase", record.phase ? Json(name(*record.phase)) : Json()},
          {"verdict", record.verdict.text()},
          {"observed", record.observed.text()},
          {"rule", record.rule},
          {"reason", record.reason},
          {"checks",
           {{"pass", record.checks.pass},
            {"fail", record.checks.fail},
            {"unexercised", record.checks.unexercised},
            {"not_applicable", record.checks.not_applicable}}},
          {"failing", failing},
          {"figures", record.figures},
          {"seconds", record.seconds},
          {"artefacts", record.artefacts},
          {"again", record.again}};
}

std::string to_line(const Record& record) {
  return to_json(record).dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Record record_from(const nlohmann::json& value, const std::string& where) {
  const Fields in(value, where);
  in.schema(kRecordSchema);
  const Fields context = in.object("context");
  const Fields checks = in.object("checks");
  Record record{.run_id = in.required<std::string>("run_id"),
                .case_id = in.required<std::string>("case"),
                .name = in.required<std::string>("name"),
                .attempt = in.required<int>("attempt"),
                .context = {.device = context.required<std::string>("device"),
                            .isolation = context.required<std::string>("isolation"),
                            .engine = context.required<std::string>("engine"),
                            .start = context.required<std::string>("start"),
                            .batch = context.required<std::string>("batch")},
                .ranks = in.required<int>("ranks"),
                .phase = {},
                .verdict = verdict_of(in, "verdict"),
                .observed = verdict_of(in, "observed"),
                .rule = in.required<int>("rule"),
                .reason = in.required<std::string>("reason"),
                .checks = {.pass = checks.required<int>("pass"),
                           .fail = checks.required<int>("fail"),
                           .unexercised = checks.required<int>("unexercised"),
                           .not_applicable = checks.required<int>("not_applicable")},
                .failing = {},
                .figures = in.required<std::map<std::string, double>>("figures"),
                .seconds = in.required<double>("seconds"),
                .artefacts = in.required<std::string>("artefacts"),
                .again = in.optional<std::string>("again").value_or("")};
  if (const auto text = in.nullable<std::string>("phase")) {
    record.phase = phase_from(*text);
    if (!record.phase) in.reject("phase", "`" + *text + "`", "a phase or null");
  }
  for (const Fields& one : in.objects("failing"))
    record.failing.push_back({.check = one.required<std::string>("check"),
                              .rank = one.nullable<int>("rank"),
                              .message = {.what = one.required<std::string>("what"),
                                          .got = one.required<std::string>("got"),
                                          .want = one.required<std::string>("want"),
                                          .why = one.required<std::string>("why"),
                                          .next = one.required<std::string>("next")}});
  return record;
}

}  // namespace graphproof::record
