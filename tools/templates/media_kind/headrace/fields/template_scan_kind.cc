// SPDX-License-Identifier: Apache-2.0
// Scans: files of points, as (points, 2) float32.
#include "headrace/base/registry.h"
#include "headrace/codecs/template_scan/template_scan.h"
#include "headrace/fields/begin.h"
#include "headrace/fields/media.h"
#include "headrace/fields/numbers.h"

namespace headrace {
namespace {

const ErrorCode kLargeScan{"HR9992", ErrorKind::kResource, "template scan exceeds the memory",
                           "Its header declares more points than one record's share of "
                           "memory_limit allows."};

bool take_scan(Field& field) {
  if (!is_stored_bytes(field)) return false;
  field.encoded = true;
  field.dtype = DType::kFloat32;
  field.shape = {-1, 2};
  field.kind = FieldKind::kTemplateScan;
  return true;
}

// Checks the header first: does not allocate memory based on a file's claim alone.
Result<void> begin_scan(const BeginContext& from, FieldValue& value) {
  const Result<int64_t> count = template_scan_points(from.data.bytes);
  if (!count) return count.error();
  const size_t bytes = 2 * size_t(*count) * sizeof(float);
  if (bytes > from.renderer.largest_value()) {
    return Error{.code = &kLargeScan, .what = std::to_string(*count) + " points"};
  }
  std::shared_ptr<Buffer> points = from.renderer.values().of(bytes);
  Result<void> decoded =
      decode_template_scan(from.data.bytes, reinterpret_cast<float*>(points->data()));
  if (!decoded) return decoded;
  value.dtype = DType::kFloat32;
  value.shape = {*count, 2};
  value.own(std::move(points));
  return {};
}

const KindRecord kTemplateScan{.name = "template_scan",
                               .doc = "A file of points, (points, 2) float32.",
                               .kind = FieldKind::kTemplateScan,
                               .media = "template_scan",
                               .take = take_scan,
                               .begin = begin_scan};
const Register<KindRecord> registered_template_scan(kTemplateScan);

const MediaRecord kTemplateScans{
    .name = "template_scan",
    .kind = FieldKind::kTemplateScan,
    .noun = "scan",
    .order = 3,
    .without_library = "HRSCAN",
    // A single format; if there are several, each registers itself: registered_formats<Record>.
    .formats = []() -> const std::vector<MediaFormat>& {
      static const std::vector<MediaFormat> all{
          {.name = "hrscan", .doc = "Points.", .oracle = "its test", .suffixes = {".hrscan"}}};
      return all;
    },
    .format_of = [](std::span<const uint8_t> bytes) -> std::string_view {
      return begins_like_template_scan(bytes) ? "hrscan" : "";
    },
    .begins = begins_like_template_scan,
    .check = [](const ByteRanges& file, Renderer&) -> Result<void> {
      const Result<std::span<const uint8_t>> first = file.at(0, kMediaSignature);
      if (!first) return first.error();
      const Result<int64_t> count = template_scan_points(*first);
      return count ? Result<void>() : count.error();
    }};
const Register<MediaRecord> registered_template_scans(kTemplateScans);

}  // namespace
}  // namespace headrace
