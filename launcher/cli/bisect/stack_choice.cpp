#include "launcher/cli/bisect/stack_choice.h"

#include "matrix/input/input_error.h"
#include "reports/record/text/file.h"

namespace graphproof::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kVariable = "env ";

/// The folder of PyTorch's libraries in a virtual environment; empty if there is none.
fs::path torch_libraries(const fs::path& environment) {
  std::error_code absent;
  for (const fs::directory_entry& python : fs::directory_iterator(environment / "lib", absent)) {
    const fs::path folder = python.path() / "site-packages/torch/lib";
    if (fs::is_directory(folder, absent)) return folder;
  }
  return {};
}

bool has_library(const fs::path& folder, const std::string& name) {
  std::error_code absent;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, absent))
    if (entry.path().filename().string().starts_with(name)) return true;
  return false;
}

void expect_part(const fs::path& file, const std::string& part, const std::string& value) {
  const bool there = part == "torch"
                         ? !torch_libraries(value).empty()
                         : has_library(value, part == "nccl" ? "libnccl.so" : "libcuda.so");
  if (there) return;
  throw matrix::InputError({"a part of a stack is not there", part + ": " + value,
                            part == "torch"  ? "a virtual environment with PyTorch"
                            : part == "nccl" ? "a folder with libnccl.so"
                                             : "a folder with libcuda.so",
                            "the case would run with another one", "correct " + file.string()});
}

}  // namespace

StackChoice stack_choice_from(const fs::path& file) {
  const nlohmann::json value = record::read_json(file);
  StackChoice choice;
  const auto refuse = [&](const std::string& got) {
    throw matrix::InputError({"a stack can't be read", file.string() + ": " + got,
                              "an object with nccl, torch, driver (texts) and environment (an "
                              "object of texts)",
                              "a part that is not understood would not be swapped",
                              "see docs/guide/comparing-runs.md"});
  };
  if (!value.is_object()) refuse("no object");
  for (const auto& [part, content] : value.items()) {
    if (part == "environment") {
      if (!content.is_object()) refuse("environment is no object");
      for (const auto& [name, text] : content.items()) {
        if (!text.is_string()) refuse("environment." + name + " is no text");
        choice[kVariable + name] = text;
      }
    } else if (part == "nccl" || part == "torch" || part == "driver") {
      if (!content.is_string()) refuse(part + " is no text");
      const std::string path = fs::absolute(std::string(content)).lexically_normal();
      expect_part(file, part, path);
      choice[part] = path;
    } else {
      refuse("an unknown part: " + part);
    }
  }
  return choice;
}

std::vector<std::string> differences(const StackChoice& a, const StackChoice& b) {
  StackChoice all = a;
  all.insert(b.begin(), b.end());
  std::vector<std::string> names;
  for (const auto& [name, value] : all) {
    const auto left = a.find(name), right = b.find(name);
    if (left == a.end() || right == b.end() || left->second != right->second) names.push_back(name);
  }
  return names;
}

launcher::Environment environment_of(const StackChoice& a, const StackChoice& b,
                                     const std::set<std::string>& of_b, launcher::Environment own) {
  const auto value_of = [&](const std::string& name) {
    const StackChoice& from = of_b.contains(name) ? b : a;
    const auto found = from.find(name);
    return found == from.end() ? std::string() : found->second;
  };
  std::string libraries;
  const auto add = [&](const std::string& folder) {
    if (!folder.empty()) libraries += (libraries.empty() ? "" : ":") + folder;
  };
  add(value_of("driver"));
  add(value_of("nccl"));
  if (const std::string torch = value_of("torch"); !torch.empty()) {
    add(torch_libraries(torch));
    own["GRAPHPROOF_PYTHON"] = torch + "/bin/python3";
  }
  if (const auto earlier = own.find("LD_LIBRARY_PATH"); earlier != own.end()) add(earlier->second);
  if (!libraries.empty()) own["LD_LIBRARY_PATH"] = libraries;
  StackChoice all = a;
  all.insert(b.begin(), b.end());
  for (const auto& [name, unused] : all) {
    if (!name.starts_with(kVariable)) continue;
    const std::string variable = name.substr(std::string(kVariable).size());
    if (const std::string value = value_of(name); value.empty())
      own.erase(variable);
    else
      own[variable] = value;
  }
  return own;
}

}  // namespace graphproof::cli
