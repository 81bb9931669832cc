// bundle: an archive of one recorded case for a bug report upstream: what happened, the evidence,
// the stack and, where there is one, a program that repeats it without graphproof. What says whose
// machine it was is taken out.
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <memory>

#include "launcher/cli/bundle/redaction.h"
#include "launcher/cli/bundle/reproducer.h"
#include "launcher/cli/find_case.h"
#include "launcher/cli/show/show_record.h"
#include "launcher/cli/verb.h"
#include "launcher/host/child.h"
#include "matrix/input/input_error.h"
#include "reports/record/run/run.h"
#include "reports/record/text/file.h"

namespace graphproof::cli {
namespace {

namespace fs = std::filesystem;

// A longer file is cut to its end, where the failure is.
constexpr std::size_t kLongest = std::size_t{8} << 20, kEnd = std::size_t{1} << 20;
constexpr std::int64_t kTar_ms = 120'000;

struct BundleOptions {
  std::string reference;
  std::optional<std::string> file;
  bool json = false;
};

/// What the archive has, before anything is written.
struct Bundle {
  std::map<std::string, std::string> files;  // name in the archive -> text
  std::vector<std::string> cut, left_out;    // names
};

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

void hide_names(Redaction& redact, const record::Run& run) {
  for (const std::string& host : {run.stack.host, host_name()}) {
    redact.hide(host, "HOST");
    redact.hide(host.substr(0, host.find('.')), "HOST");
  }
  for (const char* variable : {"USER", "LOGNAME"})
    if (const char* name = std::getenv(variable); name != nullptr && std::string(name) != "root")
      redact.hide(name, "USER");
}

/// The last bytes of a file, which may be larger than memory.
std::string end_of(const fs::path& file, std::size_t bytes) {
  std::ifstream in(file, std::ios::binary);
  in.seekg(-static_cast<std::streamoff>(bytes), std::ios::end);
  std::string text(bytes, '\0');
  in.read(text.data(), static_cast<std::streamsize>(bytes));
  text.resize(static_cast<std::size_t>(in.gcount()));
  return text;
}

void add_file(Bundle& bundle, const fs::path& file, const std::string& name, Redaction& redact) {
  const bool whole = fs::file_size(file) <= kLongest;
  std::string text = whole ? record::read_text(file) : end_of(file, kEnd);
  if (text.find('\0') != text.npos) {
    bundle.left_out.push_back(name);
    return;
  }
  if (!whole) {
    const std::size_t line = text.find('\n');
    text.erase(0, line == text.npos ? 0 : line + 1);
    bundle.cut.push_back(name);
  }
  bundle.files[name] = redact(text);
}

void add_folder(Bundle& bundle, const fs::path& folder, const std::string& name,
                Redaction& redact) {
  if (!fs::exists(folder)) return;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file() && !entry.is_symlink())
      add_file(bundle, entry.path(), name + "/" + fs::relative(entry.path(), folder).string(),
               redact);
}

std::string stack_rows(const record::Stack& stack) {
  std::string gpus;
  for (const std::string& gpu : stack.gpus) gpus += (gpus.empty() ? "" : ", ") + gpu;
  std::string rows = "| part | version |\n| --- | --- |\n";
  const std::pair<const char*, std::string> parts[] = {{"GPUs", gpus},
                                                       {"driver", stack.driver},
                                                       {"CUDA", stack.cuda_version},
                                                       {"NCCL", stack.nccl_version},
                                                       {"PyTorch", stack.torch_version},
                                                       {"cuDNN", stack.cudnn_version},
                                                       {"kernel", stack.kernel}};
  for (const auto& [part, version] : parts)
    if (!version.empty()) rows += fmt::format("| {} | {} |\n", part, version);
  for (const auto& [name, state] : stack.subjects)
    if (state.available) rows += fmt::format("| {} | {} |\n", name, state.version);
  return rows;
}

std::string list_of(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += "- `" + name + "`\n";
  return text;
}

std::string readme(const record::Record& record, const record::PlanLine& line,
                   const record::Run& run, const Reproducer& reproducer, const Bundle& bundle,
                   const Redaction& redact) {
  std::string text =
      fmt::format("# {}: {}\n\n{}\n\n", record.verdict.text(), record.name, record.reason);
  text +=
      fmt::format("Case {}, {} rank{}, device {}, run {} of {}.\n", line.id, line.ranks,
                  line.ranks == 1 ? "" : "s", record.context.device, record.run_id, run.started);
  if (record.context.device == "sim")
    text += "\n**The case ran on the simulated device: this says nothing about CUDA or a GPU.**\n";
  text += "\n## What failed\n\n";
  if (record.failing.empty()) text += "No check failed.\n";
  for (const record::Failing& one : record.failing) {
    text += fmt::format("- {}{}{}\n", one.check.empty() ? "" : "`" + one.check + "` ",
                        one.rank ? fmt::format("on rank {}: ", *one.rank) : "", one.message.what);
    for (const auto& [name, part] :
         {std::pair{"got", one.message.got}, {"want", one.message.want}, {"why", one.message.why}})
      if (!part.empty()) text += fmt::format("  - {}: {}\n", name, part);
  }
  text += "\n## The software and hardware\n\n" + stack_rows(run.stack);
  text += "\n## To repeat it\n\n";
  if (reproducer.why_not.empty())
    text += fmt::format(
        "`reproducer.py` does the same with PyTorch alone, and is short. It sets the environment\n"
        "of the case by itself.\n\n```bash\n{}\n```\n",
        reproducer.command);
  else
    text += "There is no program without graphproof: " + reproducer.why_not + ".\n";
  text += fmt::format("\nWith graphproof:\n\n```bash\n./graphproof repro '{}'\n```\n", record.name);
  text +=
      "\n## The files\n\n"
      "| file | what it is |\n| --- | --- |\n"
      "| `record.json` | the verdict, its reason and what failed |\n"
      "| `plan.json` | the value of every axis, the environment and the limits |\n"
      "| `run.json` | the run and the stack |\n"
      "| `attempt/` | what every rank measured (`rank-R.evidence.jsonl`) and each check's result "
      "|\n"
      "| `batch/` | the logs of the ranks and of their starter |\n";
  if (!bundle.cut.empty())
    text += fmt::format("\nOnly the last {} MiB of these are here:\n\n{}", kEnd >> 20,
                        list_of(bundle.cut));
  if (!bundle.left_out.empty())
    text += "\nThese are not here, because they are not text:\n\n" + list_of(bundle.left_out);
  text += "\n## What was taken out\n\n";
  if (redact.counts().empty()) text += "Nothing.\n";
  for (const auto& [word, count] : redact.counts())
    text += fmt::format("- `{}` stands for something in {} place{}\n", word, count,
                        count == 1 ? "" : "s");
  return text;
}

/// Packs a folder. The same files give the same archive.
void pack(const fs::path& parent, const std::string& name, const fs::path& file) {
  const launcher::Output output = launcher::run_to_end(
      {{"tar", "--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner",
        "--mode=a=rX,u+w", "-C", parent.string(), "-czf", file.string(), name},
       launcher::own_environment()},
      kTar_ms);
  if (output.timed_out || !(output.exit == launcher::Exit{}))
    throw record::WriteError({file.string() + " could not be written",
                              output.timed_out ? "tar did not end" : output.error, "an archive", "",
                              "look at the free space of the disk"});
}

/// A folder for the time of this object.
class Workplace {
 public:
  Workplace() {
    std::string name = fs::temp_directory_path() / "graphproof-bundle-XXXXXX";
    if (mkdtemp(name.data()) == nullptr)
      throw record::WriteError({"no temporary folder could be made", name, "a folder", "",
                                "set TMPDIR to a folder that can be written"});
    path = name;
  }
  ~Workplace() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  Workplace(const Workplace&) = delete;
  Workplace& operator=(const Workplace&) = delete;

