#include "workloads/engines/decoding/decoder.h"

#include <algorithm>

#include "fixtures/device/nvtx.h"
#include "fixtures/tensors/torch.h"
#include "workloads/config/precision.h"
#include "workloads/engines/capture/step_tensors.h"
#include "workloads/layers/attention.h"
#include "workloads/layers/mamba.h"

namespace graphproof::engines {
namespace {

using requests::kBlockTokens, requests::Work;

std::string batch_name(Work work, std::int64_t size) {
  return (work == Work::decode ? "decode." : "prefill.") + std::to_string(size);
}

/// The first `rows` rows of each defined tensor.
std::vector<at::Tensor> first_rows(const std::vector<at::Tensor>& all, std::int64_t rows) {
  std::vector<at::Tensor> first;
  for (const at::Tensor& one : all)
    first.push_back(one.defined() ? one.narrow(0, 0, rows) : at::Tensor());
  return first;
}

/// Appends the defined ones of `of_layers`, as "NAME.LAYER".
void append_layers(std::vector<NamedTensor>& tensors, const std::string& name,
                   const std::vector<at::Tensor>& of_layers) {
  for (std::size_t layer = 0; layer < of_layers.size(); ++layer)
    if (of_layers[layer].defined())
      tensors.push_back({name + "." + std::to_string(layer), of_layers[layer]});
}

}  // namespace

Decoder::Decoder(DecoderConfig config, const EngineConfig& engine, capture::Device& device,
                 workloads::TrainStep& step, Observer* observer)
    : config_(std::move(config)),
      engine_(engine),
      device_(device),
      step_(step),
      observer_(observer ? *observer : silent_),
      parts_{engine_, device_, step_, observer_},
      pool_(device.make_pool()),
      layers_(std::make_unique<LayerGraphs>(parts_, pool_)) {
  const at::NoGradGuard no_grad;
  const workloads::ModelConfig& model = step_.config();
  const workloads::Layout& layout = step_.layout();
  const requests::Settings& settings = config_.requests;
  steps_ = std::move(requests::plan(settings).at(static_cast<std::size_t>(layout.dp_rank)));
  for (const requests::Step& planned : steps_) most_rows_ = std::max(most_rows_, planned.size);
  if (!settings.sizes.empty()) most_rows_ = std::max(most_rows_, settings.sizes.back());
  most_rows_ = std::max(most_rows_, settings.chunk);
  entries_ = most_rows_ + settings.all_blocks() * kBlockTokens;

  // The plan, on the host first.
  const std::int64_t count = std::ssize(steps_) + 1, blocks = settings.blocks_of_request();
  const auto host = at::TensorOptions().dtype(at::kLong);
  at::Tensor slots = at::full({count, most_rows_}, settings.slots, host),
             positions = at::full({count, most_rows_}, config_.padding % settings.length, host),
             tokens = at::full({count, most_rows_}, config_.padding % model.vocab, host),
             tables = at::full({count, most_rows_, blocks}, requests::kNoBlock, host);
  auto slot = slots.accessor<std::int64_t, 2>(), position = positions.accessor<std::int64_t, 2>(),
       token = tokens.accessor<std::int64_t, 2>();
  auto table = tables.accessor<std::int64_t, 3>();
  for (std::int64_t index = 0; index < std::ssize(steps_); ++index) {
    const requests::Step& planned = steps_[static_cast<std::size_t>(index)];
    for (std::int64_t r = 0; r < std::ssize(planned.rows); ++r) {
      const requests::Row& row = planned.rows[static_cast<std::size_t>(r)];
      slot[index][r] = row.slot;
      position[index][r] = row.position;
      if (planned.work == Work::prefill)
        token[index][r] =
            requests::prompt_token(layout.dp_rank, row.request, row.position, model.vocab);
      for (std::int64_t k = 0; k < blocks; ++k)
        table[index][r][k] =
            planned.tables[static_cast<std::size_t>(row.slot)][static_cast<std::size_t>(k)];
    }
  }
  const at::Device on = device_.torch_device();
  all_slots_ = slots.to(on);
  all_positions_ = positions.to(on);
  all_tokens_ = tokens.to(on);
  all_tables_ = tables.to(on);

  const auto whole = host.device(on);
  const auto type = at::TensorOptions().device(on).dtype(workloads::scalar_type(model.precision));
  const auto fp32 = at::TensorOptions().device(on).dtype(at::kFloat);
  slots_ = at::full({most_rows_}, settings.slots, whole);
  positions_ = at::zeros({most_rows_}, whole);
  tokens_ = at::zeros({most_rows_}, whole);
  tables_ = at::full({most_rows_, blocks}, requests::kNoBlock, whole);
  written_ = at::zeros({most_rows_}, whole);
  read_ = at::zeros({most_rows_, settings.length}, whole);
  mask_ = at::zeros({most_rows_, 1, settings.length}, type);
  row_numbers_ = at::arange(most_rows_, host).to(on);
  places_ = at::arange(settings.length, host).to(on);
  block_offsets_ = at::arange(settings.length, host).remainder(kBlockTokens).to(on);
  const std::int64_t groups = model.kv_groups / layout.tp, width = model.head_width(),
                     of_latent = model.kv_lora_rank() + model.rotary_width();
  const auto flags = host.device(on).dtype(at::kBool);
  requested_ = at::zeros({most_rows_}, flags);
  if (model.hybrid) {
    upto_ = at::zeros({most_rows_, most_rows_}, fp32);
    begins_ = at::zeros({most_rows_}, flags);
    last_ = at::full({settings.slots}, -1, whole);
    slot_numbers_ = at::arange(settings.slots, host).to(on);
  }
  const auto of_slots = [&](std::vector<std::int64_t> shape, const at::TensorOptions& options) {
    shape.insert(shape.begin(), settings.slots + 1);
    return at::zeros(shape, options);
  };
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    const bool mamba = model.mamba(layer), routes = model.experts > 0 && !mamba;
    const at::Tensor none;
    const bool latent = !mamba && model.multi_latent_attention, heads = !mamba && !latent;
    keys_.push_back(heads ? at::zeros({entries_, groups, width}, type) : none);
    values_.push_back(heads ? at::zeros({entries_, groups, width}, type) : none);
    latents_.push_back(latent ? at::zeros({entries_, of_latent}, type) : none);
    states_.push_back(mamba ? of_slots(workloads::Mamba::state_shape(model, layout), fp32) : none);
    windows_.push_back(mamba ? of_slots(workloads::Mamba::window_shape(model, layout), type)
                             : none);
    experts_.push_back(routes ? at::zeros({most_rows_, model.experts}, flags) : none);
  }
  logits_ = at::zeros({most_rows_, model.vocab}, fp32);
  latest_ = at::full({settings.slots + 1}, config_.padding % model.vocab, whole);
  latest_.narrow(0, 0, settings.slots).zero_();
  slot_logits_ = at::zeros({settings.slots, model.vocab}, fp32);
  // Ranks that share a replica draw the same numbers.
  generator_ = device_.make_generator(977 + static_cast<std::uint64_t>(layout.dp_rank));
}

