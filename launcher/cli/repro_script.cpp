#include "launcher/cli/repro_script.h"

#include <algorithm>
#include <filesystem>

#include "launcher/backend/local_command.h"
#include "matrix/plan/plan_line.h"
#include "reports/record/text/printable.h"

namespace graphproof::cli {
namespace {

// Stands for the folder until the text is complete. No path and no value of an axis contains it.
constexpr std::string_view kFolder = "@GRAPHPROOF_REPRO_FOLDER@";

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != text.npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

/// `text` quoted as one word of a shell. The folder stays a variable.
std::string word(const std::string& text) {
  return replaced("'" + replaced(text, "'", "'\\''") + "'", kFolder, "'\"$dir\"'");
}

/// The text of a here-document in which only the folder is expanded.
std::string here(std::string text) {
  for (const char* special : {"\\", "$", "`"})
    text = replaced(text, special, std::string("\\") + special);
  return replaced(text, kFolder, "$dir");
}

std::string in_folder(const char* name) { return std::string(kFolder) + "/" + name; }

}  // namespace

std::string repro_script(const record::PlanLine& line, const launcher::Device& device,
                         const record::Limits& limits_ms, std::uint64_t seed) {
  record::Batch batch{.run_id = "20000101-000000-0000",  // belongs to no run
                      .batch = "b001",
                      .device = device.name,
                      .world_size = line.ranks,
                      .seed = seed,
                      .isolation = "process",
                      .heartbeat_fifo = in_folder("heartbeat"),
                      .store = in_folder("store"),
                      .log_folder = std::string(kFolder),
                      .mark = "repro",
                      .limits_ms = limits_ms,
                      .cases = {{line.id, line.name, 1, line.axes, in_folder("case")}}};
  const bool reference = matrix::subject_of(line) == matrix::kReference;
  launcher::Job job{.world_size = line.ranks,
                    .device = device.name,
                    .gpus = {},
                    .program = device.rank_program,
                    .python = reference ? std::string() : device.stack.python,
                    .switches = {},
                    .batch_file = in_folder("batch.json"),
                    .node_folder = in_folder("node"),
                    .shm_folder = in_folder("shm"),
                    .mark = batch.mark,
                    .environment = {line.environment.begin(), line.environment.end()}};
  if (device.name == "cuda")
    job.gpus.assign(
        device.gpus.begin(),
        device.gpus.begin() + std::min<std::ptrdiff_t>(line.ranks, std::ssize(device.gpus)));
  // The environment starts empty, so that the script does not repeat that of this process. Only
  // where the user's own packages are is kept.
  launcher::Environment kept;
  const launcher::Environment own = launcher::own_environment();
  if (const auto path = own.find("PYTHONPATH"); !reference && path != own.end()) kept.insert(*path);
  const launcher::Command command = launcher::local_command(job, kept);
  std::int64_t limit_ms = 0;
  for (const auto& [phase, phase_ms] : limits_ms) limit_ms += phase_ms;

  std::string text =
      "#!/bin/sh\n# " + record::printable(line.name) + " (" + line.id +
      "), started as graphproof starts it in processes of its own.\n"
      "# sh SCRIPT [FOLDER]: FOLDER is made if it is not there; the evidence is in FOLDER/case.\n"
      "set -eu\n"
      "if [ $# -gt 0 ]; then mkdir -p \"$1\"; dir=$(cd \"$1\" && pwd); else dir=$(mktemp -d "
      "\"${TMPDIR:-/tmp}/graphproof-repro-XXXXXX\"); fi\n"
      "rm -rf \"$dir/store\"\n"
      "mkdir -p \"$dir/case\" \"$dir/node\" \"$dir/shm\"\n\n";
  for (const auto& [name, value] : command.environment)
    text += "export " + name + "=" + word(value) + "\n";
  text += "\ncat >\"$dir/batch.json\" <<END_OF_BATCH\n" + here(record::to_json(batch).dump(2)) +
          "\nEND_OF_BATCH\n\n" +
          "# Ranks open the heartbeat FIFO for writing and wait for a reader.\n"
          "rm -f \"$dir/heartbeat\"\n"
          "mkfifo \"$dir/heartbeat\"\n"
          "exec 3<>\"$dir/heartbeat\"\n"
          "cat <&3 >\"$dir/heartbeats.jsonl\" &\n"
          "reader=$!\n"
          "trap 'kill \"$reader\" 2>/dev/null' EXIT\n\n"
          "code=0\n"
          "timeout -k 10 " +
          std::to_string((limit_ms + 999) / 1000);
  for (const std::string& argument : command.arguments) text += " \\\n  " + word(argument);
  text +=
      " \\\n  >\"$dir/starter.log\" 2>&1 || code=$?\n"
      "echo \"the ranks ended with $code; logs in $dir, evidence in $dir/case\"\n"
      "exit \"$code\"\n";
  return text;
}

}  // namespace graphproof::cli
