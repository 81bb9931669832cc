// Whether the ranks of a host find each other, whether their sum is right, and how fast it is. The
// rank program itself answers (--all-reduce), started as a batch is.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace graphproof::launcher {

/// The figures of an all-reduce that gave the right sum.
struct AllReduce {
  int ranks = 0;
  std::int64_t bytes = 0;
  double ms = 0, bus_gb_s = 0;
};

/// The result of a try.
struct AllReduceTry {
  std::optional<AllReduce> got;
  std::string fault;  // why there is no figure; "" if there is one
};

/// Tries it. Waits for a minute at most; everything that it started is gone then. `gpus` as
/// CUDA_VISIBLE_DEVICES spells them, one a rank; on sim `ranks` ranks without a GPU. REQUIRES:
/// ranks > 1.
AllReduceTry try_all_reduce(const std::filesystem::path& rank_program, const std::string& device,
                            int ranks, const std::vector<std::string>& gpus);

/// "4 ranks, 64 MiB: 0.42 ms, 240 GB/s".
std::string to_text(const AllReduce& all_reduce);

}  // namespace graphproof::launcher
