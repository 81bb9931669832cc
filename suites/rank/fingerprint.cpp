#include "suites/rank/fingerprint.h"

#include <ATen/Context.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <dlfcn.h>
#define OMPI_SKIP_MPICXX 1  // the C++ bindings, removed in MPI 3.0, need another library
#include <mpi.h>
#include <sys/utsname.h>
#include <torch/version.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <regex>
#include <sstream>
#include <thread>
#include <vector>

extern char** environ;

namespace graphproof::suites {
namespace {

constexpr std::array kPrefixes = {std::string_view("NCCL_"),    std::string_view("CUDA_"),
                                  std::string_view("PYTORCH_"), std::string_view("OMPI_"),
                                  std::string_view("CUBLAS_"),  std::string_view("TORCH_"),
                                  std::string_view("OMP_"),     std::string_view("MKL_")};
constexpr std::array kSecretWords = {std::string_view("KEY"),        std::string_view("TOKEN"),
                                     std::string_view("SECRET"),     std::string_view("PASSWORD"),
                                     std::string_view("CREDENTIAL"), std::string_view("COOKIE")};

/// Variables of one job of Open MPI (ranks, sockets, process ids), which differ in each start and
/// do not describe the stack.
bool is_wiring(std::string_view name) {
  constexpr std::array kStackOmpi = {
      std::string_view("OMPI_MCA_mpi_"), std::string_view("OMPI_MCA_btl"),
      std::string_view("OMPI_MCA_pml"), std::string_view("OMPI_MCA_coll"),
      std::string_view("OMPI_MCA_rmaps")};
  if (!name.starts_with("OMPI_")) return false;
  return std::none_of(kStackOmpi.begin(), kStackOmpi.end(),
                      [&](std::string_view kept) { return name.starts_with(kept); });
}

// Queries of the NVIDIA management library, which makes no CUDA context. Its C interface is stable,
// so the few functions are looked up by name and no header is needed.
class Nvml {
 public:
  Nvml() : library_(dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {
    const auto init = function<int()>("nvmlInit_v2");
    ready_ = init && init() == 0;
  }
  ~Nvml() {
    if (const auto shutdown = function<int()>("nvmlShutdown"); ready_ && shutdown) shutdown();
    if (library_) dlclose(library_);
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  std::string driver() const {
    char text[96] = {};
    const auto ask = function<int(char*, unsigned)>("nvmlSystemGetDriverVersion");
    return ready_ && ask && ask(text, sizeof text) == 0 ? text : "none";
  }

  struct Gpu {
    std::string name, uuid;
    int sm = 0;
  };

  std::vector<Gpu> gpus() const {
    const auto count_of = function<int(unsigned*)>("nvmlDeviceGetCount_v2");
    const auto handle_of = function<int(unsigned, void**)>("nvmlDeviceGetHandleByIndex_v2");
    const auto name_of = function<int(void*, char*, unsigned)>("nvmlDeviceGetName");
    const auto uuid_of = function<int(void*, char*, unsigned)>("nvmlDeviceGetUUID");
    const auto capability_of =
        function<int(void*, int*, int*)>("nvmlDeviceGetCudaComputeCapability");
    std::vector<Gpu> found;
    unsigned count = 0;
    if (!ready_ || !count_of || !handle_of || !name_of || !uuid_of || !capability_of ||
        count_of(&count) != 0)
      return found;
    for (unsigned index = 0; index < count; ++index) {
      void* handle = nullptr;
      char name[128] = {}, uuid[128] = {};
      int major = 0, minor = 0;
      if (handle_of(index, &handle) != 0 || name_of(handle, name, sizeof name) != 0) continue;
      uuid_of(handle, uuid, sizeof uuid);
      capability_of(handle, &major, &minor);
      found.push_back({.name = name, .uuid = uuid, .sm = major * 10 + minor});
    }
    return found;
  }

 private:
  template <class Signature>
  std::add_pointer_t<Signature> function(const char* name) const {
    return library_ ? reinterpret_cast<std::add_pointer_t<Signature>>(dlsym(library_, name))
                    : nullptr;
  }

  void* library_;
  bool ready_ = false;
};

/// The GPUs that a CUDA program sees. CUDA_VISIBLE_DEVICES may contain indices or UUIDs, and the
/// first unknown one ends the list.
std::vector<Nvml::Gpu> visible(std::vector<Nvml::Gpu> gpus) {
  const char* chosen = std::getenv("CUDA_VISIBLE_DEVICES");
  if (!chosen) return gpus;
  std::vector<Nvml::Gpu> seen;
  std::istringstream names(chosen);
  for (std::string name; std::getline(names, name, ',');) {
    std::size_t index = gpus.size();
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
    if (error != std::errc() || end != name.data() + name.size())
      index = static_cast<std::size_t>(std::find_if(gpus.begin(), gpus.end(),
                                                    [&](const Nvml::Gpu& gpu) {
                                                      return !name.empty() &&
                                                             gpu.uuid.starts_with(name);
                                                    }) -
                                       gpus.begin());
    if (index >= gpus.size()) break;
    seen.push_back(gpus[index]);
  }
  return seen;
}

/// CUDA's version number as text: 13000 is "13.0".
std::string cuda_version_text(long version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string cuda_version() {
  // In a build of PyTorch without CUDA the hook throws, which means "none".
  try {
    return cuda_version_text(at::detail::getCUDAHooks().versionCUDART());
  } catch (const std::exception&) {
    return "none";
  }
}

std::string cudnn_version() {
  try {
    const long version = at::detail::getCUDAHooks().versionRuntimeCuDNN();
    // The number of version 9.0 and newer is major * 10000 + minor * 100 + patch.
    return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
           std::to_string(version % 100);
  } catch (const std::exception&) {
    return "none";
  }
}

std::string nccl_version() {
  const auto ask = reinterpret_cast<int (*)(int*)>(dlsym(RTLD_DEFAULT, "ncclGetVersion"));
  int version = 0;
  if (!ask || ask(&version) != 0) return "none";
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

std::string mpi_version() {
  // One of the few calls that MPI allows before MPI_Init.
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  if (MPI_Get_library_version(text, &length) != MPI_SUCCESS) return "none";
  std::string name(text, text + length);
  std::smatch match;
  if (std::regex_search(name, match, std::regex("Open MPI v?([0-9][0-9a-z.]*)")))
    return "Open MPI " + match[1].str();
  return name.substr(0, name.find_first_of(",\n"));
}

nlohmann::json stack_environment() {
  auto variables = nlohmann::json::object();
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string_view text(*entry);
    const auto cut = text.find('=');
    if (cut == std::string_view::npos) continue;
    const std::string_view name = text.substr(0, cut);
    if (is_stack_variable(name))
      variables[std::string(name)] = redacted(name, text.substr(cut + 1));
  }
  return variables;
}

}  // namespace

bool is_stack_variable(std::string_view name) {
  return std::any_of(kPrefixes.begin(), kPrefixes.end(),
                     [&](std::string_view prefix) { return name.starts_with(prefix); }) &&
         !is_wiring(name);
}

std::string redacted(std::string_view name, std::string_view value) {
  std::string upper(name);
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](unsigned char letter) { return std::toupper(letter); });
  for (const std::string_view word : kSecretWords)
    if (upper.find(word) != std::string::npos) return "redacted";
  // A URL with user and password.
  const auto scheme = value.find("://");
  const auto at =
      scheme == std::string_view::npos ? std::string_view::npos : value.find('@', scheme);
  return at == std::string_view::npos ? std::string(value) : "redacted";
}

std::string compute_sanitizer_version() {
  const std::unique_ptr<FILE, int (*)(FILE*)> answer(
      popen("compute-sanitizer --version 2>/dev/null", "r"), &pclose);
  std::string text;
  for (int c = answer ? std::fgetc(answer.get()) : EOF; c != EOF; c = std::fgetc(answer.get()))
    text += static_cast<char>(c);
  std::smatch match;
  return std::regex_search(text, match, std::regex("Version ([0-9]+(\\.[0-9]+)+)")) ? match[1].str()
                                                                                    : "none";
}

nlohmann::json fingerprint() {
  utsname system{};
  uname(&system);
  const std::string cuda = cuda_version();
  auto names = nlohmann::json::array();
  int sm = 0;
  std::string driver = "none";
  // A program without CUDA uses no GPU, even if the machine has some.
  if (cuda != "none") {
    const Nvml nvml;
    driver = nvml.driver();
    for (const Nvml::Gpu& gpu : visible(nvml.gpus())) {
      names.push_back(gpu.name);
      // If GPUs differ, the lowest architecture determines what all ranks may use.
      sm = sm == 0 ? gpu.sm : std::min(sm, gpu.sm);
    }
  }
  return {{"torch_version", std::to_string(TORCH_VERSION_MAJOR) + "." +
                                std::to_string(TORCH_VERSION_MINOR) + "." +
                                std::to_string(TORCH_VERSION_PATCH)},
          {"cuda_version", cuda},
          {"nccl_version", cuda == "none" ? "none" : nccl_version()},
          {"driver", driver},
          {"cudnn_version", cudnn_version()},
          {"mpi", mpi_version()},
          {"gpus", names},
          {"sm", sm},
          {"kernel", system.release},
          {"host", system.nodename},
          {"cpus", std::thread::hardware_concurrency()},
          {"compute_sanitizer", cuda == "none" ? "none" : compute_sanitizer_version()},
          {"environment", stack_environment()}};
}

}  // namespace graphproof::suites
