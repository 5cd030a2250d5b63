// SPDX-License-Identifier: Apache-2.0
// Operators: one operator, one file. An operator's file holds, in order: one sentence of doc, its
// class, its OpRecord, and the line that registers it. ops/flip.cc is the one to copy.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/parameters.h"
#include "headrace/base/random.h"
#include "headrace/image/render.h"
#include "headrace/ops/record.h"
#include "headrace/sources/python_function.h"
#include "headrace/sources/schema.h"

namespace headrace {

// What is known of a field before any record is read. Pictures: shape is (C, H, W), -1 where open.
struct FieldState {
  std::string name;
  FieldKind kind = FieldKind::kTensor;
  DType dtype = DType::kUInt8;
  Shape shape;
  std::string left_open_by;  // who made the shape vary: the source, or an operator
};

// One record at one step.
struct OpContext {
  Record& record;
  std::span<const int> fields;  // the step's fields, by number; never empty
  Draws draws;                  // this record's, this step's
  Renderer& renderer;           // for what must have pixels now
};

// A step over fields with its parameters bound. Immutable: any thread may apply it.
class Op {
 public:
  virtual ~Op() = default;
  // Whether it acts on this kind of field when `fields=` does not say.
  virtual bool takes(FieldKind kind) const = 0;
  // Whether what a picture shows gets another place in it: a flip, a crop, another size. The fields
  // in its coordinates that the step does not take would then be left behind.
  virtual bool moves() const { return false; }
  // Plan time: what a field becomes. Throws Exception where the step makes no sense.
  virtual void plan(FieldState& field) const = 0;
  // Run time. Errors are this record's own.
  virtual Result<void> apply(OpContext& context) const = 0;
};

// What a structural operator (Fork, RandomApply) writes instead of a step of its own.
class PlanBuilder {
 public:
  virtual ~PlanBuilder() = default;
  // The given transforms, as if they stood here.
  virtual void append(const std::vector<Spec>& transforms) = 0;
  // The same, but each record takes them with this probability only.
  virtual void append_with_probability(double p, const std::vector<Spec>& transforms) = 0;
  // Replaces a field by independent copies of it, each with transforms of its own.
  virtual void fork(const std::string& field, const std::vector<Branch>& branches) = 0;
};

enum class OpScope : uint8_t { kRecord, kBatch, kPartners };

struct OpRecord {
  std::string_view name;  // torchvision v2's: "RandomHorizontalFlip"
  std::string_view doc;   // what it does; shapes, dtypes, ranges
  std::vector<Param> params;
  std::string_view oracle;  // whose result it equals, and the bound
  OpScope scope = OpScope::kRecord;
  bool random = false;
  // Exactly one of the two.
  std::unique_ptr<Op> (*make)(const Arguments& arguments) = nullptr;
  void (*expand)(const Arguments& arguments, const Spec& spec, PlanBuilder& builder) = nullptr;
};

// Does a step on a recipe; materializes first where the recipe says that it does not fit.
// `step(recipe)` returns bool, like Recipe's members.
template <class Step>
Result<void> edit(OpContext& context, int field, Step&& step) {
  Recipe& picture = context.record.fields[field].picture;
  if (step(picture)) return {};
  if (Result<void> made = context.renderer.materialize(picture); !made) return made;
  step(picture);  // a fresh recipe takes any one step
  return {};
}

}  // namespace headrace