  fs::path path;
};

record::ExitCode execute_bundle(const BundleOptions& options, Surroundings& surroundings) {
  const FoundCase found = find_case(options.reference, surroundings);
  std::optional<record::Record> record;
  if (found.run) record = last_record(*found.run, found.line->id);
  if (!record)
    throw matrix::InputError({"the case has no result to report", options.reference,
                              "a case that ran", "an archive without evidence shows nothing",
                              "run it: graphproof repro " + options.reference});
  const record::PlanLine& line = *found.line;
  const fs::path run_file = *found.run / "run.json";
  const record::Run run = record::run_from(record::read_json(run_file), run_file.string());
  const std::string name = "graphproof-" + line.id.substr(0, 8);
  const fs::path file = fs::absolute(options.file.value_or(name + ".tar.gz"));
  if (fs::exists(file))
    throw matrix::InputError({file.string() + " exists", "a file of that name",
                              "a name that is free", "what is in it would be lost",
                              "choose another name: --file"});

  Redaction redact;
  hide_names(redact, run);
  Bundle bundle;
  const auto add_json = [&](const char* file_name, const record::Json& value) {
    bundle.files[file_name] = redact(value.dump(2) + "\n");
  };
  add_json("record.json", record::to_json(*record));
  add_json("plan.json", record::to_json(line));
  add_json("run.json", record::to_json(run));
  if (!record->artefacts.empty())
    add_folder(bundle, *found.run / record->artefacts, "attempt", redact);
  const fs::path batch = *found.run / "batches" / record->context.batch;
  if (!record->context.batch.empty() && fs::exists(batch))
    for (const fs::directory_entry& entry : fs::directory_iterator(batch))
      if (entry.path().extension() == ".log")
        add_file(bundle, entry.path(), "batch/" + entry.path().filename().string(), redact);
  const Reproducer reproducer =
      reproducer_of(found.test_case, line, run.seed, run.stack.environment, surroundings.programs);
  if (reproducer.why_not.empty()) bundle.files["reproducer.py"] = redact(reproducer.text);
  const std::string front = redact(readme(*record, line, run, reproducer, bundle, redact));
  bundle.files["README.md"] = front;

