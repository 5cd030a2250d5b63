// SPDX-License-Identifier: Apache-2.0
// For the PNG tests: images of every kind, the reference result for a file (all rows, decoded by
// plain libpng with its transformations), and the codec's result.
#pragma once

#include <gtest/gtest.h>
#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "headrace/base/buffer.h"
#include "headrace/base/registry.h"
#include "headrace/codecs/codec.h"
#include "headrace/codecs/image/png_test_checksums.h"

namespace headrace::png_test {

using Bytes = std::vector<uint8_t>;

struct Kind {
  int color_type, depth;
  bool interlaced = false;
  int colors = 0;            // palette entries; 0: all that the depth can index
  bool transparent = false;  // with a tRNS chunk
};

inline std::vector<Kind> all_kinds() {
  std::vector<Kind> kinds;
  for (bool interlaced : {false, true}) {
    for (int depth : {1, 2, 4, 8, 16}) kinds.push_back({PNG_COLOR_TYPE_GRAY, depth, interlaced});
    for (int depth : {1, 2, 4, 8}) kinds.push_back({PNG_COLOR_TYPE_PALETTE, depth, interlaced});
    for (int type : {PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_RGB_ALPHA}) {
      for (int depth : {8, 16}) kinds.push_back({type, depth, interlaced});
    }
    kinds.push_back({PNG_COLOR_TYPE_PALETTE, 8, interlaced, 7, true});
    kinds.push_back({PNG_COLOR_TYPE_PALETTE, 2, interlaced, 3, true});
    kinds.push_back({PNG_COLOR_TYPE_GRAY, 4, interlaced, 0, true});
    kinds.push_back({PNG_COLOR_TYPE_RGB, 8, interlaced, 0, true});
    kinds.push_back({PNG_COLOR_TYPE_RGB, 16, interlaced, 0, true});
  }
  return kinds;
}

inline std::string name_of(const Kind& k) {
  return "type " + std::to_string(k.color_type) + " depth " + std::to_string(k.depth) +
         (k.interlaced ? " interlaced" : "") + (k.transparent ? " with tRNS" : "");
}

// Writes random samples; if the palette is shorter than the depth allows, some indices are out of
// range, which libpng's writer permits.
inline Bytes write_png(const Kind& kind, int width, int height, uint32_t seed = 1) {
  std::mt19937 random(seed);
  Bytes out;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(
      png, &out,
      [](png_structp p, png_bytep data, size_t size) {
        auto& bytes = *static_cast<Bytes*>(png_get_io_ptr(p));
        bytes.insert(bytes.end(), data, data + size);
      },
      [](png_structp) {});
  png_set_check_for_invalid_index(png, -1);
  png_set_IHDR(png, info, png_uint_32(width), png_uint_32(height), kind.depth, kind.color_type,
               kind.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_BASE, PNG_FILTER_TYPE_BASE);
  if (kind.color_type == PNG_COLOR_TYPE_PALETTE) {
    std::vector<png_color> palette(size_t(kind.colors ? kind.colors : 1 << kind.depth));
    for (png_color& c : palette) c = {png_byte(random()), png_byte(random()), png_byte(random())};
    png_set_PLTE(png, info, palette.data(), int(palette.size()));
  }
  if (kind.transparent) {
    png_byte alpha[3] = {0, 128, 255};
    png_color_16 key{.index = 0, .red = 1, .green = 2, .blue = 3, .gray = 1};
    png_set_tRNS(png, info, alpha, kind.color_type == PNG_COLOR_TYPE_PALETTE ? 3 : 1, &key);
  }
  png_write_info(png, info);
  std::vector<Bytes> rows(size_t(height), Bytes(png_get_rowbytes(png, info)));
  std::vector<png_bytep> pointers;
  for (Bytes& row : rows) {
    for (uint8_t& byte : row) byte = uint8_t(random());
    // 16-bit values on both sides of 255.
    if (kind.depth == 16) {
      for (size_t i = 0; i < row.size(); i += 2) row[i] = random() % 2 ? row[i] : 0;
    }
    pointers.push_back(row.data());
  }
  png_write_image(png, pointers.data());
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return out;
}

struct Pixels {
  int width = 0, height = 0, channels = 0;
  Bytes bytes;  // interleaved
  bool operator==(const Pixels&) const = default;