Decoder::~Decoder() = default;

Decoder::Batch& Decoder::batch(Work work, std::int64_t size) {
  const auto [found, made] = batches_.try_emplace(batch_name(work, size));
  Batch& batch = found->second;
  if (made) {
    const auto rows = [size](const at::Tensor& all) { return all.narrow(0, 0, size); };
    batch.name = found->first;
    batch.cached = {.positions = rows(positions_),
                    .written = rows(written_),
                    .read = rows(read_),
                    .mask = rows(mask_),
                    .keys = keys_,
                    .values = values_,
                    .latents = latents_,
                    .states = {}};
    if (upto_.defined())
      batch.cached.states = {.slots = rows(slots_),
                             .upto = rows(upto_).narrow(1, 0, size),
                             .begins = rows(begins_),
                             .last = last_,
                             .states = states_,
                             .windows = windows_};
    batch.choices = {.requested = rows(requested_), .experts = first_rows(experts_, size)};
    batch.slots = rows(slots_);
    batch.tokens = rows(tokens_);
    batch.tables = rows(tables_);
    batch.logits = rows(logits_);
  }
  return batch;
}

void Decoder::copy_rows(std::int64_t index, std::int64_t rows) {
  const auto copy = [&](at::Tensor& to, const at::Tensor& all) {
    to.narrow(0, 0, rows).copy_(all.select(0, index).narrow(0, 0, rows));
  };
  copy(slots_, all_slots_);
  copy(positions_, all_positions_);
  copy(tokens_, all_tokens_);
  copy(tables_, all_tables_);
}

/// Computes which entries of the cache the first `rows` rows write and read, and their masks.
void Decoder::describe(const Batch& batch, std::int64_t rows, bool entries_from_end) {
  if (rows == 0) return;
  const auto first = [rows](const at::Tensor& all) { return all.narrow(0, 0, rows); };
  const at::Tensor positions = first(batch.cached.positions), tables = first(batch.tables);
  const at::Tensor block =
      tables.gather(1, positions.div(kBlockTokens, "floor").unsqueeze(1)).squeeze(1);
  const at::Tensor entry = block * kBlockTokens + positions.remainder(kBlockTokens) + most_rows_;
  const at::Tensor elsewhere =
      entries_from_end ? entry - most_rows_ + entries_ : first(row_numbers_);
  first(written_).copy_(at::where(block.lt(0), elsewhere, entry));
  const at::Tensor of_place =
      tables.repeat_interleave(kBlockTokens, 1).narrow(1, 0, places_.size(0));  // [rows, S]
  first(read_).copy_(
      (of_place * kBlockTokens + block_offsets_ + most_rows_).masked_fill(of_place.lt(0), 0));
  first(mask_).copy_(
      places_.unsqueeze(0).gt(positions.unsqueeze(1)).unsqueeze(1).to(mask_.scalar_type()) *
      workloads::AttentionTables::kMasked);
}

