// SPDX-License-Identifier: Apache-2.0
// T.ToDevice in a plan: from that point a device works on the pictures, so every later step on them
// must be one that a device supports.
#include <algorithm>

#include "headrace/base/registry.h"
#include "headrace/fields/pictures.h"
#include "headrace/pipeline/plan_rules.h"

namespace headrace {
namespace {

const ErrorCode kNotOnDevice{
    "HR0138", ErrorKind::kConfig, "transform not supported on devices",
    "After ToDevice(), images are on the device, which supports: a horizontal flip, lookup tables, "
    "ToDtype and Normalize, one rectangle filled with one value (in this order, except the flip), "
    "and MixUp and CutMix at the end. Put other image transforms before ToDevice()."};

const ErrorCode kNoPlace{
    "HR0139", ErrorKind::kConfig, "invalid ToDevice",
    "ToDevice() may appear once, and must apply to every record while the image is still uint8: "
    "not in a list that applies to only some records, and not after ToDtype."};

bool is_done_there(const OpRecord& record) {
  if (record.origin) return false;
  const Arguments arguments(record.name, record.params, record.example);
  if (record.make_batch) return record.make_batch(arguments)->on_device();
  if (!record.make) return false;
  const DevicePart part = record.make(arguments)->device_part();
  return part != DevicePart::kNone && part != DevicePart::kPatches;
}

// All operators that some device supports, by name.
std::string steps_of_devices() {
  std::string out;
  for (const OpRecord* record : Registry<OpRecord>::all()) {
    if (is_done_there(*record)) out += (out.empty() ? "" : ", ") + std::string(record->name);
  }
  return out;
}

[[noreturn]] void refuse(const std::string& label, const std::string& why) {
  raise(kNotOnDevice, label + " comes after ToDevice(), but " + why,
        "put it before ToDevice(). Devices support " + steps_of_devices());
}

bool is_on_device(PlanDraft& draft, int field) {
  const auto found = draft.device_points.find(field);
  if (found == draft.device_points.end()) return false;
  found->second.has_work = true;
  return true;
}

bool erases(const PlanDraft& draft, int field) {
  return std::ranges::any_of(draft.steps, [&](const Step& step) {
    const DevicePart part = step.op ? step.op->device_part() : DevicePart::kNone;
    return std::ranges::count(step.fields, field) &&
           (part == DevicePart::kErase || part == DevicePart::kPatches);
  });
}

}  // namespace

void put_on_device(PlanDraft& draft, const std::string& name) {
  const std::string label = "[" + name + "] ";
  if (draft.scope().conditional || draft.scope().in_any_order) {
    raise(kNoPlace, label + "is in a list that does not apply to every record",
          "put it into the list around that one");
  }
  const std::vector<int>& seen =
      draft.scope().narrowed.empty() ? draft.scope().visible : draft.scope().narrowed;
  bool any = false;
  for (const int field : seen) {
    const FieldState& state = draft.states[field];
    if (!is_picture(state.kind)) continue;
    any = true;
    check_not_batched(draft, {field}, name);
    if (draft.device_points.contains(field)) {
      raise(kNoPlace, label + "\"" + state.name + "\" is already on the device",
            "remove one of the two ToDevice()");
    }
    if (state.dtype != DType::kUInt8) {
      raise(kNoPlace,
            label + "\"" + state.name + "\" is " + text_of(state) +
                " here, but only uint8 images can be copied to the device",
            "put it before ToDtype");
    }
    const bool is_first = std::ranges::none_of(draft.steps, [&](const Step& step) {
      return std::ranges::count(step.fields, field) ||
             std::ranges::count(step.output_fields, field);
    });
    draft.device_points[field] = {.from_start = is_first};
  }
  if (!any) raise(kNoPlace, label + "there is no image at this point: " + draft.names_of(seen));
}

void check_on_device(PlanDraft& draft, const Step& step) {
  const DevicePart part = step.op->device_part();
  for (const int field : step.fields) {
    const FieldState& state = draft.states[field];
    if (std::ranges::count(step.looked_at, field) || !is_on_device(draft, field)) continue;
    const std::string name = "\"" + state.name + "\"";
    if (part == DevicePart::kPatches)
      refuse(step.label, "a device erases one rectangle with one value");
    if (part == DevicePart::kNone) refuse(step.label, "no device supports it");
    if (part == DevicePart::kTable && state.dtype != DType::kUInt8) {
      refuse(step.label, "a device has lookup tables only for uint8: " + name + " is " +
                             text_of(state) + " here");
    }
    if (state.shape[0] > 4) refuse(step.label, name + " has more than four channels");
    if (part != DevicePart::kFlip && erases(draft, field)) {
      refuse(step.label, "a device erases only once, as the last transform");
    }
  }
}

void check_on_device(PlanDraft& draft, const BatchStep& step) {
  for (const int field : step.fields) {
    if (!is_on_device(draft, field) || step.op->on_device()) continue;
    refuse(step.label, "no device supports it");
  }
}

void refuse_on_device(PlanDraft& draft, const std::vector<int>& fields, const std::string& label) {
  for (const int field : fields) {
    if (is_on_device(draft, field)) refuse(label, "no device supports it");
  }
}

}  // namespace headrace
