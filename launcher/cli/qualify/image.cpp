#include "launcher/cli/qualify/image.h"

#include <unistd.h>

#include <algorithm>
#include <sstream>

#include "launcher/host/child.h"
#include "matrix/input/input_error.h"

namespace graphproof::cli {
namespace {

// Those that need no daemon and no rights come first.
const std::vector<std::string> kPrograms = {"apptainer", "singularity", "podman", "docker"};

bool has(const std::string& program) {
  return !launcher::find_program(program, launcher::own_environment()).empty();
}

std::string replaced(std::string word, const std::string& from, const std::string& to) {
  for (std::size_t at = word.find(from); at != word.npos; at = word.find(from, at + to.size()))
    word.replace(at, from.size(), to);
  return word;
}

}  // namespace

std::string container_program(const std::string& wanted) {
  std::string first = wanted.substr(0, wanted.find(' '));
  if (first.empty()) {
    const auto found = std::ranges::find_if(kPrograms, has);
    if (found != kPrograms.end()) return *found;
  } else if (has(first)) {
    return wanted;
  }
  throw matrix::InputError({"no program that starts images", first.empty() ? "none" : first,
                            "one of " + matrix::listed(kPrograms) + " in PATH",
                            "the stages run inside the image",
                            "install one, or write --with \"COMMAND {image}\""});
}

std::vector<std::string> in_image(const Container& container, const std::string& image) {
  const std::string folder = container.folder.string(), current = container.current.string();
  if (container.with == "apptainer" || container.with == "singularity") {
    std::vector<std::string> words = {container.with, "exec",  "--bind", folder,
                                      "--bind",       current, "--pwd",  current};
    if (container.gpus) words.push_back("--nv");
    words.push_back(image);
    return words;
  }
  if (container.with == "podman" || container.with == "docker") {
    // Ranks share memory and find each other by the host's network. Files belong to the user.
    std::vector<std::string> words = {container.with,   "run",
                                      "--rm",           "--init",
                                      "--network=host", "--ipc=host",
                                      "--volume",       folder + ":" + folder,
                                      "--volume",       current + ":" + current,
                                      "--workdir",      current};
    if (container.with == "docker") {
      words.insert(words.end(),
                   {"--user", std::to_string(getuid()) + ":" + std::to_string(getgid())});
      if (container.gpus) words.insert(words.end(), {"--gpus", "all"});
    } else {
      words.insert(words.end(), {"--security-opt", "label=disable"});
      if (container.gpus) words.insert(words.end(), {"--device", "nvidia.com/gpu=all"});
    }
    words.push_back(image);
    return words;
  }
  std::vector<std::string> words;
  std::istringstream in(container.with);
  for (std::string word; in >> word;)
    words.push_back(replaced(replaced(replaced(word, "{image}", image), "{folder}", folder),
                             "{current}", current));
  return words;
}

}  // namespace graphproof::cli
