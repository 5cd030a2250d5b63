// SPDX-License-Identifier: Apache-2.0
// JPEG XL, via libjxl: still images and the first frame of animations, with and without alpha. The
// whole image is decoded, since libjxl cannot decode windows.
#include <jxl/decode.h>
#include <jxl/version.h>

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <memory>
#include <string>

#include "headrace/base/registry.h"
#include "headrace/base/text.h"
#include "headrace/codecs/codec.h"
#include "headrace/codecs/image/boxes.h"
#include "headrace/codecs/image/byte_order.h"
#include "headrace/codecs/image/exif.h"
#include "headrace/codecs/image/stored_rows.h"
#include "headrace/codecs/run_time_library.h"

namespace headrace {
namespace {

constexpr std::string_view kJpegXlName = "JPEG XL";

// The version number in the names of the library and its package.
std::string jpegxl_version() {
  return std::to_string(JPEGXL_MAJOR_VERSION) + "." + std::to_string(JPEGXL_MINOR_VERSION);
}

struct JpegXlLibrary {
  RunTimeLibrary library{"libjxl.so." + jpegxl_version(), "libjxl" + jpegxl_version()};
  decltype(&JxlDecoderCreate) create = nullptr;
  decltype(&JxlDecoderDestroy) destroy = nullptr;
  decltype(&JxlDecoderSubscribeEvents) subscribe = nullptr;
  decltype(&JxlDecoderSetKeepOrientation) keep_orientation = nullptr;
  decltype(&JxlDecoderSetCoalescing) merge_layers = nullptr;
  decltype(&JxlDecoderSetInput) set_input = nullptr;
  decltype(&JxlDecoderCloseInput) close_input = nullptr;
  decltype(&JxlDecoderProcessInput) process = nullptr;
  decltype(&JxlDecoderGetBasicInfo) basic_info = nullptr;
  decltype(&JxlDecoderGetFrameHeader) frame_header = nullptr;
  decltype(&JxlDecoderSetImageOutBuffer) set_out = nullptr;

  JpegXlLibrary() {
    library.find(create, "JxlDecoderCreate");
    library.find(destroy, "JxlDecoderDestroy");
    library.find(subscribe, "JxlDecoderSubscribeEvents");
    library.find(keep_orientation, "JxlDecoderSetKeepOrientation");
    library.find(merge_layers, "JxlDecoderSetCoalescing");
    library.find(set_input, "JxlDecoderSetInput");
    library.find(close_input, "JxlDecoderCloseInput");
    library.find(process, "JxlDecoderProcessInput");
    library.find(basic_info, "JxlDecoderGetBasicInfo");
    library.find(frame_header, "JxlDecoderGetFrameHeader");
    library.find(set_out, "JxlDecoderSetImageOutBuffer");
  }
};

const JpegXlLibrary& jpegxl_library() {
  static const JpegXlLibrary library;
  return library;
}

// Decodes one image in memory with libjxl.
class JpegXlSession {
 public:
  JpegXlSession(std::span<const uint8_t> bytes, int events) : bytes_(bytes) {
    const JpegXlLibrary& jxl = jpegxl_library();
    decoder_ = jxl.create(nullptr);
    if (!decoder_) return;
    jxl.subscribe(decoder_, events);
    jxl.keep_orientation(decoder_, JXL_TRUE);
    if (events & JXL_DEC_FRAME) jxl.merge_layers(decoder_, JXL_FALSE);
    jxl.set_input(decoder_, bytes.data(), bytes.size());
    jxl.close_input(decoder_);
  }
  ~JpegXlSession() {
    if (decoder_) jpegxl_library().destroy(decoder_);
  }
  JpegXlSession(const JpegXlSession&) = delete;
  JpegXlSession& operator=(const JpegXlSession&) = delete;

  // Continues to this event; any other one is an error.
  Result<void> advance(JxlDecoderStatus wanted) {
    const JxlDecoderStatus status = decoder_ ? jpegxl_library().process(decoder_) : JXL_DEC_ERROR;
    if (status == wanted) return {};
    if (!decoder_) return too_large_image(kJpegXlName);
    if (status == JXL_DEC_NEED_MORE_INPUT) return truncated_image(kJpegXlName, bytes_.size());
    return corrupt_image(kJpegXlName, "libjxl could not read its bitstream");
  }
  Result<JxlBasicInfo> info() {
    if (Result<void> done = advance(JXL_DEC_BASIC_INFO); !done) return std::move(done.error());
    JxlBasicInfo info;
    if (jpegxl_library().basic_info(decoder_, &info) != JXL_DEC_SUCCESS || info.xsize == 0 ||
        info.ysize == 0 || info.xsize > INT32_MAX || info.ysize > INT32_MAX) {
      return corrupt_image(kJpegXlName, "it has no valid size");
    }
    if (info.num_color_channels == 1 && info.bits_per_sample > 8) {
      return unsupported_image(
          kJpegXlName, "of one channel of " + std::to_string(info.bits_per_sample) + " bits");
    }
    if (info.exponent_bits_per_sample > 0) return unsupported_image(kJpegXlName, "of floats");
    return info;
  }
  // The first image consists of layers, each of which may be larger than its visible part.
  // REQUIRES: info() was called, and JXL_DEC_FRAME is among the events.
  Result<void> check_layers(const JxlBasicInfo& info) {
    constexpr double kSmall = double{4 << 20}, kMaxImages = 64;
    const double shown = double(info.xsize) * info.ysize;
    double all = 0;
    while (jpegxl_library().process(decoder_) == JXL_DEC_FRAME) {
      JxlFrameHeader header;
      if (jpegxl_library().frame_header(decoder_, &header) != JXL_DEC_SUCCESS) break;
      const double pixels = double(header.layer_info.xsize) * header.layer_info.ysize;
      all += pixels;
      if (pixels > std::max(4 * shown, kSmall) || all > kMaxImages * std::max(shown, kSmall)) {
        return too_large_image(kJpegXlName);
      }
      if (header.duration > 0 || header.is_last) break;
    }
    return {};
  }
  bool write_to(uint8_t* pixels, size_t size, uint32_t channels) {
    const JxlPixelFormat format{channels, JXL_TYPE_UINT8, JXL_NATIVE_ENDIAN, 0};
    return jpegxl_library().set_out(decoder_, &format, pixels, size) == JXL_DEC_SUCCESS;
  }

