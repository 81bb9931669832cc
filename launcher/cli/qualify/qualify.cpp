// qualify: may this software stack be used? Asks the doctor, runs profiles as stages, and writes
// one sheet with what was shown, what was not, and a digest over all evidence. Of two images it
// also writes how B differs from A.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <memory>
#include <sstream>

#include "launcher/cli/device_option.h"
#include "launcher/cli/qualify/image.h"
#include "launcher/cli/qualify/seal.h"
#include "launcher/cli/qualify/stages.h"
#include "launcher/cli/run_options.h"
#include "launcher/cli/verb.h"
#include "launcher/run/run_folder.h"
#include "launcher/run/run_reports.h"
#include "matrix/input/input_error.h"
#include "matrix/plan/listing.h"
#include "reports/analysis/compare.h"
#include "reports/analysis/gates.h"
#include "reports/outcome/faults.h"
#include "reports/record/text/file.h"

namespace graphproof::cli {
namespace {

namespace fs = std::filesystem;
using reports::Qualification;

/// The stages that are run unless --stages names others; performance only if it is a profile.
constexpr std::array kStages = {"faults",   "constraints", "hazards",    "layouts",
                                "subjects", "soak",        "performance"};
/// The checks that judge times have this detector.
constexpr std::string_view kPerformanceDetector = "D44";
// Signing one short file; a program that asks for a password gets no answer and is ended.
constexpr std::int64_t kMinisign_ms = 60'000;

struct QualifyOptions {
  std::string device, with, program = "graphproof";
  std::vector<std::string> images;
  std::optional<std::string> stages, run_dir, resume, minisign;
  int parts = 8;
  bool json = false;
};

/// request.json: what a qualification was asked for. A continued one takes it from there.
struct Request {
  std::string id, started, device, with, program;
  std::vector<std::string> command, stages, images, options;
  int parts = 8;
  double seconds = 0;  // of all sessions so far
};

constexpr const char* kRequestSchema = "graphproof-request/1";

record::Json as_json(const Request& request) {
  return {{"schema", kRequestSchema},   {"id", request.id},           {"started", request.started},
          {"command", request.command}, {"device", request.device},   {"stages", request.stages},
          {"images", request.images},   {"with", request.with},       {"program", request.program},
          {"parts", request.parts},     {"options", request.options}, {"seconds", request.seconds}};
}

Request recorded_request(const fs::path& folder) {
  const fs::path file = folder / "request.json";
  if (!fs::exists(file))
    throw matrix::InputError({"no qualification is in this folder", folder.string(),
                              "a folder that qualify made", "request.json is missing",
                              "begin one: graphproof qualify --run-dir " + folder.string()});
  const nlohmann::json value = record::read_json(file);
  const record::Fields in(value, file.string());
  in.schema(kRequestSchema);
  return {.id = in.required<std::string>("id"),
          .started = in.required<std::string>("started"),
          .device = in.word("device", {"sim", "cuda"}),
          .with = in.required<std::string>("with"),
          .program = in.required<std::string>("program"),
          .command = in.required<std::vector<std::string>>("command"),
          .stages = in.required<std::vector<std::string>>("stages"),
          .images = in.required<std::vector<std::string>>("images"),
          .options = in.required<std::vector<std::string>>("options"),
          .parts = in.required<int>("parts"),
          .seconds = in.required<double>("seconds")};
}

/// The meaning of each profile.
std::map<std::string, std::string> profiles(const matrix::Catalogue& catalogue) {
  std::map<std::string, std::string> all;
  for (const nlohmann::json& row : matrix::list_profiles(catalogue))
    all[row.at("profile")] = row.at("meaning");
  return all;
}

std::string default_stages(const std::map<std::string, std::string>& known) {
  std::string list;
  for (const char* name : kStages)
    if (known.contains(name)) list += (list.empty() ? "" : ",") + std::string(name);
  return list;
}

std::vector<std::string> stages_of(const std::string& text,
                                   const std::map<std::string, std::string>& known) {
  std::vector<std::string> names, list;
  for (const auto& [name, meaning] : known) names.push_back(name);
  std::istringstream in(text);
  for (std::string name; std::getline(in, name, ',');) {
    if (!known.contains(name) || std::ranges::count(list, name) > 0)
      throw matrix::InputError(
          {known.contains(name) ? "a stage is named twice" : "no such stage", "`" + name + "`",
           "profiles, separated by commas: " + matrix::listed(names), "a stage is a profile",
           matrix::suggestion(name, names, "--stages " + default_stages(known))});
    list.push_back(name);
  }
  if (list.empty())
    throw matrix::InputError({"no stage", "`" + text + "`", "one stage or more", "",
                              "--stages " + default_stages(known)});
  return list;
}

Request new_request(const QualifyOptions& options, const Surroundings& surroundings) {
  if (options.images.size() > 2)
    throw matrix::InputError({"too many images", std::to_string(options.images.size()),
                              "one or two --image", "A is compared with B",
                              "qualify them in pairs"});
  if (options.parts < 1)
    throw matrix::InputError({"--parts is out of range", std::to_string(options.parts), "1 or more",
                              "", "leave it out"});
  const std::map<std::string, std::string> known = profiles(surroundings.catalogue);
  Request request{.id = new_run_id(),
                  .started = launcher::utc_text(std::time(nullptr)),
                  .device = options.device,
                  .with = options.with,
                  .program = options.program,
                  .command = surroundings.command_line,
                  .stages = stages_of(options.stages.value_or(default_stages(known)), known),
                  .images = options.images,
                  .options = surroundings.words,
                  .parts = options.parts};
  if (!request.images.empty()) {
    request.with = container_program(request.with);
    // Only the image knows whether it can use the GPUs, and its answer must not change in between.
    if (request.device.empty() || request.device == "auto") request.device = "cuda";
  } else if (request.device.empty() || request.device == "auto") {
    request.device = device_of("auto", surroundings).name;
  }
  if (request.device != "sim" && request.device != "cuda") device_of(request.device, surroundings);
  return request;
}

StageCommands commands_of(const Request& request, const fs::path& folder,
                          const Surroundings& surroundings) {
  StageCommands commands{.folder = folder,
                         .device = request.device,
                         .options = request.options,
                         .parts = request.parts,
                         .program = surroundings.programs / "graphproof",
                         .starts = {}};
  if (request.images.empty()) commands.starts.push_back({"", {commands.program}});
  for (std::size_t i = 0; i < request.images.size(); ++i) {
    std::vector<std::string> start = in_image({.with = request.with,
                                               .folder = folder,
                                               .current = fs::current_path(),
                                               .gpus = request.device == "cuda"},
                                              request.images[i]);
    start.push_back(request.program);
    const std::string name = request.images.size() == 1 ? "" : i == 0 ? "A" : "B";
    commands.starts.push_back({name, start});
  }
  return commands;
}

/// The stack of one image or of this machine. A continued qualification must find the one that it
/// began on.
reports::QualifiedStack stack_from(const nlohmann::json& doctor, const fs::path& recorded,
                                   const std::string& image, const std::string& source) {
  reports::QualifiedStack stack{.image = image, .source = source};
  stack.host = doctor.at("host");
  stack.sound = doctor.at("health") != "failure";
  for (const nlohmann::json& one : doctor.at("findings"))
    if (one.at("health") != "ok")
      stack.troubles.push_back(
          fmt::format("{} {}: {}; want {}; {}", one.at("health").get<std::string>(),
                      one.at("check").get<std::string>(), one.at("got").get<std::string>(),
                      one.at("want").get<std::string>(), one.at("why").get<std::string>()));
  for (const nlohmann::json& one : doctor.value("libraries", nlohmann::json::array()))
    stack.libraries.push_back({one.at("path"), one.at("sha256")});
  stack.libraries_incomplete = doctor.value("libraries_incomplete", "");
  if (!fs::exists(recorded)) {
    record::write_atomically(recorded, doctor.dump(2) + "\n");
    return stack;
  }
  const nlohmann::json before =
      record::read_json(recorded).value("libraries", nlohmann::json::array());
  for (const nlohmann::json& one : doctor.value("libraries", nlohmann::json::array()))
    if (std::find(before.begin(), before.end(), one) == before.end())
      throw matrix::InputError({"the stack is not the one that the qualification began on",
                                one.dump(), "the libraries in " + recorded.string(),
                                "one sheet is a result about one stack",
                                "begin a new one: graphproof qualify"});
  return stack;
}

reports::StageComparison comparison_of(const StageCommands& commands, const std::string& stage) {
  reports::StageComparison result{.stage = stage};
  const fs::path a = stage_folder(commands, stage, "A"), b = stage_folder(commands, stage, "B");
  if (!fs::exists(a / "summary.json") || !fs::exists(b / "summary.json")) {
    result.fault = "one of the two has no result";
    return result;
  }
  const reports::RunResult left = launcher::read_verdicts(a), right = launcher::read_verdicts(b);
  if (const auto reason = reports::not_comparable(left, right)) {
    result.fault = reason->got + ": " + reason->why;
    return result;
  }
  result.comparison =
      reports::to_json(reports::compare(left, right, reports::drifts(left, a, right, b)), {});
  return result;
}

/// Whether every run that was recorded had its cases on this node.
bool on_one_node(const StageCommands& commands, const std::vector<reports::Stage>& stages) {
  return std::ranges::all_of(stages, [&](const reports::Stage& stage) {
    const fs::path file = commands.folder / stage.folder / "run.json";
    return !fs::exists(file) ||
           record::run_from(record::read_json(file), file.string()).engine == "local";
  });
}

/// Whether a case of some stage had a limit for its times that was judged.
bool judges_times(const Qualification& qualification) {
  const auto judged = [](const record::SummaryCase& one) {
    return std::ranges::any_of(one.checks, [](const auto& check) {
      return reports::of_detector(check.first, std::string(kPerformanceDetector)) &&
             (check.second == record::Result::pass || check.second == record::Result::fail);
    });
  };
  return std::ranges::any_of(qualification.stages, [&](const reports::Stage& stage) {
    return stage.summary && std::ranges::any_of(stage.summary->cases, judged);
  });
}

void write_sheets(const Qualification& qualification, const fs::path& folder) {
  record::write_json(folder / "qualification.json", reports::to_json(qualification));
  record::write_atomically(folder / "qualification.txt", qualification_text(qualification));
  record::write_atomically(folder / "qualification.md", qualification_markdown(qualification));
  record::write_atomically(folder / "qualification.html", qualification_page(qualification));
}

/// Signs SHA256SUMS. Returns what went wrong; "" if nothing did.
std::string sign(const fs::path& folder, const std::string& key) {
  try {
    const launcher::Output output =
        launcher::run_to_end({{"minisign", "-S", "-s", key, "-m", (folder / kSums).string()},
                              launcher::own_environment()},
                             kMinisign_ms);
    if (!output.timed_out && output.exit == launcher::Exit{}) return "";
    return "minisign failed: " + output.error + output.out;
  } catch (const std::system_error& error) {
    return error.what();
  }
}

void refuse_minisign(const std::string& key) {
  const bool installed = !launcher::find_program("minisign", launcher::own_environment()).empty();
  if (installed && fs::exists(key)) return;
  throw matrix::InputError(
      {"the sheet can't be signed", installed ? "no file " + key : "no program minisign in PATH",
       "minisign and a secret key without a password", "--minisign signs SHA256SUMS",
       installed ? "make one: minisign -G -W -s " + key
                 : "install minisign, or leave the option out"});
}

/// A folder that is made now, and is removed with what was made for it unless it is kept.
class NewFolder {
 public:
  explicit NewFolder(const fs::path& folder) {
    for (fs::path one = folder; !one.empty() && !fs::exists(one); one = one.parent_path())
      first_made_ = one;
    fs::create_directories(folder);
  }
  ~NewFolder() {
    std::error_code ignored;
    if (!first_made_.empty()) fs::remove_all(first_made_, ignored);
  }
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

