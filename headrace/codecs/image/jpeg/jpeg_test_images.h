// SPDX-License-Identifier: Apache-2.0
// For tests and benchmarks of the codec: sinks that record what they receive, and the reference: a
// plain full decode by a fresh libjpeg-turbo object that shares no code with it. Files come from
// jpeg_test_files.h.
#pragma once

#include <csetjmp>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "headrace/base/buffer.h"
#include "headrace/codecs/codec.h"
#include "headrace/kernels/jpeg/jpeg_test_files.h"

namespace headrace::jpeg_test {

// Interleaved pixels of a whole image or a window.
struct Pixels {
  bool ok = false, too_large = false;
  std::string error = {};
  int width = 0, height = 0, channels = 0;
  long warnings = 0;
  Bytes data = {};

  Pixels slice(const Window& w) const {
    Pixels out{.ok = ok, .width = w.width, .height = w.height, .channels = channels};
    for (int y = 0; y < w.height; ++y) {
      const uint8_t* from = &data[(size_t(w.y + y) * width + w.x) * channels];
      out.data.insert(out.data.end(), from, from + size_t(w.width) * channels);
    }
    return out;
  }
};

// Decodes as described in libjpeg's manual. Errors longjmp to oracle().
inline void decode_straight(jpeg_decompress_struct& cinfo, const Bytes& bytes, J_COLOR_SPACE space,
                            Pixels& out) {
  constexpr long kMaxPixels = 1 << 24;
  jpeg_mem_src(&cinfo, bytes.data(), bytes.size());
  jpeg_read_header(&cinfo, TRUE);
  out.width = int(cinfo.image_width);
  out.height = int(cinfo.image_height);
  out.too_large = long(out.width) * out.height > kMaxPixels;
  if (out.too_large) return;
  cinfo.out_color_space = cinfo.num_components == 4 ? JCS_CMYK : space;
  cinfo.dct_method = JDCT_ISLOW;
  jpeg_start_decompress(&cinfo);
  out.channels = cinfo.output_components;
  out.data.resize(size_t(out.width) * out.height * out.channels);
  for (int y = 0; y < out.height; ++y) {
    JSAMPROW row = &out.data[size_t(y) * out.width * out.channels];
    jpeg_read_scanlines(&cinfo, &row, 1);
  }
  out.ok = true;
}

inline Pixels oracle(const Bytes& bytes, J_COLOR_SPACE space = JCS_RGB) {
  Pixels out;
  Library library;
  const auto attempt = [&] {
    if (setjmp(library.errors.jump)) return;
    decode_straight(library.cinfo, bytes, space, out);
  };
  attempt();
  out.error = library.errors.text;
  out.warnings = library.errors.base.num_warnings;
  return out;
}

// Copies rows, checks their order, and reads the bytes that a block guarantees after its last row.
class Collector : public RowSink {
 public:
  Collector(int width, int height, int channels)
      : pixels{.width = width, .height = height, .channels = channels} {
    pixels.data.resize(size_t(width) * height * channels);
  }
  void rows(const RowBlock& block) override {
    in_order = in_order && block.y == next_ && block.count > 0;
    for (int i = 0; i < block.count; ++i) {
      uint8_t* to = &pixels.data[size_t(block.y + i) * pixels.width * pixels.channels];
      for (int c = 0; c < pixels.channels; ++c) {
        const uint8_t* from = block.channel[c] + i * block.stride;
        for (int x = 0; x < pixels.width; ++x) to[x * pixels.channels + c] = from[x * block.step];
      }
    }
    const uint8_t* end =
        block.channel[0] + (block.count - 1) * block.stride + ptrdiff_t(pixels.width) * block.step;
    for (int i = 0; i < 64; ++i) touched = touched + end[i];
    next_ += block.count;
  }
  bool complete() const { return in_order && next_ == pixels.height; }

  Pixels pixels;
  bool in_order = true;
  volatile unsigned touched = 0;

