// ci: prints a pipeline file that runs a profile in shards and merges their runs.
#include <algorithm>
#include <memory>

#include "launcher/cli/pipelines.h"
#include "launcher/cli/verb.h"
#include "matrix/input/input_error.h"

namespace graphproof::cli {
namespace {

struct Kind {
  const char* name;
  const char* file;  // where the service expects it
  std::string (*text)(const Pipeline&);
};

constexpr Kind kKinds[] = {{"gitlab", ".gitlab-ci.yml", gitlab_pipeline},
                           {"github", ".github/workflows/graphproof.yml", github_pipeline},
                           {"slurm", "graphproof-nightly.sh", slurm_pipeline}};

struct CiOptions {
  std::string kind;
  Pipeline pipeline;
  bool json = false;
};

/// Throws InputError unless `text` can be a word of a command without quoting.
void expect_word(const std::string& option, const std::string& text) {
  if (text.find_first_not_of(
          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:/") == text.npos)
    return;
  throw matrix::InputError({option + " has other characters than a word", text,
                            "letters, digits and _ - . : /", "it becomes part of a command",
                            "edit the printed file where it has to be something else"});
}

record::ExitCode execute_ci(const CiOptions& options, Surroundings& surroundings) {
  const auto kind = std::find_if(std::begin(kKinds), std::end(kKinds),
                                 [&](const Kind& one) { return options.kind == one.name; });
  if (kind == std::end(kKinds)) {
    const std::vector<std::string> names = {"gitlab", "github", "slurm"};
    throw matrix::InputError(
        {"no pipeline `" + options.kind + "`", options.kind, "gitlab, github or slurm", "",
         matrix::suggestion(options.kind, names, "graphproof ci gitlab > .gitlab-ci.yml")});
  }
  const Pipeline& pipeline = options.pipeline;
  // GitHub silently cuts a matrix at 256 jobs.
  if (pipeline.shards < 1 || pipeline.shards > 256)
    throw matrix::InputError({"--shards is out of range", std::to_string(pipeline.shards),
                              "1 to 256", "GitHub runs no more jobs of a matrix",
                              "a shard may have several nodes: --launcher slurm --nodes N"});
  expect_word("--profile", pipeline.profile);
  expect_word("--device", pipeline.device);
  expect_word("--budget", pipeline.budget);
  for (const std::string& tag : pipeline.tags) expect_word("--tag", tag);
  const std::string text = kind->text(pipeline);
  if (options.json)
    surroundings.out << nlohmann::json{{"file", kind->file}, {"text", text}}.dump(2) << "\n";
  else
    surroundings.out << text;
  return record::ExitCode::ok;
}

}  // namespace

Action declare_ci(CLI::App& app) {
  const auto options = std::make_shared<CiOptions>();
  app.add_option("KIND", options->kind, "gitlab, github or slurm")
      ->required()
      ->type_name("gitlab|github|slurm");
  app.add_option("--shards", options->pipeline.shards, "parts that run concurrently (default: 4)")
      ->type_name("N");
  app.add_option("--profile", options->pipeline.profile, "what to run (default: nightly)")
      ->type_name("PROFILE");
  app.add_option("--device", options->pipeline.device, "where to run it (default: cuda)")
      ->type_name("cuda|sim");
  app.add_option("--budget", options->pipeline.budget, "the time budget of each shard, such as 4h")
      ->type_name("TIME");
  app.add_option("--tag", options->pipeline.tags,
                 "a tag of the runners; may be given several times (default: gpu)")
      ->type_name("TAG");
  app.add_flag("--json", options->json, "print the name and the text of the file as JSON");
  return [options](Surroundings& surroundings) { return execute_ci(*options, surroundings); };
}

}  // namespace graphproof::cli