  void keep() { first_made_.clear(); }

 private:
  fs::path first_made_;
};

record::ExitCode execute_qualify(const QualifyOptions& options, Surroundings& surroundings) {
  const auto begin = std::chrono::steady_clock::now();
  if (options.resume && options.run_dir)
    throw matrix::InputError({"--resume together with --run-dir", *options.run_dir, "one of them",
                              "the folder of a continued qualification is its own",
                              "drop --run-dir"});
  if (options.minisign) refuse_minisign(*options.minisign);
  Request request =
      options.resume ? recorded_request(*options.resume) : new_request(options, surroundings);
  const fs::path folder = fs::absolute(options.resume    ? fs::path(*options.resume)
                                       : options.run_dir ? fs::path(*options.run_dir)
                                                         : fs::path("qualifications") / request.id)
                              .lexically_normal();
  if (!options.resume && fs::exists(folder) && !fs::is_empty(folder))
    throw matrix::InputError({"the folder is not empty", folder.string(), "an empty folder",
                              "files of another qualification would be signed with this one",
                              "continue it with --resume, or choose another folder"});
  const StageCommands commands = commands_of(request, folder, surroundings);

  // The doctor comes first, because an image that does not start must end it all at once. Images
  // are started with the folder bound into them, so it has to be there.
  NewFolder made(folder);
  std::vector<nlohmann::json> doctors;
  for (std::size_t i = 0; i < commands.starts.size(); ++i)
    doctors.push_back(ask_doctor(
        commands.starts[i].second,
        request.images.empty() ? "this machine" : "image " + request.images[i], request.device));
  made.keep();
  Qualification qualification{.id = request.id,
                              .started = request.started,
                              .command = request.command,
                              .device = request.device};
  for (std::size_t i = 0; i < doctors.size(); ++i) {
    const std::string& image = commands.starts[i].first;
    qualification.stacks.push_back(
        stack_from(doctors[i], folder / ("doctor" + (image.empty() ? "" : "-" + image) + ".json"),
                   image, request.images.empty() ? "" : request.images[i]));
  }
  if (!options.resume) record::write_json(folder / "request.json", as_json(request));