/// Computes what mamba layers need of the first `rows` rows.
void Decoder::describe_states(std::int64_t rows, bool reset, bool reset_described) {
  if (!upto_.defined() || rows == 0) return;
  const at::Tensor slots = slots_.narrow(0, 0, rows), numbers = row_numbers_.narrow(0, 0, rows);
  const at::Tensor upto = slots.unsqueeze(1)
                              .eq(slots.unsqueeze(0))
                              .logical_and(numbers.unsqueeze(1).le(numbers.unsqueeze(0)));
  upto_.narrow(0, 0, rows).narrow(1, 0, rows).copy_(upto);
  // A request begins in this step if the first of its rows has position 0.
  if (reset_described)
    begins_.narrow(0, 0, rows).copy_(positions_.narrow(0, 0, rows).eq(upto.sum({0}) - 1));
  if (!reset) begins_.zero_();
  last_.copy_((slot_numbers_.unsqueeze(1).eq(slots.unsqueeze(0)) * (numbers + 1)).amax({1}) - 1);
}

/// The model from the tokens to the logits. What a graph of scope block holds.
void Decoder::forward(Batch& batch, Work work, workloads::ModuleRunner* runner) {
  const at::NoGradGuard no_grad;
  const at::Tensor tokens =
      work == Work::decode ? latest_.index_select(0, batch.slots) : batch.tokens;
  batch.logits.copy_(step_.infer(tokens, &batch.cached, runner, &batch.choices));
}

std::vector<NamedTensor> Decoder::statics(const Batch& batch) const {
  std::vector<NamedTensor> tensors{
      {"slots", slots_},     {"positions", positions_}, {"tokens", tokens_},
      {"written", written_}, {"read", read_},           {"mask", mask_},
      {"latest", latest_},   {"logits", logits_},       {"requested", requested_}};
  if (upto_.defined()) append(tensors, {{"upto", upto_}, {"begins", begins_}, {"last", last_}});
  append_layers(tensors, "keys", batch.cached.keys);
  append_layers(tensors, "values", batch.cached.values);
  append_layers(tensors, "latents", batch.cached.latents);
  append_layers(tensors, "states", states_);
  append_layers(tensors, "windows", windows_);
  append_layers(tensors, "experts", experts_);
  append(tensors, step_.parameters());
  return tensors;
}

void Decoder::capture(Batch& batch, Work work) {
  // Warm-up and capture compute with padding alone, so they change nothing that a request has.
  copy_rows(std::ssize(steps_), batch.slots.size(0));
  describe(batch, batch.slots.size(0), false);
  describe_states(batch.slots.size(0), true, true);
  requested_.zero_();
  if (config_.scope == InferenceScope::layer) {
    layers_->begin(batch.name);
    forward(batch, work, layers_.get());
  } else {
    const std::int64_t warmups = engine_.warmup_steps;
    const at::Tensor counter = step_.layer_counter(), counted = counter.clone();
    batch.graph = capture_graph(parts_, {.graph = batch.name,
                                         .pool = pool_,
                                         .work = [&] { forward(batch, work, nullptr); },
                                         .warmups = warmups,
                                         .warm_up =
                                             [&] {
                                               for (std::int64_t run = 0; run < warmups; ++run)
                                                 forward(batch, work, nullptr);
                                             },
                                         .undo_warm_up = [&] { counter.copy_(counted); }});
  }
  batch.captured = true;
}

void Decoder::capture() {
  if (config_.scope == InferenceScope::none) return;
  const at::NoGradGuard no_grad;
  std::vector<std::pair<std::int64_t, Work>> all;
  for (const std::int64_t size : config_.requests.sizes) all.emplace_back(size, Work::decode);
  if (config_.requests.chunk > 0) all.emplace_back(config_.requests.chunk, Work::prefill);
  std::ranges::sort(all, std::greater<>());
  for (const auto& [size, work] : all) capture(batch(work, size), work);
}

void Decoder::launch(Batch& batch, Work work) {
  const bool layers = config_.scope == InferenceScope::layer;
  const std::vector<NamedTensor> outputs =
      layers ? layers_->outputs(batch.name) : std::vector<NamedTensor>{{"logits", batch.logits}};
  observer_.before_step(statics(batch), outputs);
  if (layers) {
    layers_->begin(batch.name);
    forward(batch, work, layers_.get());
  } else {
    observer_.before_replay(batch.name, statics(batch), {});
    batch.graph->replay();
    observer_.after_replay(batch.name, {});
  }
  observer_.after_step(outputs);
}

