#include "launcher/cli/repro_script.h"

#include <algorithm>
#include <filesystem>

#include "launcher/backend/compute_sanitizer.h"
#include "launcher/backend/local_command.h"
#include "matrix/plan/plan_line.h"
#include "reports/record/text/printable.h"

namespace graphproof::cli {
namespace {

// Stands for the folder until the text is complete. No path and no value of an axis contains it.
constexpr std::string_view kFolder = "@GRAPHPROOF_REPRO_FOLDER@";
constexpr const char* kErrorFound =
    "99";  // exit code of a rank in which compute-sanitizer found one

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != text.npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

/// `text` quoted as one word of a shell. The two folders stay variables.
std::string word(const std::string& text, const std::string& programs) {
  const std::string quoted = "'" + replaced(text, "'", "'\\''") + "'";
  return replaced(replaced(quoted, kFolder, "'\"$dir\"'"), programs, "'\"$programs\"'");
}

/// The text of a here-document in which only the folder is expanded.
std::string here(std::string text) {
  for (const char* special : {"\\", "$", "`"})
    text = replaced(text, special, std::string("\\") + special);
  return replaced(text, kFolder, "$dir");
}

std::string in_folder(const char* name) { return std::string(kFolder) + "/" + name; }

/// The lines that find the program of the tool, and those of the script that starts a rank under
/// it.
std::string tool_lines(const RankTool& tool, const std::string& device) {
  std::string names;
  for (const std::string& name : programs_of(tool, device))
    names += (names.empty() ? "" : " ") + name;
  std::string start;
  switch (tool.kind) {
    case RankTool::Kind::none:
      return "";
    case RankTool::Kind::gdb:
      start = "if [ \"$rank\" = " + std::to_string(tool.rank) +
              " ]; then exec \"$GRAPHPROOF_TOOL\" --args \"$@\"; fi\n"
              "exec \"$@\" </dev/null >\"$dir/output-$rank.log\" 2>&1\n";
      break;
    case RankTool::Kind::compute_sanitizer:
      start = "exec \"$GRAPHPROOF_TOOL\" --error-exitcode " + std::string(kErrorFound);
      for (const std::string& option :
           launcher::sanitizer_options(tool.checker, "\"$dir/compute-sanitizer-$rank.log\""))
        start += " " + option;
      start += " \"$@\"\n";
      break;
    case RankTool::Kind::nsys:
      start =
          "exec \"$GRAPHPROOF_TOOL\" profile --trace cuda,nvtx,osrt --cuda-graph-trace node "
          "--force-overwrite true --output \"$dir/nsys-rank-$rank\" \"$@\"\n";
      break;
  }
  return "GRAPHPROOF_TOOL=\n"
         "for name in " +
         names +
         "; do\n"
         "  if [ -z \"$GRAPHPROOF_TOOL\" ]; then GRAPHPROOF_TOOL=$(command -v \"$name\") || true; "
         "fi\n"
         "done\n"
         "if [ -z \"$GRAPHPROOF_TOOL\" ]; then echo \"not in PATH: " +
         names +
         "\" >&2; exit 127; fi\n"
         "export GRAPHPROOF_TOOL\n"
         "cat >\"$dir/tool.sh\" <<'END_OF_TOOL'\n"
         "# Starts one rank: GRAPHPROOF_RANK is set by graphproof-start, the other by mpirun.\n"
         "rank=${GRAPHPROOF_RANK:-${OMPI_COMM_WORLD_RANK:-0}}\n"
         "dir=$(dirname \"$0\")\n" +
         start + "END_OF_TOOL\n\n";
}

/// Puts the script that starts a rank under the tool before the rank program.
void insert_tool(std::vector<std::string>& words, const RankTool& tool,
                 const std::string& program) {
  if (tool.kind == RankTool::Kind::none) return;
  words.insert(std::ranges::find(words, program), {"/bin/sh", in_folder("tool.sh")});
  // mpirun gives its own input to rank 0 unless it is told otherwise.
  if (tool.kind == RankTool::Kind::gdb && words.front() == "mpirun")
    words.insert(words.begin() + 1, {"--stdin", std::to_string(tool.rank)});
}

}  // namespace

std::vector<std::string> programs_of(const RankTool& tool, const std::string& device) {
  switch (tool.kind) {
    case RankTool::Kind::gdb:
      return device == "cuda" ? std::vector<std::string>{"cuda-gdb", "gdb"}
                              : std::vector<std::string>{"gdb"};
    case RankTool::Kind::compute_sanitizer:
      return {launcher::kComputeSanitizer};
    case RankTool::Kind::nsys:
      return {"nsys"};
    case RankTool::Kind::none:
      break;
  }
  return {};
}

std::string repro_script(const record::PlanLine& line, const launcher::Device& device,
                         const record::Limits& limits_ms, std::uint64_t seed,
                         const RankTool& tool) {
  const std::string programs = device.rank_program.parent_path();
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
                    .imports_apart = tool.kind != RankTool::Kind::none,
                    .switches = {},
                    .batch_file = in_folder("batch.json"),
                    .node_folder = in_folder("node"),
                    .shm_folder = in_folder("shm"),
                    .mark = batch.mark,
                    .environment = {line.environment.begin(), line.environment.end()}};
  if (tool.kind == RankTool::Kind::compute_sanitizer)
    job.environment[launcher::kSanitizerVariable] = tool.checker;
  if (device.name == "cuda")
    job.gpus.assign(
        device.gpus.begin(),
        device.gpus.begin() + std::min<std::ptrdiff_t>(line.ranks, std::ssize(device.gpus)));
  // The environment starts empty, so that the script does not repeat that of this process. Only
  // where the user's own packages are is kept.
  launcher::Environment kept;
  const launcher::Environment own = launcher::own_environment();
  if (const auto path = own.find("PYTHONPATH"); !reference && path != own.end()) kept.insert(*path);
  launcher::Command command = launcher::local_command(job, kept);
  insert_tool(command.arguments, tool, job.python.empty() ? job.program.string() : "/usr/bin/env");
  std::int64_t limit_ms = 0;
  for (const auto& [phase, phase_ms] : limits_ms) limit_ms += phase_ms;

