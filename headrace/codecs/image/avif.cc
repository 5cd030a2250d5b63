// SPDX-License-Identifier: Apache-2.0
// AVIF, via libavif: still images, and the first frame of sequences. AV1 cannot decode windows, so
// the whole image is decoded.
#include <avif/avif.h>

#include <algorithm>
#include <cassert>
#include <memory>

#include "headrace/base/registry.h"
#include "headrace/base/text.h"
#include "headrace/codecs/codec.h"
#include "headrace/codecs/image/exif.h"
#include "headrace/codecs/image/stored_rows.h"
#include "headrace/codecs/run_time_library.h"

namespace headrace {
namespace {

constexpr std::string_view kAvifName = "AVIF";

// The version number in the names of the library and its package.
const std::string& avif_version() {
  static const std::string version = AVIF_VERSION_MAJOR == 0 ? "15" : "16";
  return version;
}

struct AvifLibrary {
  RunTimeLibrary library{"libavif.so." + avif_version(), "libavif" + avif_version()};
  decltype(&avifVersion) version = nullptr;
  decltype(&avifResultToString) text_of = nullptr;
  decltype(&avifDecoderCreate) create = nullptr;
  decltype(&avifDecoderDestroy) destroy = nullptr;
  decltype(&avifDecoderSetIOMemory) set_memory = nullptr;
  decltype(&avifDecoderParse) parse = nullptr;
  decltype(&avifDecoderNextImage) next = nullptr;
  decltype(&avifRGBImageSetDefaults) set_defaults = nullptr;
  decltype(&avifImageYUVToRGB) to_rgb = nullptr;

  AvifLibrary() {
    library.find(version, "avifVersion");
    library.find(text_of, "avifResultToString");
    library.find(create, "avifDecoderCreate");
    library.find(destroy, "avifDecoderDestroy");
    library.find(set_memory, "avifDecoderSetIOMemory");
    library.find(parse, "avifDecoderParse");
    library.find(next, "avifDecoderNextImage");
    library.find(set_defaults, "avifRGBImageSetDefaults");
    library.find(to_rgb, "avifImageYUVToRGB");
    // Its structures change with each minor version.
    const std::string read =
        std::to_string(AVIF_VERSION_MAJOR) + "." + std::to_string(AVIF_VERSION_MINOR) + ".";
    if (version && !std::string_view(version()).starts_with(read)) {
      library.refuse(std::string("libavif ") + version() + " is installed, but " + read +
                     "x is required");
    }
  }
};

const AvifLibrary& avif_library() {
  static const AvifLibrary library;
  return library;
}

struct DestroyAvifDecoder {
  void operator()(avifDecoder* decoder) const { avif_library().destroy(decoder); }
};
using AvifDecoderPointer = std::unique_ptr<avifDecoder, DestroyAvifDecoder>;

Error avif_error(avifResult result, std::span<const uint8_t> bytes) {
  switch (result) {
    case AVIF_RESULT_TRUNCATED_DATA:
    case AVIF_RESULT_IO_ERROR:
      return truncated_image(kAvifName, bytes.size());
    case AVIF_RESULT_OUT_OF_MEMORY:
      return too_large_image(kAvifName);
    case AVIF_RESULT_NO_CODEC_AVAILABLE:
      return unsupported_image(kAvifName, "with a codec that libavif cannot decode");
    default:
      return corrupt_image(kAvifName, avif_library().text_of(result));
  }
}

// Only the container is parsed, with Exif and XMP if they are needed.
Result<AvifDecoderPointer> open_avif(std::span<const uint8_t> bytes, bool with_metadata = false) {
  const AvifLibrary& avif = avif_library();
  if (!avif.library.is_open()) return avif.library.missing();
  AvifDecoderPointer decoder(avif.create());
  if (!decoder) return too_large_image(kAvifName);
  decoder->ignoreExif = decoder->ignoreXMP = !with_metadata;
  decoder->maxThreads = 1;
  // As in Pillow: older writers omit these.
  decoder->strictFlags &= ~avifStrictFlags(AVIF_STRICT_CLAP_VALID | AVIF_STRICT_PIXI_REQUIRED);
  avifResult result = avif.set_memory(decoder.get(), bytes.data(), bytes.size());
  if (result == AVIF_RESULT_OK) result = avif.parse(decoder.get());
  if (result != AVIF_RESULT_OK) return avif_error(result, bytes);
  if (decoder->image->width == 0 || decoder->image->height == 0 ||
      decoder->image->width > INT32_MAX || decoder->image->height > INT32_MAX) {
    return corrupt_image(kAvifName, "it has no valid size");
  }
  // Limits the size of the coded image: it may be larger than the container says, and libavif
  // would then shrink it. Tiles of small images may include padding.
  constexpr uint64_t kSmall = uint64_t{1} << 20;
  const uint64_t pixels = uint64_t{decoder->image->width} * decoder->image->height;
  decoder->imageSizeLimit =
      uint32_t(std::min<uint64_t>(std::max(2 * pixels, kSmall), decoder->imageSizeLimit));
  return decoder;
}

// libavif 1.0 renamed the member `mode` to `axis`.
template <class Mirror>
bool exchanges_left_and_right(const Mirror& imir) {
  if constexpr (requires { imir.axis; }) {
    return imir.axis != 0;
  } else {
    return imir.mode != 0;
  }
}

// irot rotates counterclockwise in quarter turns, then imir swaps top and bottom (0) or left and
// right. As in Pillow, they take precedence over EXIF, and XMP is only used if neither is present.
int orientation_of_avif(const avifImage& image) {
  const bool mirrored = image.transformFlags & AVIF_TRANSFORM_IMIR;
  const int turns = image.transformFlags & AVIF_TRANSFORM_IROT ? image.irot.angle & 3 : 0;
  constexpr int kTurned[] = {1, 8, 3, 6}, kUpDown[] = {4, 5, 2, 7}, kLeftRight[] = {2, 7, 4, 5};
  if (!mirrored && turns == 0) {
    const auto bytes = [](const avifRWData& data) { return std::span(data.data, data.size); };
    const bool exif_says = orientation_of_exif_chunk(bytes(image.exif)) != 0;
    return exif_says ? 1 : std::max(orientation_of_xmp(bytes(image.xmp)), 1);
  }
  if (!mirrored) return kTurned[turns];
  return exchanges_left_and_right(image.imir) ? kLeftRight[turns] : kUpDown[turns];
}

class AvifDecoder : public ImageDecoder {
 public:
  Result<ImageHeader> read_header(std::span<const uint8_t> bytes) override {
    Result<AvifDecoderPointer> decoder = open_avif(bytes, true);
    if (!decoder) decoder = open_avif(bytes);  // perhaps only its metadata is invalid
    if (!decoder) return decoder.error();
    const avifImage& image = *(*decoder)->image;
    ImageHeader header;
    header.width = int(image.width);
    header.height = int(image.height);
    header.channels = (*decoder)->alphaPresent ? 4 : 3;
    header.alpha = (*decoder)->alphaPresent;
    header.bits = int(image.depth);
    header.exif_orientation = orientation_of_avif(image);
    // AV1 frames, copies of them with film grain, scaled copies, and the delivered rows.
    const size_t of_color = image.yuvFormat == AVIF_PIXEL_FORMAT_YUV444 ? 3 : 2;
    const size_t samples = 3 * (of_color + (header.channels == 4 ? 1 : 0));
    header.working_bytes = size_t(image.width) * size_t(image.height) *
                               (samples * (image.depth > 8 ? 2 : 1) + size_t(header.channels)) +
                           2 * bytes.size() + (size_t{8} << 20);
    return header;
  }

