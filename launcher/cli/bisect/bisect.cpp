// bisect: which component of stack B makes a case fail that passes with stack A?
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

#include "launcher/cli/bisect/search.h"
#include "launcher/cli/bisect/stack_choice.h"
#include "launcher/cli/device_option.h"
#include "launcher/cli/find_case.h"
#include "launcher/cli/run_child.h"
#include "launcher/cli/verb.h"
#include "matrix/input/input_error.h"
#include "matrix/plan/plan_line.h"
#include "reports/record/run/journal.h"
#include "reports/record/text/file.h"

namespace graphproof::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSchema = "graphproof-bisection/1";
constexpr const char* kFile = "bisection.json";

struct BisectOptions {
  std::string a, b, reference, device = "auto";
  std::optional<std::string> folder;
  bool json = false;
};

/// One stack that was tried.
struct Probed {
  std::set<std::string> of_b;
  Outcome outcome = Outcome::unclear;
  std::string verdict;  // of the case, or why it has none
};

const char* word(Outcome outcome) {
  switch (outcome) {
    case Outcome::good:
      return "good";
    case Outcome::bad:
      return "bad";
    case Outcome::interrupted:
      return "interrupted";
    case Outcome::unclear:
      break;
  }
  return "unclear";
}

/// What was asked, and what is known so far. It is written after every run.
class Bisection {
 public:
  Bisection(const fs::path& folder, record::Json question)
      : file_(folder / kFile), question_(std::move(question)) {
    fs::create_directories(folder);
    if (!fs::exists(file_)) return;
    const nlohmann::json before = record::read_json(file_);
    const record::Fields in(before, file_.string());
    in.schema(kSchema);
    if (in.required<nlohmann::json>("question") != nlohmann::json(question_))
      throw matrix::InputError({"this folder has another bisection", folder.string(),
                                "one with the same stacks, case and device",
                                "its results are about other stacks",
                                "choose another folder: --folder"});
    for (const nlohmann::json& one : in.required<nlohmann::json>("probes")) {
      const std::string outcome = one.at("outcome");
      // What gave no answer is tried again.
      if (outcome != "good" && outcome != "bad") continue;
      probes_.push_back({one.at("of_b").get<std::set<std::string>>(),
                         outcome == "good" ? Outcome::good : Outcome::bad, one.at("verdict")});
    }
  }

  const Probed* known(const std::set<std::string>& of_b) const {
    const auto found = std::ranges::find(probes_, of_b, &Probed::of_b);
    return found == probes_.end() ? nullptr : &*found;
  }
  void add(Probed probed) {
    probes_.push_back(std::move(probed));
    record::write_json(file_, as_json());
  }
  const std::vector<Probed>& probes() const { return probes_; }
  record::Json as_json() const {
    record::Json list = record::Json::array();
    for (const Probed& one : probes_)
      list.push_back(
          {{"of_b", one.of_b}, {"outcome", word(one.outcome)}, {"verdict", one.verdict}});
    return {{"schema", kSchema}, {"question", question_}, {"probes", list}};
  }

 private:
  const fs::path file_;
  const record::Json question_;
  std::vector<Probed> probes_;
};

std::string text_of(const std::set<std::string>& of_b, std::size_t all) {
  if (of_b.empty()) return "A";
  if (of_b.size() == all) return "B";
  return fmt::format("A with {} of B", fmt::join(of_b, ", "));
}

/// Runs the case in a process with this stack.
Probed run_on(const launcher::Command& command, const fs::path& run, const std::string& case_id,
              launcher::Signals& signals) {
  fs::remove_all(run);
  const int code = run_child(command, run.string() + ".log", signals);
  Probed probed;
  if (signals.interrupts() > 0) {
    probed.outcome = Outcome::interrupted;
    probed.verdict = "interrupted";
    return probed;
  }
  std::optional<record::Record> last;
  if (fs::exists(run / "journal.jsonl"))
    for (const record::Record& record : record::read_journal(run / "journal.jsonl").records)
      if (record.case_id == case_id) last = record;
  if (!last) {
    probed.verdict = fmt::format("no verdict, exit code {}: see {}.log", code, run.string());
    return probed;
  }
  // Without the expectation: a known issue is bad all the same.
  probed.verdict = last->observed.text();
  if (last->observed.exit_code() == record::ExitCode::product) probed.outcome = Outcome::bad;
  if (last->observed == record::Verdict::from("pass")) probed.outcome = Outcome::good;
  return probed;
}

