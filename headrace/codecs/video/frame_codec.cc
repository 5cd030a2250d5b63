// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/video/frame_codec.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <memory>
#include <utility>

#include "headrace/kernels/color/planar_color.h"
#include "headrace/kernels/video/yuv_rows.h"

namespace headrace {
namespace {

const ErrorCode kUnknownColors{
    "HR0380", ErrorKind::kUnsupported, "unknown video color space",
    "The stream declares an unsupported color matrix, so its colors cannot be computed. BT.601, "
    "BT.709, BT.2020, SMPTE 240M and FCC are supported, as are streams that declare no matrix. "
    "Convert the file once, or write the right matrix into it: ffmpeg -i in -c copy -bsf:v "
    "h264_metadata=matrix_coefficients=1 out.mp4 declares BT.709."};

// Rows of this many bytes stay in the L1 cache between conversion and pass.
constexpr size_t kBlockBytes = size_t{20} << 10;
// Bytes after a row that kernels may touch.
constexpr size_t kBehind = 64;

size_t whole_lines(size_t bytes) { return (bytes + 63) / 64 * 64; }

size_t row_bytes(int width) { return whole_lines(size_t(width) + kBehind); }

// Pairs of rows share their chroma.
int rows_at_once(int width) { return std::max(2, int(kBlockBytes / (3 * row_bytes(width))) & ~1); }

YuvMatrix matrix_of(ColorMatrix matrix) {
  switch (matrix) {
    case ColorMatrix::kBT709:
      return YuvMatrix::kBT709;
    case ColorMatrix::kBT2020:
      return YuvMatrix::kBT2020;
    case ColorMatrix::kSMPTE240M:
      return YuvMatrix::kSMPTE240M;
    case ColorMatrix::kFCC:
      return YuvMatrix::kFCC;
    case ColorMatrix::kUnspecified:
    case ColorMatrix::kBT601:
    case ColorMatrix::kIdentity:
    case ColorMatrix::kOther:
      return YuvMatrix::kBT601;
  }
  return YuvMatrix::kBT601;
}

int chroma_columns(const YuvFrame& frame) {
  return (frame.width + (1 << frame.chroma_x) - 1) >> frame.chroma_x;
}
int chroma_rows(const YuvFrame& frame) {
  return (frame.height + (1 << frame.chroma_y) - 1) >> frame.chroma_y;
}
int columns_of(const YuvFrame& frame, int plane) {
  return plane == 0 ? frame.width : chroma_columns(frame);
}
int rows_of(const YuvFrame& frame, int plane) {
  return plane == 0 ? frame.height : chroma_rows(frame);
}
size_t sample_bytes(const YuvFrame& frame) { return frame.bits > 8 ? 2 : 1; }
size_t kept_stride(const YuvFrame& frame, int plane) {
  return whole_lines(size_t(columns_of(frame, plane)) * sample_bytes(frame));
}

YuvFrame frame_at(std::span<const uint8_t> bytes) {
  YuvFrame frame;
  assert(bytes.size() == sizeof(frame));
  std::memcpy(&frame, bytes.data(), sizeof(frame));
  return frame;
}

class FrameDecoder final : public ImageDecoder {
 public:
  Result<ImageHeader> read_header(std::span<const uint8_t> bytes) override {
    return header_of(frame_at(bytes));
  }

  void decode(std::span<DecodeJob> jobs) override {
    for (DecodeJob& job : jobs) {
      begin(job);
      if (frame_.planes > 1 && frame_.color.matrix == ColorMatrix::kOther) {
        job.result = Error{.code = &kUnknownColors,
                           .what = "unknown color matrix",
                           .hint = "convert the file once, or correct its metadata"};
        continue;
      }
      for (int y = 0; y < job.window.height; y += rows_) {
        deliver(job, y, std::min(rows_, job.window.height - y));
      }
      job.result = {};
    }
  }

