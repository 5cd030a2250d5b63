// SPDX-License-Identifier: Apache-2.0
#include "headrace/finish/finish_choice.h"

#include <algorithm>

#include "headrace/kernels/batch/picture_batch.h"

namespace headrace {
namespace {

const ErrorCode kNothingToFinish{
    "HR0716", ErrorKind::kConfig, "nothing to finish on a device",
    "With finish=\"device\" or T.ToDevice(), the device that batches are copied to applies "
    "ToDtype, Normalize, the last flip, lookup tables, an erased rectangle, layout and dtype of "
    "images, MixUp and CutMix. This requires a dense field of images or clips with one to four "
    "channels that remain uint8 until these transforms: a transform after ToDtype that computes "
    "colors, resizes or runs Python needs finished images on the host. finish=\"auto\" uses the "
    "device where possible."};

std::string in_kib(size_t bytes) {
  const size_t tenths = (bytes * 10 + 512) / 1024;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " KiB";
}

bool is_byte(const FieldState& state) { return state.dtype == DType::kUInt8; }

// The first transform that works on the field's pixels after they stopped being bytes, as the user
// wrote it; empty if there is none.
std::string step_on_floats(const Plan& plan, int field) {
  const std::vector<int> passes = plan.passes();
  FieldState state = plan.inputs()[size_t(field)];
  if (!is_byte(state)) return "\"" + state.name + "\", which is " + text_of(state);
  int mapped_in = 0;  // the pass in which bytes became another dtype
  for (size_t s = 0; s < plan.steps().size(); ++s) {
    const Step& step = plan.steps()[s];
    const bool by_python = step.kind == Step::Kind::kPython;
    const std::vector<int>& made = by_python ? step.output_fields : step.fields;
    const auto at = std::ranges::find(made, field);
    if (at == made.end()) continue;
    const auto place = static_cast<size_t>(at - made.begin());
    if (step.kind == Step::Kind::kCopy) {
      // A view starts as a copy of its source, which must be bytes at that point.
      if (place == 1) state.dtype = plan.inputs()[size_t(step.fields[1])].dtype;
      continue;
    }
    if (place >= step.after.size()) continue;
    const bool was_byte = is_byte(state);
    state = step.after[place];
    if (is_byte(state)) continue;
    if (by_python) return step.label;
    if (was_byte) mapped_in = passes[s];
    if (!was_byte && passes[s] != mapped_in) return step.label;
  }
  return {};
}

// The reason why a device cannot finish it; empty if it can.
std::string obstacle(const Plan& plan, int number) {
  const Output& output = plan.outputs()[size_t(number)];
  const std::string name = "\"" + output.name + "\"";
  if (output.as_list) return name + ", whose records differ in shape";
  if (output.picture().shape[0] > PictureBatch::kMaxChannels || size_of(output.state.dtype) > 4) {
    return name + ", which is " + text_of(output.state);
  }
  for (const BatchStep& step : plan.batch_steps()) {
    const bool has_it = std::ranges::find(step.outputs, number) != step.outputs.end();
    if (has_it && !step.op->on_device()) return step.label;
  }
  return step_on_floats(plan, output.field);
}

// Whether a record's device part may be more than one rectangle of one value.
FinishPlace place_of(const Plan& plan, int field) {
  std::vector<int> erased(plan.inputs().size());
  for (const Step& step : plan.steps()) {
    if (step.kind == Step::Kind::kCopy)
      erased[size_t(step.fields[1])] = erased[size_t(step.fields[0])];
    if (!step.op) continue;
    const DevicePart part = step.op->device_part();
    const int most = part == DevicePart::kErase ? 1 : part == DevicePart::kPatches ? 2 : 0;
    for (const int its : step.fields) erased[size_t(its)] += most;
  }
  return erased[size_t(field)] > 1 ? FinishPlace::kMostlyDevice : FinishPlace::kDevice;
}

}  // namespace

FinishChoice choose_finish(const Plan& plan, FinishUse use, const std::string& device,
                           bool for_decoding) {
  if (use == FinishUse::kHost) return {{}, "cpu"};
  if (device.empty()) return {{}, "cpu: batches stay on the host"};
  FinishChoice out;
  std::string why_not = "there are no images";
  std::vector<FinishPlace> places(plan.outputs().size());
  std::vector<bool> decodable(plan.outputs().size());
  for (size_t i = 0; i < plan.outputs().size(); ++i) {
    const Output& output = plan.outputs()[i];
    const bool is_one = output.origin == OutputOrigin::kField && is_picture(output.state.kind);
    if (!is_one && !output.is_clip()) continue;
    const DevicePoint* const point = plan.device_point(output.field);
    const bool asked = point && point->has_work;
    if (use == FinishUse::kAuto && !asked && !(for_decoding && is_one) && is_byte(output.state)) {
      why_not = "\"" + output.name + "\" is delivered as bytes";
      continue;
    }
    if (const std::string step = obstacle(plan, int(i)); !step.empty()) {
      why_not = step + " prevents it";
      if (asked) raise(kNothingToFinish, step + " prevents ToDevice()", "remove ToDevice()");
      continue;
    }
    places[i] = place_of(plan, output.field);
    decodable[i] = is_one && output.state.kind == FieldKind::kImage;  // masks are not JPEGs
    out.asked |= asked;
    out.text += (out.text.empty() ? device + ": " : "; ") + ("\"" + output.name + "\"") +
                " is copied as uint8, " + in_kib(size_t(element_count(output.state.shape))) +
                " per record instead of " + in_kib(output.bytes_per_record);
  }
  if (out.text.empty() && use == FinishUse::kDevice) {
    raise(kNothingToFinish, why_not, "use finish=\"auto\", or move the transform");
  }
  if (out.text.empty()) return {{}, "cpu: " + why_not};
  out.places = std::move(places);
  out.decodable = std::move(decodable);
  return out;
}

}  // namespace headrace
