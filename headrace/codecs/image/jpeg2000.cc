// SPDX-License-Identifier: Apache-2.0
// JPEG 2000, by OpenJPEG: codestreams and JP2 files of one to four channels; only the window is
// decoded.
#include <openjpeg-2.5/openjpeg.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <string>

#include "headrace/base/registry.h"
#include "headrace/base/text.h"
#include "headrace/codecs/codec.h"
#include "headrace/codecs/image/jpeg2000_header.h"
#include "headrace/codecs/image/stored_rows.h"
#include "headrace/codecs/run_time_library.h"

namespace headrace {
namespace {

constexpr std::string_view kJpeg2000Name = "JPEG 2000";

struct OpenJpegLibrary {
  RunTimeLibrary library{"libopenjp2.so.7", "libopenjp2-7"};
  decltype(&opj_set_default_decoder_parameters) defaults = nullptr;
  decltype(&opj_create_decompress) create = nullptr;
  decltype(&opj_destroy_codec) destroy = nullptr;
  decltype(&opj_setup_decoder) setup = nullptr;
  decltype(&opj_set_error_handler) set_errors = nullptr;
  decltype(&opj_stream_create) stream = nullptr;
  decltype(&opj_stream_destroy) destroy_stream = nullptr;
  decltype(&opj_stream_set_read_function) set_read = nullptr;
  decltype(&opj_stream_set_skip_function) set_skip = nullptr;
  decltype(&opj_stream_set_seek_function) set_seek = nullptr;
  decltype(&opj_stream_set_user_data) set_user = nullptr;
  decltype(&opj_stream_set_user_data_length) set_length = nullptr;
  decltype(&opj_read_header) read_header = nullptr;
  decltype(&opj_set_decode_area) set_area = nullptr;
  decltype(&opj_decode) decode = nullptr;
  decltype(&opj_image_destroy) destroy_image = nullptr;

  OpenJpegLibrary() {
    library.find(defaults, "opj_set_default_decoder_parameters");
    library.find(create, "opj_create_decompress");
    library.find(destroy, "opj_destroy_codec");
    library.find(setup, "opj_setup_decoder");
    library.find(set_errors, "opj_set_error_handler");
    library.find(stream, "opj_stream_create");
    library.find(destroy_stream, "opj_stream_destroy");
    library.find(set_read, "opj_stream_set_read_function");
    library.find(set_skip, "opj_stream_set_skip_function");
    library.find(set_seek, "opj_stream_set_seek_function");
    library.find(set_user, "opj_stream_set_user_data");
    library.find(set_length, "opj_stream_set_user_data_length");
    library.find(read_header, "opj_read_header");
    library.find(set_area, "opj_set_decode_area");
    library.find(decode, "opj_decode");
    library.find(destroy_image, "opj_image_destroy");
  }
};

const OpenJpegLibrary& openjpeg_library() {
  static const OpenJpegLibrary library;
  return library;
}

// Decodes one image in memory by OpenJPEG.
class Jpeg2000Session {
 public:
  Jpeg2000Session(std::span<const uint8_t> bytes, bool boxes) : bytes_(bytes) {
    const OpenJpegLibrary& opj = openjpeg_library();
    codec_ = opj.create(boxes ? OPJ_CODEC_JP2 : OPJ_CODEC_J2K);
    stream_ = opj.stream(size_t{64} << 10, OPJ_TRUE);
    if (!codec_ || !stream_) return;
    opj.set_errors(codec_, on_error, this);
    opj.set_read(stream_, on_read);
    opj.set_skip(stream_, on_skip);
    opj.set_seek(stream_, on_seek);
    opj.set_user(stream_, this, nullptr);
    opj.set_length(stream_, bytes.size());
  }
  ~Jpeg2000Session() {
    const OpenJpegLibrary& opj = openjpeg_library();
    if (image_) opj.destroy_image(image_);
    if (stream_) opj.destroy_stream(stream_);
    if (codec_) opj.destroy(codec_);
  }
  Jpeg2000Session(const Jpeg2000Session&) = delete;
  Jpeg2000Session& operator=(const Jpeg2000Session&) = delete;

