// SPDX-License-Identifier: Apache-2.0
// For tests of batch steps and steps with partners: an operator of each scope, whose result shows
// which rows were combined.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "headrace/base/registry.h"
#include "headrace/executor/executor_test_numbers.h"
#include "headrace/ops/op.h"
#include "headrace/pipeline/plan.h"

namespace headrace::scopes_test {

// row = factor * row + opposite, where row i of a group of n is combined with row n - 1 - i; one
// factor is drawn per group. Takes int64 tensors.
class MixOpposites final : public BatchOp {
 public:
  MixOpposites(int64_t group, bool fails) : group_(group), fails_(fails) {}
  static constexpr int64_t kFactors = 1000;
  bool takes(FieldKind kind) const override { return kind == FieldKind::kTensor; }
  int64_t group() const override { return group_; }
  void plan(const FieldState&) const override {}
  Result<void> apply(GroupContext& context) const override {
    static const ErrorCode failed{"HR0797", ErrorKind::kData, "planted failure", "Only in tests."};
    if (fails_) return Error{.code = &failed, .what = "the mixing failed"};
    const int64_t factor = 1 + context.draws.below(kFactors);
    for (const GroupField& field : context.fields) {
      const size_t rows = field.rows.size(), values = field.row_bytes / sizeof(int64_t);
      std::vector<std::vector<int64_t>> before;
      for (const uint8_t* row : field.rows) {
        std::memcpy(before.emplace_back(values).data(), row, field.row_bytes);
      }
      for (size_t row = 0; row < rows; ++row) {
        auto* const out = reinterpret_cast<int64_t*>(field.rows[row]);
        for (size_t i = 0; i < values; ++i) {
          out[i] = factor * before[row][i] + before[rows - 1 - row][i];
        }
      }
    }
    return {};
  }

 private:
  const int64_t group_;
  const bool fails_;
};

inline const OpRecord kMixOpposites{
    .name = "MixOpposites",
    .doc = "For tests.",
    .params = {{.name = "group", .type = ParamType::kInt, .doc = "Rows.", .fallback = int64_t{4}},
               {.name = "fails", .type = ParamType::kBool, .doc = "Always.", .fallback = false}},
    .oracle = "the test",
    .scope = OpScope::kBatch,
    .random = true,
    .make_batch = [](const Arguments& arguments) -> std::unique_ptr<BatchOp> {
      return std::make_unique<MixOpposites>(arguments.integer("group"), arguments.flag("fails"));
    }};
inline const Register<OpRecord> registered_mix(kMixOpposites);

// An int64 tensor becomes kOwn * itself + the partners' tensors; an image becomes the mean of all.
class AddPartners final : public Op {
 public:
  AddPartners(int64_t count, int64_t within) : count_(static_cast<int>(count)), within_(within) {}
  static constexpr int64_t kOwn = 1'000'000'007;
  bool takes(FieldKind kind) const override {
    return kind == FieldKind::kTensor || kind == FieldKind::kImage;
  }
  int partners() const override { return count_; }
  NearPartners near_partners() const override { return {within_, size_t{1} << 18}; }
  Result<void> prepare(OpContext& context) const override {
    for (int field : context.fields) {
      FieldValue& value = context.record.fields[field];
      if (value.kind != FieldKind::kImage) continue;
      Result<void> made = context.renderer.materialize(value.picture);
      if (!made) return made;
    }
    return {};
  }
  void plan(FieldState&) const override {}
  Result<void> apply(OpContext& context) const override {
    for (int field : context.fields) {
      FieldValue& own = context.record.fields[field];
      const bool image = own.kind == FieldKind::kImage;
      Result<void> done = image ? average(context, field) : add(context, field);
      if (!done) return done;
    }
    return {};
  }