  Pixels slice(const Window& w) const {
    Pixels out{w.width, w.height, channels, {}};
    for (int y = w.y; y < w.y + w.height; ++y) {
      const auto row = bytes.begin() + (ptrdiff_t(y) * width + w.x) * channels;
      out.bytes.insert(out.bytes.end(), row, row + ptrdiff_t(w.width) * channels);
    }
    return out;
  }
};

struct PlainReader {
  const Bytes* file = nullptr;
  size_t at = 0;
  std::vector<Bytes> rows;
  std::vector<png_bytep> pointers;
  int width = 0, height = 0, channels = 0;
  bool gray16 = false;

  static void read(png_structp png, png_bytep out, size_t size) {
    auto& self = *static_cast<PlainReader*>(png_get_io_ptr(png));
    if (size > self.file->size() - self.at) png_error(png, "end");
    std::memcpy(out, self.file->data() + self.at, size);
    self.at += size;
  }

  // Errors leave it by longjmp, so everything that it owns is in *this.
  void run(png_structp png, png_infop info, bool stored) {
    png_set_read_fn(png, this, read);
    png_read_info(png, info);
    width = int(png_get_image_width(png, info));
    height = int(png_get_image_height(png, info));
    if (int64_t{width} * height > int64_t{1} << 24) png_error(png, "too large for the test");
    const int type = png_get_color_type(png, info);
    gray16 = type == PNG_COLOR_TYPE_GRAY && png_get_bit_depth(png, info) == 16;
    if (!gray16) png_set_strip_16(png);
    if (type == PNG_COLOR_TYPE_GRAY) png_set_expand_gray_1_2_4_to_8(png);
    if (stored) {
      png_set_packing(png);
    } else {
      if (type == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png);
      png_set_strip_alpha(png);
      if (!gray16) png_set_gray_to_rgb(png);
    }
    png_set_interlace_handling(png);
    png_read_update_info(png, info);
    channels = png_get_channels(png, info);
    rows.assign(size_t(height), Bytes(png_get_rowbytes(png, info)));
    for (Bytes& row : rows) pointers.push_back(row.data());
    png_read_image(png, pointers.data());
  }
};

inline void ignore(png_structp, png_const_charp) {}
[[noreturn]] inline void jump(png_structp png, png_const_charp) { png_longjmp(png, 1); }

inline bool run_guarded(PlainReader& reader, bool stored) {
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, nullptr, jump, ignore);
  png_infop info = png_create_info_struct(png);
  if (setjmp(png_jmpbuf(png)) != 0) {
    png_destroy_read_struct(&png, &info, nullptr);
    return false;
  }
  reader.run(png, info, stored);
  png_destroy_read_struct(&png, &info, nullptr);
  return true;
}

// The whole image, decoded by plain libpng; empty if libpng reports an error.
inline std::optional<Pixels> plain_decode(const Bytes& file, ColorMode mode) {
  PlainReader reader;
  reader.file = &file;
  if (!run_guarded(reader, mode == ColorMode::kStored)) return std::nullopt;
  const int channels = mode == ColorMode::kRGB ? 3 : mode == ColorMode::kGray ? 1 : reader.channels;
  Pixels out{reader.width, reader.height, channels, {}};
  for (const Bytes& row : reader.rows) {
    for (int x = 0; x < reader.width; ++x) {
      if (reader.gray16) {
        const int value = row[size_t(x) * 2] * 256 + row[size_t(x) * 2 + 1];
        out.bytes.insert(out.bytes.end(), size_t(channels), uint8_t(std::min(value, 255)));
      } else if (mode == ColorMode::kGray) {
        const uint8_t* p = &row[size_t(x) * 3];
        out.bytes.push_back(
            uint8_t((19595u * p[0] + 38470u * p[1] + 7471u * p[2] + 32768u) / 65536u));
      } else {
        const auto p = row.begin() + ptrdiff_t(x) * channels;
        out.bytes.insert(out.bytes.end(), p, p + channels);
      }
    }
  }
  return out;
}

