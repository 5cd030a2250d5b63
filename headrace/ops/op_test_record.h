// SPDX-License-Identifier: Apache-2.0
// For tests of operators: one operator by its name, applied to a record of pictures.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "headrace/base/registry.h"
#include "headrace/image/recipe_test_images.h"
#include "headrace/ops/op.h"

namespace headrace::op_test {

using Given = std::map<std::string, ParamValue>;
using recipe_test::Grid;
using Ints = std::vector<int64_t>;
using Floats = std::vector<double>;

inline std::unique_ptr<Op> make_op(const std::string& name, const Given& given = {}) {
  const OpRecord* record = Registry<OpRecord>::find(name);
  if (!record || !record->make) {
    ADD_FAILURE() << name << " is not an operator with a step of its own";
    return nullptr;
  }
  return record->make(Arguments(record->name, record->params, given));
}

// The id, the first line and the help of the error that a call throws, or "accepted".
template <class Call>
std::string refusal(Call&& call) {
  try {
    call();
  } catch (const Exception& exception) {
    const Error& error = exception.error();
    return std::string(error.code->id) + " " + error.what +
           (error.hint.empty() ? "" : " | " + error.hint);
  }
  return "accepted";
}

inline std::string refusal(const std::string& name, const Given& given) {
  return refusal([&] { make_op(name, given); });
}

// The state of a field after an operator.
inline FieldState planned(const Op& op, FieldState field) {
  op.plan(field);
  return field;
}
inline FieldState image_state(Shape shape = {3, -1, -1}, DType dtype = DType::kUInt8) {
  return {"image", FieldKind::kImage, dtype, std::move(shape), {}};
}
inline FieldState mask_state(Shape shape = {1, -1, -1}) {
  return {"mask", FieldKind::kMask, DType::kUInt8, std::move(shape), {}};
}
inline std::string plan_refusal(const std::string& name, const Given& given, FieldState field) {
  return refusal([&] { make_op(name, given)->plan(field); });
}

struct Picture {
  Grid grid;
  FieldKind kind = FieldKind::kImage;
};

// A record of pictures, and the operators that were applied to it.
class TestRecord {
 public:
  explicit TestRecord(const std::vector<Picture>& pictures, int64_t position = 0) {
    record_.position = position;
    for (const Picture& picture : pictures) {
      FieldValue value;
      value.kind = picture.kind;
      value.picture = recipe_test::recipe_of(picture.grid);
      record_.fields.push_back(std::move(value));
    }
    numbers_.resize(pictures.size());
    std::iota(numbers_.begin(), numbers_.end(), 0);
  }

