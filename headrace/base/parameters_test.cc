// SPDX-License-Identifier: Apache-2.0
// The messages for invalid arguments, and the values that an operator gets for valid ones.
#include "headrace/base/parameters.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <new>

#include "headrace/base/allocations_test_hook.h"

namespace headrace {
namespace {

// Allocations of this thread before one is refused.
thread_local int64_t granted = std::numeric_limits<int64_t>::max();

}  // namespace

void before_allocation() {
  if (granted-- == 0) throw std::bad_alloc();
}

namespace {

const std::vector<Param> kParams = {
    {.name = "size",
     .type = ParamType::kInts,
     .doc = "Pixels.",
     .required = true,
     .minimum = 1,
     .min_count = 1,
     .max_count = 2},
    {.name = "p",
     .type = ParamType::kFloat,
     .doc = "Share.",
     .fallback = 0.5,
     .minimum = 0,
     .maximum = 1},
    {.name = "fill", .type = ParamType::kFloats, .doc = "Value.", .fallback = int64_t{0}},
    {.name = "interpolation",
     .type = ParamType::kString,
     .doc = "Filter.",
     .fallback = std::string("bilinear"),
     .choices = {"nearest", "bilinear", "bicubic"}},
    {.name = "dtype", .type = ParamType::kDType, .doc = "Type.", .fallback = DType::kUInt8},
    {.name = "scale", .type = ParamType::kBool, .doc = "Whether.", .fallback = false},
    {.name = "max_size", .type = ParamType::kInt, .doc = "Longest."},
    {.name = "classes", .type = ParamType::kStrings, .doc = "Names."},
};

using Given = std::map<std::string, ParamValue>;

Arguments checked(Given given) {
  given.try_emplace("size", int64_t{8});
  return Arguments("Op", kParams, given);
}

// The id and the rest of the first line of the error, "HR0104 [Op] p must ...", and its help.
std::string refusal(const Given& given, bool add_size = true) {
  try {
    Given all = given;
    if (add_size) all.try_emplace("size", int64_t{8});
    Arguments arguments("Op", kParams, all);
  } catch (const Exception& exception) {
    const Error& error = exception.error();
    return std::string(error.code->id) + " " + error.what +
           (error.hint.empty() ? "" : " | " + error.hint);
  }
  return "accepted";
}

TEST(Parameters, DefaultsApplyIfNothingIsGiven) {
  const Arguments arguments = checked({});
  EXPECT_EQ(arguments.number("p"), 0.5);
  EXPECT_EQ(arguments.numbers("fill"), std::vector<double>{0});
  EXPECT_EQ(arguments.text("interpolation"), "bilinear");
  EXPECT_EQ(arguments.dtype("dtype"), DType::kUInt8);
  EXPECT_FALSE(arguments.flag("scale"));
  EXPECT_TRUE(arguments.is_none("max_size"));
  EXPECT_TRUE(arguments.is_none("classes"));
}

TEST(Parameters, OneNumberIsAListOfOneAndAnIntegerIsANumber) {
  const Arguments arguments = checked(
      {{"p", int64_t{1}}, {"fill", std::vector<int64_t>{1, 2, 3}}, {"max_size", int64_t{9}}});
  EXPECT_EQ(arguments.integers("size"), std::vector<int64_t>{8});
  EXPECT_EQ(arguments.number("p"), 1.0);
  EXPECT_EQ(arguments.numbers("fill"), (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(arguments.integer("max_size"), 9);
  EXPECT_EQ(checked({{"fill", 0.25}}).numbers("fill"), std::vector<double>{0.25});
}

TEST(Parameters, DTypesAreAcceptedByNameAndAsTorchSpellsThem) {
  EXPECT_EQ(checked({{"dtype", std::string("float16")}}).dtype("dtype"), DType::kFloat16);
  EXPECT_EQ(checked({{"dtype", std::string("torch.bfloat16")}}).dtype("dtype"), DType::kBFloat16);
  EXPECT_EQ(checked({{"dtype", DType::kFloat32}}).dtype("dtype"), DType::kFloat32);
  EXPECT_EQ(refusal({{"dtype", std::string("float23")}}),
            "HR0104 [Op] dtype must name a dtype (got \"float23\") | did you mean \"float32\"?");
}

TEST(Parameters, UnknownNameSuggestsTheNearest) {
  EXPECT_EQ(refusal({{"intepolation", std::string("nearest")}}),
            "HR0101 [Op] has no parameter \"intepolation\" | did you mean \"interpolation\"?");
  EXPECT_EQ(
      refusal({{"quux", int64_t{1}}}),
      "HR0101 [Op] has no parameter \"quux\" | its parameters are size, p, fill, interpolation, "
      "dtype, scale, max_size, classes");
}

TEST(Parameters, AMissingParameterIsNamedWithItsDescription) {
  EXPECT_EQ(refusal({}, false), "HR0102 [Op] needs size: Pixels.");
}

TEST(Parameters, WrongTypesAreNotConverted) {
  EXPECT_EQ(refusal({{"p", std::string("0.5")}}), "HR0103 [Op] p must be a number (got \"0.5\")");
  EXPECT_EQ(refusal({{"p", true}}), "HR0103 [Op] p must be a number (got True)");
  EXPECT_EQ(refusal({{"size", 2.5}}),
            "HR0103 [Op] size must be an integer or a list of integers (got 2.5)");
  EXPECT_EQ(refusal({{"scale", int64_t{1}}}), "HR0103 [Op] scale must be True or False (got 1)");
  EXPECT_EQ(refusal({{"p", std::monostate{}}}), "HR0103 [Op] p must be a number (got None)");
  EXPECT_EQ(refusal({{"size", std::monostate{}}}),
            "HR0103 [Op] size must be an integer or a list of integers (got None)");
  EXPECT_EQ(refusal({{"classes", std::vector<int64_t>{1}}}),
            "HR0103 [Op] classes must be a list of strings (got [1])");
  EXPECT_EQ(refusal({{"max_size", std::monostate{}}}), "accepted");
}

TEST(Parameters, RangesAreStatedWithTheValue) {
  EXPECT_EQ(refusal({{"size", int64_t{0}}}), "HR0104 [Op] size must be at least 1 (got 0)");
  EXPECT_EQ(refusal({{"size", std::vector<int64_t>{4, -1}}}),
            "HR0104 [Op] size must be at least 1 (got -1)");
  EXPECT_EQ(refusal({{"p", 1.5}}), "HR0104 [Op] p must be from 0 to 1 (got 1.5)");
  EXPECT_EQ(refusal({{"p", std::nan("")}}), "HR0104 [Op] p must be finite (got nan)");
  EXPECT_EQ(refusal({{"fill", HUGE_VAL}}), "HR0104 [Op] fill must be finite (got inf)");
}

TEST(Parameters, ListLengthsAreChecked) {
  EXPECT_EQ(refusal({{"size", std::vector<int64_t>{}}}),
            "HR0104 [Op] size must have at least 1 value (got [])");
  EXPECT_EQ(refusal({{"size", std::vector<double>{}}}),
            "HR0104 [Op] size must have at least 1 value (got [])");
  EXPECT_EQ(refusal({{"size", std::vector<int64_t>{1, 2, 3}}}),
            "HR0104 [Op] size must have at most 2 values (got [1, 2, 3])");
}

TEST(Parameters, ChoicesAreListed) {
  EXPECT_EQ(refusal({{"interpolation", std::string("bicubik")}}),
            "HR0104 [Op] interpolation must be one of \"nearest\", \"bilinear\", \"bicubic\" (got "
            "\"bicubik\") | did you mean \"bicubic\"?");
}

TEST(Parameters, ListsOfTransformsAreCounted) {
  const std::vector<Param> params = {{.name = "transforms",
                                      .type = ParamType::kTransforms,
                                      .doc = "List.",
                                      .required = true,
                                      .min_count = 1}};
  EXPECT_THROW(Arguments("Op", params, {{"transforms", std::vector<Branch>{{"", {}}}}}), Exception);
  const Arguments one("Op", params,
                      {{"transforms", std::vector<Branch>{{"", {Spec{"A", {}, {}, {}}}}}}});
  EXPECT_EQ(one.branches("transforms").front().transforms.front().name, "A");
}

TEST(NearestName, FindsTyposAndIgnoresUnrelatedNames) {
  const std::vector<std::string_view> names = {"Resize", "RandomCrop", "CenterCrop", "Pad", "p"};
  EXPECT_EQ(nearest_name("Rezise", names), "Resize");
  EXPECT_EQ(nearest_name("resize", names), "Resize");
  EXPECT_EQ(nearest_name("CentreCrop", names), "CenterCrop");
  EXPECT_EQ(nearest_name("RandomCorp", names), "RandomCrop");
  EXPECT_EQ(nearest_name("Mosaic", names), "");
  EXPECT_EQ(nearest_name("img", {"id", "image", "label"}), "image");
  EXPECT_EQ(nearest_name("lbl", {"id", "image", "label"}), "label");
  EXPECT_EQ(nearest_name("q", names), "");
  EXPECT_EQ(nearest_name(std::string(100000, 'x'), names), "");
}

TEST(Parameters, AnyAllocationMayFail) {
  const Given given = {{"size", std::vector<int64_t>{8, 9}},
                       {"fill", std::vector<double>{1, 2, 3}},
                       {"interpolation", std::string(100, 'x')},
                       {"classes", std::vector<std::string>{"cat", std::string(100, 'y')}}};
  std::vector<Param> params = kParams;
  params[3].choices.clear();
  int64_t refused = -1;
  for (bool is_made = false; !is_made;) {
    granted = ++refused;
    try {
      const Arguments arguments("Op", params, given);
      is_made = true;
    } catch (const std::bad_alloc&) {
    }
    granted = std::numeric_limits<int64_t>::max();
  }
  EXPECT_GT(refused, 10);
}

TEST(TextOf, WritesValuesAsPythonDoes) {
  EXPECT_EQ(text_of(ParamValue{}), "None");
  EXPECT_EQ(text_of(true), "True");
  EXPECT_EQ(text_of(std::vector<double>{0.5, 2}), "[0.5, 2]");
  EXPECT_EQ(text_of(std::string("a")), "\"a\"");
  EXPECT_EQ(text_of(DType::kFloat16), "float16");
}

}  // namespace
}  // namespace headrace