  std::string text =
      "#!/bin/sh\n# " + record::printable(line.name) + " (" + line.id +
      "), started as graphproof starts it in processes of its own.\n"
      "# sh SCRIPT [FOLDER]: FOLDER is made if it is not there; the evidence is in FOLDER/case.\n"
      "set -eu\n"
      "if [ $# -gt 0 ]; then mkdir -p \"$1\"; dir=$(cd \"$1\" && pwd); else dir=$(mktemp -d "
      "\"${TMPDIR:-/tmp}/graphproof-repro-XXXXXX\"); fi\n"
      "programs=${GRAPHPROOF_PROGRAMS:-" +
      word(programs, std::string(kFolder)) +
      "}\n"
      "rm -rf \"$dir/store\"\n"
      "mkdir -p \"$dir/case\" \"$dir/node\" \"$dir/shm\"\n\n";
  for (const auto& [name, value] : command.environment)
    text += "export " + name + "=" + word(value, programs) + "\n";
  text += "\ncat >\"$dir/batch.json\" <<END_OF_BATCH\n" + here(record::to_json(batch).dump(2)) +
          "\nEND_OF_BATCH\n\n" +
          "# Ranks open the heartbeat FIFO for writing and wait for a reader.\n"
          "rm -f \"$dir/heartbeat\"\n"
          "mkfifo \"$dir/heartbeat\"\n"
          "exec 3<>\"$dir/heartbeat\"\n"
          "cat <&3 >\"$dir/heartbeats.jsonl\" &\n"
          "reader=$!\n"
          "trap 'kill \"$reader\" 2>/dev/null' EXIT\n\n" +
          tool_lines(tool, device.name) + "code=0\n";
  // gdb waits for a person: nothing ends the ranks, and the terminal is its own.
  const bool gdb = tool.kind == RankTool::Kind::gdb;
  if (!gdb) {
    if (tool.kind != RankTool::Kind::none) limit_ms *= matrix::kSlowerUnderATool;
    text += "timeout -k 10 " + std::to_string((limit_ms + 999) / 1000) + " \\\n  ";
  }
  for (const std::string& argument : command.arguments)
    text += word(argument, programs) + " \\\n  ";
  text += (gdb ? "|| code=$?\n" : ">\"$dir/starter.log\" 2>&1 || code=$?\n");
  if (tool.kind == RankTool::Kind::compute_sanitizer)
    text += "grep -H 'ERROR SUMMARY' \"$dir\"/compute-sanitizer-*.log || true\n";
  if (tool.kind == RankTool::Kind::nsys) text += "ls \"$dir\"/nsys-rank-* || true\n";
  text +=
      "echo \"the ranks ended with $code; logs in $dir, evidence in $dir/case\"\n"
      "exit \"$code\"\n";
  return text;
}

}  // namespace graphproof::cli