  Result<void> try_apply(const Op& op, uint64_t seed = 0, uint64_t key = 1) {
    OpContext context{record_, numbers_,
                      Draws(seed, 0, static_cast<uint64_t>(record_.position), key), renderer_};
    std::vector<Record> partners(static_cast<size_t>(op.partners()), record_);
    for (Record& partner : partners) {  // a picture with different pixels
      for (FieldValue& value : partner.fields) (void)value.picture.flip_horizontal();
    }
    context.partners = partners;
    context.rows = rows_;
    return op.apply(context);
  }
  TestRecord& apply(const Op& op, uint64_t seed = 0, uint64_t key = 1) {
    Result<void> done = try_apply(op, seed, key);
    EXPECT_TRUE(done) << done.error().message();
    return *this;
  }
  Grid grid(int field = 0) { return recipe_test::render(record_.fields[field].picture, renderer_); }
  // Adds a field to the step: float32 boxes in xyxy format. Returns its number.
  int add_boxes(const std::vector<float>& corners) {
    const int field = add_rows(FieldKind::kBoxes, {std::ssize(corners) / 4, 4}, corners);
    record_.fields[field].box_format = BoxFormat::kXYXY;
    record_.fields[field].shares.assign(corners.size() / 4, 1.0f);
    return field;
  }
  // The same for uint8 instance masks: the upper half of a picture, and its left half.
  int add_masks(int height, int width) {
    const int field = add_rows(FieldKind::kMasks, {2, height, width}, {});
    Buffer bytes(size_t(2) * size_t(height) * size_t(width));
    for (int i = 0; i < 2 * height * width; ++i) {
      const int x = i % width, y = i / width % height;
      bytes.data()[i] = i < height * width ? y < height / 2 : x < width / 2;
    }
    record_.fields[field].dtype = DType::kUInt8;
    record_.fields[field].own(std::move(bytes));
    return field;
  }
  // The same for float32 in any shape; all such fields are one row group.
  int add_rows(FieldKind kind, Shape shape, const std::vector<float>& numbers) {
    FieldValue value;
    value.kind = kind;
    value.dtype = DType::kFloat32;
    value.shape = std::move(shape);
    Buffer bytes(numbers.size() * sizeof(float));
    if (!numbers.empty()) std::memcpy(bytes.data(), numbers.data(), bytes.size());
    value.own(std::move(bytes));
    record_.fields.push_back(std::move(value));
    numbers_.push_back(static_cast<int>(numbers_.size()));
    rows_.push_back(numbers_.back());
    return numbers_.back();
  }
  std::vector<float> numbers(int field) const {
    const std::span<const uint8_t> bytes = record_.fields[field].bytes;
    std::vector<float> numbers(bytes.size() / sizeof(float));
    if (!bytes.empty()) std::memcpy(numbers.data(), bytes.data(), bytes.size());
    return numbers;
  }
  std::vector<float> boxes(int field) const { return numbers(field); }
  const FieldValue& value(int field) const { return record_.fields[field]; }
  Recipe& recipe(int field = 0) { return record_.fields[field].picture; }
  Renderer& renderer() { return renderer_; }

 private:
  Record record_;
  std::vector<int> numbers_, rows_;
  Renderer renderer_;
};

inline Grid applied(const Op& op, const Grid& grid, int64_t position = 0) {
  return TestRecord({{grid}}, position).apply(op).grid();
}

// Each pixel encodes its original position: column in channel 0, row in channel 1.
inline Grid coordinates(int height, int width) {
  return recipe_test::make_grid(2, height, width,
                                [](int c, int y, int x) { return c == 0 ? x : y; });
}

// A structural operator's steps as text: "p=0.5 [Pad Resize]", "fork image a[Pad] b[]".
class WrittenPlan final : public PlanBuilder {
 public:
  void append(const std::vector<Spec>& transforms) override { text += names(transforms); }
  void append_with_probability(double p, const std::vector<Spec>& transforms) override {
    text += "p=" + text_of(ParamValue(p)) + " " + names(transforms);
  }
  void choose(std::string_view name, const Selection& selection,
              const std::vector<Branch>& lists) override {
    text += std::string(name) + " " + std::to_string(selection.count) +
            (selection.shuffled ? " in any order" : "") + " of";
    for (size_t i = 0; i < lists.size(); ++i) {
      text += " " + text_of(ParamValue(selection.weights[i])) + names(lists[i].transforms);
    }
  }
  void fork(const std::string& field, const std::vector<Branch>& branches) override {
    text += "fork " + field;
    for (const Branch& branch : branches) text += " " + branch.name + names(branch.transforms);
  }
  void to_device(std::string_view) override { text += "to the device"; }
  std::string text;

 private:
  static std::string names(const std::vector<Spec>& transforms) {
    std::string out;
    for (const Spec& spec : transforms) out += (out.empty() ? "" : " ") + spec.name;
    return "[" + out + "]";
  }
};

inline std::string written(const std::string& name, const Given& given = {}) {
  const OpRecord* record = Registry<OpRecord>::find(name);
  WrittenPlan plan;
  record->expand(Arguments(record->name, record->params, given), Spec{name, given, {}, {}}, plan);
  return plan.text;
}

inline Spec spec(const std::string& name, const Given& given = {}) { return {name, given, {}, {}}; }

}  // namespace headrace::op_test