  const Workplace workplace;
  for (const auto& [inside, text] : bundle.files) {
    fs::create_directories((workplace.path / name / inside).parent_path());
    record::write_atomically(workplace.path / name / inside, text, record::Survives::kill);
  }
  pack(workplace.path, name, file);
  if (options.json) {
    record::Json names = record::Json::array();
    for (const auto& [inside, text] : bundle.files) names.push_back(inside);
    surroundings.out << record::Json{{"file", file.string()},
                                     {"case", line.id},
                                     {"files", names},
                                     {"reproducer", reproducer.why_not.empty()},
                                     {"why_not", reproducer.why_not},
                                     {"redacted", redact.counts()}}
                            .dump(2)
                     << "\n";
    return record::ExitCode::ok;
  }
  surroundings.out << file.string() << ": " << bundle.files.size() << " files, "
                   << (reproducer.why_not.empty()
                           ? "and a program that repeats the case: " + reproducer.command
                           : "no program that repeats the case: " + reproducer.why_not)
                   << "\nRead it before you send it: " << name
                   << "/README.md says what was taken out.\n";
  return record::ExitCode::ok;
}

}  // namespace

Action declare_bundle(CLI::App& app) {
  const auto options = std::make_shared<BundleOptions>();
  app.add_option("CASE", options->reference,
                 "an id prefix or a name in the latest run, or RUN/CASE")
      ->required()
      ->type_name("CASE");
  app.add_option("--file", options->file, "the archive (default: graphproof-ID.tar.gz)")
      ->type_name("FILE");
  app.add_flag("--json", options->json, "print what is in it as one JSON object");
  return [options](Surroundings& surroundings) { return execute_bundle(*options, surroundings); };
}

}  // namespace graphproof::cli