std::string sentence_of(const Culprit& culprit, std::size_t all) {
  switch (culprit.answer) {
    case Culprit::Answer::found:
      return culprit.together
                 ? fmt::format(
                       "only together: {} of B make the case fail; without any one of them "
                       "it passes",
                       fmt::join(culprit.components, " and "))
                 : fmt::format("{} of B {} the case fail{}", fmt::join(culprit.components, "; "),
                               culprit.components.size() == 1 ? "makes" : "make",
                               culprit.components.size() == 1 ? "" : ", each by itself");
    case Culprit::Answer::both_fail:
      return "the case fails with A too, so no component of B is to blame";
    case Culprit::Answer::both_pass:
      return "the case passes with B too: it comes and goes, or the files do not name what differs";
    case Culprit::Answer::interrupted:
      return "interrupted; the same command goes on";
    case Culprit::Answer::unclear:
      break;
  }
  return fmt::format("no answer from {}; the same command tries it again",
                     text_of(culprit.at, all));
}

record::ExitCode code_of(Culprit::Answer answer) {
  switch (answer) {
    case Culprit::Answer::found:
      return record::ExitCode::ok;
    case Culprit::Answer::interrupted:
      return record::ExitCode::interrupted;
    case Culprit::Answer::both_fail:
    case Culprit::Answer::both_pass:
    case Culprit::Answer::unclear:
      break;
  }
  return record::ExitCode::coverage;
}

record::ExitCode execute_bisect(const BisectOptions& options, Surroundings& surroundings) {
  const StackChoice a = stack_choice_from(options.a), b = stack_choice_from(options.b);
  const std::vector<std::string> components = differences(a, b);
  if (components.empty())
    throw matrix::InputError({"the two stacks are the same", options.a + " and " + options.b,
                              "files that differ in a part", "there is nothing to swap",
                              "name what differs: nccl, torch, driver, environment"});
  const FoundCase found = find_case(options.reference, surroundings);
  const std::string case_id =
      found.line ? found.line->id
                 : matrix::plan_case(surroundings.catalogue, found.test_case, {}, "bisect").id;
  // The child must find the run from its own folder too.
  const std::string reference =
      found.run ? found.run->string() + "/" + case_id
                : matrix::case_name(surroundings.catalogue.axes, found.test_case);
  const record::Json question = {{"case", case_id}, {"device", options.device}, {"a", a}, {"b", b}};
  const fs::path folder = fs::absolute(
      options.folder.value_or("bisections/" + matrix::sha256_hex(question.dump()).substr(0, 12)));
  Bisection bisection(folder, question);
  launcher::Signals signals;
  const Culprit culprit = search(components, [&](const std::set<std::string>& of_b) {
    const std::string stack = text_of(of_b, components.size());
    const Probed* const known = bisection.known(of_b);
    if (known == nullptr) {
      const fs::path run =
          folder / "runs" /
          (stack == "A" || stack == "B" ? stack : matrix::sha256_hex(stack).substr(0, 12));
      Probed probed = run_on({{surroundings.programs / "graphproof", "repro", reference, "--device",
                               options.device, "--run-dir", run.string(), "--json"},
                              environment_of(a, b, of_b, launcher::own_environment())},
                             run, case_id, signals);
      probed.of_b = of_b;
      bisection.add(probed);
    }
    const Probed& result = *bisection.known(of_b);
    surroundings.err << fmt::format("{:<11} {}: {}{}\n", word(result.outcome), stack,
                                    result.verdict, known != nullptr ? " (known)" : "")
                     << std::flush;
    return result.outcome;
  });
  const std::string sentence = sentence_of(culprit, components.size());
  if (options.json) {
    record::Json all = bisection.as_json();
    all["components"] = culprit.components;
    all["together"] = culprit.together;
    all["answer"] = sentence;
    surroundings.out << all.dump(2) << "\n";
  } else {
    surroundings.out << sentence << "\n"
                     << bisection.probes().size() << " stacks were tried; "
                     << "their runs are in " << folder.string() << "\n";
  }
  return code_of(culprit.answer);
}

}  // namespace

Action declare_bisect(CLI::App& app) {
  const auto options = std::make_shared<BisectOptions>();
  app.add_option("A", options->a, "the stack with which the case passes, as a JSON file")
      ->required()
      ->type_name("FILE");
  app.add_option("B", options->b, "the stack with which it fails")->required()->type_name("FILE");
  app.add_option("CASE", options->reference,
                 "an id prefix, a name such as impl=manual,tp=2, or RUN/CASE")
      ->required()
      ->type_name("CASE");
  app.add_option("--device", options->device, "where the case runs (default: auto)")
      ->type_name(kDevices);
  app.add_option("--folder", options->folder,
                 "what was tried is remembered here (default: a folder below bisections/)")
      ->type_name("FOLDER");
  app.add_flag("--json", options->json, "print one JSON object of graphproof-bisection/1");
  return [options](Surroundings& surroundings) { return execute_bisect(*options, surroundings); };
}

}  // namespace graphproof::cli
