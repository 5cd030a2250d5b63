// SPDX-License-Identifier: Apache-2.0
// libFuzzer: the input that a worker prepares for a device, from JPEG files of arbitrary bytes with
// correct and corrupted row indexes, as batches whose rows are added, added again, replaced by
// pixels or skipped, and in parts. A row that the device accepts must equal the CPU's; nothing may
// exceed the counted memory.
#include <algorithm>
#include <cstdlib>
#include <optional>

#include "headrace/codecs/image/jpeg/jpeg_test_images.h"
#include "headrace/device/device.h"
#include "headrace/finish/coded_rows_test_device.h"
#include "headrace/image/render.h"

using namespace headrace;
using jpeg_test::Bytes;

namespace {

constexpr DecodeLimits kLimits{.max_pixels = 1 << 14};
constexpr int64_t kRows = 5;

void require(bool holds) {
  if (!holds) std::abort();
}

std::vector<uint8_t> changed(std::vector<uint8_t> index, jpeg_test::Draw& draw) {
  if (index.size() <= 8) return index;
  for (int n = 1 + draw.below(3); n > 0; --n) {
    uint8_t& byte = index[8 + size_t(draw.below(int(index.size() - 8)))];
    byte = draw.below(2) ? uint8_t(byte + 1 - draw.below(3)) : uint8_t(draw.below(256));
  }
  return index;
}

// A window of `size` or, resized, of any size.
Recipe drawn_recipe(const EncodedImage& picture, Size size, jpeg_test::Draw& draw) {
  Recipe out(picture);
  const bool fits = size.width <= out.size().width && size.height <= out.size().height;
  if (fits && draw.below(2)) {
    const Window window{draw.below(out.size().width - size.width + 1),
                        draw.below(out.size().height - size.height + 1), size.width, size.height};
    require(out.crop(window));
  } else {
    require(out.crop(draw.window(out.size().width, out.size().height)));
  }
  if (draw.below(2)) require(out.flip_horizontal());
  if (draw.below(3) == 0) require(out.flip_vertical());
  if (out.size() != size) {
    constexpr Filter kFilters[] = {Filter::kNearest, Filter::kBilinear, Filter::kBicubic};
    require(out.resize(size, kFilters[draw.below(3)]));
  }
  return out;
}

struct Row {
  std::optional<Recipe> taken = {};  // otherwise pixels, or nothing
  Bytes pixels = {};
};

void compare(const CodedRows& coded, int64_t first, const std::vector<Row>& rows, const Bytes& slot,
             size_t row_bytes, DeviceDecoding& log) {
  const coded_rows_test::Outcome made = coded_rows_test::on_device(
      coded, slot.data(), int64_t(rows.size()), row_bytes, *host_device());
  if (!made.verdict.empty()) coded.accepts(made.verdict.data());
  static Renderer cpu;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].pixels.empty()) require(made.rows[i] == rows[i].pixels);
    if (!rows[i].taken || !log.trusts(first + int64_t(i))) continue;
    Bytes expected(row_bytes);
    RenderTask task;
    task.recipe = &*rows[i].taken;
    task.target.data = expected.data();
    cpu.render({&task, 1});
    require(task.result.has_value() && made.rows[i] == expected);
  }
}

void fill(const EncodedImage& picture, jpeg_test::Draw& draw) {
  const Size size{1 + draw.below(24), 1 + draw.below(24)};
  const Shape shape{Recipe(picture).channels(), size.height, size.width};
  const auto row_bytes = size_t(element_count(shape));
  const auto log = std::make_shared<DeviceDecoding>();
  CodedRows coded(shape, kRows, log);
  Bytes slot(size_t(kRows) * CodedRows::slot_row_bytes(shape));
  std::vector<std::vector<uint8_t>> indexes(size_t(2 * kRows));  // must outlive the recipes
  std::vector<Row> rows(size_t{kRows});
  for (auto& index : indexes) {
    const auto row = size_t(draw.below(kRows));
    rows[row] = {};
    index.assign(picture.row_index.known.begin(), picture.row_index.known.end());
    if (draw.below(3) == 0) index = changed(std::move(index), draw);
    EncodedImage own = picture;
    own.row_index.known = index;
    const Recipe recipe = drawn_recipe(own, size, draw);
    if (draw.below(4) > 0 && coded.take(int64_t(row), int64_t(row), recipe, slot.data())) {
      rows[row].taken = recipe;
      continue;
    }
    uint8_t* const to = coded.pixels(int64_t(row), slot.data());
    require(to != nullptr && to >= slot.data() && to + row_bytes <= slot.data() + slot.size());
    rows[row].pixels.assign(row_bytes, uint8_t(draw.below(256)));
    std::ranges::copy(rows[row].pixels, to);
  }
  const auto gone = size_t(draw.below(kRows));
  if (draw.below(3) == 0) {
    coded.leave(int64_t(gone));
    rows[gone] = {};
  }
  coded.settle(kRows);
  compare(coded, 0, rows, slot, row_bytes, *log);
  const int64_t first = draw.below(kRows), last = first + draw.below(int(kRows - first) + 1);
  const std::vector<Row> some(rows.begin() + first, rows.begin() + last);
  compare(*coded.part(first, last), first, some, slot, row_bytes, *log);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Bytes bytes(data, data + size);
  static jpeg_test::Decoder decoder;
  const Result<ImageHeader> header = decoder.header(bytes);
  if (!header || !check_limits(*header, kLimits)) return 0;
  uint32_t hash = 2166136261u;
  for (const uint8_t byte : bytes) hash = (hash ^ byte) * 16777619u;
  jpeg_test::Draw draw(hash);
  Buffer padded(bytes.size());
  std::ranges::copy(bytes, padded.data());
  const std::vector<uint8_t> index = decoder.row_index(bytes);
  EncodedImage picture{.bytes = padded.bytes(),
                       .codec = jpeg_test::Decoder::codec(),
                       .header = *header,
                       .color = ColorMode(draw.below(3)),
                       .repair = true,
                       .row_index = {.known = index}};
  fill(picture, draw);
  return 0;
}