 private:
  void begin(const DecodeJob& job) {
    frame_ = frame_at(job.bytes);
    const Window& window = job.window;
    assert(is_inside(window, frame_.width, frame_.height));
    const bool full = frame_.color.range == ColorRange::kFull;
    if (frame_.bits == 8) {
      bytes_by_ = yuv_coefficients(matrix_of(frame_.color.matrix), full);
    } else {
      deep_by_ = deep_yuv_coefficients(matrix_of(frame_.color.matrix), full, frame_.bits);
    }
    // Conversion begins at a chroma sample.
    begin_ = window.x >> frame_.chroma_x << frame_.chroma_x;
    count_ = window.x + window.width - begin_;
    stride_ = row_bytes(count_);
    rows_ = std::min(rows_at_once(count_), window.height + (window.height & 1));
    plane_ = stride_ * size_t(rows_);
    converted_.resize(3 * plane_);
    if (job.color == ColorMode::kGray) gray_.resize(plane_);
  }

  const uint8_t* samples(int plane, int x, int y) const {
    if (plane > 0) {
      x >>= frame_.chroma_x;
      y = chroma_row(y);
    }
    return frame_.plane[size_t(plane)] + y * frame_.stride[size_t(plane)] +
           ptrdiff_t(x) * ptrdiff_t(sample_bytes(frame_));
  }

  // The chroma row of a field, which has every second row, if the frame is interlaced. If the
  // height gives the lower field one chroma row too few, its last one is repeated.
  int chroma_row(int y) const {
    if (!frame_.interlaced || frame_.chroma_y == 0) return y >> frame_.chroma_y;
    const int row = (y >> 1 >> frame_.chroma_y) * 2 + (y & 1), rows = chroma_rows(frame_);
    if (row < rows) return row;
    return std::max(row - 2, 0);
  }

  void deliver(const DecodeJob& job, int y, int count) {
    RowBlock block{.y = y, .count = count, .stride = ptrdiff_t(stride_)};
    const int skipped = job.window.x - begin_;
    if (frame_.planes == 1) {
      const uint8_t* rows = samples(0, job.window.x, job.window.y + y);
      if (frame_.bits == 8) {
        block.stride = frame_.stride[0];
      } else {
        for (int i = 0; i < count; ++i) {
          bytes_from_deep_row(wide(samples(0, job.window.x, job.window.y + y + i)), frame_.bits,
                              job.window.width, converted_.data() + size_t(i) * stride_);
        }
        rows = converted_.data();
      }
      block.channel[0] = block.channel[1] = block.channel[2] = rows;
      return job.sink->rows(block);
    }
    for (int i = 0; i < count; ++i) convert(job.window.y + y + i, converted_.data() + i * stride_);
    if (job.color == ColorMode::kGray) {
      for (int i = 0; i < count; ++i) {
        const uint8_t* const row = converted_.data() + size_t(i) * stride_;
        const uint8_t* const rgb[3] = {row, row + plane_, row + 2 * plane_};
        gray_from_rgb_rows(rgb, count_, gray_.data() + size_t(i) * stride_);
      }
      block.channel[0] = gray_.data() + skipped;
    } else {
      for (size_t c = 0; c < 3; ++c) block.channel[c] = converted_.data() + c * plane_ + skipped;
    }
    job.sink->rows(block);
  }

  // Row y of the frame starting at column begin_; red is written to `to`.
  void convert(int y, uint8_t* to) {
    uint8_t* const rgb[3] = {to, to + plane_, to + 2 * plane_};
    if (frame_.color.matrix == ColorMatrix::kIdentity) {
      constexpr std::array<int, 3> kPlanes = {2, 0, 1};  // red, green and blue
      for (size_t c = 0; c < 3; ++c) {
        const uint8_t* row = whole(kPlanes[c], y);
        if (frame_.bits > 8) {
          bytes_from_deep_row(wide(row), frame_.bits, count_, rgb[c]);
        } else {
          std::memcpy(rgb[c], row, size_t(count_));
        }
      }
      return;
    }
    const bool halved = frame_.chroma_x == 1;
    std::array<const uint8_t*, 3> yuv{};
    for (int p = 0; p < 3; ++p) yuv[size_t(p)] = halved ? samples(p, begin_, y) : whole(p, y);
    if (frame_.bits == 8) {
      rgb_from_yuv_row(yuv.data(), halved, count_, bytes_by_, rgb);
    } else {
      const std::array<const uint16_t*, 3> words = {wide(yuv[0]), wide(yuv[1]), wide(yuv[2])};
      rgb_from_deep_yuv_row(words.data(), halved, count_, deep_by_, rgb);
    }
  }

