// order: prints the order in which a pipeline stage captures its forwards and backwards, and the
// static input buffers that it needs. For debugging a capture order by hand.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <memory>

#include "launcher/cli/verb.h"
#include "matrix/input/input_error.h"
#include "workloads/pipeline/pipeline_order.h"

namespace graphproof::cli {
namespace {

// Much longer than any pipeline needs. An order of this length prints in a second.
constexpr std::int64_t kMostForwards = 1'000'000;

struct OrderOptions {
  order::Stage stage;
  std::vector<std::int64_t> layers;
  bool overlap_ep = false, weight_gradients = false, json = false;
};

[[noreturn]] void refuse_order(std::string what, std::string got, std::string want, std::string why,
                               std::string next) {
  throw matrix::InputError({.what = std::move(what),
                            .got = std::move(got),
                            .want = std::move(want),
                            .why = std::move(why),
                            .next = std::move(next)});
}

void validate(const OrderOptions& options) {
  const order::Stage& stage = options.stage;
  if (options.weight_gradients && !options.overlap_ep)
    refuse_order("--wgrad needs --overlap-ep", "--wgrad without --overlap-ep", "both",
                 "only the order of layers has entries for weight gradients",
                 "add --overlap-ep, or leave --wgrad out");
  if (!options.layers.empty() && static_cast<std::int64_t>(options.layers.size()) != stage.chunks)
    refuse_order("--layers does not fit --vpp",
                 fmt::format("{} numbers for {} chunks", options.layers.size(), stage.chunks),
                 "one number for each chunk", "", "give --layers as many numbers as --vpp says");
  std::int64_t forwards = 0;
  for (const std::int64_t layers : options.layers) {
    if (layers < 0 || layers > kMostForwards)
      refuse_order("a number of --layers is out of range", std::to_string(layers),
                   fmt::format("0 to {}", kMostForwards), "", "give --layers other numbers");
    forwards += layers;
  }
  forwards = std::max(forwards, stage.chunks);
  if (stage.chunks > kMostForwards || stage.microbatches > kMostForwards ||
      forwards * stage.microbatches > kMostForwards)
    refuse_order(
        "the order is too long",
        fmt::format("{} microbatches of {} chunks or layers", stage.microbatches, forwards),
        fmt::format("{} forwards at most", kMostForwards), "no pipeline has a longer one",
        "give smaller numbers");
}

nlohmann::json number(double entry) {
  return entry == std::floor(entry) ? nlohmann::json(static_cast<std::int64_t>(entry))
                                    : nlohmann::json(entry);
}

record::ExitCode execute_order(const OrderOptions& options, Surroundings& surroundings) {
  validate(options);
  const std::vector<std::int64_t> layers =
      options.layers.empty()
          ? std::vector<std::int64_t>(
                static_cast<std::size_t>(std::max<std::int64_t>(0, options.stage.chunks)), 1)
          : options.layers;
  std::vector<double> entries;
  std::vector<std::int64_t> buffers;
  nlohmann::json tags = nlohmann::json::array(), numbers = nlohmann::json::array();
  std::int64_t warmup = 0;
  try {
    warmup = order::warmup_forwards(options.stage);
    entries = order::chunk_order(options.stage);
    if (options.overlap_ep) {
      const order::LayerOrder expanded =
          order::layer_order(entries, layers, options.weight_gradients);
      entries = expanded.entries;
      buffers = order::input_buffers(expanded);
      for (const auto& layer : expanded.layers)
        tags.push_back(layer ? nlohmann::json::array({layer->chunk, layer->layer})
                             : nlohmann::json());
    } else {
      buffers = order::input_buffers(entries, layers, options.stage.microbatches);
    }
  } catch (const order::Refused& refused) {
    refuse_order(refused.subject, refused.got, refused.want, refused.why, refused.next);
  }
  if (options.json) {
    for (const double entry : entries) numbers.push_back(number(entry));
    nlohmann::json result = {{"order", numbers}, {"warmup", warmup}, {"buffers", buffers}};
    if (options.overlap_ep) result["tags"] = tags;
    surroundings.out << result.dump() << "\n";
    return record::ExitCode::ok;
  }
  surroundings.out << fmt::format("order    {}\nwarm-up  {}\nbuffers  {}\n",
                                  fmt::join(entries, " "), warmup, fmt::join(buffers, " "));
  if (options.overlap_ep) surroundings.out << "tags     " << tags.dump() << "\n";
  return record::ExitCode::ok;
}

}  // namespace

Action declare_order(CLI::App& app) {
  const auto options = std::make_shared<OrderOptions>();
  app.add_option("--pp", options->stage.pp, "the pipeline-parallel size")
      ->required()
      ->type_name("N");
  app.add_option("--pp-rank", options->stage.rank, "the rank of this stage, from 0")
      ->required()
      ->type_name("N");
  app.add_option("--vpp", options->stage.chunks,
                 "virtual pipeline stages of a rank (default: 1, which means none)")
      ->type_name("N");
  app.add_option("--microbatches", options->stage.microbatches, "the microbatches of a step")
      ->required()
      ->type_name("N");
  app.add_option("--group", options->stage.group,
                 "microbatches that a virtual stage runs before the next one does (default: the "
                 "pipeline size)")
      ->type_name("N")
      ->check(CLI::PositiveNumber);
  app.add_option("--layers", options->layers,
                 "the layers of each virtual stage, such as 2,1 (default: one each)")
      ->type_name("N,...")
      ->delimiter(',');
  app.add_flag("--overlap-ep", options->overlap_ep,
               "order by layers, so that expert communication overlaps another microbatch");
  app.add_flag("--wgrad", options->weight_gradients,
               "with --overlap-ep: weight gradients are entries of their own, printed as -l - 0.5");
  app.add_flag("--json", options->json, "print one JSON object");
  return [options](Surroundings& surroundings) { return execute_order(*options, surroundings); };
}

}  // namespace graphproof::cli
