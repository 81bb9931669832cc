// new-subject: writes an example of a script that subject=script runs: a small model with its step,
// optimizer, batches and capture, with a comment for each part that a user replaces.
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <system_error>

#include "launcher/backend/local_command.h"
#include "launcher/cli/verb.h"
#include "matrix/case/case.h"
#include "matrix/input/input_error.h"
#include "reports/record/text/file.h"

namespace graphproof::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTemplate = "graphproof/subjects/template.py";  // in the Python package

std::string template_text(const fs::path& programs) {
  const fs::path file = launcher::python_packages(programs) / kTemplate;
  try {
    return record::read_text(file);
  } catch (const record::ReadError& error) {
    throw matrix::InputError({"the example of a script is missing", error.message().got,
                              file.string(), "the new file is a copy of it",
                              "run graphproof from its tree, which has it in python/"});
  }
}

/// Writes the text if there is no such file yet, in one step: a file of the user is never replaced.
void write_new(const fs::path& file, const std::string& text) {
  std::error_code absent;
  if (fs::exists(fs::symlink_status(file, absent)))
    throw matrix::InputError({file.string() + " exists", "a file of that name",
                              "a name that is free", "what is in it would be lost",
                              "choose another name, or remove it"});
  std::ofstream out(file, std::ios::binary);
  out << text;
  if (!out.flush())
    throw matrix::InputError(
        {"the script could not be written", file.string() + ": " + std::strerror(errno),
         "a folder that exists and can be written", "", "choose another place"});
}

struct NewSubjectOptions {
  std::string name;
  bool json = false;
};

record::ExitCode execute_new_subject(const NewSubjectOptions& options, Surroundings& surroundings) {
  const std::string& name = options.name;
  const std::string text = template_text(surroundings.programs);
  write_new(name, text);
  const matrix::AxisTable& axes = surroundings.catalogue.axes;
  matrix::Case test_case = case_from_name(axes, "subject=script,impl=manual", "new-subject");
  matrix::set_value(axes, test_case, "env.GRAPHPROOF_SCRIPT", fs::absolute(name).string());
  const std::string runs_it = matrix::case_name(axes, test_case);
  if (options.json) {
    surroundings.out << nlohmann::json({{"file", name}, {"case", runs_it}}).dump() << "\n";
    return record::ExitCode::ok;
  }
  surroundings.out << "wrote " << name << "\n"
                   << "run it on a machine with a GPU:\n"
                   << "  ./graphproof repro '" << runs_it << "'\n";
  return record::ExitCode::ok;
}

}  // namespace

Action declare_new_subject(CLI::App& app) {
  const auto options = std::make_shared<NewSubjectOptions>();
  app.add_option("file", options->name, "the Python file to write; it must not exist")
      ->required()
      ->type_name("FILE");
  app.add_flag("--json", options->json, "print one JSON object with the file and the case");
  return
      [options](Surroundings& surroundings) { return execute_new_subject(*options, surroundings); };
}

}  // namespace graphproof::cli
