// SPDX-License-Identifier: Apache-2.0
#include "headrace/delivery/device_steps.h"

#include <algorithm>
#include <utility>

#include "headrace/base/registry.h"

namespace headrace {
namespace {

constexpr int64_t kTried = 64;  // records whose draws are tried

const ErrorCode kOtherEdit{
    "HR0894", ErrorKind::kUnsupported, "transform not supported on the device",
    "Data that stays on a device is transformed there by kernels, which support crops with "
    "constant borders, at most one resize, flips, conversion and normalization of uint8, and one "
    "erased rectangle at the end. Other transforms run on the host: use a Loader, which copies its "
    "batches to the device."};

// Sets the fill of all images of an output from now on; false if it already has another.
bool is_filled_with(RecipeEdit& sample, const ChannelValues& values) {
  if (sample.is_filled) return sample.fill == values;
  sample.fill = values;
  sample.is_filled = true;
  return true;
}

}  // namespace

DeviceSteps::DeviceSteps(std::shared_ptr<const Plan> plan, Work work,
                         std::vector<ResidentPictures> differing)
    : plan_(std::move(plan)), work_(work), differing_(std::move(differing)) {
  for (size_t i = 0; i < plan_->wanted().size(); ++i) {
    obstacle_ = add_field(i);
    if (!obstacle_.empty()) return;
  }
  obstacle_ = first_unsupported();
}

// The reason why it cannot be added; empty if it can.
std::string DeviceSteps::add_field(size_t field) {
  constexpr int kMaxOfKernels = 4;
  const FieldState& state = plan_->inputs()[field];
  if (!is_picture(state.kind) || !plan_->wanted()[field]) {
    pictures_.push_back(nullptr);
    return {};
  }
  const bool open = std::ranges::count(state.shape, -1) > 0;
  const bool known = !open || (resizes() && field < differing_.size() && differing_[field] &&
                               !differing_[field]->empty() && state.shape[0] > 0);
  if (!known) return "\"" + state.name + "\", whose records differ in size";
  if (state.dtype != DType::kUInt8 || state.shape[0] > kMaxOfKernels) {
    return "\"" + state.name + "\", which is " + text_of(state);
  }
  pictures_.push_back(std::make_shared<Picture>(int(state.shape[0]), open ? 1 : int(state.shape[1]),
                                                open ? 1 : int(state.shape[2]), DType::kUInt8));
  return {};
}

const ResidentPicture* DeviceSteps::differing(size_t field, int64_t record) const {
  if (field >= differing_.size() || !differing_[field]) return nullptr;
  const std::vector<ResidentPicture>& all = *differing_[field];
  return &all[size_t(record) % all.size()];
}

std::string DeviceSteps::first_unsupported() {
  const int steps = static_cast<int>(plan_->steps().size());
  for (int end = 1; end <= steps; ++end) {
    const Step& step = plan_->steps()[size_t(end) - 1];
    const auto is_moved_along = [&](int field) {
      return !is_picture(plan_->inputs()[size_t(field)].kind);
    };
    if (step.kind == Step::Kind::kPython || end - 1 == plan_->partner_step() ||
        std::ranges::any_of(step.fields, is_moved_along)) {
      return step.label;
    }
    for (int64_t position = 0; position < kTried; ++position) {
      if (!run(1, 0, position, position, end)) return step.label;
      for (const FieldValue& value : record_.fields) {
        if (!is_picture(value.kind) || value.picture.channels() == 0) continue;
        bool done_by_kernels = false;
        for (size_t i = 0; i < pictures_.size(); ++i) {
          done_by_kernels |= pictures_[i] && done_of(value.picture, i);
        }
        if (!done_by_kernels) return step.label;
      }
    }
  }
  const std::string last = steps > 0 ? plan_->steps().back().label : "an image";
  for (int i = 0; i < static_cast<int>(plan_->outputs().size()); ++i) {
    if (is_picture(plan_->outputs()[size_t(i)].state.kind)) outputs_.emplace_back().output = i;
  }
  for (int64_t position = 0; position < kTried; ++position) {
    if (!run(1, 0, position, position, steps)) return last;
    for (Output& output : outputs_) {
      if (!fits(output, position == 0)) return last;
    }
  }
  return {};
}

// Work::kResizeAndEdit resizes encoded pictures. This one has only a header, and a byte that
// identifies the field; decoding it would report damage.
Recipe DeviceSteps::recipe_of(size_t field, int64_t record) const {
  const Picture& picture = *pictures_[field];
  if (!resizes()) return Recipe(std::shared_ptr<const Picture>(pictures_[field]));
  const ResidentPicture* const own = differing(field, record);
  const Size size = own ? own->size : Size{picture.height, picture.width};
  return Recipe(EncodedImage{
      .bytes = {picture.pixels.data(), 1},
      .codec = Registry<CodecRecord>::find("jpeg"),
      .header = {.width = size.width, .height = size.height, .channels = picture.channels},
      .color = ColorMode::kStored});
}

std::optional<DeviceSteps::Done> DeviceSteps::done_of(const Recipe& recipe, size_t field) const {
  const Picture& picture = *pictures_[field];
  if (!resizes()) {
    if (const auto edit = edit_of(recipe, picture)) return Done{*edit};
    return std::nullopt;
  }
  Recipe beginning = recipe;
  std::string_view why_not;
  const std::optional<RecipeEdit> end = take_end(beginning, why_not);
  if (!end || end->table) return std::nullopt;
  NotCoded refusal{};
  std::optional<CodedWindow> window = coded_window_of(beginning, refusal);
  if (!window || window->picture.bytes.data() != picture.pixels.data()) return std::nullopt;
  return Done{*end, std::move(window)};
}

Result<void> DeviceSteps::run(uint64_t seed, uint64_t epoch, int64_t position, int64_t record,
                              int end) {
  record_.position = position;
  record_.fields.resize(plan_->inputs().size());
  for (size_t i = 0; i < record_.fields.size(); ++i) {
    record_.fields[i].kind = plan_->inputs()[i].kind;
    const bool known = i < pictures_.size() && pictures_[i];
    record_.fields[i].picture = known ? recipe_of(i, record) : Recipe();
  }
  Result<int> stopped = plan_->advance(0, record_, renderer_, seed, epoch, end);
  if (!stopped) return std::move(stopped.error());
  return {};
}

// Whether the record's picture is edited like the previous ones, except for the edit's numbers,
// which it records.
bool DeviceSteps::fits(Output& output, bool first) {
  const Recipe& recipe =
      record_.fields[size_t(plan_->outputs()[size_t(output.output)].field)].picture;
  if (first) {
    for (size_t i = 0; i < pictures_.size(); ++i) {
      if (!pictures_[i]) continue;
      std::optional<Done> done = done_of(recipe, i);
      if (!done) continue;
      output.source = static_cast<int>(i);
      output.stored = plan_->inputs()[i].shape;
      output.sample = done->edit;
      output.edits.assign(1, output.sample.edit);
      return !done->window || takes(output, std::move(*done->window));
    }
    return false;
  }
  std::optional<Done> done = done_of(recipe, size_t(output.source));
  RecipeEdit& sample = output.sample;
  if (!done || done->edit.size != sample.size || done->edit.map != sample.map) return false;
  const RecipeEdit& edit = done->edit;
  if (edit.is_filled && !is_filled_with(sample, edit.fill)) return false;
  output.edits.push_back(edit.edit);
  return !done->window || takes(output, std::move(*done->window));
}

// All pictures of an output are resized with one filter; any filter will do for one that keeps its
// size.
bool DeviceSteps::takes(Output& output, CodedWindow window) {
  const Window& source = window.source;
  const Size turned =
      window.transpose ? Size{source.width, source.height} : Size{source.height, source.width};
  if (window.resized != turned) {
    if (output.filter && output.filter != window.filter) return false;
    output.filter = window.filter;
  }
  output.windows.push_back(std::move(window));
  return true;
}

void DeviceSteps::begin(uint64_t seed, uint64_t epoch, int64_t position, int64_t rows,
                        std::span<const int64_t> records) {
  for (Output& output : outputs_) {
    output.edits.clear();
    output.windows.clear();
  }
  const int steps = static_cast<int>(plan_->steps().size());
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t record = records.empty() ? 0 : records[size_t(row)];
    if (Result<void> done = run(seed, epoch, position + row, record, steps); !done) {
      throw Exception(std::move(done.error()));
    }
    for (Output& output : outputs_) {
      if (fits(output, false)) continue;
      std::rethrow_exception(other_edit(position + row, epoch));
    }
  }
}

bool DeviceSteps::fills_with(size_t output, const ChannelValues& values) {
  return is_filled_with(outputs_[output].sample, values);
}

std::exception_ptr DeviceSteps::other_edit(int64_t position, uint64_t epoch) {
  return std::make_exception_ptr(Exception(
      {.code = &kOtherEdit,
       .what = "at position " + std::to_string(position) + " of epoch " + std::to_string(epoch) +
               " the transforms do more than a crop, a resize, a flip and a value mapping",
       .hint = "use a Loader without resident="}));
}

}  // namespace headrace