  void decode(std::span<DecodeJob> jobs) override {
    for (DecodeJob& job : jobs) job.result = decode_one(job);
  }

 private:
  Result<void> decode_one(const DecodeJob& job) {
    const Result<AvifDecoderPointer> opened = open_avif(job.bytes);
    if (!opened) return opened.error();
    const AvifLibrary& avif = avif_library();
    avifDecoder& decoder = **opened;
    const Window whole{0, 0, int(decoder.image->width), int(decoder.image->height)};
    assert(is_inside(job.window, whole.width, whole.height));
    avifResult result = avif.next(&decoder);
    if (result != AVIF_RESULT_OK) return avif_error(result, job.bytes);
    if (int(decoder.image->width) != whole.width || int(decoder.image->height) != whole.height) {
      return corrupt_image(kAvifName, "its pixels do not match its header");
    }
    // Without a buffer for alpha, libavif premultiplies the colors.
    const bool alpha = decoder.alphaPresent;
    const StoredColor color = alpha ? StoredColor::kRGBA : StoredColor::kRGB;
    const size_t step = size_t(channels_of(color));
    const size_t stride = step * size_t(whole.width);
    pixels_.resize(stride * size_t(whole.height));
    avifRGBImage rgb;
    avif.set_defaults(&rgb, decoder.image);
    rgb.depth = 8;
    rgb.format = alpha ? AVIF_RGB_FORMAT_RGBA : AVIF_RGB_FORMAT_RGB;
    rgb.pixels = pixels_.data();
    rgb.rowBytes = uint32_t(stride);
    result = avif.to_rgb(decoder.image, &rgb);
    if (result != AVIF_RESULT_OK) return avif_error(result, job.bytes);
    stored_.deliver_window(job, color, pixels_.data(), ptrdiff_t(stride));
    return {};
  }

  StoredRows stored_;
  Buffer pixels_;
};

const CodecRecord kAvif{
    .name = "avif",
    .doc = "AVIF: still images, with and without alpha, and the first frame of sequences.",
    .oracle =
        "Pillow 13's AVIF plugin and convert(), byte for byte where libavif is built with libyuv, "
        "as in Debian and the wheel; within 3 levels elsewhere",
    .suffixes = {".avif", ".avifs"},
    .sniff =
        [](std::span<const uint8_t> first_bytes) {
          return has_text(first_bytes, "ftypavif", 4) || has_text(first_bytes, "ftypavis", 4);
        },
    .make = []() -> std::unique_ptr<ImageDecoder> { return std::make_unique<AvifDecoder>(); },
    .library = []() -> const RunTimeLibrary& { return avif_library().library; },
};
const Register<CodecRecord> registered_avif_codec(kAvif);

}  // namespace
}  // namespace headrace
