// SPDX-License-Identifier: Apache-2.0
// Samplers of plug-ins: whole epochs, checked when they are computed, or runs of positions.
#include <algorithm>
#include <bit>
#include <numeric>

#include "headrace/base/random.h"
#include "headrace/base/registry.h"
#include "headrace/plugin/checked_call.h"
#include "headrace/plugin/declared.h"
#include "headrace/plugin/plugin_error.h"
#include "headrace/sampling/external_order.h"

namespace headrace {
namespace {

constexpr int64_t kMaxPositions = int64_t{1} << 40, kMaxBatches = int64_t{1} << 32;

PluginPart part_of(const PluginSampler& sampler) {
  return {"sampler", std::string(sampler.record.name), &sampler.plugin->origin};
}

// An object of the plug-in with these arguments, for these records. Thread-safe.
class PluginOrder {
 public:
  PluginOrder(const PluginSampler& sampler, SamplerData data, const Arguments& arguments);
  ~PluginOrder() { destroy_plugin_object(part_, table_.destroy, self_); }
  PluginOrder(const PluginOrder&) = delete;
  PluginOrder& operator=(const PluginOrder&) = delete;

  int64_t size() const { return size_; }
  const std::vector<int64_t>& batch_sizes() const { return batch_sizes_; }
  uint64_t fingerprint() const { return fingerprint_; }
  std::string description() const {
    return std::to_string(size_) + " positions by " + part_.name + " of the " +
           text_of(*part_.origin);
  }
  // Fills `out` with the records starting at this position. Throws HR0575 for invalid ones.
  void fill(uint64_t seed, uint64_t epoch, int64_t begin, std::span<int64_t> out) const;
  // The same for a whole epoch; without replacement, every record occurs once.
  std::vector<int64_t> epoch(uint64_t seed, uint64_t epoch) const;

 private:
  [[noreturn]] void broken(const std::string& what) const {
    throw Exception(broken_plugin(part_, what));
  }
  void set_batches();

