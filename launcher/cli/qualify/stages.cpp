#include "launcher/cli/qualify/stages.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "launcher/cli/run_child.h"
#include "launcher/host/child.h"
#include "matrix/input/input_error.h"
#include "reports/record/job/plan.h"
#include "reports/record/text/file.h"

namespace graphproof::cli {
namespace {

namespace fs = std::filesystem;

// The first start of an image may have to fetch or convert it.
constexpr std::int64_t kDoctor_ms = 1'800'000;

std::string last_words(const std::string& text) {
  const std::size_t said = text.rfind("graphproof: ");
  if (said != text.npos) return text.substr(said, 600);
  const std::size_t end = text.find_last_not_of(" \n");
  if (end == text.npos) return "nothing was printed";
  const std::size_t line = text.rfind('\n', end);
  return text.substr(line == text.npos ? 0 : line + 1, std::min<std::size_t>(end + 1, 600));
}

/// The folder of one run: a whole stage, or the I-th part of one.
fs::path part_folder(const StageCommands& commands, const std::string& name,
                     const std::string& image, int part) {
  if (part == 0) return stage_folder(commands, name, image);
  return commands.folder / "parts" / image / name / std::to_string(part);
}

fs::path log_of(const fs::path& run) { return run.string() + ".log"; }

/// How the last child of a run ended, beside the folder of the run, because the child may have left
/// nothing in it.
fs::path exit_of(const fs::path& run) { return run.string() + ".exit"; }

bool finished(const fs::path& run) {
  if (!fs::exists(run / "summary.json")) return false;
  const fs::path file = run / "summary.json";
  return record::summary_from(record::read_json(file), file.string()).ending == "finished";
}

void run_part(const StageCommands& commands, const std::string& name, const std::string& image,
              const std::vector<std::string>& start, int part, launcher::Signals& signals,
              const std::function<void(const std::string&)>& say) {
  const fs::path run = part_folder(commands, name, image, part);
  if (finished(run)) return;
  std::vector<std::string> words = start;
  const bool begun = fs::exists(run / "run.json");
  if (begun) {
    words.insert(words.end(), {"resume", run.string()});
  } else {
    fs::remove_all(run);
    words.insert(words.end(), {"run", "--profile", name, "--device", commands.device, "--run-dir",
                               run.string()});
    if (part > 0)
      words.insert(words.end(), {"--shard", fmt::format("{}/{}", part, commands.parts)});
    words.insert(words.end(), commands.options.begin(), commands.options.end());
  }
  say(fmt::format(
      "{} {}{}{} in {}", begun ? "continue" : "run", name, image.empty() ? "" : " of " + image,
      part == 0 ? "" : fmt::format(", part {} of {}", part, commands.parts), run.string()));
  const int code = run_child({words, launcher::own_environment()}, log_of(run), signals);
  record::write_atomically(exit_of(run), std::to_string(code) + "\n");
}

void merge_parts(const StageCommands& commands, const std::string& name, const std::string& image,
                 launcher::Signals& signals) {
  const fs::path whole = stage_folder(commands, name, image);
  std::vector<std::string> words = {commands.program, "merge", "--run-dir", whole.string()};
  for (int part = 1; part <= commands.parts; ++part)
    words.push_back(part_folder(commands, name, image, part).string());
  fs::remove_all(whole);
  const int code = run_child({words, launcher::own_environment()}, log_of(whole), signals);
  record::write_atomically(exit_of(whole), std::to_string(code) + "\n");
}

/// The exit code that the last child of this run had; nothing if none has ended.
std::optional<record::ExitCode> recorded_exit(const fs::path& run) {
  if (!fs::exists(exit_of(run))) return std::nullopt;
  const std::string text = record::read_text(exit_of(run));
  if (text.size() == 2 && text[0] >= '0' && text[0] <= '6')
    return static_cast<record::ExitCode>(text[0] - '0');
  return record::ExitCode::own_fault;
}

std::vector<std::pair<std::string, int>> skipped_in(const fs::path& run) {
  std::map<std::string, int> counts;
  for (const record::PlanLine& line :
       record::plan_from(record::read_text(run / "plan.jsonl"), (run / "plan.jsonl").string()))
    if (line.skip) ++counts[line.skip->why];
  std::vector<std::pair<std::string, int>> list(counts.begin(), counts.end());
  std::ranges::stable_sort(list, std::greater<>(), &std::pair<std::string, int>::second);
  return list;
}

}  // namespace

fs::path stage_folder(const StageCommands& commands, const std::string& name,
                      const std::string& image) {
  const fs::path stages = commands.folder / "stages";
  return image.empty() ? stages / name : stages / image / name;
}

nlohmann::json ask_doctor(const std::vector<std::string>& start, const std::string& source,
                          const std::string& device) {
  std::vector<std::string> words = start;
  words.insert(words.end(), {"doctor", "--json", "--libraries", "--device", device});
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + word;
  std::string got;
  try {
    const launcher::Output output =
        launcher::run_to_end({words, launcher::own_environment()}, kDoctor_ms);
    const nlohmann::json value = nlohmann::json::parse(output.out, nullptr, false);
    if (value.is_object() && value.value("schema", "") == "graphproof-doctor/1") return value;
    got = output.timed_out
              ? fmt::format("no answer within {} minutes", kDoctor_ms / 60'000)
              : fmt::format("exit code {}: {}", output.exit.value,
                            last_words(output.error.empty() ? output.out : output.error));
  } catch (const std::system_error& error) {
    got = error.what();
  }
  throw matrix::InputError(
      {source + " does not start graphproof", got, "the answer of graphproof doctor --json",
       "every stage is started in this way, so none was", "try it by hand: " + line});
}

bool run_stages(const StageCommands& commands, const std::vector<std::string>& stages,
                launcher::Signals& signals, const std::function<void(const std::string&)>& say) {
  const auto interrupted = [&] { return signals.interrupts() > 0; };
  for (const std::string& name : stages) {
    if (commands.starts.size() == 1) {
      const auto& [image, start] = commands.starts.front();
      if (!interrupted()) run_part(commands, name, image, start, 0, signals, say);
      continue;
    }
    bool missing = false;
    for (const auto& [image, start] : commands.starts)
      missing = missing || !finished(stage_folder(commands, name, image));
    if (!missing) continue;
    for (int part = 1; part <= commands.parts; ++part) {
      for (std::size_t turn = 0; turn < commands.starts.size(); ++turn) {
        const std::size_t who = part % 2 == 1 ? turn : commands.starts.size() - 1 - turn;
        const auto& [image, start] = commands.starts[who];
        if (!interrupted()) run_part(commands, name, image, start, part, signals, say);
      }
    }
    for (const auto& [image, start] : commands.starts)
      if (!interrupted()) merge_parts(commands, name, image, signals);
  }
  return interrupted();
}

reports::Stage stage_from(const StageCommands& commands, const std::string& name,
                          const std::string& image) {
  const fs::path run = stage_folder(commands, name, image);
  reports::Stage stage{.name = name, .image = image};
  stage.folder = fs::relative(run, commands.folder).string();
  if (fs::exists(run / "summary.json")) {
    const fs::path file = run / "summary.json";
    stage.summary = record::summary_from(record::read_json(file), file.string());
    // A launcher that crashed while it went on with a run has left an older summary.
    stage.exit_code = record::stronger(static_cast<record::ExitCode>(stage.summary->exit_code),
                                       recorded_exit(run).value_or(record::ExitCode::interrupted));
    stage.skipped = skipped_in(run);
    return stage;
  }
  const auto code = recorded_exit(run);
  stage.exit_code = code.value_or(record::ExitCode::interrupted);
  if (!code) {
    stage.fault = "it was not started, because the qualification was interrupted";
  } else {
    // A child that ends well and leaves no result is a defect of this program.
    if (*code == record::ExitCode::ok) stage.exit_code = record::ExitCode::own_fault;
    stage.fault = fmt::format(
        "its run ended with exit code {} and no result: {}", record::value(*code),
        fs::exists(log_of(run)) ? last_words(record::read_text(log_of(run))) : "it left no log");
  }
  return stage;
}

}  // namespace graphproof::cli
