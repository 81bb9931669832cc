#include "workloads/engines/speed/ranks.h"

#include <cstring>
#include <filesystem>
#include <regex>
#include <stdexcept>

#include "fixtures/comm/collectives.h"
#include "fixtures/comm/transport/file_world.h"
#include "fixtures/comm/transport/mpi.h"
#include "fixtures/comm/transport/transports.h"
#include "fixtures/tensors/torch.h"
#include "workloads/pipeline/pipeline_schedule.h"

namespace graphproof::speed {
namespace {

std::vector<comm::GroupLayout> groups_of(const LayoutName& name) {
  auto groups = comm::tensor_data_groups(name.tp, name.dp, name.pp);
  if (name.pp == 1) return groups;
  const int stage_ranks = name.tp * name.dp;
  for (const order::Edge& edge : order::edges(name.pp, /*chunks=*/1))
    groups.push_back(comm::edge_group(stage_ranks, edge.from, edge.to));
  groups.push_back(comm::stage_group(stage_ranks, name.pp));
  return groups;
}

/// Ranks of graphproof-start have no MPI, which only the simulated device needs for tensors.
std::unique_ptr<comm::World> make_world(const fixtures::Rank& place, const capture::Device& device,
                                        const std::string& store) {
  if (place.from == "GRAPHPROOF_*" && device.name() == "cuda")
    return std::make_unique<comm::FileWorld>(std::filesystem::path(store) / "world",
                                             place.world_size, place.rank);
  return std::make_unique<comm::MpiWorld>(place.world_size, place.rank);
}

}  // namespace

std::string LayoutName::text() const {
  std::string text;
  for (const auto& [word, size] : {std::pair{"tp", tp}, std::pair{"dp", dp}, std::pair{"pp", pp}})
    if (size > 1) text += (text.empty() ? "" : " ") + std::string(word) + std::to_string(size);
  return text.empty() ? "one rank" : text;
}

LayoutName layout_name(const std::string& text) {
  static const std::regex kForm("(?:tp([1-9]))?(?:dp([1-9]))?(?:pp([1-9]))?");
  std::smatch found;
  if (text.empty() || !std::regex_match(text, found, kForm))
    throw std::invalid_argument(
        "layout: got \"" + text +
        "\"; want tp, dp and pp in that order, each with a number from 1 to 9; "
        "why: their product is the number of ranks; next: tp1, tp2dp2 or tp2pp2");
  const auto number = [&](std::size_t group) {
    return found[group].matched ? std::stoi(found[group]) : 1;
  };
  return {.tp = number(1), .dp = number(2), .pp = number(3)};
}

Ranks::Ranks(const fixtures::Rank& place, capture::Device& device, const std::string& store,
             comm::Milliseconds limit)
    : place_(place), device_(device), limit_(limit) {
  if (place.world_size == 1) return;
  if (store.empty())
    throw std::invalid_argument(
        "--store: got none for " + std::to_string(place.world_size) +
        " ranks; want a folder that is "
        "not there yet; why: they find each other through its files; next: --store /tmp/NAME");
  store_ = std::make_unique<fixtures::FileStore>(store);
  world_ = make_world(place, device, store);
  groups_ = std::make_unique<comm::ProcessGroups>(
      world_->size(), world_->rank(),
      comm::make_transports(*world_, *store_, place.local_rank, limit));
  groups_->collective_limit(limit);
}

workloads::Layout Ranks::use(const LayoutName& name) {
  if (groups_) groups_->use(groups_of(name), limit_);
  workloads::Layout layout{.tp = name.tp,
                           .dp = name.dp,
                           .tp_rank = rank() % name.tp,
                           .dp_rank = rank() / name.tp % name.dp,
                           .pp = name.pp,
                           .pp_rank = rank() / (name.tp * name.dp)};
  if (!groups_) return layout;
  layout.tp_group = "tp";
  layout.dp_group = "dp";
  if (name.pp > 1) layout.pp_group = "pp";
  return layout;
}

void Ranks::meet(const workloads::Layout& layout) {
  for (const std::string& group : {layout.tp_group, layout.dp_group, layout.pp_group})
    if (!group.empty() && groups_->size(group) > 1)
      comm::all_reduce_(at::zeros({1}, at::TensorOptions().device(device_.torch_device())), group);
  device_.synchronize();
}

std::vector<std::vector<double>> Ranks::gather(const std::string& purpose,
                                               const std::vector<double>& own) {
  if (!world_) return {own};
  std::vector<std::vector<double>> values;
  for (const std::vector<std::byte>& bytes :
       world_->gather(purpose, std::as_bytes(std::span(own)), limit_)) {
    values.emplace_back(bytes.size() / sizeof(double));
    std::memcpy(values.back().data(), bytes.data(), bytes.size());
  }
  return values;
}

void Ranks::finish() {
  if (groups_) groups_->destroy(limit_);
  if (world_) world_->finalize(limit_);
}

}  // namespace graphproof::speed