  const PluginSampler& sampler_;
  const headrace_sampler& table_;
  const PluginPart part_;
  const SamplerData data_;  // the plug-in's pointers are to it
  void* self_ = nullptr;
  int64_t size_ = 0;
  std::vector<int64_t> batch_sizes_;
  uint64_t fingerprint_;
};

uint64_t fingerprint_of(uint64_t out, const std::vector<headrace_value>& values) {
  const auto add = [&](uint64_t number) { out = mix64(out, number); };
  for (const headrace_value& value : values) {
    add(uint64_t(value.type));
    add(value.count);
    add(uint64_t(value.integer));
    add(std::bit_cast<uint64_t>(value.number));
    if (value.text) add(hash_name(value.text));
    for (uint32_t i = 0; value.integers && i < value.count; ++i) add(uint64_t(value.integers[i]));
    for (uint32_t i = 0; value.numbers && i < value.count; ++i)
      add(std::bit_cast<uint64_t>(value.numbers[i]));
  }
  return out;
}

PluginOrder::PluginOrder(const PluginSampler& sampler, SamplerData data, const Arguments& arguments)
    : sampler_(sampler),
      table_(sampler.table),
      part_(part_of(sampler)),
      data_(std::move(data)),
      fingerprint_(mix64(hash_name(sampler.plugin->origin.fingerprint), hash_name(part_.name))) {
  const std::vector<headrace_value> values = values_of(sampler.record.params, arguments);
  fingerprint_ = mix64(fingerprint_of(fingerprint_, values), uint64_t(data_.records));
  for (const int64_t value : data_.integers) fingerprint_ = mix64(fingerprint_, uint64_t(value));
  for (const double value : data_.weights)
    fingerprint_ = mix64(fingerprint_, std::bit_cast<uint64_t>(value));
  const headrace_records records{
      .struct_size = sizeof records,
      .reserved = 0,
      .count = data_.records,
      .weights = data_.weights.empty() ? nullptr : data_.weights.data(),
      .integers = data_.integers.empty() ? nullptr : data_.integers.data(),
      .parts = data_.parts};
  if (table_.create) {
    create_plugin_object(part_, [&](headrace_error* error) {
      return table_.create(values.data(), uint32_t(values.size()), &records, &self_, error);
    });
  }
  try {
    size_ = data_.records;
    PluginMessage message;
    const int32_t status = message.status_of([&] {
      if (table_.size) size_ = table_.size(self_);
      return HEADRACE_OK;
    });
    if (status != HEADRACE_OK) throw Exception(plugin_failure(part_, status, message, "size()"));
    if (size_ < 0 || size_ > kMaxPositions)
      broken("size() returned " + std::to_string(size_) + " positions");
    if (table_.batches) set_batches();
  } catch (...) {
    destroy_plugin_object(part_, table_.destroy, self_);
    throw;
  }
}

void PluginOrder::set_batches() {
  const int64_t* sizes = nullptr;
  int64_t count = 0;
  PluginMessage message;
  const int32_t status =
      message.status_of([&] { return table_.batches(self_, &sizes, &count, message.get()); });
  if (status != HEADRACE_OK) throw Exception(plugin_failure(part_, status, message, "batches()"));
  if (count < 1 || count > kMaxBatches || !sizes)
    broken("batches() returned a list of " + std::to_string(count));
  batch_sizes_.assign(sizes, sizes + count);
  int64_t sum = 0;
  for (const int64_t size : batch_sizes_) {
    if (size < 1 || size > size_ - sum)
      broken("batches() returned a batch of " + std::to_string(size) + " of the " +
             std::to_string(size_) + " positions");
    sum += size;
  }
  if (sum != size_)
    broken("batches() returned batches of " + std::to_string(sum) + " records, but an epoch has " +
           std::to_string(size_));
}

void PluginOrder::fill(uint64_t seed, uint64_t epoch, int64_t begin, std::span<int64_t> out) const {
  PluginMessage message;
  const auto call = [&](const void*, void* to) {
    return message.status_of([&] {
      return table_.order(self_, seed, epoch, begin, std::ssize(out), static_cast<int64_t*>(to),
                          message.get());
    });
  };
  int32_t status = 0;
  if (sampler_.plugin->checked.load(std::memory_order_relaxed)) {
    const std::string name = part_.call("order()") + ", epoch " + std::to_string(epoch);
    std::string wrong;
    status = checked_call({}, {reinterpret_cast<uint8_t*>(out.data()), out.size_bytes()}, 8, name,
                          call, wrong);
    if (!wrong.empty()) broken("order() " + wrong);
  } else {
    std::ranges::fill(out, int64_t{-1});  // a position that is left out has no record
    status = call(nullptr, out.data());
  }
  if (status != HEADRACE_OK) throw Exception(plugin_failure(part_, status, message, "order()"));
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i] >= 0 && out[i] < data_.records) continue;
    broken("order() returned the record " + std::to_string(out[i]) + " at position " +
           std::to_string(begin + int64_t(i)) + " of epoch " + std::to_string(epoch) +
           ", but the number of records is " + std::to_string(data_.records));
  }
}

std::vector<int64_t> PluginOrder::epoch(uint64_t seed, uint64_t epoch) const {
  std::vector<int64_t> out(static_cast<size_t>(size_));
  fill(seed, epoch, 0, out);
  if (table_.flags & HEADRACE_REPLACEMENT) return out;
  std::vector<bool> seen(static_cast<size_t>(data_.records));
  for (size_t i = 0; i < out.size(); ++i) {
    if (seen[size_t(out[i])])
      broken("order() returned the record " + std::to_string(out[i]) +
             " twice, again at position " + std::to_string(i) + " of epoch " +
             std::to_string(epoch) + ", without declaring HEADRACE_REPLACEMENT");
    seen[size_t(out[i])] = true;
  }
  return out;
}

// A sampler that computes records on demand, for any positions.
class AnyPosition final : public Sampler {
 public:
  explicit AnyPosition(std::shared_ptr<const PluginOrder> order) : order_(std::move(order)) {}
  int64_t size() const override { return order_->size(); }
  int64_t index(uint64_t seed, uint64_t epoch, int64_t position) const override {
    int64_t out = -1;
    order_->fill(seed, epoch, position, std::span(&out, 1));
    return out;
  }
  void indices(uint64_t seed, uint64_t epoch, int64_t begin,
               std::span<int64_t> out) const override {
    order_->fill(seed, epoch, begin, out);
  }
  uint64_t fingerprint() const override { return order_->fingerprint(); }
  std::string description() const override { return order_->description(); }

