// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/coco/coco_values.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "headrace/base/json_writer.h"
#include "headrace/sources/readable_text.h"

namespace headrace {
namespace {

constexpr size_t kMaxBytes = size_t{2} << 30;  // bytes of one value

// The polygons of one annotation; the reader is at their list. A polygon of two points is drawn,
// too, like pycocotools does after another one; as the first one, pycocotools takes it for a box
// and fails.
std::string draw_polygons(JsonReader& json, CocoMaskPainter& painter, std::span<uint8_t> plane,
                          std::vector<double>& xy) {
  int64_t polygons = 0;
  for (json.begin_array(); json.next_element(); ++polygons) {
    xy.clear();
    for (json.begin_array(); json.next_element();) xy.push_back(json.number().value);
    if (!json.ok()) return {};
    if (std::string wrong = painter.polygon(xy, plane); !wrong.empty()) return wrong;
  }
  return polygons == 0 ? "a segmentation without a polygon" : "";
}

// {"size": [height, width], "counts": ...}, in any order.
std::string draw_runs(JsonReader& json, int64_t height, int64_t width, CocoMaskPainter& painter,
                      std::span<uint8_t> plane, std::vector<int64_t>& runs, std::string& code) {
  enum { kNothing, kRuns, kCode } counts = kNothing;
  int64_t size[2] = {}, sizes = 0;
  for (json.begin_object(); json.next_key();) {
    if (json.key() == "size") {
      for (json.begin_array(); json.next_element(); ++sizes) {
        const int64_t side = json.number().integer.value_or(-1);
        if (sizes < 2) size[sizes] = side;
      }
    } else if (json.key() != "counts") {
      json.skip();
    } else if (json.type() == JsonReader::Type::kString) {
      code = json.string();
      counts = kCode;
    } else {
      runs.clear();
      for (json.begin_array(); json.next_element();) {
        runs.push_back(json.number().integer.value_or(-1));
      }
      counts = kRuns;
    }
  }
  if (!json.ok()) return {};
  if (counts == kNothing) return "a segmentation without counts";
  if (sizes != 2 || size[0] != height || size[1] != width) {
    return "a run-length code that differs from the image in size";
  }
  return counts == kCode ? painter.compressed(code, plane) : painter.counts(runs, plane);
}

}  // namespace

Error CocoValues::bad(std::string what, const JsonRange& range) const {
  return Error{.code = &kBadCocoRecord,
               .what = std::move(what),
               .where = Where{.file = file_.path(), .offset = static_cast<int64_t>(range.offset)}};
}

Result<void> CocoValues::load(const JsonRange& range, Buffer& text, JsonReader& json) const {
  text.resize(range.bytes);
  Result<void> read = file_.read(range.offset, {text.data(), text.size()});
  json.reset({reinterpret_cast<const char*>(text.data()), read ? text.size() : 0}, range.offset);
  return read;
}

Result<void> CocoValues::draw(const JsonRange& range, CocoMaskPainter& painter,
                              std::span<uint8_t> plane, Scratch& scratch) const {
  if (range.bytes == 0) return bad("an annotation without a segmentation", range);
  JsonReader json(std::string_view{});
  if (Result<void> read = load(range, scratch.text, json); !read) return read;
  const std::string wrong = json.type() == JsonReader::Type::kArray
                                ? draw_polygons(json, painter, plane, scratch.xy)
                                : draw_runs(json, painter.height(), painter.width(), painter, plane,
                                            scratch.runs, scratch.code);
  if (!json.ok()) return json.error(kBadCocoRecord, file_.path());
  if (!wrong.empty()) return bad(wrong, range);
  return {};
}

Result<void> CocoValues::masks(std::span<const JsonRange> rows, int64_t height, int64_t width,
                               size_t max_bytes, Buffer& out) const {
  const JsonRange here = rows.empty() ? JsonRange{} : rows[0];
  if (height < 1 || width < 1) return bad("masks need the image's width and height", here);
  if (height > CocoMaskPainter::kMaxPixels / width) {
    return bad("masks of " + std::to_string(width) + " x " + std::to_string(height) + " pixels",
               here);
  }
  CocoMaskPainter painter(height, width, std::max<int64_t>(1, static_cast<int64_t>(rows.size())));
  const size_t plane = painter.pixels();
  if (rows.size() > std::min(max_bytes, kMaxBytes) / plane) {
    return bad(count_text(static_cast<int64_t>(rows.size()), "mask") + " of " +
                   std::to_string(width) + " x " + std::to_string(height) +
                   " pixels exceed the memory limit",
               here);
  }
  out.resize(rows.size() * plane);
  std::memset(out.data(), 0, out.size());
  Scratch scratch;
  for (size_t r = 0; r < rows.size(); ++r) {
    Result<void> drawn = draw(rows[r], painter, {out.data() + r * plane, plane}, scratch);
    if (!drawn) return drawn;
  }
  return {};
}

Result<void> CocoValues::keypoints(std::span<const JsonRange> rows, int64_t points,
                                   size_t max_bytes, Buffer& out) const {
  const int64_t wanted = points * 3;
  if (rows.size() > std::min(max_bytes, kMaxBytes) / (wanted * sizeof(float))) {
    return bad(
        "keypoints of " + count_text(int64_t(rows.size()), "row") + " exceed the memory limit",
        rows[0]);
  }
  out.resize(rows.size() * wanted * sizeof(float));
  std::memset(out.data(), 0, out.size());
  Buffer text;
  JsonReader json(std::string_view{});
  for (size_t r = 0; r < rows.size(); ++r) {
    if (rows[r].bytes == 0) continue;
    if (Result<void> read = load(rows[r], text, json); !read) return read;
    auto* numbers = reinterpret_cast<float*>(out.data()) + r * wanted;
    int64_t count = 0;
    bool finite = true;
    for (json.begin_array(); json.next_element(); ++count) {
      const float value = static_cast<float>(json.number().value);
      finite &= std::isfinite(value);
      if (count < wanted) numbers[count] = value;
    }
    if (!json.ok()) return json.error(kBadCocoRecord, file_.path());
    if (!finite) return bad("a keypoint that is not finite", rows[r]);
    if (count != wanted) {
      return bad("keypoints of " + count_text(count, "number") + ", not of " + with_commas(wanted),
                 rows[r]);
    }
  }
  return {};
}

Result<int64_t> CocoValues::count_numbers(const JsonRange& range) const {
  Buffer text;
  JsonReader json(std::string_view{});
  if (Result<void> read = load(range, text, json); !read) return std::move(read.error());
  int64_t count = 0;
  for (json.begin_array(); json.next_element(); ++count) json.number();
  if (!json.ok()) return json.error(kMalformedCoco, file_.path());
  return count;
}

Result<void> CocoValues::captions_into(std::span<const JsonRange> rows, bool all,
                                       Buffer& out) const {
  std::string first;
  JsonWriter list;
  Buffer text;
  JsonReader json(std::string_view{});
  list.begin_array();
  for (size_t r = 0; r < (all ? rows.size() : std::min<size_t>(rows.size(), 1)); ++r) {
    if (Result<void> read = load(rows[r], text, json); !read) return read;
    const std::string_view caption = json.string();
    if (!json.ok()) return json.error(kBadCocoRecord, file_.path());
    if (r == 0) first = caption;
    list.value(caption);
  }
  list.end_array();
  const std::string& joined = all ? list.text() : first;
  out.resize(joined.size());
  std::copy(joined.begin(), joined.end(), out.data());
  return {};
}

Result<void> CocoValues::caption(std::span<const JsonRange> rows, Buffer& out) const {
  return captions_into(rows, false, out);
}

Result<void> CocoValues::captions(std::span<const JsonRange> rows, Buffer& out) const {
  return captions_into(rows, true, out);
}

}  // namespace headrace