  // Decodes this area of the reference grid.
  bool decode(int left, int top, int right, int bottom) {
    const OpenJpegLibrary& opj = openjpeg_library();
    if (!codec_ || !stream_) return false;
    opj_dparameters_t parameters;
    opj.defaults(&parameters);
    return opj.setup(codec_, &parameters) && opj.read_header(stream_, codec_, &image_) &&
           opj.set_area(codec_, image_, left, top, right, bottom) &&
           opj.decode(codec_, stream_, image_);
  }
  const opj_image_t& image() const { return *image_; }
  Error error() const {
    if (position_ >= bytes_.size()) {
      Error truncated = truncated_image(kJpeg2000Name, bytes_.size());
      truncated.note = error_;
      return truncated;
    }
    return corrupt_image(kJpeg2000Name, error_.empty() ? "OpenJPEG cannot read it" : error_);
  }

 private:
  static void on_error(const char* text, void* user) {
    std::string& error = static_cast<Jpeg2000Session*>(user)->error_;
    if (error.empty()) error = std::string(text, std::min<size_t>(std::strcspn(text, "\n"), 160));
  }
  static OPJ_SIZE_T on_read(void* out, OPJ_SIZE_T size, void* user) {
    auto& self = *static_cast<Jpeg2000Session*>(user);
    const size_t count = std::min<size_t>(size, self.bytes_.size() - self.position_);
    if (count == 0) return OPJ_SIZE_T(-1);
    std::memcpy(out, self.bytes_.data() + self.position_, count);
    self.position_ += count;
    return count;
  }
  static OPJ_OFF_T on_skip(OPJ_OFF_T count, void* user) {
    auto& self = *static_cast<Jpeg2000Session*>(user);
    if (count < 0) return -1;
    self.position_ += std::min(size_t(count), self.bytes_.size() - self.position_);
    return count;
  }
  static OPJ_BOOL on_seek(OPJ_OFF_T to, void* user) {
    auto& self = *static_cast<Jpeg2000Session*>(user);
    if (to < 0 || size_t(to) > self.bytes_.size()) return OPJ_FALSE;
    self.position_ = size_t(to);
    return OPJ_TRUE;
  }

  std::span<const uint8_t> bytes_;
  size_t position_ = 0;
  std::string error_;
  opj_codec_t* codec_ = nullptr;
  opj_stream_t* stream_ = nullptr;
  opj_image_t* image_ = nullptr;
};

StoredColor jpeg2000_color(const Jpeg2000Header& header) {
  switch (header.components) {
    case 1:
      return header.bits > 8 ? StoredColor::kGray16 : StoredColor::kGray;
    case 2:
      return StoredColor::kGrayAlpha;
    case 3:
      return StoredColor::kRGB;
    default:
      return header.cmyk ? StoredColor::kCMYK : StoredColor::kRGBA;
  }
}

class Jpeg2000Decoder : public ImageDecoder {
 public:
  Result<ImageHeader> read_header(std::span<const uint8_t> bytes) override {
    if (!openjpeg_library().library.is_open()) return openjpeg_library().library.missing();
    const Result<Jpeg2000Header> stored = read_jpeg2000_header(bytes);
    if (!stored) return stored.error();
    ImageHeader header;
    header.width = int(stored->width);
    header.height = int(stored->height);
    header.channels = stored->components;
    header.inks = stored->cmyk;
    header.bits = stored->bits;
    if (stored->bits > 8) header.sample = DType::kUInt16;
    header.alpha = stored->components == 2 || (stored->components == 4 && !stored->cmyk);
    // 32 bits per sample each for code-blocks, wavelet transform and image; and the file's coded
    // data.
    header.working_bytes =
        size_t(header.width) * size_t(header.height) * size_t(header.channels) * 13 +
        stored->structure_bytes + 2 * bytes.size() + (size_t{1} << 20);
    return header;
  }

  void decode(std::span<DecodeJob> jobs) override {
    for (DecodeJob& job : jobs) job.result = decode_one(job);
  }

