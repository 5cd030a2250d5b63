// SPDX-License-Identifier: Apache-2.0
// Encoded images and audio as arrays, without a source or a loader.
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string_view.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "bindings/bindings.h"
#include "headrace/codecs/audio/audio_clip.h"
#include "headrace/executor/bad_records.h"
#include "headrace/fields/pictures.h"
#include "headrace/image/render.h"
#include "headrace/ops/picture_op.h"
#include "headrace/storage/file.h"

namespace headrace::python {
namespace {

const ErrorCode kOutside{
    "HR0505", ErrorKind::kData, "window outside the image",
    "hr.decode(window=(top, left, height, width)) selects pixels of the image after "
    "exif_orientation=True has rotated it. The window must have at least one pixel and lie inside "
    "the image; hr.decode does not pad."};

constexpr size_t kKept = size_t{16} << 20;  // bytes of a thread's scratch memory kept between calls

// This thread's renderer: its decoders and their memory are reused by the next call.
Renderer& renderer_of_thread() {
  thread_local Renderer renderer;
  renderer.trim(kKept);
  return renderer;
}

// Decoders read past the end, for which a Buffer has padding.
Buffer padded(nb::handle encoded) {
  Buffer bytes;
  view_of_buffer(encoded, bytes);
  return bytes;
}

// Decodes into a new array; HWC or CHW.
Array rendered(Recipe& recipe, Renderer& renderer, MemoryFormat layout) {
  const Size size = recipe.size();
  Array out = make_array(recipe.dtype(), layout == MemoryFormat::kChannelsLast
                                             ? Shape{size.height, size.width, recipe.channels()}
                                             : Shape{recipe.channels(), size.height, size.width});
  RenderTask task;
  task.recipe = &recipe;
  task.target = {.data = out.view.data, .format = layout, .batch = false};
  renderer.render({&task, 1});
  if (!task.result) throw Exception(task.result.error());
  return out;
}

// The origin of bytes, for errors: a record, or unknown.
struct Origin {
  SourcePtr source;
  int64_t record = -1;
};

Origin origin_from(const SourceHandle* source, int64_t record) {
  return {source ? source->source : nullptr, record};
}

// The result of `decode`; errors include the file and the record.
auto naming(const Origin& origin, auto decode) {
  try {
    return decode();
  } catch (const Exception& failure) {
    if (!origin.source) throw;
    Error error = failure.error();
    add_place(error, *origin.source, origin.record);
    throw Exception(std::move(error));
  }
}

// An image file's bytes -> uint8 (C, H, W). `kind`: the kind of the field. `lenient`: accepts
// damage as long as something can be decoded. `upright`: rotated according to its Exif orientation.
Array decoded_field(const Buffer& bytes, FieldKind kind, bool strict, bool lenient, bool upright) {
  Renderer& renderer = renderer_of_thread();
  Result<EncodedImage> picture = renderer.open(bytes.bytes(), {});
  if (!picture) throw Exception(picture.error());
  picture->color = record_of(kind).color;
  picture->strict = strict;
  picture->repair = lenient;
  if (lenient) picture->sixteen_bit = SixteenBit::kHighByte;
  Recipe recipe(*picture);
  if (upright) apply_exif_orientation(recipe, picture->header.exif_orientation);
  return rendered(recipe, renderer, MemoryFormat::kChannelsFirst);
}

Array decode_field(nb::handle encoded, std::string_view kind, bool strict, bool lenient,
                   bool upright, const SourceHandle* source, int64_t record) {
  const Buffer bytes = padded(encoded);
  const Origin origin = origin_from(source, record);
  const FieldKind of = kind_from_name(kind);
  const ReleasedGil no_gil;
  return naming(origin, [&] { return decoded_field(bytes, of, strict, lenient, upright); });
}

PictureMode mode_from(std::string_view mode) {
  if (mode == "L") return PictureMode::kL;
  if (mode == "RGBA") return PictureMode::kRGBA;
  return mode == "stored" ? PictureMode::kStored : PictureMode::kRGB;
}

Window window_from(const std::array<int64_t, 4>& given, Size size) {
  const auto [top, left, height, width] = given;
  const Window window{int(left), int(top), int(width), int(height)};
  const bool fits = std::ranges::all_of(given, [](int64_t n) { return n == int(n); });
  if (!fits || !is_inside(window, size.width, size.height)) {
    throw Exception({.code = &kOutside,
                     .what = "window=(" + std::to_string(top) + ", " + std::to_string(left) + ", " +
                             std::to_string(height) + ", " + std::to_string(width) +
                             ") of an image of " + text_of(size),
                     .hint = "(top, left, height, width), in pixels"});
  }
  return window;
}

// Arguments of hr.decode(); its Python function has checked the names.
struct Wanted {
  PictureMode mode;
  std::optional<std::array<int64_t, 4>> window;
  std::optional<std::array<int64_t, 2>> size;
  Filter filter;
  MemoryFormat layout;
  bool upright, strict;
};

// The image, and the Exif orientation that was not applied; 1 if there is none.
std::pair<Array, int> decode_wanted(const Buffer& bytes, const Wanted& wanted) {
  Renderer& renderer = renderer_of_thread();
  Result<EncodedImage> picture = renderer.open(bytes.bytes(), {});
  if (!picture) throw Exception(picture.error());
  const Result<PictureForm> form = picture_form(wanted.mode, FieldKind::kImage, picture->header);
  if (!form) throw Exception(form.error());
  picture->color = form->color;
  picture->sample = form->sample;
  picture->strict = wanted.strict;
  Recipe recipe(*picture);
  const int orientation = picture->header.exif_orientation;
  if (wanted.upright) apply_exif_orientation(recipe, orientation);
  // A new recipe accepts a crop and then a resize.
  if (wanted.window) (void)recipe.crop(window_from(*wanted.window, recipe.size()));
  if (wanted.size) {
    const auto [height, width] = *wanted.size;
    if (too_large(height, width)) {
      throw Exception(result_too_large("decode", recipe.size(), height, width, "a smaller size="));
    }
    (void)recipe.resize({int(height), int(width)}, wanted.filter);
  }
  return {rendered(recipe, renderer, wanted.layout), wanted.upright ? 1 : orientation};
}

// `encoded`: bytes, or the path of a file.
nb::tuple decode(nb::handle encoded, std::string_view mode,
                 std::optional<std::array<int64_t, 4>> window,
                 std::optional<std::array<int64_t, 2>> size, std::string_view interpolation,
                 bool channels_last, bool upright, bool strict) {
  const Wanted wanted{mode_from(mode),
                      window,
                      size,
                      filter_from(interpolation),
                      channels_last ? MemoryFormat::kChannelsLast : MemoryFormat::kChannelsFirst,
                      upright,
                      strict};
  const bool is_path = nb::isinstance<nb::str>(encoded);
  const std::string path = is_path ? bytes_from_str(encoded) : "";
  Buffer bytes = is_path ? Buffer() : padded(encoded);
  auto [image, orientation] = [&] {
    const ReleasedGil no_gil;
    if (!is_path) return decode_wanted(bytes, wanted);
    if (const Result<void> read = read_file(path, bytes); !read) throw Exception(read.error());
    try {
      return decode_wanted(bytes, wanted);
    } catch (const Exception& failure) {
      Error error = failure.error();
      error.where.file = path;
      throw Exception(std::move(error));
    }
  }();
  return nb::make_tuple(std::move(image), orientation);
}

// An audio file's bytes -> float32 (channels, frames), and the sample rate.
std::pair<Array, int> decoded_audio(const Buffer& bytes) {
  AudioDecoders decoders;
  Result<AudioClip> audio = open_audio(bytes.bytes(), decoders);
  if (!audio) throw Exception(audio.error());
  Array out = make_array(DType::kFloat32, {audio->header.channels, audio->frames()});
  const Result<void> decoded =
      decode_samples(*audio, decoders, static_cast<float*>(out.view.data), audio->frames());
  if (!decoded) throw Exception(decoded.error());
  return {std::move(out), audio->header.sample_rate};
}

nb::tuple decode_audio(nb::handle encoded, const SourceHandle* source, int64_t record) {
  const Buffer bytes = padded(encoded);
  const Origin origin = origin_from(source, record);
  auto [samples, rate] = [&] {
    const ReleasedGil no_gil;
    return naming(origin, [&] { return decoded_audio(bytes); });
  }();
  return nb::make_tuple(std::move(samples), rate);
}

// Contents of a header: frames, channels, sample_rate.
nb::tuple audio_header(nb::handle encoded) {
  const Buffer bytes = padded(encoded);
  AudioDecoders decoders;
  const Result<AudioClip> audio = open_audio(bytes.bytes(), decoders);
  if (!audio) throw Exception(audio.error());
  return nb::make_tuple(audio->header.frames, audio->header.channels, audio->header.sample_rate);
}

}  // namespace

void bind_decode(nb::module_& module) {
  module.def("decode_field", &decode_field, nb::arg("encoded"), nb::arg("kind") = "image",
             nb::arg("strict") = false, nb::arg("lenient") = false, nb::arg("upright") = false,
             nb::arg("source").none() = nb::none(), nb::arg("record") = -1,
             nb::sig("def decode_field(encoded: Any, kind: str = 'image', strict: bool = False, "
                     "lenient: bool = False, upright: bool = False, source: Source | None = None, "
                     "record: int = -1) -> Array"),
             "An encoded image as a (C, H, W) uint8 array. Errors include the source's record.");
  module.def("decode", &decode, nb::arg("encoded"), nb::arg("mode"), nb::arg("window").none(),
             nb::arg("size").none(), nb::arg("interpolation"), nb::arg("channels_last"),
             nb::arg("upright"), nb::arg("strict"),
             nb::sig("def decode(encoded: Any, mode: str, window: tuple[int, int, int, int] | "
                     "None, size: tuple[int, int] | None, interpolation: str, channels_last: bool, "
                     "upright: bool, strict: bool) -> tuple[Array, int]"),
             "See headrace.decode. The array, and the Exif orientation that was not applied.");
  module.def(
      "decode_audio", &decode_audio, nb::arg("encoded"), nb::arg("source").none() = nb::none(),
      nb::arg("record") = -1,
      nb::sig("def decode_audio(encoded: Any, source: Source | None = None, record: int = -1) "
              "-> tuple[Array, int]"),
      "An encoded audio clip as a (channels, frames) float32 array, and its sample rate. "
      "Errors include the source's record.");
  module.def("audio_header", &audio_header, nb::arg("encoded"),
             nb::sig("def audio_header(encoded: Any) -> tuple[int, int, int]"),
             "Frames, channels and sample rate of an encoded audio clip.");
}

}  // namespace headrace::python
