// SPDX-License-Identifier: Apache-2.0
// For tests and benchmarks: JPEG files of every kind, made by libjpeg's own encoder, and the
// oracle, a plain full decode by a fresh libjpeg-turbo object that shares no code with the codec.
#pragma once

#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "headrace/base/buffer.h"
#include "headrace/codecs/codec.h"
#include "jpeglib.h"

namespace headrace::jpeg_test {

using Bytes = std::vector<uint8_t>;

struct Factors {
  int h = 1, v = 1;
};

struct FileSpec {
  int width = 64, height = 48;
  std::vector<Factors> sampling = {{2, 2}, {1, 1}, {1, 1}};  // one entry a component
  J_COLOR_SPACE file_space = JCS_YCbCr;
  bool progressive = false, arithmetic = false, one_scan_a_component = false, adobe = false;
  int restart_interval = 0;  // in MCUs
  int quality = 85;
};

inline FileSpec grey(int width, int height) {
  return {.width = width, .height = height, .sampling = {{1, 1}}};
}

inline FileSpec cmyk(bool adobe, J_COLOR_SPACE space) {
  return {.width = 45,
          .height = 37,
          .sampling = {{1, 1}, {1, 1}, {1, 1}, {1, 1}},
          .file_space = space,
          .adobe = adobe};
}

// Smooth areas, edges and noise, so that any wrong neighbour shows.
inline uint8_t test_sample(int x, int y, int c) {
  const uint32_t hash = (uint32_t(x) * 73856093u) ^ (uint32_t(y) * 19349663u) ^ (c * 83492791u);
  const int wave = (x * (3 + c) + y * (5 - c)) % 256;
  const int edge = ((x / 5 + y / 7 + c) % 3) * 60;
  return uint8_t((wave + edge + int((hash >> 7) % 48)) % 256);
}

inline Bytes encode(const FileSpec& spec) {
  jpeg_compress_struct cinfo{};
  jpeg_error_mgr errors{};
  cinfo.err = jpeg_std_error(&errors);  // an encoder error is the test's own fault and ends it
  jpeg_create_compress(&cinfo);
  unsigned char* out = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&cinfo, &out, &size);
  const int components = int(spec.sampling.size());
  cinfo.image_width = spec.width;
  cinfo.image_height = spec.height;
  cinfo.input_components = components;
  cinfo.in_color_space = components == 1 ? JCS_GRAYSCALE : components == 3 ? JCS_RGB : JCS_CMYK;
  jpeg_set_defaults(&cinfo);
  jpeg_set_colorspace(&cinfo, components == 1 ? JCS_GRAYSCALE : spec.file_space);
  jpeg_set_quality(&cinfo, spec.quality, TRUE);
  for (int c = 0; c < components; ++c) {
    cinfo.comp_info[c].h_samp_factor = spec.sampling[c].h;
    cinfo.comp_info[c].v_samp_factor = spec.sampling[c].v;
  }
  if (spec.progressive) jpeg_simple_progression(&cinfo);
  jpeg_scan_info scans[4] = {};
  if (spec.one_scan_a_component) {
    for (int c = 0; c < components; ++c) scans[c] = {1, {c, 0, 0, 0}, 0, 63, 0, 0};
    cinfo.scan_info = scans;
    cinfo.num_scans = components;
  }
  cinfo.arith_code = spec.arithmetic ? TRUE : FALSE;
  cinfo.restart_interval = unsigned(spec.restart_interval);
  if (components == 4) {
    cinfo.write_Adobe_marker = spec.adobe ? TRUE : FALSE;
  }
  jpeg_start_compress(&cinfo, TRUE);
  Bytes row(size_t(spec.width) * components);
  for (int y = 0; y < spec.height; ++y) {
    for (int x = 0; x < spec.width; ++x) {
      for (int c = 0; c < components; ++c) row[size_t(x) * components + c] = test_sample(x, y, c);
    }
    JSAMPROW pointer = row.data();
    jpeg_write_scanlines(&cinfo, &pointer, 1);
  }
  jpeg_finish_compress(&cinfo);
  Bytes bytes(out, out + size);
  jpeg_destroy_compress(&cinfo);
  std::free(out);
  return bytes;
}

// Dense interleaved pixels of a whole picture or a window.
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

struct OracleErrors {
  jpeg_error_mgr base;
  std::jmp_buf jump;
  char text[JMSG_LENGTH_MAX];
};

// The straight way of libjpeg's manual. Its errors leave by longjmp to oracle().
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
  jpeg_decompress_struct cinfo{};
  OracleErrors errors{};
  cinfo.err = jpeg_std_error(&errors.base);
  errors.base.error_exit = [](j_common_ptr common) {
    auto* e = reinterpret_cast<OracleErrors*>(common->err);
    common->err->format_message(common, e->text);
    std::longjmp(e->jump, 1);
  };
  errors.base.output_message = [](j_common_ptr) {};
  const auto attempt = [&] {
    if (setjmp(errors.jump)) return;
    jpeg_create_decompress(&cinfo);
    decode_straight(cinfo, bytes, space, out);
  };
  attempt();
  out.error = errors.text;
  out.warnings = errors.base.num_warnings;
  jpeg_destroy_decompress(&cinfo);
  return out;
}

// Copies rows, checks their order, and touches the bytes that a block promises behind its last row.
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

// A decoder with the caller's duties around it: padding behind the bytes, a sink, a job.
class Decoder {
 public:
  Decoder() : decoder_(codec()->make()) {}
  static const CodecRecord* codec() {
    static constexpr uint8_t kSignature[] = {0xFF, 0xD8, 0xFF};
    return codec_of(kSignature);
  }
  Result<ImageHeader> header(const Bytes& bytes) { return decoder_->read_header(padded(bytes)); }
  Pixels window(const Bytes& bytes, const Window& window, ColorMode color = ColorMode::kRGB,
                int channels = 3, bool strict = false) {
    Collector sink(window.width, window.height, channels);
    DecodeJob job;
    job.bytes = padded(bytes);
    job.window = window;
    job.color = color;
    job.strict = strict;
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
  std::vector<uint8_t> known;  // a row index that window() passes on

 private:
  std::span<const uint8_t> padded(const Bytes& bytes) {
    bytes_.resize(bytes.size());
    if (!bytes.empty()) std::memcpy(bytes_.data(), bytes.data(), bytes.size());
    return bytes_.bytes();
  }
  std::unique_ptr<ImageDecoder> decoder_;
  Buffer bytes_;
};

// Numbers in [0, bound) that are the same everywhere.
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