 private:
  const std::shared_ptr<const PluginOrder> order_;  // shared: with the function of whole epochs
};

SamplerPtr make_order(const PluginSampler& sampler, SamplerData data, const Arguments& arguments) {
  // shared: `ask` is copied.
  const auto order = std::make_shared<const PluginOrder>(sampler, std::move(data), arguments);
  const bool any = (sampler.table.flags & HEADRACE_ANY_POSITION) != 0;
  // When checked, whole epochs are computed, which reveals records that occur twice.
  if (any && order->size() > 0 && !sampler.plugin->checked)
    return std::make_shared<AnyPosition>(order);
  return external_order(
      {.ask = [order](uint64_t seed,
                      uint64_t epoch) { return from_indices(order->epoch(seed, epoch), false); },
       .positions = order->size(),
       .batch_sizes = order->batch_sizes(),
       .fingerprint = order->fingerprint(),
       .description = order->description()});
}

// The first argument of its class.
Param given_param(int32_t per_record) {
  switch (per_record) {
    case HEADRACE_WEIGHTS:
      return {.name = "weights",
              .type = ParamType::kFloats,
              .doc = "One number per record.",
              .required = true};
    case HEADRACE_LABELS:
      return {.name = "labels",
              .type = ParamType::kInts,
              .doc = "One integer or string per record, or the name of an integer field.",
              .required = true};
    default:
      return {.name = "lengths",
              .type = ParamType::kFloats,
              .doc = "One number per record, or the name of a scalar or audio field.",
              .required = true};
  }
}

}  // namespace

std::unique_ptr<PluginSampler> declared_sampler(DeclarationCheck& check,
                                                const headrace_sampler& table,
                                                const Plugin& plugin) {
  auto out = std::make_unique<PluginSampler>();
  out->plugin = &plugin;
  out->table = table;
  const std::string& name = out->texts.emplace_back(check.function_name(table.name, "sampler"));
  const bool is_python = name == "per_epoch" || name == "per_step";
  if (has_part(plugin.samplers, name) || is_python || Registry<SamplerRecord>::find(name))
    check.refuse("there already is a sampler \"" + name + "\"");
  check.set_subject("sampler " + name);
  check.check_flags(table.flags, HEADRACE_REPLACEMENT | HEADRACE_ANY_POSITION);
  if (table.per_record < 0 || table.per_record > HEADRACE_LENGTHS)
    check.refuse("per_record is " + std::to_string(table.per_record) +
                 ", not a value from HEADRACE_NOTHING to HEADRACE_LENGTHS");
  check.check_function(table.order, "order");
  if (table.create) check.check_function(table.create, "create");
  if (table.destroy) check.check_function(table.destroy, "destroy");
  if (table.size) check.check_function(table.size, "size");
  if (table.batches) check.check_function(table.batches, "batches");
  if (table.batches && table.flags & HEADRACE_ANY_POSITION)
    check.refuse("it has batches and HEADRACE_ANY_POSITION, which exclude each other");
  if ((table.params.count > 0 || table.per_record != HEADRACE_NOTHING) && !table.create)
    check.refuse("it has arguments, but create is NULL");
  constexpr PerRecord kPerRecord[] = {PerRecord::kNothing, PerRecord::kWeights, PerRecord::kLabels,
                                      PerRecord::kLengths};
  SamplerRecord& record = out->record;
  record.name = name;
  record.doc = out->texts.emplace_back(check.text(table.help, "its help") + origin_line(plugin));
  record.example = out->texts.emplace_back("hr.sampling." + name + "(...)");
  record.origin = &plugin.origin;
  record.per_record = kPerRecord[table.per_record];
  record.given = given_param(table.per_record);
  record.params = check.params(table.params, out->texts);
  for (const Param& param : record.params) {
    if (table.per_record != HEADRACE_NOTHING && param.name == record.given.name)
      check.refuse("its parameter " + std::string(param.name) +
                   " has the name of its first argument");
  }
  const PluginSampler* const sampler = out.get();
  record.make = [sampler](SamplerData data, const Arguments& arguments) {
    return make_order(*sampler, std::move(data), arguments);
  };
  return out;
}

}  // namespace headrace
