// SPDX-License-Identifier: Apache-2.0
// OneHot: turns a class number into a row with one value per class.
#include <cstring>
#include <memory>
#include <string>

#include "headrace/base/registry.h"
#include "headrace/ops/picture_op.h"

namespace headrace {
namespace {

const ErrorCode kNoSuchClass{
    "HR0530", ErrorKind::kData, "label beyond num_classes",
    "A label is not in the range 0 to num_classes - 1, so it cannot be one-hot encoded. "
    "num_classes must be the largest label plus one: either it is too small, or the record's label "
    "is wrong (-1 for \"unknown\", labels that start at 1)."};

class OneHot final : public Op {
 public:
  OneHot(int64_t classes, double smoothing)
      : classes_(classes),
        off_(static_cast<float>(smoothing / static_cast<double>(classes))),
        on_(static_cast<float>(1 - smoothing + smoothing / static_cast<double>(classes))) {}
  bool takes(FieldKind kind) const override { return kind == FieldKind::kLabel; }

  void plan(FieldState& field) const override {
    if (field.dtype != DType::kInt64 || !field.shape.empty()) {
      raise_invalid_argument(
          "OneHot", "\"" + field.name + "\" is " + text_of(field) + ", but a class is one int64");
    }
    field.dtype = DType::kFloat32;
    field.shape = {classes_};
    field.left_open_by.clear();
  }

  Result<void> apply(OpContext& context) const override {
    for (const int field : context.fields) {
      FieldValue& value = context.record.fields[field];
      int64_t label = value.scalar;
      if (value.bytes.size() == sizeof label) std::memcpy(&label, value.bytes.data(), sizeof label);
      if (label < 0 || label >= classes_) {
        return Error{.code = &kNoSuchClass,
                     .what = "label " + std::to_string(label) + " is not one of the " +
                             std::to_string(classes_) + " classes, 0 to " +
                             std::to_string(classes_ - 1)};
      }
      Buffer row(size_t(classes_) * sizeof(float));
      auto* const values = reinterpret_cast<float*>(row.data());
      std::fill_n(values, classes_, off_);
      values[label] = on_;
      value.own(std::move(row));
      value.dtype = DType::kFloat32;
      value.shape = {classes_};
    }
    return {};
  }

 private:
  const int64_t classes_;
  const float off_, on_;
};

const OpRecord kOneHot{
    .name = "OneHot",
    .doc =
        "One-hot encodes labels: 1 for a label's class, 0 for the others.\n\n"
        "Labels, one int64 each, become float32 (num_classes). A record whose label is not one "
        "of the classes is a bad record (HR0530). MixUp and CutMix do this by themselves.",
    .page = {.unseen = "it changes only labels: [policies](policies.md)"},
    .params = {{.name = "num_classes",
                .type = ParamType::kInt,
                .doc = "Number of classes.",
                .required = true,
                .minimum = 1,
                .maximum = 1 << 24},
               {.name = "label_smoothing",
                .type = ParamType::kFloat,
                .doc = "Label smoothing: this fraction is spread evenly over all classes.",
                .fallback = 0.0,
                .minimum = 0,
                .maximum = 1}},
    .oracle = "torch.nn.functional.one_hot(...).float(); with label_smoothing timm's one_hot",
    .example = {{"num_classes", int64_t{10}}, {"label_smoothing", 0.1}},
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<OneHot>(arguments.integer("num_classes"),
                                      arguments.number("label_smoothing"));
    }};
const Register<OpRecord> registered_one_hot(kOneHot);

}  // namespace
}  // namespace headrace