 private:
  Result<void> add(OpContext& context, int field) const {
    FieldValue& own = context.record.fields[field];
    auto sum = std::make_shared<Buffer>(own.bytes.size());
    auto* const out = reinterpret_cast<int64_t*>(sum->data());
    const auto values = [](const FieldValue& value) {
      return reinterpret_cast<const int64_t*>(value.bytes.data());
    };
    for (size_t i = 0; i < own.bytes.size() / sizeof(int64_t); ++i) {
      out[i] = kOwn * values(own)[i];
      for (const Record& partner : context.partners) out[i] += values(partner.fields[field])[i];
    }
    own.owned = sum;
    own.bytes = sum->bytes();
    return {};
  }
  Result<void> average(OpContext& context, int field) const {
    std::vector<Recipe*> all = {&context.record.fields[field].picture};
    for (Record& partner : context.partners) all.push_back(&partner.fields[field].picture);
    for (Recipe* each : all) {
      if (Result<void> made = context.renderer.materialize(*each); !made) return made;
    }
    const Picture& first = *all[0]->pixels();
    auto mean = std::make_shared<Picture>(first.channels, first.height, first.width, DType::kUInt8);
    std::vector<const uint8_t*> pixels;
    for (const Recipe* each : all) pixels.push_back(each->pixels()->pixels.data());
    for (size_t i = 0; i < first.pixels.size(); ++i) {
      size_t sum = 0;
      for (const uint8_t* each : pixels) sum += each[i];
      mean->pixels.data()[i] = static_cast<uint8_t>(sum / all.size());
    }
    *all[0] = Recipe(std::shared_ptr<const Picture>(std::move(mean)));
    return {};
  }
  const int count_;
  const int64_t within_;
};

inline const OpRecord kAddPartners{
    .name = "AddPartners",
    .doc = "For tests.",
    .params = {{.name = "count", .type = ParamType::kInt, .doc = "How many.", .required = true},
               {.name = "within", .type = ParamType::kInt, .doc = "As NearPartners."}},
    .oracle = "the test",
    .scope = OpScope::kPartners,
    .random = true,
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<AddPartners>(
          arguments.integer("count"),
          arguments.is_none("within") ? 0 : arguments.integer("within"));
    }};
inline const Register<OpRecord> registered_add(kAddPartners);

// A Python step that returns its input.
class Unchanged : public PythonFunction {
 public:
  std::string name() const override { return "unchanged"; }
  std::vector<std::string> inputs() const override { return {"value"}; }
  void call(std::span<PythonCall* const> calls) override {
    for (PythonCall* call : calls) {
      const TensorView& in = call->inputs[0].view;
      PythonValue out;
      out.owned.resize(in.dense_bytes());
      std::memcpy(out.owned.data(), in.data, in.dense_bytes());
      out.view = {out.owned.data(), in.dtype, in.shape, {}};
      call->outputs.push_back(std::move(out));
    }
  }
};

inline Spec unchanged() { return {"unchanged", {}, {}, std::make_shared<Unchanged>()}; }
inline Spec mix(int64_t group) { return {"MixOpposites", {{"group", group}}, {}, {}}; }
inline Spec add_partners(int64_t count) { return {"AddPartners", {{"count", count}}, {}, {}}; }
inline Spec add_partners(int64_t count, int64_t within) {
  return {"AddPartners", {{"count", count}, {"within", within}}, {}, {}};
}
inline Pipeline steps(std::vector<Spec> transforms) { return {std::move(transforms), {}, {}}; }

// Every byte of every dense field, row by row.
using Rows = std::vector<std::string>;
inline Rows rows_of(const Batch& batch) {
  Rows rows(static_cast<size_t>(batch.size));
  for (const BatchField& field : batch.fields) {
    const size_t bytes = field.view.dense_bytes() / size_t(std::max<int64_t>(batch.size, 1));
    for (size_t row = 0; row < rows.size(); ++row) {
      rows[row].append(static_cast<const char*>(field.view.data) + bytes * row, bytes);
    }
  }
  return rows;
}

}  // namespace headrace::scopes_test
