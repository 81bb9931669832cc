#include "launcher/doctor/all_reduce.h"

#include <unistd.h>

#include <cstdio>
#include <system_error>

#include "launcher/backend/local_command.h"
#include "launcher/host/child.h"
#include "launcher/host/ending.h"
#include "launcher/host/host_folders.h"
#include "launcher/host/processes.h"
#include "reports/record/text/fields.h"
#include "reports/record/text/message.h"

namespace graphproof::launcher {
namespace {

namespace fs = std::filesystem;

// Ranks load LibTorch and make contexts and communicators, which takes seconds.
constexpr std::int64_t kAllReduce_ms = 60000;
// The last lines of a program explain why it ended.
constexpr std::size_t kSaid = 300;

std::optional<AllReduce> read_answer(const std::string& text) {
  const std::size_t open = text.rfind("{\"");
  if (open == text.npos) return std::nullopt;
  const auto value =
      nlohmann::json::parse(text.substr(open, text.find('}', open) - open + 1), nullptr, false);
  if (value.is_discarded()) return std::nullopt;
  const record::Fields in(value, "--all-reduce");
  return AllReduce{in.required<int>("ranks"), in.required<std::int64_t>("bytes"),
                   in.required<double>("ms"), in.required<double>("bus_gb_s")};
}

std::string last_words(const std::string& text) {
  return text.size() <= kSaid ? text : "..." + text.substr(text.size() - kSaid);
}

}  // namespace

AllReduceTry try_all_reduce(const fs::path& rank_program, const std::string& device, int ranks,
                            const std::vector<std::string>& gpus) {
  const std::string run_id =
      "20000101-000000-" + std::to_string(getpid());  // the id of no run, and of no other doctor
  try {
    const HostFolders folders(
        "20000101-000000-sums");  // no run's id ends like this, so no run has these folders
    Job job{.world_size = ranks,
            .device = device,
            .gpus = gpus,
            .program = rank_program,
            .switches = {"--all-reduce"},
            .batch_file = folders.node() / "store",
            .node_folder = folders.node(),
            .shm_folder = folders.shm(),
            .mark = run_id + ".doctor"};
    const Output output = run_to_end(local_command(job, own_environment()), kAllReduce_ms);
    // run_to_end kills only what it started itself; ranks that mpirun started live on for a moment.
    const ProcessTable processes;
    Ending ending(processes, 0, job.mark, false, 0);
    for (std::int64_t waited_ms = 0; !ending.step(waited_ms); waited_ms += 20) usleep(20000);
    if (output.timed_out)
      return {{},
              "no answer in " + std::to_string(kAllReduce_ms / 1000) +
                  " s: " + last_words(output.error)};
    if (output.exit != Exit{})
      return {{},
              (output.exit.signalled ? "signal " : "exit code ") +
                  std::to_string(output.exit.value) + ": " + last_words(output.error)};
    if (auto answer = read_answer(output.out)) return {std::move(answer), {}};
    return {{}, "an answer without figures: " + last_words(output.out)};
  } catch (const std::system_error& error) {
    return {{}, error.what()};
  } catch (const record::ReadError& error) {
    return {{}, error.what()};
  }
}

std::string to_text(const AllReduce& all_reduce) {
  char text[128];
  std::snprintf(text, sizeof text, "%d ranks, %lld MiB: %.2f ms, %.1f GB/s", all_reduce.ranks,
                static_cast<long long>(all_reduce.bytes >> 20), all_reduce.ms, all_reduce.bus_gb_s);
  return text;
}

}  // namespace graphproof::launcher