 private:
  int next_ = 0;
};

// A decoder with everything a caller provides: padding after the bytes, a sink, a job.
class AnyDecoder {
 public:
  explicit AnyDecoder(const CodecRecord* codec) : decoder_(codec->make()) {}
  Result<ImageHeader> header(const Bytes& bytes) { return decoder_->read_header(padded(bytes)); }
  Pixels window(const Bytes& bytes, const Window& window, ColorMode color = ColorMode::kRGB,
                int channels = 3, bool strict = false) {
    Collector sink(window.width, window.height, channels);
    DecodeJob job;
    job.bytes = padded(bytes);
    job.window = window;
    job.color = color;
    job.strict = strict;
    job.repair = repair;
    job.sink = &sink;
    job.row_index.known = known;
    decoder_->decode({&job, 1});
    last_error = job.result ? Error{} : std::move(job.result.error());
    Pixels out = std::move(sink.pixels);
    out.ok = job.result.has_value() && sink.complete();
    out.warnings = job.warnings;
    out.error = out.ok ? "" : last_error.message();
    return out;
  }
  Pixels whole(const Bytes& bytes, ColorMode color = ColorMode::kRGB, bool strict = false) {
    const Result<ImageHeader> read = header(bytes);
    if (!read) {
      last_error = Error(read.error());
      return Pixels{.error = read.error().message()};
    }
    const Window all{0, 0, read->width, read->height};
    return window(bytes, all, color, channels_of(color, *read), strict);
  }
  Result<std::vector<CoefficientPlane>> coefficients(const Bytes& bytes) {
    return decoder_->coefficients(padded(bytes));
  }
  std::vector<uint8_t> row_index(const Bytes& bytes) {
    Result<std::vector<uint8_t>> index = decoder_->row_index(padded(bytes));
    return index ? std::move(*index) : std::vector<uint8_t>();
  }
  std::string_view last_code() const { return last_error.code ? last_error.code->id : ""; }
  Error last_error;
  bool repair = true;          // damaged files give libjpeg's result: the reference's pixels
  std::vector<uint8_t> known;  // a row index that window() passes on

 private:
  // Memory that ends where the padding ends, so that AddressSanitizer detects reads past it.
  std::span<const uint8_t> padded(const Bytes& bytes) {
    if (bytes_.size() != bytes.size()) bytes_ = Buffer(bytes.size());
    if (!bytes.empty()) std::memcpy(bytes_.data(), bytes.data(), bytes.size());
    return bytes_.bytes();
  }
  std::unique_ptr<ImageDecoder> decoder_;
  Buffer bytes_;
};

class Decoder : public AnyDecoder {
 public:
  Decoder() : AnyDecoder(codec()) {}
  static const CodecRecord* codec() {
    static constexpr uint8_t kSignature[] = {0xFF, 0xD8, 0xFF};
    return codec_of(kSignature);
  }
};

// Decodes packed images.
class PackedDecoder : public AnyDecoder {
 public:
  PackedDecoder() : AnyDecoder(codec()) {}
  static const CodecRecord* codec() {
    static constexpr uint8_t kSignature[] = {0x8A, 'H', 'R', 'P', 'J', '\r', '\n', 0x1A};
    return codec_of(kSignature);
  }
};

// Reproducible random numbers in [0, bound).
class Draw {
 public:
  explicit Draw(uint32_t seed) : engine_(seed) {}
  int below(int bound) { return int(engine_() % uint32_t(bound)); }
  Window window(int width, int height) {
    Window w{.x = below(width), .y = below(height)};
    w.width = 1 + below(width - w.x);
    w.height = 1 + below(height - w.y);
    return w;
  }

 private:
  std::mt19937 engine_;
};

inline std::vector<size_t> marker_offsets(const Bytes& bytes, int marker) {
  std::vector<size_t> at;
  for (size_t i = 0; i + 1 < bytes.size(); ++i) {
    if (bytes[i] == 0xFF && bytes[i + 1] == marker) at.push_back(i);
  }
  return at;
}

}  // namespace headrace::jpeg_test