 private:
  std::span<const uint8_t> bytes_;
  JxlDecoder* decoder_ = nullptr;
};

StoredColor color_of_jpegxl(const JxlBasicInfo& info) {
  const bool alpha = info.alpha_bits > 0;
  if (info.num_color_channels == 1) return alpha ? StoredColor::kGrayAlpha : StoredColor::kGray;
  return alpha ? StoredColor::kRGBA : StoredColor::kRGB;
}

// The codestream's orientation takes precedence over EXIF, as the standard says. Writers that copy
// EXIF and do not rotate (pillow-jxl-plugin) only set EXIF.
int orientation_of_jpegxl(const JxlBasicInfo& info, std::span<const uint8_t> file) {
  if (info.orientation != JXL_ORIENT_IDENTITY || !has_text(file, "JXL ", 4)) {
    return int(info.orientation);
  }
  int orientation = 1;
  each_box(file, [&](uint32_t type, std::span<const uint8_t> content) {
    constexpr size_t kOffset = 4;  // size of the TIFF structure's offset; some writers omit it
    if (type != box_named("Exif") || content.size() < kOffset) return true;
    if (!has_text(content, "II") && !has_text(content, "MM")) {
      const size_t offset = big_u32(content, 0);
      content = content.subspan(kOffset);
      content = content.subspan(std::min(offset, content.size()));
    }
    orientation = std::max(orientation_of_exif_chunk(content), 1);
    return false;
  });
  return orientation;
}

class JpegXlDecoder : public ImageDecoder {
 public:
  Result<ImageHeader> read_header(std::span<const uint8_t> bytes) override {
    if (!jpegxl_library().library.is_open()) return jpegxl_library().library.missing();
    JpegXlSession session(bytes, JXL_DEC_BASIC_INFO | JXL_DEC_FRAME);
    const Result<JxlBasicInfo> info = session.info();
    if (!info) return info.error();
    if (Result<void> good = session.check_layers(*info); !good) return std::move(good.error());
    ImageHeader header;
    header.width = int(info->xsize);
    header.height = int(info->ysize);
    header.channels = channels_of(color_of_jpegxl(*info));
    header.bits = int(info->bits_per_sample);
    header.alpha = info->alpha_bits > 0;
    header.exif_orientation = orientation_of_jpegxl(*info, bytes);
    // Samples as floats, twice, and the delivered rows.
    header.working_bytes = size_t(info->xsize) * info->ysize * 9 *
                               (info->num_color_channels + info->num_extra_channels) +
                           (size_t{8} << 20);
    return header;
  }

  void decode(std::span<DecodeJob> jobs) override {
    for (DecodeJob& job : jobs) job.result = decode_one(job);
  }

 private:
  Result<void> decode_one(const DecodeJob& job) {
    if (!jpegxl_library().library.is_open()) return jpegxl_library().library.missing();
    JpegXlSession session(job.bytes, JXL_DEC_BASIC_INFO | JXL_DEC_FULL_IMAGE);
    const Result<JxlBasicInfo> info = session.info();
    if (!info) return info.error();
    assert(is_inside(job.window, int(info->xsize), int(info->ysize)));
    const StoredColor color = color_of_jpegxl(*info);
    const size_t step = size_t(channels_of(color)), stride = step * info->xsize;
    if (Result<void> ready = session.advance(JXL_DEC_NEED_IMAGE_OUT_BUFFER); !ready) return ready;
    pixels_.resize(stride * info->ysize);
    if (!session.write_to(pixels_.data(), pixels_.size(), uint32_t(step))) {
      return corrupt_image(kJpegXlName, "its pixels do not match its header");
    }
    if (Result<void> made = session.advance(JXL_DEC_FULL_IMAGE); !made) return made;
    stored_.deliver_window(job, color, pixels_.data(), ptrdiff_t(stride));
    return {};
  }

  StoredRows stored_;
  Buffer pixels_;
};

const CodecRecord kJpegXl{
    .name = "jpegxl",
    .doc = "JPEG XL: still images with and without alpha; of an animation, the first frame.",
    .oracle =
        "pillow-jxl-plugin and Pillow's convert(), byte for byte for lossless images; within 2 "
        "levels for lossy ones, since versions of libjxl round differently",
    .suffixes = {".jxl"},
    .sniff =
        [](std::span<const uint8_t> first_bytes) {
          constexpr std::string_view kBox{"\0\0\0\x0CJXL \r\n\x87\n", 12}, kStream{"\xFF\x0A", 2};
          return has_text(first_bytes, kBox) || has_text(first_bytes, kStream);
        },
    .make = []() -> std::unique_ptr<ImageDecoder> { return std::make_unique<JpegXlDecoder>(); },
    .library = []() -> const RunTimeLibrary& { return jpegxl_library().library; },
};
const Register<CodecRecord> registered_jpegxl_codec(kJpegXl);

}  // namespace
}  // namespace headrace
