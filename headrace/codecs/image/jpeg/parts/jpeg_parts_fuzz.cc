// SPDX-License-Identifier: Apache-2.0
// libFuzzer: a JPEG file is split only if it can be restored, and its coefficients are libjpeg's;
// parts that were changed or made up are joined or rejected, and a joined file has the given
// coefficients. The dense form also restores files, and survives any change to its bytes.
#include <algorithm>
#include <cstdlib>

#include "headrace/base/buffer.h"
#include "headrace/base/registry.h"
#include "headrace/codecs/codec.h"
#include "headrace/codecs/image/jpeg/jpeg_test_images.h"
#include "headrace/codecs/image/jpeg/packed/packed_jpeg.h"
#include "headrace/codecs/image/jpeg/parts/parts.h"

using namespace headrace;
using jpeg_test::Bytes;

namespace {

void require(bool promise) {
  if (!promise) std::abort();
}

bool same_coefficients(const std::vector<CoefficientPlane>& a,
                       const std::vector<CoefficientPlane>& b) {
  return std::ranges::equal(a, b, [](const CoefficientPlane& x, const CoefficientPlane& y) {
    return x.blocks_wide == y.blocks_wide && x.blocks_high == y.blocks_high &&
           x.coefficients == y.coefficients;
  });
}

// Takes bytes from the front of the input; zeros if there are none left.
class Input {
 public:
  explicit Input(std::span<const uint8_t> bytes) : bytes_(bytes) {}
  int byte() {
    if (bytes_.empty()) return 0;
    const int byte = bytes_[0];
    bytes_ = bytes_.subspan(1);
    return byte;
  }
  Bytes take(size_t count) {
    count = std::min(count, bytes_.size());
    Bytes taken(bytes_.begin(), bytes_.begin() + ptrdiff_t(count));
    bytes_ = bytes_.subspan(count);
    return taken;
  }
  bool empty() const { return bytes_.empty(); }

 private:
  std::span<const uint8_t> bytes_;
};

void change(Bytes& bytes, jpeg_test::Draw& draw) {
  for (int i = 1 + draw.below(4); i-- > 0 && !bytes.empty();) {
    const size_t at = size_t(draw.below(int(bytes.size())));
    switch (draw.below(4)) {
      case 0:
        bytes.resize(at);
        break;
      case 1:
        bytes.insert(bytes.begin() + ptrdiff_t(at), uint8_t(draw.below(256)));
        break;
      default:
        bytes[at] = uint8_t(draw.below(256));
    }
  }
}

void check_splitting(const Bytes& file, jpeg_test::Draw& draw) {
  static jpeg_test::Decoder decoder;
  Result<JpegParts> parts = split_jpeg(file);
  if (!parts) return;
  const Result<Bytes> again = join_jpeg(*parts);
  require(again && *again == file);
  const auto expected = decoder.coefficients(file);
  require(expected && same_coefficients(parts->planes, *expected));
  if (const Result<Bytes> baseline = baseline_jpeg(*parts)) {
    const Result<JpegParts> remade = split_jpeg(*baseline);
    require(remade && same_coefficients(remade->planes, parts->planes));
    require(remade->frame.color == parts->frame.color);
  }
  for (int i = 0; i < 4; ++i) {
    JpegParts changed = *parts;
    change(changed.remainder, draw);
    (void)join_jpeg(changed);
  }
}

// Bytes of the dense form with any index and any lengths give an error or pixels.
void open_dense(const Bytes& stored) {
  (void)jpeg_from_dense(stored);
  static const auto decoder = Registry<CodecRecord>::find("dense_jpeg")->make();
  Buffer padded(stored.size());
  std::ranges::copy(stored, padded.data());
  const Result<ImageHeader> header = decoder->read_header(padded.bytes());
  if (!header || !check_limits(*header, {.max_pixels = 1 << 14})) return;
  for (const int top : {0, header->height / 2}) {
    const Window window{0, top, header->width, header->height - top};
    jpeg_test::Collector sink(window.width, window.height, 3);
    DecodeJob job;
    job.bytes = padded.bytes();
    job.window = window;
    job.sink = &sink;
    decoder->decode({&job, 1});
    require(!job.result || sink.complete());
  }
}

void make_dense(const Bytes& file, jpeg_test::Draw& draw) {
  const Result<Bytes> stored = dense_from_jpeg(file);
  if (!stored) return;
  const Result<Bytes> original = jpeg_from_dense(*stored);
  require(original && *original == file);
  Bytes changed = *stored;
  change(changed, draw);
  open_dense(changed);
}

void make_up(Input in) {
  JpegParts parts;
  JpegFrame& frame = parts.frame;
  frame.width = 1 + in.byte() % 70;
  frame.height = 1 + in.byte() % 70;
  const int kind = in.byte();
  frame.count = std::array{1, 3, 3, 4}[kind & 3];
  for (int c = 0; c < frame.count; ++c) {
    frame.component[c].id = c + 1;
    frame.component[c].h = c == 0 ? 1 << (kind >> 2 & 1) : 1;
    frame.component[c].v = c == 0 ? 1 << (kind >> 3 & 1) : 1;
    frame.component[c].quantization.fill(uint16_t(in.byte()));
  }
  require(lay_out(frame));
  parts.remainder = in.take(size_t(in.byte() | in.byte() << 8));
  for (int c = 0; c < frame.count; ++c) {
    CoefficientPlane& plane = parts.planes.emplace_back();
    plane.blocks_wide = frame.component[c].blocks_wide;
    plane.blocks_high = frame.component[c].blocks_high;
    plane.coefficients.resize(size_t(plane.blocks_wide) * plane.blocks_high * 64);
  }
  size_t at = 0;
  for (int c = 0; !in.empty(); c = (c + 1) % frame.count) {
    std::vector<int16_t>& values = parts.planes[c].coefficients;
    at = (at + size_t(in.byte())) % values.size();
    const int value = in.byte();
    values[at] = int16_t(value < 128 ? value - 64 : value << 8 | in.byte());
  }
  const Result<Bytes> file = join_jpeg(parts);
  if (!file) return;
  const Result<JpegParts> again = split_jpeg(*file);
  require(!again || same_coefficients(again->planes, parts.planes));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  uint32_t hash = 2166136261u;
  for (size_t i = 0; i < size; ++i) hash = (hash ^ data[i]) * 16777619u;
  jpeg_test::Draw draw(hash);
  const Bytes bytes(data, data + size);
  if (size > 2 && data[0] == 0xFF && data[1] == 0xD8) {
    check_splitting(bytes, draw);
    make_dense(bytes, draw);
  } else if (is_dense_jpeg(bytes)) {
    open_dense(bytes);
  } else {
    make_up(Input(bytes));
  }
  return 0;
}
