// Programs inside a container image: the command that a container program needs for it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace graphproof::cli {

/// How images are started.
struct Container {
  /// apptainer, singularity, podman or docker; or the words before a command, in which {image},
  /// {folder} and {current} stand for the image, the folder of the qualification and the current
  /// folder.
  std::string with;
  std::filesystem::path folder, current;  // both are visible inside under the same path
  bool gpus = false;
};

/// The container program that `wanted` means; for "" the first that this machine has. Throws
/// InputError if there is none.
std::string container_program(const std::string& wanted);

/// The words before a command that run it inside `image`.
std::vector<std::string> in_image(const Container& container, const std::string& image);

}  // namespace graphproof::cli
