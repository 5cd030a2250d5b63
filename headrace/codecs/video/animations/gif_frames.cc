// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/video/animations/gif_frames.h"

#include <algorithm>
#include <array>

#include "headrace/base/text.h"
#include "headrace/codecs/image/byte_order.h"

namespace headrace {
namespace {

constexpr size_t kScreenBytes = 13, kDescriptorBytes = 10;

// A palette of the 256 grays counts as no palette. This is Pillow's rule, and determines the result
// for indices past the end.
GifPalette needed(GifPalette palette) {
  for (size_t i = 0; i < palette.size(); ++i) {
    if (palette[i] != i / 3) return palette;
  }
  return {};
}

// The position after sub-blocks and their terminator; none if the bytes end before it.
std::optional<size_t> end_of_sub_blocks(std::span<const uint8_t> bytes, size_t at) {
  while (at < bytes.size()) {
    const size_t length = bytes[at];
    if (length == 0) return at + 1;
    at += 1 + length;
  }
  return std::nullopt;
}

// Reads codes from sub-blocks, low bits first.
class CodeReader {
 public:
  explicit CodeReader(std::span<const uint8_t> blocks) : blocks_(blocks) {}
  // -1: no more codes.
  int next(int bits) {
    while (count_ < bits) {
      if (left_ == 0) {
        if (at_ >= blocks_.size() || blocks_[at_] == 0) return -1;
        left_ = blocks_[at_++];
      }
      if (at_ >= blocks_.size()) return -1;
      held_ |= uint32_t{blocks_[at_++]} << count_;
      count_ += 8;
      --left_;
    }
    const int code = int(held_ & ((1u << bits) - 1));
    held_ >>= bits;
    count_ -= bits;
    return code;
  }

 private:
  std::span<const uint8_t> blocks_;
  size_t at_ = 0, left_ = 0;
  uint32_t held_ = 0;
  int count_ = 0;
};

}  // namespace

std::optional<GifScreen> gif_screen(std::span<const uint8_t> bytes) {
  if (!has_text(bytes, "GIF87a") && !has_text(bytes, "GIF89a")) return std::nullopt;
  if (bytes.size() < kScreenBytes) return std::nullopt;
  GifScreen screen{.width = int(little_u16(bytes, 6)),
                   .height = int(little_u16(bytes, 8)),
                   .palette = {},
                   .end = kScreenBytes};
  if (bytes[10] & 0x80) {
    const size_t length = size_t{3} << ((bytes[10] & 7) + 1);
    if (bytes.size() - screen.end < length) return std::nullopt;
    screen.palette = needed(bytes.subspan(screen.end, length));
    screen.background = bytes[11];
    screen.end += length;
  }
  return screen;
}

std::optional<GifFrame> next_gif_frame(std::span<const uint8_t> bytes, size_t at) {
  GifFrame frame;
  frame.end = bytes.size();
  bool announced = false;  // set by a graphic control extension
  while (at < bytes.size() && bytes[at] != ';') {
    if (bytes[at] == '!') {
      if (bytes.size() - at < 3) return frame;
      if (bytes[at + 1] == 0xf9 && bytes[at + 2] >= 4 && bytes.size() - at >= 7) {
        announced = true;
        const uint8_t flags = bytes[at + 3];
        if (flags & 1) frame.transparent = bytes[at + 6];
        if (flags >> 2 & 7) frame.disposal = flags >> 2 & 7;
        frame.hundredths = little_u16(bytes, at + 4);
      }
      const std::optional<size_t> end = end_of_sub_blocks(bytes, at + 2);
      if (!end) return frame;
      at = *end;
    } else if (bytes[at] == ',') {
      if (bytes.size() - at < kDescriptorBytes) return frame;
      frame.place = {int(little_u16(bytes, at + 1)), int(little_u16(bytes, at + 3)),
                     int(little_u16(bytes, at + 5)), int(little_u16(bytes, at + 7))};
      const uint8_t flags = bytes[at + 9];
      at += kDescriptorBytes;
      frame.interlaced = flags & 0x40;
      frame.own_palette = flags & 0x80;
      if (frame.own_palette) {
        const size_t length = size_t{3} << ((flags & 7) + 1);
        if (bytes.size() - at < length) return frame;
        frame.palette = needed(bytes.subspan(at, length));
        at += length;
      }
      if (at == bytes.size()) return frame;
      frame.code_bits = bytes[at++];
      const std::optional<size_t> end = end_of_sub_blocks(bytes, at);
      frame.whole = end.has_value();
      frame.end = end.value_or(bytes.size());
      frame.data = bytes.subspan(at, frame.end - at);
      return frame;
    } else {
      ++at;  // like Pillow: skips anything that is not a block
    }
  }
  if (announced && at >= bytes.size()) return frame;
  return std::nullopt;
}

bool unpack_gif_frame(const GifFrame& frame, std::span<uint8_t> out) {
  constexpr int kMaxBits = 12, kMaxCodes = 1 << kMaxBits;
  if (frame.code_bits < 1 || frame.code_bits > 8) return out.empty();
  const int clear = 1 << frame.code_bits, end = clear + 1;
  std::array<uint16_t, kMaxCodes> before, length;  // for each code's string: its prefix code
  std::array<uint8_t, kMaxCodes> last, first;
  for (int code = 0; code < clear; ++code) {
    last[size_t(code)] = first[size_t(code)] = uint8_t(code);
    length[size_t(code)] = 1;
    before[size_t(code)] = 0;
  }
  CodeReader codes(frame.data);
  int bits = frame.code_bits + 1, next = end + 1, previous = -1;
  size_t filled = 0;
  while (filled < out.size()) {
    const int code = codes.next(bits);
    if (code < 0 || code == end) return false;
    if (code == clear) {
      bits = frame.code_bits + 1;
      next = end + 1;
      previous = -1;
      continue;
    }
    if (code > next || (code == next && previous < 0) || (code > end && previous < 0) ||
        (code == next && next == kMaxCodes)) {
      return false;
    }
    if (previous >= 0 && next < kMaxCodes) {
      const size_t made = size_t(next), from = size_t(previous);
      before[made] = uint16_t(previous);
      length[made] = uint16_t(length[from] + 1);
      first[made] = first[from];
      last[made] = code == next ? first[from] : first[size_t(code)];
      if (++next == 1 << bits && bits < kMaxBits) ++bits;
    }
    // Writes the string from its end; bytes past the output are dropped.
    size_t place = filled + length[size_t(code)];
    filled = std::min(place, out.size());
    for (size_t at = size_t(code); place > 0; at = before[at]) {
      --place;
      if (place < out.size()) out[place] = last[at];
      if (length[at] == 1) break;
    }
    previous = code;
  }
  return true;
}

}  // namespace headrace
