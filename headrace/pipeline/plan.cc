// SPDX-License-Identifier: Apache-2.0
#include "headrace/pipeline/plan.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace headrace {
namespace {

const ErrorCode kWrongValue{"HR0120", ErrorKind::kData, "value does not fit the schema",
                            "A record's value has another size or shape than the source's "
                            "schema says: the file is damaged, or its records were written by "
                            "different programs."};

const ErrorCode kColourMask{
    "HR0121", ErrorKind::kData, "mask with several channels",
    "A mask is a picture of one channel whose values are labels: grey, or with a palette. This "
    "file has colours. Read it as an image field if the colours are meant, or convert it once."};

const ErrorCode kNoPartners{
    "HR0132", ErrorKind::kConfig, "a record without its partners",
    "A step that takes other records of the epoch runs where a Loader makes batches. Here one "
    "record is looked at by itself."};

// Whether a record's shape is one that the schema's allows.
bool allows(const Shape& schema, const Shape& shape) {
  return std::ranges::equal(schema, shape, [](int64_t allowed, int64_t actual) {
    return actual >= 0 && (allowed < 0 || allowed == actual);
  });
}

Error wrong_value(const FieldState& state, const FieldData& data) {
  return {.code = &kWrongValue,
          .what = "\"" + state.name + "\" has " + std::to_string(data.bytes.size()) + " bytes" +
                  (data.shape.empty() ? "" : " as " + text_of(state.dtype, data.shape)) +
                  ", the schema says " + text_of(state)};
}

// EXIF 2.3, tag 274: how the stored picture must be turned to stand upright.
void stand_upright(Recipe& picture, int orientation) {
  if (orientation >= 5) picture.transpose();
  if (orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7) {
    picture.flip_horizontal();
  }
  if (orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8) {
    picture.flip_vertical();
  }
}

}  // namespace

Result<void> Plan::begin(const RecordData& data, Record& record, Renderer& renderer) const {
  record.fields.resize(inputs_.size());
  // Made by steps: let go of what the last record left, so that its memory is free again.
  for (size_t i = schema_.size(); i < inputs_.size(); ++i) {
    record.fields[i].kind = inputs_[i].kind;
    record.fields[i].owned.reset();
    if (is_picture(inputs_[i].kind)) record.fields[i].picture = Recipe();
  }
  for (size_t i = 0; i < schema_.size(); ++i) {
    FieldValue& value = record.fields[i];
    value.kind = inputs_[i].kind;
    value.owned.reset();
    if (!wanted_[i]) continue;
    Result<void> begun = is_picture(value.kind)
                             ? begin_picture(static_cast<int>(i), data.fields[i], record, renderer)
                             : begin_tensor(static_cast<int>(i), data.fields[i], value);
    if (!begun) return begun;
  }
  return {};
}

Result<void> Plan::begin_picture(int field, const FieldData& data, Record& record,
                                 Renderer& renderer) const {
  Recipe& recipe = record.fields[field].picture;
  const FieldState& state = inputs_[field];
  if (schema_[field].encoded) {
    Result<EncodedPicture> opened = renderer.open(data.bytes, options_.limits);
    if (!opened) return std::move(opened.error());
    opened->strict = options_.strict;
    opened->repair = options_.repair;
    opened->sixteen_bit = options_.sixteen_bit;
    opened->row_index = data.row_index;
    opened->color = state.kind == FieldKind::kMask ? ColorMode::kStored : ColorMode::kRGB;
    if (channels_of(opened->color, opened->header) != state.shape[0]) {
      return Error{.code = &kColourMask,
                   .what = "\"" + state.name + "\" has " + std::to_string(opened->header.channels) +
                           " channels"};
    }
    recipe = Recipe(*opened);
    if (options_.exif_orientation) stand_upright(recipe, opened->header.exif_orientation);
    return {};
  }
  const Shape& shape = data.shape.empty() ? state.shape : data.shape;
  if (!allows(state.shape, shape) || element_count(shape) == 0 ||
      data.bytes.size() != static_cast<size_t>(element_count(shape))) {
    return wrong_value(state, data);
  }
  recipe = Recipe();  // lets go of the pixels, which are then free for this record
  record.pixels.resize(inputs_.size());
  std::shared_ptr<Picture>& memory = record.pixels[field];
  if (!memory || memory.use_count() > 1) memory = std::make_shared<Picture>();
  memory->channels = static_cast<int>(shape[0]);
  memory->height = static_cast<int>(shape[1]);
  memory->width = static_cast<int>(shape[2]);
  memory->pixels.resize(data.bytes.size());
  std::memcpy(memory->pixels.data(), data.bytes.data(), data.bytes.size());
  recipe = Recipe(std::shared_ptr<const Picture>(memory));
  return {};
}

Result<void> Plan::begin_tensor(int field, const FieldData& data, FieldValue& value) const {
  const FieldState& state = inputs_[field];
  value.bytes = data.bytes;
  value.scalar = data.scalar;
  value.shape.assign(data.shape.begin(), data.shape.end());
  if (input_bytes_[field] != kOpenBytes) {
    const bool scalar = data.bytes.empty() && state.shape.empty() && state.dtype == DType::kInt64;
    if (!scalar && data.bytes.size() != input_bytes_[field]) return wrong_value(state, data);
  } else if (state.kind != FieldKind::kText && state.kind != FieldKind::kBytes) {
    if (!allows(state.shape, data.shape) ||
        data.bytes.size() != size_t(element_count(data.shape)) * size_of(state.dtype)) {
      return wrong_value(state, data);
    }
  }
  return {};
}

Result<int> Plan::advance(int at, Record& record, Renderer& renderer, uint64_t seed, uint64_t epoch,
                          int end) const {
  const uint64_t position = static_cast<uint64_t>(record.position);
  if (end < 0) end = static_cast<int>(steps_.size());
  while (at < end) {
    const Step& step = steps_[at];
    switch (step.kind) {
      case Step::Kind::kPython:
        return at;
      case Step::Kind::kCoin:
        if (!Draws(seed, epoch, position, step.key).coin(step.probability)) {
          at = step.jump;
          continue;
        }
        break;
      case Step::Kind::kCopy:
        record.fields[step.fields[1]] = record.fields[step.fields[0]];
        break;
      case Step::Kind::kOp: {
        OpContext context{record, step.fields, Draws(seed, epoch, position, step.key), renderer,
                          record.partners};
        if (std::ssize(record.partners) < step.op->partners()) {
          raise(kNoPartners, step.label + " takes other records of an epoch beside its own");
        }
        if (Result<void> done = step.op->apply(context); !done) {
          Error error = std::move(done.error());
          if (error.note.empty())
            error.note =
                "in step " + std::to_string(options_.steps_before + at + 1) + ", " + step.label;
          return error;
        }
        break;
      }
    }
    ++at;
  }
  return at;
}

}  // namespace headrace