  {
    launcher::Signals signals;
    qualification.interrupted =
        run_stages(commands, request.stages, signals,
                   [&](const std::string& line) { surroundings.err << line << "\n"; });
  }

  const std::map<std::string, std::string> meanings = profiles(surroundings.catalogue);
  for (const std::string& name : request.stages)
    for (const auto& [image, start] : commands.starts) {
      qualification.stages.push_back(stage_from(commands, name, image));
      const auto meaning = meanings.find(name);
      if (meaning != meanings.end()) qualification.stages.back().meaning = meaning->second;
    }
  if (commands.starts.size() == 2)
    for (const std::string& name : request.stages)
      qualification.comparisons.push_back(comparison_of(commands, name));
  for (const std::string name : kStages)
    if (std::ranges::count(request.stages, name) == 0)
      qualification.not_asked.push_back(
          {"stage " + name, meanings.contains(name) ? "--stages did not name it"
                                                    : "this graphproof has no such profile"});
  if (!request.options.empty())
    qualification.not_asked.push_back(
        {"cases that the options of the runs leave out",
         fmt::format("the runs were given {}", fmt::join(request.options, " "))});
  if (!judges_times(qualification))
    qualification.not_asked.push_back(
        {"whether graphs are fast enough", "no case that ran has a limit for its times"});
  qualification.one_node = on_one_node(commands, qualification.stages);
  request.seconds +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  qualification.seconds = request.seconds;
  record::write_json(folder / "request.json", as_json(request));
  const Seal sealed = seal(folder);
  qualification.signed_files = sealed.files;
  qualification.signature = sealed.sha256;
  write_sheets(qualification, folder);