  static const uint16_t* wide(const uint8_t* samples) {
    return reinterpret_cast<const uint16_t*>(samples);
  }

  // A row with one sample per column: subsampled chroma is repeated.
  const uint8_t* whole(int plane, int y) {
    const uint8_t* const row = samples(plane, begin_, y);
    if (plane == 0 || frame_.chroma_x == 0) return row;
    Buffer& repeated = repeated_[size_t(plane - 1)];
    const size_t bytes = sample_bytes(frame_);
    repeated.resize(size_t(count_) * bytes);
    for (int i = 0; i < count_; ++i) {
      std::memcpy(repeated.data() + size_t(i) * bytes, row + size_t(i >> frame_.chroma_x) * bytes,
                  bytes);
    }
    return repeated.data();
  }

  YuvFrame frame_;
  YuvCoefficients bytes_by_;
  DeepYuvCoefficients deep_by_;
  int begin_ = 0, count_ = 0;  // columns that are converted
  int rows_ = 0;               // rows at once
  size_t stride_ = 0, plane_ = 0;
  Buffer converted_, gray_;
  std::array<Buffer, 2> repeated_;
};

const CodecRecord kFrame{
    .name = "frame",
    .doc = "Frames of a video, as decoded.",
    .oracle =
        "libswscale's default conversion on x86, byte for byte for 8-bit 4:2:0 and 4:2:2 frames of "
        "even height",
    .suffixes = {},
    .sniff = [](std::span<const uint8_t>) { return false; },
    .make = []() -> std::unique_ptr<ImageDecoder> { return std::make_unique<FrameDecoder>(); },
    .enters_rows = true,
    .opaque = true,
};

}  // namespace

const CodecRecord& frame_codec() { return kFrame; }

std::span<const uint8_t> bytes_of(const YuvFrame& frame) {
  return {reinterpret_cast<const uint8_t*>(&frame), sizeof(frame)};
}

ImageHeader header_of(const YuvFrame& frame) {
  ImageHeader header;
  header.width = frame.width;
  header.height = frame.height;
  header.channels = frame.planes == 1 ? 1 : 3;
  header.bits = frame.bits;
  // Red, green, blue and gray of a block, and repeated chroma.
  const size_t row = row_bytes(frame.width);
  header.working_bytes = std::max(kBlockBytes, 6 * row) / 3 * 4 + 4 * row;
  return header;
}

size_t KeptFrames::bytes_for(const YuvFrame& frame) {
  size_t bytes = 0;
  for (int p = 0; p < frame.planes; ++p) {
    bytes += kept_stride(frame, p) * size_t(rows_of(frame, p));
  }
  return bytes;
}

KeptFrames::KeptFrames(size_t count, MemoryOf memory_of)
    : memory_of_(std::move(memory_of)), frames_(count) {}

uint8_t* KeptFrames::add_memory(size_t bytes) {
  memory_.push_back(memory_of_(bytes));
  held_bytes_ += memory_.back()->capacity();
  return memory_.back()->data();
}

void KeptFrames::keep(size_t number, const YuvFrame& frame) {
  const size_t bytes = bytes_for(frame);
  if (!room_) {
    each_ = bytes;
    room_ = add_memory(each_ * frames_.size());
  }
  uint8_t* to = bytes <= each_ ? room_ + number * each_ : add_memory(bytes);
  YuvFrame& kept = frames_[number].frame_ = frame;
  for (int p = 0; p < frame.planes; ++p) {
    const size_t plane = size_t(p), stride = kept_stride(frame, p);
    const size_t row = size_t(columns_of(frame, p)) * sample_bytes(frame);
    kept.plane[plane] = to;
    kept.stride[plane] = ptrdiff_t(stride);
    for (int y = 0; y < rows_of(frame, p); ++y, to += stride) {
      std::memcpy(to, frame.plane[plane] + y * frame.stride[plane], row);
    }
  }
}

}  // namespace headrace
