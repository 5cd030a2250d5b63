// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "headrace/base/text.h"
#include "headrace/fields/media.h"
#include "headrace/sources/columns/column_cell.h"
#include "headrace/storage/file_set.h"

namespace headrace {
namespace {

// Whether the offsets ascend within the data, so that lengths read later cannot be wrong.
template <class Offset>
bool offsets_rise(const BlobColumn::Part& part, size_t item) {
  const auto* offsets = static_cast<const Offset*>(part.offsets);
  bool fine = offsets[0] >= 0;
  for (int64_t i = 0; i < part.count; ++i) fine = fine && offsets[i] <= offsets[i + 1];
  return fine && static_cast<uint64_t>(offsets[part.count]) <= part.data_bytes / item;
}

}  // namespace

Field make_blobs(BlobColumn& blobs, const Column& column, Cell& cell) {
  const FieldKind kind = column.kind.value_or(FieldKind::kBytes);
  if (kind == FieldKind::kLabel || (kind != FieldKind::kTensor && blobs.dtype != DType::kUInt8)) {
    bad_column(column.name, "values of any length are not " + std::string(name_of(kind)));
  }
  for (const BlobColumn::Part& part : blobs.parts) {
    const size_t item = size_of(blobs.dtype);
    const bool fine = part.count == 0 || (part.wide ? offsets_rise<int64_t>(part, item)
                                                    : offsets_rise<int32_t>(part, item));
    if (!fine) bad_column(column.name, "the offsets of its values do not fit its data");
  }
  cell.form = Cell::Form::kBlob;
  cell.blobs = std::move(blobs);
  int64_t records = 0;
  for (const BlobColumn::Part& part : cell.blobs.parts) {
    cell.part_ends.push_back(records += part.count);
  }
  Field field{.name = column.name, .kind = kind, .dtype = cell.blobs.dtype};
  cell.bytes = size_of(cell.blobs.dtype);
  cell.is_vector = kind == FieldKind::kTensor;
  cell.may_be_null = kind == FieldKind::kText;
  if (cell.is_vector) field.shape = {-1};
  if (media_of(kind)) take_encoded(kind, field);
  return field;
}

void add_blobs(const Cell& cell, int64_t count, Fingerprint& print) {
  constexpr int64_t kPlaces = 64;
  constexpr size_t kBegin = 64;
  std::vector<std::optional<Blob>> blobs;
  std::vector<FileRange> ranges;  // of those in files, which are read together
  for (int64_t i = 0; i < std::min(kPlaces, count); ++i) {
    blobs.push_back(blob_of(cell, count <= kPlaces ? i : count / kPlaces * i));
    if (const auto& blob = blobs.back(); blob && blob->file >= 0) {
      ranges.push_back({.file = static_cast<size_t>(blob->file),
                        .offset = blob->position,
                        .bytes = std::min(blob->bytes, kBegin)});
    }
  }
  RangeBytes read = std::vector<Buffer>();
  if (!ranges.empty()) read = read_ranges(*cell.blobs.files, ranges);
  if (!read) throw Exception(std::move(read.error()));
  auto next = read->begin();
  for (const std::optional<Blob>& blob : blobs) {
    print.add(blob ? uint64_t{blob->bytes} : UINT64_MAX);
    if (!blob) continue;
    print.add(text_from_bytes(blob->file >= 0
                                  ? (next++)->bytes()
                                  : std::span(blob->data, std::min(blob->bytes, kBegin))));
  }
}

Result<void> Blob::read(const BlobColumn& column, std::span<uint8_t> out) const {
  if (file >= 0) return column.files->read(static_cast<size_t>(file), position, out);
  std::copy_n(data, out.size(), out.begin());
  return {};
}

std::optional<Blob> blob_of(const Cell& cell, int64_t record) {
  const auto ends = std::ranges::upper_bound(cell.part_ends, record);
  if (ends != cell.part_ends.begin()) record -= *(ends - 1);
  const BlobColumn::Part& part =
      cell.blobs.parts[static_cast<size_t>(ends - cell.part_ends.begin())];
  const int64_t bit = part.first_bit + record;
  if (part.valid && !(part.valid[bit / 8] >> bit % 8 & 1)) return {};
  const auto place = [&](int64_t i) {
    return static_cast<size_t>(part.wide ? static_cast<const int64_t*>(part.offsets)[i]
                                         : static_cast<const int32_t*>(part.offsets)[i]);
  };
  const size_t item = size_of(cell.blobs.dtype), begin = place(record) * item;
  Blob blob{.file = part.file,
            .position = part.position + begin,
            .bytes = place(record + 1) * item - begin};
  if (part.file < 0) blob.data = part.data + begin;
  return blob;
}

}  // namespace headrace