  record::ExitCode code = reports::exit_code(qualification);
  if (options.minisign)
    if (const std::string fault = sign(folder, *options.minisign); !fault.empty()) {
      surroundings.err << "graphproof: the sheet is not signed: " << fault << "\n";
      code = record::stronger(code, record::ExitCode::infrastructure);
    }
  if (options.json)
    surroundings.out << reports::to_json(qualification).dump(2) << "\n";
  else
    surroundings.out << qualification_text(qualification)
                     << "sheet: " << (folder / "qualification.html").string() << "\n";
  if (qualification.interrupted)
    surroundings.err << "continue it: graphproof qualify --resume " << folder.string() << "\n";
  return code;
}

}  // namespace

Action declare_qualify(CLI::App& app) {
  const auto options = std::make_shared<QualifyOptions>();
  app.add_option("--stages", options->stages,
                 "profiles, separated by commas (default: faults, constraints, hazards, layouts, "
                 "subjects, soak; performance if it is a profile)")
      ->type_name("LIST");
  app.add_option("--device", options->device,
                 "where the cases run (default: auto; cuda in an image)")
      ->type_name(kDevices);
  app.add_option("--run-dir", options->run_dir,
                 "the folder of the qualification, absent or empty (default: qualifications/ID)")
      ->type_name("FOLDER");
  app.add_option("--resume", options->resume,
                 "continue the qualification in this folder, as it was asked for")
      ->type_name("FOLDER");
  app.add_option("--minisign", options->minisign,
                 "sign SHA256SUMS with this secret key, which has no password")
      ->type_name("FILE");
  app.option_defaults()->group("Images");
  app.add_option("--image", options->images,
                 "run inside this image; twice: compare the second with the first")
      ->type_name("IMAGE")
      ->allow_extra_args(false);
  app.add_option("--with", options->with,
                 "apptainer, singularity, podman or docker, or a command in which {image}, "
                 "{folder} and {current} are replaced (default: the first that is installed)")
      ->type_name("COMMAND");
  app.add_option("--program", options->program, "graphproof inside the image (default: graphproof)")
      ->type_name("PATH");
  app.add_option("--parts", options->parts,
                 "into how many parts a stage is cut, so that two images take turns (default: 8)")
      ->type_name("N");
  app.option_defaults()->group(kOutput);
  app.add_flag("--json", options->json, "print qualification.json and nothing else");
  return [options](Surroundings& surroundings) { return execute_qualify(*options, surroundings); };
}

}  // namespace graphproof::cli