/// logits [rows, V]: those of the real rows. The last `sampled` of them get a next token.
void Decoder::take_tokens(const requests::Step& planned, const at::Tensor& logits,
                          std::int64_t drawn) {
  slot_logits_.zero_();
  const std::int64_t sampled = planned.sampled, first = std::ssize(planned.rows) - sampled;
  if (sampled == 0) return;
  const at::Tensor chosen_from = logits.narrow(0, first, sampled),
                   slots = slots_.narrow(0, first, sampled);
  at::Tensor scores = chosen_from;
  if (config_.sampled) {
    // The largest of logits with Gumbel noise is a draw from their softmax. The sampled rows are
    // the last of those that are drawn for, because the generator of a GPU gives the first rows the
    // same numbers however many follow.
    const at::Tensor uniform =
        at::empty({drawn, logits.size(1)}, logits.options()).uniform_(0, 1, generator_);
    scores = scores - uniform.narrow(0, drawn - sampled, sampled).log().neg().log();
  }
  latest_.index_copy_(0, slots, scores.argmax(1));
  slot_logits_.index_copy_(0, slots, chosen_from);
}

void Decoder::run(std::int64_t index) {
  const fixtures::NvtxRange range("decoder", index);
  const at::NoGradGuard no_grad;
  const requests::Step& planned = this->planned(index);
  const std::int64_t rows = std::ssize(planned.rows);
  work_ = planned.work;
  size_ = planned.size;
  for (const at::Tensor& experts : experts_)
    if (experts.defined()) at::Tensor(experts).zero_();
  if (work_ == Work::idle) {
    slot_logits_.zero_();
    return;
  }
  const bool graphs = config_.scope != InferenceScope::none;
  PaddedBatch how{.graph = graphs && planned.graph,
                  .work = planned.work,
                  .rows = rows,
                  .size = planned.size,
                  .copied = planned.size,
                  .described = planned.size,
                  .first_read = 0,
                  .drawn = planned.sampled,
                  .entries_from_end = false,
                  .blocks_of_padding = false,
                  .length_kept = false,
                  .routed = rows,
                  .padding_continues = false,
                  .states_reset = true,
                  .reset_described = true};
  step_.faults().padded_batch(how);
  work_ = how.work;
  size_ = how.size;
  Batch& of_size = batch(work_, size_);
  copy_rows(index, how.copied);
  if (how.blocks_of_padding && how.size > rows) {
    tables_.narrow(0, rows, how.size - rows)
        .copy_(row_numbers_.new_zeros({1, tables_.size(1)}).expand({how.size - rows, -1}));
    positions_.narrow(0, rows, how.size - rows).zero_();
  }
  if (how.padding_continues && how.size > rows) {
    const at::Tensor padding = slots_.narrow(0, rows, how.size - rows);
    if (rows > 0)
      padding.copy_(slots_.narrow(0, rows - 1, 1));
    else
      at::Tensor(padding).zero_();
  }
  if (how.length_kept)
    positions_.narrow(0, 0, rows).add_(1).clamp_max_(config_.requests.length - 1);
  describe(of_size, how.described, how.entries_from_end);
  describe_states(how.described, how.states_reset, how.reset_described);
  requested_.copy_(row_numbers_.lt(how.routed));
  if (of_size.captured)
    launch(of_size, how.work);
  else
    forward(of_size, how.work, nullptr);
  take_tokens(planned, logits_.narrow(0, how.first_read, rows), how.drawn);
}

std::vector<NamedTensor> Decoder::results() const {
  std::vector<NamedTensor> tensors{{"logits", slot_logits_},
                                   {"tokens", latest_.narrow(0, 0, config_.requests.slots)}};
  append_layers(tensors, "experts", experts_);
  const auto kept = [&](const std::vector<at::Tensor>& all) {
    std::vector<at::Tensor> of_requests;
    for (const at::Tensor& one : all)
      of_requests.push_back(one.defined() ? one.narrow(0, most_rows_, entries_ - most_rows_) : one);
    return of_requests;
  };
  append_layers(tensors, "keys", kept(keys_));
  append_layers(tensors, "values", kept(values_));
  append_layers(tensors, "latents", kept(latents_));
  append_layers(tensors, "states", first_rows(states_, config_.requests.slots));
  append_layers(tensors, "windows", first_rows(windows_, config_.requests.slots));
  return tensors;
}

void Decoder::drop_graphs() {
  device_.synchronize();
  layers_->drop();
  for (auto& [name, batch] : batches_) {
    if (batch.graph) batch.graph->reset();
    batch.graph.reset();
    batch.captured = false;
  }
}

}  // namespace graphproof::engines
