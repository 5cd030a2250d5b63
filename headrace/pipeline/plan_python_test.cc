// SPDX-License-Identifier: Apache-2.0
// Functions in the list: their arguments, their allowed results, and errors for other
// results.
#include <gtest/gtest.h>

#include <algorithm>

#include "headrace/pipeline/plan_test_records.h"

namespace headrace::plan_test {
namespace {

// A C++ substitute for a Python function.
class Function final : public PythonFunction {
 public:
  using Body = std::function<void(PythonCall&)>;
  Function(std::vector<std::string> inputs, Body body, std::vector<Field> returns = {})
      : inputs_(std::move(inputs)), body_(std::move(body)), returns_(std::move(returns)) {}
  std::string name() const override { return "speckle"; }
  std::vector<std::string> inputs() const override { return inputs_; }
  std::vector<Field> returns() const override { return returns_; }
  void call(std::span<PythonCall* const> calls) override {
    for (PythonCall* call : calls) body_(*call);
  }

 private:
  std::vector<std::string> inputs_;
  Body body_;
  std::vector<Field> returns_;
};

std::shared_ptr<PythonFunction> function(std::vector<std::string> inputs, Function::Body body,
                                         std::vector<Field> returns = {}) {
  return std::make_shared<Function>(std::move(inputs), std::move(body), std::move(returns));
}

template <class T>
PythonValue value(DType dtype, Shape shape, const std::vector<T>& elements) {
  PythonValue out;
  out.owned.resize(elements.size() * sizeof(T));
  std::memcpy(out.owned.data(), elements.data(), out.owned.size());
  out.view = {out.owned.data(), dtype, std::move(shape), {}};
  return out;
}

PythonValue inverted(const PythonValue& in) {
  std::vector<uint8_t> out(in.view.dense_bytes());
  const auto* from = static_cast<const uint8_t*>(in.view.data);
  std::transform(from, from + out.size(), out.begin(), [](uint8_t x) { return 255 - x; });
  return value(DType::kUInt8, in.view.shape, out);
}

void invert(PythonCall& call) { call.outputs.push_back(inverted(call.inputs[0])); }

// Runs one record through a plan, including functions.
struct PythonRun {
  PythonRun(PlanPtr plan, const Read& read, int64_t position = 0) : plan(std::move(plan)) {
    record.position = position;
    result = go(read);
  }
  Result<void> go(const Read& read) {
    if (Result<void> begun = plan->begin(read.data(), record, renderer); !begun) return begun;
    for (int at = 0;; ++at) {
      Result<int> stopped = plan->advance(at, record, renderer, 0, 0);
      if (!stopped) return std::move(stopped.error());
      at = *stopped;
      if (at == static_cast<int>(plan->steps().size())) return {};
      Result<PythonCall> call = plan->python_call(at, record, renderer, 0, 0);
      if (!call) return std::move(call.error());
      PythonCall* const pointer = &*call;
      plan->steps()[at].function->call({&pointer, 1});
      if (Result<void> back = plan->python_return(at, *call, record); !back) return back;
    }
  }
  const FieldValue& value(const std::string& name) const {
    return record.fields[output_of(*plan, name).field];
  }
  Grid grid(const std::string& name = "image") {
    EXPECT_TRUE(result) << result.error().message();
    return recipe_test::render(value(name).picture, renderer);
  }
  std::string error() const {
    if (result) return "accepted";
    return std::string(result.error().code->id) + " " + result.error().what + " | " +
           result.error().hint;
  }
  PlanPtr plan;
  Record record;
  Renderer renderer;
  Result<void> result;
};

const Schema kSchema = {pixels("image", {3, 8, 8}), label()};
Read read() { return Read().pixels(recipe_test::random_grid(3, 8, 8, 1)).scalar(5); }

TEST(PythonStep, ImagesArePassedAsPixelsAndReturned) {
  PythonRun run(plan_of(kSchema, {flip(1), step(function({"image"}, invert)), crop(4)}), read(), 3);
  Processed plain(plan_of(kSchema, {flip(1), crop(4)}), read(), 3);
  Grid expected = plain.grid();
  for (double& x : expected.values) x = 255 - x;
  EXPECT_EQ(run.grid(), expected);
}

TEST(PythonStep, ScalarsTextAndTensorsArePassed) {
  const Schema schema = {label(), text("caption"), tensor("boxes", {-1, 2})};
  const auto body = [](PythonCall& call) {
    EXPECT_EQ(call.inputs[0].view.shape, Shape{});
    EXPECT_EQ(call.inputs[0].view.dtype, DType::kInt64);
    EXPECT_EQ(*static_cast<const int64_t*>(call.inputs[0].view.data), -9);
    EXPECT_TRUE(call.inputs[1].is_text);
    EXPECT_EQ(call.inputs[1].view.shape, Shape{2});
    EXPECT_EQ(call.inputs[2].view.shape, (Shape{1, 2}));
    call.output_names = {"boxes", "label", "caption"};
    call.outputs.push_back(value<float>(DType::kFloat32, {2, 2}, {1, 2, 3, 4}));
    call.outputs.push_back(value<int64_t>(DType::kInt64, {}, {11}));
    call.outputs.push_back(value<char>(DType::kUInt8, {3}, {'a', 'b', 'c'}));
    call.outputs.back().is_text = true;
  };
  PythonRun run(plan_of(schema, {step(function({"label", "caption", "boxes"}, body))}, lists()),
                Read().scalar(-9).text("hi").tensor<float>({5, 6}, {1, 2}));
  ASSERT_TRUE(run.result) << run.result.error().message();
  EXPECT_EQ(run.value("label").scalar, 11);
  EXPECT_EQ(run.value("caption").bytes.size(), 3u);
  EXPECT_EQ(run.value("boxes").shape, (Shape{2, 2}));
}

TEST(PythonStep, FieldsThatItDoesNotReturnAreUnchanged) {
  PythonRun run(plan_of(kSchema, {step(function({"image", "label"}, invert))}), read());
  ASSERT_TRUE(run.result) << run.result.error().message();
  EXPECT_EQ(run.value("label").scalar, 5);
}

TEST(PythonStep, StridedResultsAreCopiedElementByElement) {
  const auto swap_axes = [](PythonCall& call) {  // like numpy's transpose(0, 2, 1), without a copy
    call.outputs.push_back(inverted(call.inputs[0]));
    call.outputs[0].view.strides = {64, 1, 8};
  };
  PythonRun run(plan_of(kSchema, {step(function({"image"}, swap_axes))}), read());
  Grid expected = transposed(recipe_test::random_grid(3, 8, 8, 1));
  for (double& x : expected.values) x = 255 - x;
  EXPECT_EQ(run.grid(), expected);
}

TEST(PythonStep, AnUndeclaredDtypeOrShapeIsAnErrorThatNamesBoth) {
  const auto floats = [](PythonCall& call) {
    call.outputs.push_back(value(DType::kFloat64, {3, 8, 8}, std::vector<double>(192)));
  };
  EXPECT_EQ(PythonRun(plan_of(kSchema, {step(function({"image"}, floats))}), read()).error(),
            "HR0601 [speckle] \"image\" was returned as float64 (3, 8, 8), expected uint8 (3, 8, "
            "8) | declare the floats: T.Python(function, returns={\"image\": (\"float32\", (3, 8, "
            "8))}), of images as float32");
  const auto small_floats = [](PythonCall& call) {
    call.outputs.push_back(value(DType::kFloat32, {3, 4, 4}, std::vector<float>(48)));
  };
  EXPECT_EQ(PythonRun(plan_of(kSchema, {step(function({"image"}, small_floats))}), read()).error(),
            "HR0601 [speckle] \"image\" was returned as float32 (3, 4, 4), expected uint8 (3, 8, "
            "8) | declare the floats: T.Python(function, returns={\"image\": (\"float32\", (3, 4, "
            "4))})");
  const auto small = [](PythonCall& call) {
    call.outputs.push_back(value(DType::kUInt8, {3, 4, 4}, std::vector<uint8_t>(48)));
  };
  EXPECT_EQ(PythonRun(plan_of(kSchema, {step(function({"image"}, small))}), read()).error(),
            "HR0601 [speckle] \"image\" was returned as uint8 (3, 4, 4), expected uint8 (3, 8, 8) "
            "| declare what it returns: T.Python(function, returns={...})");
}

TEST(PythonStep, UnknownDimensionsMayBeReturnedInAnySize) {
  const auto small = [](PythonCall& call) {
    call.outputs.push_back(value(DType::kUInt8, {3, 4, 4}, std::vector<uint8_t>(48, 7)));
  };
  PythonRun run(plan_of({files("image")}, {step(function({"image"}, small)), resize(5, 5)}),
                Read().file(recipe_test::jpeg_bytes(16, 16)));
  EXPECT_EQ(run.grid().values, Floats(75, 7));
}

TEST(PythonStep, DeclaredFormsAndNewFieldsArePartOfThePlan) {
  const auto body = [](PythonCall& call) {
    call.output_names = {"image", "mean"};
    call.outputs.push_back(value(DType::kFloat32, {3, 2, 2}, std::vector<float>(12, 0.5f)));
    call.outputs.push_back(value<float>(DType::kFloat32, {3}, {1, 2, 3}));
  };
  Field image = pixels("image", {3, 2, 2});
  image.dtype = DType::kFloat32;
  const PlanPtr plan = plan_of(
      kSchema, {step(function({"image"}, body, {image, tensor("mean", {3})})), normalize()});
  EXPECT_EQ(output_of(*plan, "image").state.shape, (Shape{3, 2, 2}));
  EXPECT_EQ(output_of(*plan, "image").state.dtype, DType::kFloat32);
  EXPECT_EQ(output_of(*plan, "mean").bytes_per_record, 12u);
  PythonRun run(plan, read());
  EXPECT_EQ(run.grid().values, Floats(12, 0));
  EXPECT_EQ(run.value("mean").bytes.size(), 12u);
}

TEST(PythonStep, AnUndeclaredFieldIsAnError) {
  const auto body = [](PythonCall& call) {
    call.output_names = {"extra"};
    call.outputs.push_back(value<float>(DType::kFloat32, {1}, {1}));
  };
  EXPECT_EQ(PythonRun(plan_of(kSchema, {step(function({"image"}, body))}), read()).error(),
            "HR0604 [speckle] returned \"extra\" | make it an argument, or declare it: "
            "T.Python(function, returns={...})");
  const auto too_many = [](PythonCall& call) {
    invert(call);
    invert(call);
  };
  EXPECT_EQ(PythonRun(plan_of(kSchema, {step(function({"image"}, too_many))}), read()).error(),
            "HR0604 [speckle] returned more than its fields | make it an argument, or declare it: "
            "T.Python(function, returns={...})");
}

TEST(PythonStep, InABranchTheFieldHasBothNames) {
  const auto plus_one = function({"image"}, invert);
  PythonRun run(plan_of(kSchema, {fork("image", {{"a", {step(plus_one)}}, {"b", {}}})}), read());
  ASSERT_TRUE(run.result) << run.result.error().message();
  EXPECT_NE(run.grid("a"), run.grid("b"));
  EXPECT_EQ(run.grid("b"), recipe_test::random_grid(3, 8, 8, 1)) << "the other branch is untouched";
  EXPECT_EQ(refusal(kSchema, {fork("image", {{"a", {step(function({"a"}, invert))}}})}),
            "accepted");
}

TEST(PythonStep, ItsDrawsAreSeparateAndReproducible) {
  std::vector<uint32_t> bits;
  const auto draw = [&](PythonCall& call) { bits.push_back(call.draws.bits()); };
  const auto f = function({"label"}, draw);
  const PlanPtr plan = plan_of(kSchema, {step(f), step(f)});
  PythonRun(plan, read(), 1), PythonRun(plan, read(), 1), PythonRun(plan, read(), 2);
  ASSERT_EQ(bits.size(), 6u);
  EXPECT_EQ(bits[0], bits[2]);
  EXPECT_EQ(bits[1], bits[3]);
  EXPECT_NE(bits[0], bits[1]);
  EXPECT_NE(bits[0], bits[4]);
}

TEST(PythonStep, UnknownArgumentsAndFieldsAreRejected) {
  EXPECT_EQ(
      refusal(kSchema, {step(function({"img"}, invert))}),
      "HR0118 [speckle] its argument names must be field names, but \"img\" is not one of image "
      "(image), label (label) | T.Python(function, fields=\"image\") specifies the arguments; or "
      "rename the argument to image");
  EXPECT_EQ(refusal({kSchema[0]}, {step(function({"x"}, invert))}), "accepted") << "one of one";
  Spec narrowed = step(function({"image"}, invert));
  narrowed.fields = {"image"};
  EXPECT_EQ(refusal(kSchema, {narrowed}),
            "HR0118 [speckle] takes no fields= | its argument names are its fields");
  EXPECT_EQ(refusal(kSchema, {step(function({"image"}, invert, {label()}))}),
            "HR0118 [speckle] declares \"label\", which is not one of its arguments | make it an "
            "argument of the function");
  EXPECT_EQ(refusal(kSchema, {maybe(0.5, {step(function({"image"}, invert, {text("t")}))})}),
            "HR0118 [speckle] cannot add the field \"t\" inside a RandomApply");
}

TEST(PythonStep, ItsFieldsAreReadEvenIfNotDelivered) {
  int64_t seen = 0;
  const auto look = [&](PythonCall& call) {
    seen = *static_cast<const int64_t*>(call.inputs[1].view.data);
    EXPECT_EQ(call.inputs[0].view.shape, (Shape{3, 4, 4}));
  };
  PlanOptions options;
  options.fields = {"id"};
  const PlanPtr plan =
      plan_of(kSchema, {crop(4), step(function({"image", "label"}, look)), flip()}, options);
  EXPECT_EQ(plan->wanted(), (std::vector<bool>{true, true}));
  EXPECT_EQ(plan->steps().size(), 2u) << "what follows the function is not done";
  ASSERT_TRUE(PythonRun(plan, read()).result);
  EXPECT_EQ(seen, 5);
}

TEST(PythonStep, InsideRandomApplyItIsCalledForSomeRecordsOnly) {
  int calls = 0;
  const auto count = [&](PythonCall&) { ++calls; };
  const PlanPtr plan = plan_of(kSchema, {maybe(0.5, {step(function({"label"}, count))}), flip()});
  for (int64_t position = 0; position < 1000; ++position) {
    ASSERT_TRUE(PythonRun(plan, read(), position).result);
  }
  EXPECT_NEAR(calls, 500, 70);
}

// A function that takes every field in the picture's coordinates.
class Joint final : public PythonFunction {
 public:
  std::string name() const override { return "joint"; }
  std::vector<std::string> inputs() const override { return {"image"}; }
  std::vector<std::string> chosen(const std::vector<Field>& seen) const override {
    std::vector<std::string> names;
    for (const Field& field : seen) {
      if (is_spatial(field.kind) || field.row_group > 0) names.push_back(field.name);
    }
    return names;
  }
  PythonGeometry geometry() const override { return PythonGeometry::kMoves; }
  void call(std::span<PythonCall* const>) override {}
};

TEST(PythonSteps, AStepMayChooseItsFieldsFromTheSchema) {
  Schema schema = {pixels("image", {3, 8, 8}), tensor("boxes", {-1, 4}), tensor("labels", {-1}),
                   label()};
  schema[1].kind = FieldKind::kBoxes;
  schema[1].box_format = BoxFormat::kXYWH;
  schema[1].row_group = schema[2].row_group = 3;
  PlanOptions options;
  options.ragged = Ragged::kList;
  const PlanPtr plan =
      plan_of(schema, {{.name = "joint", .function = std::make_shared<Joint>()}}, options);
  const std::vector<Field>& taken = plan->steps()[0].taken;
  ASSERT_EQ(taken.size(), 3u);
  EXPECT_EQ(taken[1].name, "boxes");
  EXPECT_EQ(taken[1].box_format, BoxFormat::kXYWH);
  EXPECT_EQ(taken[2].row_group, 3);
  EXPECT_EQ(taken[2].shape, (Shape{-1}));
}

}  // namespace
}  // namespace headrace::plan_test