class Collector : public RowSink {
 public:
  Collector(int width, int height, int channels) : pixels{width, height, channels, {}} {}
  void rows(const RowBlock& block) override {
    EXPECT_EQ(block.y, next_row) << "rows come once each, from top to bottom";
    next_row += block.count;
    for (int i = 0; i < block.count; ++i) {
      for (int x = 0; x < pixels.width; ++x) {
        for (int c = 0; c < pixels.channels; ++c) {
          pixels.bytes.push_back(block.channel[size_t(c)][i * block.stride + x * block.step]);
        }
      }
    }
  }
  Pixels pixels;
  int next_row = 0;
};

inline const CodecRecord& png_codec() {
  const CodecRecord* codec = Registry<CodecRecord>::find("png");
  if (!codec) std::abort();
  return *codec;
}

inline Buffer padded(const Bytes& file) {
  Buffer buffer(file.size());
  std::copy(file.begin(), file.end(), buffer.data());
  return buffer;
}

struct Decoded {
  Result<void> result;
  int warnings = 0;
  Pixels pixels;
};

inline Decoded decode(ImageDecoder& decoder, const Buffer& file, const Window& window,
                      ColorMode mode, const ImageHeader& header, bool strict = false) {
  Collector sink(window.width, window.height, channels_of(mode, header));
  std::vector<DecodeJob> jobs(1);
  jobs[0].bytes = file.bytes();
  jobs[0].window = window;
  jobs[0].color = mode;
  jobs[0].strict = strict;
  jobs[0].sixteen_bit = SixteenBit::kClip;  // like Pillow, whose colors are the reference
  jobs[0].sink = &sink;
  decoder.decode(jobs);
  EXPECT_TRUE(!jobs[0].result || sink.next_row == window.height) << "every row is delivered";
  return {std::move(jobs[0].result), jobs[0].warnings, std::move(sink.pixels)};
}

inline constexpr ColorMode kModes[] = {ColorMode::kRGB, ColorMode::kGray, ColorMode::kStored};

// The whole image, decoded by the codec; empty if it returns an error.
inline std::optional<Pixels> whole(ImageDecoder& decoder, const Bytes& bytes, ColorMode mode) {
  const Buffer file = padded(bytes);
  const auto header = decoder.read_header(file.bytes());
  if (!header || int64_t{header->width} * header->height > int64_t{1} << 24) return std::nullopt;
  Decoded out = decode(decoder, file, {0, 0, header->width, header->height}, mode, *header);
  if (!out.result) return std::nullopt;
  return std::move(out.pixels);
}

inline void append_number(Bytes& out, uint32_t value) {
  for (int shift : {24, 16, 8, 0}) out.push_back(uint8_t(value >> shift));
}

inline void insert_chunk(Bytes& file, size_t at, const std::string& type, const Bytes& data) {
  Bytes chunk;
  append_number(chunk, uint32_t(data.size()));
  chunk.insert(chunk.end(), type.begin(), type.end());
  chunk.insert(chunk.end(), data.begin(), data.end());
  append_number(chunk, chunk_checksum(std::span(chunk).subspan(4)));
  file.insert(file.begin() + ptrdiff_t(at), chunk.begin(), chunk.end());
}

inline constexpr size_t kAfterHeader = 33;  // signature and IHDR

}  // namespace headrace::png_test
