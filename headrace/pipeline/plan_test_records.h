// SPDX-License-Identifier: Apache-2.0
// For tests of plans: schemas, pipelines in short, records of tensors and files, and a record's
// results.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "headrace/image/recipe_test_images.h"
#include "headrace/pipeline/plan.h"

namespace headrace::plan_test {

using Given = std::map<std::string, ParamValue>;
using Ints = std::vector<int64_t>;
using Floats = std::vector<double>;
using Specs = std::vector<Spec>;
using recipe_test::Grid;

inline Spec spec(const std::string& name, const Given& given = {},
                 const std::vector<std::string>& fields = {}) {
  return {name, given, fields, {}};
}
inline Spec step(std::shared_ptr<PythonFunction> function) {
  return {function->name(), {}, {}, function};
}
inline Spec crop(int64_t size) {
  return spec("RandomCrop", {{"size", size}, {"pad_if_needed", true}});
}
inline Spec resize(int64_t height, int64_t width) {
  return spec("Resize", {{"size", Ints{height, width}}});
}
inline Spec flip(double p = 0.5) { return spec("RandomHorizontalFlip", {{"p", p}}); }
inline Spec to_float() { return spec("ToDtype", {{"dtype", DType::kFloat32}, {"scale", true}}); }
inline Spec normalize() { return spec("Normalize", {{"mean", 0.5}, {"std", 0.25}}); }
inline Spec maybe(double p, const Specs& transforms) {
  return spec("RandomApply", {{"p", p}, {"transforms", std::vector<Branch>{{"", transforms}}}});
}
inline Spec fork(const std::string& field, const std::vector<Branch>& branches) {
  return spec("Fork", {{"field", field}, {"branches", branches}});
}

inline Field files(const std::string& name, FieldKind kind = FieldKind::kImage) {
  return {name, kind, DType::kUInt8, {}, true};
}
inline Field pixels(const std::string& name, Shape shape, FieldKind kind = FieldKind::kImage) {
  return {name, kind, DType::kUInt8, std::move(shape), false};
}
inline Field label(const std::string& name = "label") {
  return {name, FieldKind::kLabel, DType::kInt64, {}, false};
}
inline Field tensor(const std::string& name, Shape shape, DType dtype = DType::kFloat32) {
  return {name, FieldKind::kTensor, dtype, std::move(shape), false};
}
inline Field text(const std::string& name) {
  return {name, FieldKind::kText, DType::kUInt8, {}, false};
}

inline PlanOptions lists() {
  PlanOptions options;
  options.ragged = Ragged::kList;
  return options;
}

using PlanPtr = std::shared_ptr<const Plan>;

inline PlanPtr plan_of(const Schema& schema, const Specs& transforms,
                       const PlanOptions& options = {}) {
  return make_plan(schema, Pipeline{transforms, {}, {}}, options);
}

// The id, the first line and the help of the error that a call throws, or "accepted".
inline std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const Exception& exception) {
    const Error& error = exception.error();
    return std::string(error.code->id) + " " + error.what +
           (error.hint.empty() ? "" : " | " + error.hint);
  }
  return "accepted";
}
inline std::string refusal(const Schema& schema, const Specs& transforms,
                           const PlanOptions& options = {}) {
  return refusal([&] { plan_of(schema, transforms, options); });
}

// A record as a source reads it.
class Read {
 public:
  Read& pixels(const Grid& grid) {
    const auto picture = recipe_test::picture_of(grid);
    return add(picture->pixels.data(), picture->pixels.size(),
               {grid.channels, grid.height, grid.width});
  }
  Read& file(const Buffer& bytes) { return add(bytes.data(), bytes.size(), {}); }
  Read& text(const std::string& value) { return add(value.data(), value.size(), {}); }
  Read& scalar(int64_t value) {
    data_->fields.emplace_back();
    data_->fields.back().scalar = value;
    return *this;
  }
  template <class T>
  Read& tensor(const std::vector<T>& values, Shape shape) {
    return add(values.data(), values.size() * sizeof(T), std::move(shape));
  }
  const RecordData& data() const { return *data_; }

 private:
  Read& add(const void* data, size_t bytes, Shape shape) {
    data_->owned.emplace_back(bytes);
    if (bytes) std::memcpy(data_->owned.back().data(), data, bytes);
    data_->fields.push_back({{data_->owned.back().data(), bytes}, std::move(shape), 0});
    return *this;
  }
  // Copies share the same record.
  std::shared_ptr<RecordData> data_ = std::make_shared<RecordData>();
};

// Runs one record through a plan without Python steps.
class Processed {
 public:
  Processed(PlanPtr plan, const Read& read, int64_t position = 0, uint64_t seed = 0,
            uint64_t epoch = 0)
      : plan_(std::move(plan)), read_(read) {
    record_.position = position;
    result_ = plan_->begin(read.data(), record_, renderer_);
    if (!result_) return;
    Result<int> at = plan_->advance(0, record_, renderer_, seed, epoch);
    if (!at) result_ = std::move(at.error());
    if (at) stopped_ = *at;
  }

  const Result<void>& result() const { return result_; }
  int stopped() const { return stopped_; }
  Record& record() { return record_; }
  const FieldValue& value(const std::string& name) const {
    for (const Output& output : plan_->outputs()) {
      if (output.name == name) return record_.fields[output.field];
    }
    ADD_FAILURE() << "no output " << name;
    return record_.fields.front();
  }
  Grid grid(const std::string& name = "image") {
    EXPECT_TRUE(result_) << result_.error().message();
    return result_ ? recipe_test::render(value(name).picture, renderer_) : Grid{};
  }

 private:
  PlanPtr plan_;
  Read read_;  // pictures that are not rendered yet borrow its bytes
  Record record_;
  Renderer renderer_;
  Result<void> result_;
  int stopped_ = -1;
};

inline const Output& output_of(const Plan& plan, const std::string& name) {
  for (const Output& output : plan.outputs()) {
    if (output.name == name) return output;
  }
  throw std::out_of_range(name);
}

// Keys of the draws of all steps with this operator, in order.
inline std::vector<uint64_t> keys_of(const Plan& plan, const std::string& name) {
  std::vector<uint64_t> keys;
  for (const Step& each : plan.steps()) {
    if (each.label.starts_with(name + "(")) keys.push_back(each.key);
  }
  return keys;
}

}  // namespace headrace::plan_test