 private:
  Result<void> decode_one(const DecodeJob& job) {
    if (!openjpeg_library().library.is_open()) return openjpeg_library().library.missing();
    const Result<Jpeg2000Header> stored = read_jpeg2000_header(job.bytes);
    if (!stored) return stored.error();
    const StoredColor color = jpeg2000_color(*stored);
    const bool wide = job.sample != DType::kUInt8;
    if (color == StoredColor::kGray16 && !wide) {
      if (Result<void> said = check_sixteen_bit(job); !said) return said;
    }
    if (stored->components == 2 && stored->bits > 8 && !wide) {
      return unsupported_image(
          kJpeg2000Name,
          "of gray and alpha with more than 8 bits (mode=\"stored\" delivers them unchanged)");
    }
    const Window whole{0, 0, int(stored->width), int(stored->height)};
    assert(is_inside(job.window, whole.width, whole.height));
    const Window part = job.strict ? whole : job.window;
    Jpeg2000Session session(job.bytes, stored->boxes);
    const int left = int(stored->left) + part.x, top = int(stored->top) + part.y;
    if (!session.decode(left, top, left + part.width, top + part.height)) return session.error();
    const opj_image_t& image = session.image();
    bool as_said = image.numcomps == OPJ_UINT32(stored->components);
    for (OPJ_UINT32 c = 0; as_said && c < image.numcomps; ++c) {
      const opj_image_comp_t& component = image.comps[c];
      as_said = component.data && component.w == OPJ_UINT32(part.width) &&
                component.h == OPJ_UINT32(part.height) && component.factor == 0;
    }
    if (!as_said) return corrupt_image(kJpeg2000Name, "its pixels do not match its header");
    deliver(job, image, color, stored->bits, part);
    return {};
  }

  void deliver(const DecodeJob& job, const opj_image_t& image, StoredColor color, int bits,
               const Window& part) {
    const Window& window = job.window;
    const bool wide = job.sample != DType::kUInt8;
    const size_t step = wide ? 2 * size_t(image.numcomps) : size_t(pixel_bytes_of(color));
    const size_t stride = step * size_t(window.width);
    const int at_once = rows_per_block(stride);
    rows_.resize(stride * size_t(at_once));
    for (int y = 0; y < window.height; y += at_once) {
      const int count = std::min(at_once, window.height - y);
      for (int i = 0; i < count; ++i) {
        const size_t from =
            size_t(window.y + y + i - part.y) * size_t(part.width) + size_t(window.x - part.x);
        uint8_t* const out = rows_.data() + size_t(i) * stride;
        for (OPJ_UINT32 c = 0; c < image.numcomps; ++c) {
          const OPJ_INT32* const in = image.comps[c].data + from;
          if (wide || color == StoredColor::kGray16) {
            widened(in, window.width, bits, step, out + 2 * c);
          } else {
            narrowed(in, window.width, bits, step, out + c);
          }
        }
      }
      if (wide) {
        StoredRows::deliver_samples(job, int(image.numcomps), rows_.data(), ptrdiff_t(stride), y,
                                    count);
      } else {
        stored_.deliver(job, color, rows_.data(), ptrdiff_t(stride), y, count);
      }
    }
  }

  // Pillow's conversion: fewer than 8 bits are shifted up, more are rounded.
  static void narrowed(const OPJ_INT32* in, int count, int bits, size_t step, uint8_t* out) {
    const int most = (1 << bits) - 1, down = bits - 8;
    for (int i = 0; i < count; ++i) {
      const int value = std::clamp(int(in[i]), 0, most);
      out[size_t(i) * step] =
          uint8_t(down <= 0 ? value << -down : std::min(255, (value + (1 << down >> 1)) >> down));
    }
  }
  static void widened(const OPJ_INT32* in, int count, int bits, size_t step, uint8_t* out) {
    const int most = (1 << bits) - 1;
    for (int i = 0; i < count; ++i) {
      const auto sample = uint16_t(std::clamp(int(in[i]), 0, most) << (16 - bits));
      std::memcpy(out + size_t(i) * step, &sample, 2);
    }
  }

  StoredRows stored_;
  Buffer rows_;
};

const CodecRecord kJpeg2000Codec{
    .name = "jpeg2000",
    .doc = "JPEG 2000: codestreams and JP2 files of one to four channels of up to 16 bits.",
    .oracle =
        "Pillow 13's JPEG 2000 plugin and convert(), byte for byte (16-bit gray by sixteen_bit=, "
        "alpha is dropped); lossy images may differ by one level if the versions of OpenJPEG do",
    .suffixes = {".jp2", ".j2k", ".j2c", ".jpc", ".jpx", ".jpf"},
    .sniff =
        [](std::span<const uint8_t> first_bytes) {
          constexpr std::string_view kBox{"\0\0\0\x0CjP  \r\n\x87\n", 12},
              kStream{"\xFF\x4F\xFF\x51", 4};
          return has_text(first_bytes, kBox) || has_text(first_bytes, kStream);
        },
    .make = []() -> std::unique_ptr<ImageDecoder> { return std::make_unique<Jpeg2000Decoder>(); },
    .library = []() -> const RunTimeLibrary& { return openjpeg_library().library; },
};
const Register<CodecRecord> registered_jpeg2000_codec(kJpeg2000Codec);

}  // namespace
}  // namespace headrace
