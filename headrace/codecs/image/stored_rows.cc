// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/image/stored_rows.h"

#include <algorithm>
#include <cstring>

namespace headrace {
namespace {

const ErrorCode kSixteenBit{
    "HR0386", ErrorKind::kUnsupported, "16-bit grayscale image",
    "Without mode= images are delivered with 8 bits per sample, and this image has 16: depth maps, "
    "medical scans, object ids. Pillow's convert() would clip every value above 255, so nothing is "
    "delivered until you choose: mode=\"stored\" keeps all 16 bits (uint16), "
    "sixteen_bit=\"high_byte\" keeps value / 256, sixteen_bit=\"clip\" is Pillow's min(value, "
    "255)."};

void rgb_from_cmyk(const uint8_t* in, int count, uint8_t* out) {
  for (int i = 0; i < count; ++i) {
    const int white = 255 - in[4 * i + 3];
    for (int c = 0; c < 3; ++c) {
      const int product = in[4 * i + c] * white + 128;
      out[3 * i + c] = uint8_t(std::clamp(white - (((product >> 8) + product) >> 8), 0, 255));
    }
  }
}

void gray_from_rgb(const uint8_t* in, int step, int count, uint8_t* out) {
  for (int i = 0; i < count; ++i) {
    out[i] = luma_of(in[step * i], in[step * i + 1], in[step * i + 2]);
  }
}

// Adds alpha to 1, 2 or 3 samples per pixel: gray, gray and alpha, colors.
void add_alpha(const uint8_t* in, int samples, int count, uint8_t* out) {
  for (int i = 0; i < count; ++i, in += samples, out += 4) {
    for (int c = 0; c < 3; ++c) out[c] = in[samples == 3 ? c : 0];
    out[3] = samples == 2 ? in[1] : 255;
  }
}

void reduce_gray16(const uint8_t* in, bool clips, int count, uint8_t* out) {
  for (int i = 0; i < count; ++i) {
    uint16_t value;
    std::memcpy(&value, in + 2 * i, 2);
    out[i] = uint8_t(clips ? std::min<int>(value, 255) : value >> 8);
  }
}

}  // namespace

int channels_of(StoredColor color) {
  switch (color) {
    case StoredColor::kGray:
    case StoredColor::kGray16:
      return 1;
    case StoredColor::kGrayAlpha:
      return 2;
    case StoredColor::kRGB:
    case StoredColor::kPalette:
      return 3;
    case StoredColor::kRGBA:
    case StoredColor::kCMYK:
      return 4;
  }
  return 3;
}

int pixel_bytes_of(StoredColor color) {
  if (color == StoredColor::kPalette) return 1;
  return color == StoredColor::kGray16 ? 2 : channels_of(color);
}

Result<void> check_sixteen_bit(const DecodeJob& job) {
  if (job.sixteen_bit != SixteenBit::kRefuse) return {};
  return Error{.code = &kSixteenBit,
               .what = "the image has one channel of 16 bits",
               .hint =
                   "the loader's mode=\"stored\" keeps all 16 bits; sixteen_bit=\"high_byte\" or "
                   "\"clip\" reduces them to 8"};
}

int rows_per_block(size_t row_bytes) {
  constexpr size_t kBlockBytes = size_t{64} << 10, kMaxRows = 16;
  return int(std::clamp(kBlockBytes / std::max<size_t>(row_bytes, 1), size_t{1}, kMaxRows));
}

void StoredRows::set_palette(std::span<const std::array<uint8_t, 3>> palette,
                             std::span<const uint8_t> alpha) {
  rgba_.fill({0, 0, 0, 255});
  gray_ = {};
  for (size_t i = 0; i < std::min(palette.size(), rgba_.size()); ++i) {
    const auto [r, g, b] = palette[i];
    rgba_[i] = {r, g, b, i < alpha.size() ? alpha[i] : uint8_t{255}};
    gray_[i] = luma_of(r, g, b);
  }
}

void StoredRows::deliver(const DecodeJob& job, StoredColor color, const uint8_t* rows,
                         ptrdiff_t stride, int y, int count) {
  const int at_once = rows_per_block(size_t(job.window.width) * size_t(pixel_bytes_of(color)));
  for (int done = 0; done < count; done += at_once) {
    deliver_block(job, color, rows + done * stride, stride, y + done,
                  std::min(at_once, count - done));
  }
}

void StoredRows::deliver_window(const DecodeJob& job, StoredColor color, const uint8_t* pixels,
                                ptrdiff_t stride) {
  const Window& window = job.window;
  deliver(job, color, pixels + window.y * stride + ptrdiff_t{window.x} * pixel_bytes_of(color),
          stride, 0, window.height);
}

void StoredRows::deliver_block(const DecodeJob& job, StoredColor color, const uint8_t* rows,
                               ptrdiff_t stride, int y, int count) {
  const int width = job.window.width;
  const bool to_rgb = job.color == ColorMode::kRGB, to_gray = job.color == ColorMode::kGray;
  const bool to_rgba = job.color == ColorMode::kRGBA;
  RowBlock block{.y = y, .count = count, .step = pixel_bytes_of(color), .stride = stride};
  // Uses `convert` to make `samples` bytes per pixel of each row, and updates the block
  // accordingly.
  const auto convert = [&](int samples, const auto& convert_row) {
    const ptrdiff_t row = ptrdiff_t(width) * samples;
    converted_.resize(size_t(row) * size_t(count));
    for (int i = 0; i < count; ++i) {
      convert_row(rows + i * stride, converted_.data() + i * row);
    }
    block.step = samples;
    block.stride = row;
    rows = converted_.data();
  };
  if (color == StoredColor::kGray16) {
    const bool clips = job.sixteen_bit == SixteenBit::kClip;
    convert(1, [&](const uint8_t* in, uint8_t* out) { reduce_gray16(in, clips, width, out); });
  } else if (color == StoredColor::kPalette && to_rgb) {
    convert(3, [&](const uint8_t* in, uint8_t* out) {
      for (int i = 0; i < width; ++i) std::memcpy(out + 3 * i, rgba_[in[i]].data(), 3);
    });
  } else if (color == StoredColor::kPalette && to_rgba) {
    convert(4, [&](const uint8_t* in, uint8_t* out) {
      for (int i = 0; i < width; ++i) std::memcpy(out + 4 * i, rgba_[in[i]].data(), 4);
    });
  } else if (color == StoredColor::kPalette && to_gray) {
    convert(1, [&](const uint8_t* in, uint8_t* out) {
      for (int i = 0; i < width; ++i) out[i] = gray_[in[i]];
    });
  } else if (color == StoredColor::kCMYK && (to_rgb || to_rgba)) {
    convert(3, [&](const uint8_t* in, uint8_t* out) { rgb_from_cmyk(in, width, out); });
  } else if (color == StoredColor::kCMYK && to_gray) {
    convert(1, [&](const uint8_t* in, uint8_t* out) {
      std::array<uint8_t, 3> rgb;
      for (int i = 0; i < width; ++i) {
        rgb_from_cmyk(in + 4 * i, 1, rgb.data());
        out[i] = luma_of(rgb[0], rgb[1], rgb[2]);
      }
    });
  } else if (to_gray && block.step >= 3) {
    const int step = int(block.step);
    convert(1, [&](const uint8_t* in, uint8_t* out) { gray_from_rgb(in, step, width, out); });
  }
  if (to_rgba && block.step < 4) {
    const int samples = int(block.step);
    const uint8_t* const before = rows;
    const ptrdiff_t stride_before = block.stride, row = ptrdiff_t(width) * 4;
    with_alpha_.resize(size_t(row) * size_t(count));
    for (int i = 0; i < count; ++i) {
      add_alpha(before + i * stride_before, samples, width, with_alpha_.data() + i * row);
    }
    block.step = 4;
    block.stride = row;
    rows = with_alpha_.data();
  }
  // Gray requested as RGB: the same samples three times.
  const bool replicate = to_rgb && block.step < 3;
  const int channels = to_rgb ? 3 : to_gray ? 1 : int(block.step);
  for (int c = 0; c < channels; ++c) block.channel[size_t(c)] = rows + (replicate ? 0 : c);
  job.sink->rows(block);
}

void StoredRows::deliver_samples(const DecodeJob& job, int channels, const uint8_t* rows,
                                 ptrdiff_t stride, int y, int count) {
  const size_t sample = size_of(job.sample);
  RowBlock block{.y = y, .count = count, .step = ptrdiff_t(sample) * channels, .stride = stride};
  for (size_t c = 0; c < size_t(channels); ++c) block.channel[c] = rows + c * sample;
  job.sink->rows(block);
}

}  // namespace headrace
