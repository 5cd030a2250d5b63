// SPDX-License-Identifier: Apache-2.0
// Ragged outputs: records of differing shape in a batch that has one tensor per field.
//
// Note [Ragged outputs]
// ragged="pad" makes one tensor with the longest record's extents on every open axis, "packed"
// concatenates the records along the open axis, for fields that have only one: rows of boxes,
// frames of audio. Neither loses information: companion outputs contain the records' extents and a
// mask of valid elements, or the offsets at which records begin. Companions are named after their
// field, and come after all fields unless fields= places them. Fields of one row group share them,
// if only their first axis is variable: such fields have the same number of rows in every record,
// which is checked when a row is written.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <string_view>
#include <utility>

#include "headrace/base/number_text.h"
#include "headrace/kernels/half.h"
#include "headrace/pipeline/plan_rules.h"

namespace headrace {
namespace {

const ErrorCode kBadRagged{
    "HR0119", ErrorKind::kConfig, "invalid ragged output",
    "ragged=\"pad\" and \"packed\" add companion fields (boxes_lengths, boxes_mask, "
    "boxes_offsets), whose names must be free and which cannot be selected without their field. "
    "pad_value= takes numbers representable in the field's dtype, for fields that are padded."};

struct Companion {
  OutputOrigin origin;
  Ragged of;
  std::string_view suffix;
};
constexpr Companion kCompanions[] = {{OutputOrigin::kLengths, Ragged::kPad, "_lengths"},
                                     {OutputOrigin::kMask, Ragged::kPad, "_mask"},
                                     {OutputOrigin::kOffsets, Ragged::kPacked, "_offsets"}};

const Companion& companion_of(OutputOrigin origin) {
  return *std::ranges::find(kCompanions, origin, &Companion::origin);
}

bool is_companion(const Output& output) {
  return std::ranges::count(kCompanions, output.origin, &Companion::origin) > 0;
}

bool has_one_open_axis(const FieldState& state) {
  return !is_picture(state.kind) && std::ranges::count(state.shape, -1) == 1;
}
bool has_open_rows(const FieldState& state) {
  return has_one_open_axis(state) && state.shape[0] < 0;
}

template <class T>
std::vector<uint8_t> bytes_of(T value) {
  std::vector<uint8_t> bytes(sizeof(T));
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

// The number as an element of an integer dtype; none if it does not fit.
template <class T>
std::vector<uint8_t> integer_bytes(double value) {
  if (value != std::floor(value) || value < static_cast<double>(std::numeric_limits<T>::min()) ||
      value >= std::ldexp(1.0, std::numeric_limits<T>::digits)) {
    return {};
  }
  return bytes_of(static_cast<T>(value));
}

std::vector<uint8_t> element_of(DType dtype, double value) {
  switch (dtype) {
    case DType::kUInt8:
      return integer_bytes<uint8_t>(value);
    case DType::kInt8:
      return integer_bytes<int8_t>(value);
    case DType::kInt16:
      return integer_bytes<int16_t>(value);
    case DType::kInt32:
      return integer_bytes<int32_t>(value);
    case DType::kInt64:
      return integer_bytes<int64_t>(value);
    case DType::kUInt16:
      return integer_bytes<uint16_t>(value);
    case DType::kUInt32:
      return integer_bytes<uint32_t>(value);
    case DType::kUInt64:
      return integer_bytes<uint64_t>(value);
    case DType::kFloat16:
      return bytes_of(float16_from_float32(static_cast<float>(value)));
    case DType::kBFloat16:
      return bytes_of(bfloat16_from_float32(static_cast<float>(value)));
    case DType::kFloat32:
      return bytes_of(static_cast<float>(value));
    case DType::kFloat64:
      return bytes_of(value);
    case DType::kBool:
      return value == 0 || value == 1 ? bytes_of(static_cast<uint8_t>(value))
                                      : std::vector<uint8_t>{};
  }
  return {};
}

// A value that is neither a class, an index nor a count: -1 for signed integers; all bits set in a
// mask's class ids, which is 255, the usual ignore_index of losses. Coordinates and pixels get 0.
std::vector<uint8_t> usual_padding(const FieldState& state) {
  constexpr std::array kSigned = {DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64};
  const bool ids = state.kind == FieldKind::kTensor || state.kind == FieldKind::kLabel;
  const bool below_zero = ids && std::ranges::count(kSigned, state.dtype) > 0;
  const bool mask = state.kind == FieldKind::kMask && !is_floating(state.dtype);
  return std::vector<uint8_t>(size_of(state.dtype), below_zero || mask ? 0xFF : 0);
}

void add_companion(PlanDraft& draft, OutputOrigin origin, int of) {
  std::vector<Output>& outputs = draft.outputs;
  const std::string name = outputs[of].name + std::string(companion_of(origin).suffix);
  auto made = std::ranges::find(outputs, name, &Output::name);
  if (made != outputs.end() && made->origin != origin) {
    raise(kBadRagged,
          "\"" + name + "\" is a field of the records, but is also added by \"" + outputs[of].name +
              "\"",
          "exclude it with fields=, or use ragged=\"list\"");
  }
  if (made == outputs.end()) {
    Output output;
    output.name = name;
    output.origin = origin;
    made = outputs.insert(made, std::move(output));
  }
  const int number = static_cast<int>(made - outputs.begin());
  const Output& about = outputs[of];
  made->field = about.field;
  made->companion = of;
  made->state.name = name;
  const auto open = std::ranges::count(about.state.shape, -1);
  if (origin == OutputOrigin::kLengths) {
    made->state.dtype = DType::kInt64;
    if (open > 1) made->state.shape = {open};
    made->bytes_per_record = sizeof(int64_t) * static_cast<size_t>(open);
  } else {
    made->state.dtype = origin == OutputOrigin::kMask ? DType::kBool : DType::kInt64;
    if (origin == OutputOrigin::kMask) made->state.shape.assign(static_cast<size_t>(open), -1);
    made->as_list = true;
    made->ragged = draft.options.ragged;
  }
  if (origin != OutputOrigin::kMask) outputs[of].companion = number;
}

void set_paddings(PlanDraft& draft) {
  for (Output& output : draft.outputs) {
    if (output.is_assembled() && output.ragged == Ragged::kPad) {
      output.padding = usual_padding(output.state);
    }
  }
  for (const std::string& given : draft.options.pad_values) {
    const size_t equals = std::min(given.rfind('='), given.size());
    const std::string name = given.substr(0, equals);
    const auto output = std::ranges::find(draft.outputs, name, &Output::name);
    if (output == draft.outputs.end() || output->padding.empty() || is_companion(*output)) {
      raise(kBadRagged, "pad_value= names \"" + name + "\", which is not padded",
            "ragged=\"pad\" pads delivered fields that differ in shape");
    }
    const std::string text = given.substr(std::min(equals + 1, given.size()));
    const std::optional<double> value = number_from<double>(text);
    output->padding = value ? element_of(output->state.dtype, *value) : std::vector<uint8_t>{};
    if (output->padding.empty()) {
      raise(kBadRagged, "pad_value= gives \"" + name + "\" the value " + text + ", which " +
                            std::string(name_of(output->state.dtype)) + " cannot hold");
    }
  }
}

}  // namespace

// A companion listed in fields=: reserves its position; it is filled in later.
bool add_announced(PlanDraft& draft, const std::string& name) {
  for (const Companion& each : kCompanions) {
    if (each.of != draft.options.ragged || !name.ends_with(each.suffix)) continue;
    const std::string of = name.substr(0, name.size() - each.suffix.size());
    const auto is_it = [&](const std::string& field) {
      return std::ranges::any_of(draft.scopes.front().visible,
                                 [&](int seen) { return draft.states[seen].name == field; });
    };
    if (is_it(name) || !is_it(of)) continue;
    Output output;
    output.name = name;
    output.origin = each.origin;
    draft.outputs.push_back(std::move(output));
    return true;
  }
  return false;
}

void add_ragged_outputs(PlanDraft& draft) {
  const Ragged ragged = draft.options.ragged;
  std::vector<Output>& outputs = draft.outputs;
  std::map<uint8_t, int> leaders;  // by row group
  const auto count = static_cast<int>(outputs.size());
  for (int i = 0; i < count && (ragged == Ragged::kPad || ragged == Ragged::kPacked); ++i) {
    const FieldState& state = outputs[i].state;
    const bool numbers = outputs[i].origin == OutputOrigin::kField && !is_string(state.kind);
    const bool packs = ragged == Ragged::kPacked;
    if (!numbers || !outputs[i].as_list || (packs && !has_one_open_axis(state))) continue;
    outputs[i].ragged = ragged;
    const uint8_t group = has_open_rows(state) ? state.row_group : 0;
    const int leader = group ? leaders.emplace(group, i).first->second : i;
    if (leader != i) {
      outputs[i].companion = outputs[leader].companion;
      continue;
    }
    for (const Companion& each : kCompanions) {
      if (each.of == ragged) add_companion(draft, each.origin, i);
    }
  }
  for (const Output& output : outputs) {
    if (!is_companion(output) || output.companion >= 0) continue;
    const std::string_view suffix = companion_of(output.origin).suffix;
    const std::string of = output.name.substr(0, output.name.size() - suffix.size());
    raise(kBadRagged, "fields= names \"" + output.name + "\", which does not exist",
          "it is added by \"" + of +
              "\", if that is delivered, differs in rows and is the first of its row group");
  }
  set_paddings(draft);
}

}  // namespace headrace
