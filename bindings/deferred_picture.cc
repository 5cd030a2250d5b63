// SPDX-License-Identifier: Apache-2.0
// Pictures that Python functions crop and resize before they are decoded. All of it holds the GIL:
// a Python step that returned to an interpreter during its exit would never come back.
#include "headrace/image/deferred_picture.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <tuple>

#include "bindings/bindings.h"
#include "headrace/ops/picture_op.h"

namespace headrace::python {
namespace {

// A renderer that a thread keeps between images.
Renderer& renderer() {
  static thread_local Renderer mine;
  return mine;
}

ColorMode color_from(std::string_view name) {
  if (name == "RGB") return ColorMode::kRGB;
  if (name == "L") return ColorMode::kGray;
  if (name == "stored") return ColorMode::kStored;
  throw nb::value_error("color: RGB, L or stored");
}

void make(DeferredPicture* self, const nb::bytes& encoded, std::string_view color) {
  Buffer bytes(encoded.size());
  std::memcpy(bytes.data(), encoded.c_str(), encoded.size());
  Result<DeferredPicture> picture = defer(std::move(bytes), color_from(color), renderer());
  if (!picture) throw Exception(picture.error());
  new (self) DeferredPicture(*std::move(picture));
}

// The file's picture in another color mode, without the operations of this picture.
DeferredPicture in_color(const DeferredPicture& self, std::string_view color) {
  Result<EncodedImage> opened = renderer().open(self.bytes->bytes(), {});
  if (!opened) throw Exception(opened.error());
  opened->color = color_from(color);
  return {.bytes = self.bytes, .recipe = Recipe(*opened)};
}

// A copy with one more step.
template <class Step>
DeferredPicture with(const DeferredPicture& self, Step&& step) {
  DeferredPicture out = self;
  if (Result<void> made = edit(out.recipe, renderer(), step); !made) throw Exception(made.error());
  return out;
}

constexpr int kMaxSide = 1 << 24;

void check_side(int64_t pixels) {
  if (pixels < 1 || pixels > kMaxSide)
    throw nb::value_error("height and width must be 1 to 2^24 pixels");
}

DeferredPicture resized(const DeferredPicture& self, int width, int height,
                        std::string_view filter) {
  check_side(width);
  check_side(height);
  return with(self,
              [&](Recipe& recipe) { return recipe.resize({height, width}, filter_from(filter)); });
}

DeferredPicture padded(const DeferredPicture& self, int left, int top, int right, int bottom,
                       const std::vector<double>& fill) {
  if (std::min({left, top, right, bottom}) < 0) throw nb::value_error("a border is negative");
  const Size size = self.recipe.size();
  check_side(int64_t{left} + size.width + right);
  check_side(int64_t{top} + size.height + bottom);
  if (fill.size() != static_cast<size_t>(self.recipe.channels()))
    throw nb::value_error("fill must have one value per channel");
  return with(self, [&](Recipe& recipe) { return recipe.pad(left, top, right, bottom, fill); });
}

DeferredPicture cropped(const DeferredPicture& self, int x, int y, int width, int height) {
  const Size size = self.recipe.size();
  const Window window{x, y, width, height};
  if (!is_inside(window, size.width, size.height))
    throw nb::value_error("the window is outside the image");
  return with(self, [&](Recipe& recipe) { return recipe.crop(window); });
}

DeferredPicture mapped(const DeferredPicture& self, const MapStep& step) {
  return with(self, [&](Recipe& recipe) { return recipe.map(step); });
}

}  // namespace

std::optional<Array> pixels_of(const DeferredPicture& picture, bool channels_last) {
  const Size size = picture.recipe.size();
  const int channels = picture.recipe.channels();
  Array out =
      make_array(picture.recipe.dtype(), channels_last ? Shape{size.height, size.width, channels}
                                                       : Shape{channels, size.height, size.width});
  RenderTask task;
  task.recipe = &picture.recipe;
  task.target.data = out.view.data;
  task.target.batch = false;
  if (channels_last) task.target.format = MemoryFormat::kChannelsLast;
  renderer().render({&task, 1});
  if (!task.result) throw Exception(task.result.error());
  if (task.warnings > 0) return {};
  return out;
}

void bind_deferred_picture(nb::module_& module) {
  using P = DeferredPicture;
  module.def(
      "deferred_bytes", [] { return deferred_bytes.load(); },
      "Total bytes of the files of all DeferredPictures.");
  nb::class_<P>(
      module, "DeferredPicture",
      "An encoded image and the operations to apply to it. Each operation returns a new one.")
      .def("__init__", &make, nb::arg("data"), nb::arg("color"),
           "color: \"RGB\", \"L\", \"stored\".")
      .def_prop_ro(
          "shape",
          [](const P& self) {
            const Size size = self.recipe.size();
            return std::tuple(self.recipe.channels(), size.height, size.width);
          },
          "(C, H, W)")
      .def_prop_ro("dtype", [](const P& self) { return name_of(self.recipe.dtype()); })
      .def("in_color", &in_color, nb::arg("color"),
           "The file's image in another color mode, without the operations applied so far.")
      .def("resize", &resized, nb::arg("width"), nb::arg("height"), nb::arg("filter"),
           "With Pillow's filters.")
      .def("crop", &cropped, nb::arg("x"), nb::arg("y"), nb::arg("width"), nb::arg("height"))
      .def("mirror",
           [](const P& self) {
             return with(self, [](Recipe& recipe) { return recipe.flip_horizontal(); });
           })
      .def("flip",
           [](const P& self) {
             return with(self, [](Recipe& recipe) { return recipe.flip_vertical(); });
           })
      .def(
          "transpose",
          [](const P& self) {
            return with(self, [](Recipe& recipe) { return recipe.transpose(); });
          },
          "Swaps the axes.")
      .def("pad", &padded, nb::arg("left"), nb::arg("top"), nb::arg("right"), nb::arg("bottom"),
           nb::arg("fill"), "fill: one value per channel.")
      .def(
          "to_unit",
          [](const P& self) {
            return mapped(self, {.kind = MapStep::Kind::kConvert,
                                 .scale = true,
                                 .mean = {},
                                 .std = {},
                                 .divides = true});
          },
          "float32: bytes divided by 255, like ToTensor.")
      .def(
          "normalize",
          [](const P& self, std::vector<float> mean, std::vector<float> std) {
            return mapped(self, {.kind = MapStep::Kind::kNormalize,
                                 .mean = std::move(mean),
                                 .std = std::move(std)});
          },
          nb::arg("mean"), nb::arg("std"))
      .def("pixels", &pixels_of, nb::arg("channels_last") = false,
           "Decodes the image. None if the decoder had to repair damage.")
      .def(
          "__reduce__",
          [](const P& self) {  // pickled as decoded pixels
            const std::optional<Array> made = pixels_of(self);
            if (!made) throw nb::value_error("the image is damaged");
            const nb::object as_array = nb::module_::import_("numpy").attr("asarray");
            return nb::make_tuple(as_array, nb::make_tuple(as_array(nb::cast(*made))));
          },
          nb::sig("def __reduce__(self) -> tuple[typing.Any, ...]"));
}

}  // namespace headrace::python
