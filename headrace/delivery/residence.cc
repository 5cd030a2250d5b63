// SPDX-License-Identifier: Apache-2.0
#include "headrace/delivery/residence.h"

#include <algorithm>
#include <utility>

#include "headrace/device/device.h"
#include "headrace/executor/engine.h"

namespace headrace {
namespace {

// Number of records to sample if they differ in size.
constexpr int64_t kProbes = 16;
constexpr int kHostBatches = 4;  // slots in a ring of a HostSet, if memory_limit has room for them

const ErrorCode kNoFit{
    "HR0890", ErrorKind::kConfig, "records cannot stay in memory",
    "resident=True keeps all records in memory as produced by the deterministic part of the "
    "pipeline (uint8), within memory_limit and in addition to the batches. A Resize or a fixed "
    "crop before the first random transform makes them smaller. With resident=\"auto\", the loader "
    "streams instead of failing; cache= keeps as many records as fit, in their stored form."};

const ErrorCode kNoViews{
    "HR0892", ErrorKind::kConfig, "batches cannot be views",
    "With view=True, a batch is a slice of the data itself. This requires records of one shape, in "
    "the source's order, without work per epoch: no shuffle, no sampler, no padding, no random or "
    "float transforms."};

bool fits(size_t limit, size_t taken, const ResidenceInputs& asked, bool reads_ahead,
          std::string& why) {
  try {
    divide_memory(limit - std::min(limit, taken),
                  batch_bytes(*asked.plan, asked.layout->rank_batch()), asked.threads, reads_ahead,
                  asked.plan->delivers_lists());
  } catch (const Exception& exception) {
    why = exception.error().what;
    return false;
  }
  return true;
}

bool has_pictures(const Plan& plan) {
  return std::ranges::any_of(plan.outputs(),
                             [](const Output& output) { return is_picture(output.state.kind); });
}

bool is_list(const Output& output) { return output.as_list; }

bool has_values(const ResidentField& field) {
  return field.values || field.pictures || field.origin != OutputOrigin::kField;
}

}  // namespace

Residence::Residence(const ResidenceInputs& question) : asked_(question) {
  if (asked_.use == ResidentUse::kOff) {
    turn_off("off");
    return;
  }
  const Schema& schema = asked_.source->schema();
  parts_ = split_pipeline(asked_.pipeline);
  if (std::ranges::any_of(asked_.plan->inputs(), &FieldState::keeps_shares)) {
    Pipeline rest = asked_.pipeline;
    rest.dropped.clear();  // made by the first part
    parts_ = {.first = {{}, {}, asked_.pipeline.dropped},
              .rest = std::move(rest),
              .ends_at = "a transform that depends on how boxes were cropped"};
  }
  PlanOptions options = asked_.plan->options();
  options.fields.clear();
  for (size_t i = 0; i < schema.size(); ++i) {
    if (asked_.plan->wanted()[i]) options.fields.push_back(schema[i].name);
  }
  if (std::ranges::find(schema, "id", &Field::name) != schema.end()) {
    decide(0, "the source has its own field named id");
    return;
  }
  const auto is_video = [](const FieldState& input) { return input.kind == FieldKind::kVideo; };
  if (std::ranges::any_of(asked_.plan->inputs(), is_video)) {
    decide(0, "video clips are drawn again in each epoch");
    return;
  }
  options.fields.push_back("id");
  options.memory_format = MemoryFormat::kChannelsFirst;
  options.ragged = Ragged::kList;
  options.pad_values.clear();
  first_ = make_plan(schema, parts_.first, options);
  schema_ = schema_behind();
  options = asked_.plan->options();
  options.exif_orientation = false;
  options.steps_before += static_cast<int>(first_->steps().size());
  rest_ = make_plan(schema_, parts_.rest, options);
  borrows_ = lies_in_memory();
  if (borrows_) {
    on_ = true;
    text_ = "the arrays as they are in memory";
  } else {
    estimate_ = estimated_bytes();
    decide(asked_.use == ResidentUse::kAuto ? asked_.memory_limit / 2 : asked_.memory_limit, {});
  }
  if (!asked_.view) return;
  if (!asked_.why_no_view.empty()) raise(kNoViews, asked_.why_no_view, "omit view=");
  if (!rest_->steps().empty() || !rest_->batch_steps().empty()) {
    raise(kNoViews,
          (rest_->steps().empty() ? rest_->batch_steps().front().label
                                  : rest_->steps().front().label) +
              " is applied again in each epoch",
          "omit view=, or apply that transform to the batch");
  }
}

// `why_not`: the obstacle, if there is one regardless of size.
void Residence::decide(size_t limit, const std::string& why_not) {
  const bool is_auto = asked_.use == ResidentUse::kAuto;
  std::string why = why_not;
  const bool reads_ahead = asked_.source->read_style() != ReadStyle::kMemory;
  if (why.empty() && estimate_ > limit) {
    why = "the records take " + mebibytes(estimate_) + " after " + after() + ", and " +
          mebibytes(limit) + (is_auto ? " is half of memory_limit" : " is memory_limit");
  }
  std::string beside;
  if (why.empty() && !fits(asked_.memory_limit, estimate_, asked_, reads_ahead, beside)) {
    why = "the records take " + mebibytes(estimate_) + " after " + after() + " of " +
          mebibytes(asked_.memory_limit) + ", and for the rest: " + beside;
  }
  if (!why.empty()) {
    if (is_auto) return turn_off("streamed: " + why);
    raise(kNoFit, why,
          why_not.empty() ? "raise memory_limit, put a Resize before the first random transform, "
                            "or use resident=\"auto\""
                          : "omit resident=, or use resident=\"auto\"");
  }
  on_ = true;
  const bool any_list = std::ranges::any_of(first_->outputs(), is_list);
  most_ = any_list ? std::max(estimate_, is_auto ? limit : limit / 4 * 3) : estimate_;
  text_ = mebibytes(estimate_) + " after " + after() +
          (is_auto ? ", at most " + mebibytes(limit) + " (half of memory_limit)" : "");
}

void Residence::turn_off(const std::string& why) {
  MutexLock lock(mutex_);
  on_ = false;
  text_ = why;
}

void Residence::add_text(const std::string& more) {
  MutexLock lock(mutex_);
  text_ += more;
}

std::string Residence::text() const {
  MutexLock lock(mutex_);
  return text_;
}

std::shared_ptr<const ResidentSource> Residence::source() const {
  MutexLock lock(mutex_);
  return source_;
}

void Residence::drop() {
  turn_off("off");
  prepared_ = false;
  std::shared_ptr<const ResidentSource> source;  // they are destroyed without the lock
  std::shared_ptr<ResidentSet> set;
  std::shared_ptr<HostSet> host_set;
  MutexLock lock(mutex_);
  source.swap(source_);
  set.swap(set_);
  host_set.swap(host_set_);
}

std::string Residence::after() const {
  std::string names;
  for (const Step& step : first_->steps()) names += (names.empty() ? "" : ", ") + step.label;
  return names.empty() ? "decoding" : names;
}

// Fields have the same names and order as in the source, so that the rest of the pipeline refers to
// the same fields.
Schema Residence::schema_behind() const {
  Schema out;
  for (const Field& field : asked_.source->schema()) {
    if (std::ranges::count(asked_.pipeline.dropped, field.name)) continue;
    Field& kept = out.emplace_back(field);
    const auto made = std::ranges::find(first_->outputs(), field.name, &Output::name);
    if (made == first_->outputs().end()) continue;  // never requested
    kept.dtype = made->state.dtype;
    kept.shape = made->state.shape;
    kept.box_format = made->state.box_format;
    kept.clamping = made->state.clamping;
    kept.encoded = false;
  }
  return out;
}

bool Residence::lies_in_memory() const {
  const Schema& schema = asked_.source->schema();
  if (asked_.source->read_style() != ReadStyle::kMemory || !first_->steps().empty()) return false;
  for (size_t i = 0; i < schema.size(); ++i) {
    if (asked_.plan->wanted()[i] && !asked_.source->dense_values(i)) return false;
  }
  return true;
}

// Exact if all records have one shape.
size_t Residence::estimated_bytes() const {
  const auto records = static_cast<size_t>(asked_.source->size());
  size_t each = 0, probed = 0, listed = 0;
  for (const Output& output : first_->outputs()) {
    if (output.origin == OutputOrigin::kField) each += output.bytes_per_record;
  }
  if (std::ranges::none_of(first_->outputs(), is_list)) return each * records;
  Renderer renderer;
  const int64_t probes = std::min<int64_t>(kProbes, asked_.source->size());
  for (int64_t i = 0; i < probes; ++i) {
    Record record;
    record.index = asked_.source->size() * i / probes;
    RecordData data;
    asked_.source->read({&record.index, 1}, first_->wanted(), {&data, 1});
    if (!data.result || !first_->begin(data, record, renderer) ||
        !first_->advance(0, record, renderer, 0, 0)) {
      continue;
    }
    ++probed;
    for (const Output& output : first_->outputs()) {
      if (!output.as_list || output.origin != OutputOrigin::kField) continue;
      const FieldValue& value = record.fields[size_t(output.field)];
      const Size size = value.picture.size();
      const bool picture = is_picture(value.kind);
      listed += picture ? size_t(size.height) * size.width * value.picture.channels()
                        : value.bytes.size();
      listed += sizeof(Shape) + 48;  // its position and size
    }
  }
  return records * each + (probed ? records * (listed / probed + 1) : 0);
}

void Residence::prepare(const SourcePtr& source,
                        const std::function<void(const std::string&)>& warn,
                        const std::function<void()>& interrupted) {
  if (!on_ || prepared_) return;
  if (!borrows_) {
    std::string why;
    auto filled = ResidentSource::filled({.source = source,
                                          .plan = first_,
                                          .schema = schema_,
                                          .threads = asked_.threads,
                                          .memory_limit = asked_.memory_limit - most_,
                                          .max_bytes = std::max(most_, estimate_),
                                          .record_bytes = estimate_ / size_t(asked_.source->size()),
                                          .warn = warn},
                                         why, interrupted);
    {
      MutexLock lock(mutex_);
      source_ = std::move(filled);
    }
    if (!source_ && asked_.use == ResidentUse::kOn) {
      raise(kNoFit, why,
            "raise memory_limit, put a Resize before the first random transform, or use "
            "resident=\"auto\"");
    }
    if (!source_) return turn_off("streamed: " + why);
  }
  prepared_ = true;
  make_set();
}

size_t Residence::bytes() const {
  MutexLock lock(mutex_);
  if (source_) return source_->bytes();
  return on_ && !borrows_ && !set_ ? estimate_ : 0;
}

void Residence::make_set() {
  const std::shared_ptr<const ResidentSource> made = source_;
  const Source& source = made ? static_cast<const Source&>(*made) : *asked_.source;
  if (asked_.device && asked_.device->backend() != "cpu") {
    std::shared_ptr<ResidentSet> set = set_on_device(source);
    MutexLock lock(mutex_);
    set_ = std::move(set);
    if (set_ && asked_.fraction >= 1) source_ = nullptr;  // the device has the values
  }
  if (set_) return;
  std::shared_ptr<HostSet> set = set_on_host(source);
  MutexLock lock(mutex_);
  host_set_ = std::move(set);
}

std::optional<Batch> Residence::cut(uint64_t seed, uint64_t epoch, int64_t batch) {
  if (set_) return set_->take(*asked_.sampler, *asked_.layout, seed, epoch, batch);
  std::optional<Batch> out = host_set_->take(seed, epoch, batch);
  if (out) return out;
  add_text(" (by the engine since batch " + std::to_string(batch) + " of epoch " +
           std::to_string(epoch) + ", which has a record with other transforms)");
  std::shared_ptr<HostSet> done;  // destroyed without the lock
  MutexLock lock(mutex_);
  done.swap(host_set_);
  return out;
}

ResidentStats Residence::stats() const {
  std::shared_ptr<ResidentSet> set;
  std::shared_ptr<HostSet> host_set;
  {
    MutexLock lock(mutex_);
    set = set_;
    host_set = host_set_;
  }
  return set ? set->stats() : host_set ? host_set->stats() : ResidentStats{};
}

// The plan's outputs in place; a field without values is a list, or has bad records.
std::vector<ResidentField> Residence::fields_of(const Source& source) const {
  std::vector<ResidentField> fields;
  for (const Output& output : rest_->outputs()) {
    ResidentField& field = fields.emplace_back(ResidentField{.name = output.name,
                                                             .origin = output.origin,
                                                             .dtype = output.state.dtype,
                                                             .shape = output.state.shape});
    if (output.origin != OutputOrigin::kField || output.as_list) continue;
    const auto at = std::ranges::find(source.schema(), output.name, &Field::name);
    if (at == source.schema().end()) continue;  // made by a Fork
    field.values = source.dense_values(size_t(at - source.schema().begin()));
    field.owner =
        source_ ? std::shared_ptr<const void>(source_) : std::shared_ptr<const void>(asked_.source);
  }
  return fields;
}

// For pictures that are changed when batches are made: these fields, and their sources. Returns the
// step or field that prevents it; empty if none does. resizes: whether they can be resized, too.
std::string Residence::edit_fields(std::vector<ResidentField>& fields, const Source& source,
                                   bool resizes, std::shared_ptr<DeviceSteps>& steps) const {
  if (!rest_->batch_steps().empty()) return rest_->batch_steps().front().label;
  const bool turned = rest_->options().memory_format == MemoryFormat::kChannelsLast;
  if (rest_->steps().empty() && !(turned && has_pictures(*rest_))) return {};
  steps = std::make_shared<DeviceSteps>(rest_, DeviceSteps::Work::kEdit);
  if (!steps->obstacle().empty() && resizes) {
    std::vector<ResidentPictures> differing(rest_->wanted().size());  // not Fork's fields
    for (size_t i = 0; source_ && asked_.fraction >= 1 && i < differing.size(); ++i) {
      if (rest_->wanted()[i]) differing[i] = source_->pictures(i);
    }
    steps = std::make_shared<DeviceSteps>(rest_, DeviceSteps::Work::kResizeAndEdit, differing);
  }
  if (!steps->obstacle().empty()) return steps->obstacle();
  for (size_t i = 0; i < steps->outputs().size(); ++i) {
    const DeviceSteps::Output& edited = steps->outputs()[i];
    ResidentField& field = fields[size_t(edited.output)];
    field.edited = int(i);
    field.values = source.dense_values(size_t(edited.source));
    if (source_ && steps->resizes()) field.pictures = source_->pictures(size_t(edited.source));
    field.owner =
        source_ ? std::shared_ptr<const void>(source_) : std::shared_ptr<const void>(asked_.source);
    const int64_t c = field.shape[0], w = field.shape[2];
    if (turned) field.strides = {1, w * c, c};
  }
  return {};
}

std::unique_ptr<HostSet> Residence::set_on_host(const Source& source) {
  const Plan& plan = *rest_;
  std::vector<ResidentField> fields = fields_of(source);
  std::shared_ptr<DeviceSteps> steps;
  const bool edits = edit_fields(fields, source, false, steps).empty();
  const bool dense =
      std::ranges::all_of(fields, has_values) && std::ranges::none_of(plan.outputs(), is_list);
  if (edits && dense && !(asked_.view && steps)) {
    const MemoryShares shares =
        divide_memory(asked_.memory_limit - std::min(asked_.memory_limit, bytes()),
                      batch_bytes(plan, asked_.layout->rank_batch()), asked_.threads, false);
    return std::make_unique<HostSet>(std::move(fields),
                                     HostSetOptions{.sampler = asked_.sampler,
                                                    .layout = *asked_.layout,
                                                    .view = asked_.view,
                                                    .steps = steps ? rest_ : nullptr,
                                                    .memory_format = plan.options().memory_format,
                                                    .threads = asked_.threads,
                                                    .batches = std::min(shares.depth, kHostBatches),
                                                    .device = asked_.device});
  }
  if (!asked_.view) return nullptr;
  raise(kNoViews,
        source_ && source_->bad_records() > 0
            ? std::to_string(source_->bad_records()) + " records are bad"
        : steps ? "memory_format=\"channels_last\" needs a different order in memory"
                : "a field has no values of one shape",
        "omit view=");
}

// Null if a step or a field prevents it; the text names it.
std::unique_ptr<ResidentSet> Residence::set_on_device(const Source& source) {
  const std::string there = " (on the host, not on " + asked_.device->name() + ": ";
  std::vector<ResidentField> fields = fields_of(source);
  std::shared_ptr<DeviceSteps> steps;
  if (const std::string step = edit_fields(fields, source, true, steps); !step.empty()) {
    add_text(there + step + " is not supported there)");
    return nullptr;
  }
  if (!std::ranges::all_of(fields, has_values) || std::ranges::any_of(rest_->outputs(), is_list)) {
    add_text(there + (source_ && source_->bad_records() > 0
                          ? std::to_string(source_->bad_records()) + " records are bad)"
                          : "a field has no values of one shape)"));
    return nullptr;
  }
  const auto part = static_cast<int64_t>(double(source.size()) * asked_.fraction);
  try {
    return std::make_unique<ResidentSet>(
        asked_.device, std::move(fields), source.size(),
        ResidentOptions{.batch_rows = asked_.layout->rank_batch(),
                        .view = asked_.view,
                        .on_device = asked_.fraction < 1 ? part : -1,
                        .steps = std::move(steps),
                        .memory_format = rest_->options().memory_format,
                        .threads = asked_.threads});
  } catch (const Exception& exception) {
    if (asked_.use == ResidentUse::kOn) throw;
    add_text(there + exception.error().what + ")");
    return nullptr;
  }
}

}  // namespace headrace
