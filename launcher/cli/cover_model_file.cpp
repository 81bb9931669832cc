#include "launcher/cli/cover_model_file.h"

#include <algorithm>
#include <array>
#include <utility>

#include "launcher/cli/device_option.h"
#include "launcher/cli/input_file.h"
#include "matrix/input/input_error.h"
#include "matrix/plan/covering.h"

namespace graphproof::cli {
namespace {

constexpr std::array<std::pair<std::string_view, cover::Format>, 4> kFormats = {
    {{"auto", cover::Format::automatic},
     {"pict", cover::Format::pict},
     {"acts", cover::Format::acts},
     {"clauses", cover::Format::clauses}}};

}  // namespace

void declare(CLI::App& app, ModelOptions& options) {
  app.add_option("MODEL", options.path, "the file of the model")->required()->type_name("FILE");
  app.add_option("--format", options.format,
                 "the format of the model; graphproof is a matrix file (default: auto, by its "
                 "content)")
      ->type_name("auto|pict|acts|clauses|graphproof");
  app.add_option("--device", options.device,
                 "for a matrix file: the device whose cases are meant (default: sim)")
      ->type_name(kDevices);
}

cover::ModelFile read_model_file(const ModelOptions& options, const Surroundings& surroundings) {
  const std::string text = read_input(options.path);
  const bool is_matrix_file =
      options.format == "graphproof" ||
      (options.format == "auto" && text.find("\"graphproof-matrix/") != std::string::npos);
  if (is_matrix_file) {
    const matrix::Machine machine = machine_of(device_for_planning(options.device, surroundings));
    cover::ModelFile file;
    const matrix::MatrixFile matrix_file =
        matrix::parse_matrix_file(text, options.path, surroundings.catalogue, read_input);
    file.model =
        matrix::cover_model(matrix_file, surroundings.catalogue, machine, std::nullopt, true);
    return file;
  }
  std::vector<std::string> names;
  for (const auto& [name, format] : kFormats) {
    if (name == options.format) return cover::read_model(text, options.path, format);
    names.emplace_back(name);
  }
  names.emplace_back("graphproof");
  throw matrix::InputError({"no format `" + options.format + "`", options.format,
                            "one of " + matrix::listed(names), "",
                            matrix::suggestion(options.format, names, "leave it out")});
}

nlohmann::json cells_json(const cover::Model& model, const cover::Cells& cells) {
  nlohmann::json object = nlohmann::json::object();
  for (const cover::Cell& cell : cells) {
    const cover::Parameter& parameter = model.parameters[static_cast<std::size_t>(cell.parameter)];
    object[parameter.name] = parameter.values[static_cast<std::size_t>(cell.value)].names[0];
  }
  return object;
}

}  // namespace graphproof::cli
