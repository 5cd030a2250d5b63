// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/packed/packable.h"

#include <algorithm>
#include <limits>

#include "headrace/sources/columns/integers.h"
#include "headrace/sources/packed/document_errors.h"
#include "headrace/sources/value_parts.h"
#include "headrace/sources/wording.h"

namespace headrace {
namespace {

const ErrorCode kUnpackable{
    "HR1450", ErrorKind::kConfig, "documents cannot be packed",
    "hr.packed() fills rows of one length with documents: records with a one-dimensional integer "
    "field. Fields packed along with the tokens (token_fields=) have one value per token. "
    "Documents longer than a row are split, truncated, left out or rejected, depending on "
    "too_long=."};

constexpr int64_t kMostPieces = std::numeric_limits<int32_t>::max();

const Field& existing_field(const Source& source, const std::string& name) {
  const size_t number = field_number(source.schema(), name);
  if (number < source.schema().size()) return source.schema()[number];
  raise(kUnpackable, "the source has no field '" + name + "'", source.description());
}

const Field& checked_field(const Source& source, const std::string& name, bool integers) {
  const Field& field = existing_field(source, name);
  if (field.encoded || is_string(field.kind) || field.shape.size() != 1 ||
      (integers && !is_integer(field.dtype))) {
    raise(kUnpackable,
          "'" + name + "' is " + std::string(name_of(field.kind)) + " " +
              text_of(field.dtype, field.shape) + ", not a row of " +
              (integers ? "integers" : "numbers"),
          integers ? "pack token ids: tokenize text first" : "");
  }
  return field;
}

void check_fits(std::string_view name, int64_t value, DType dtype) {
  const IntegerRange range = range_of_integers(dtype);
  if (value >= range.lowest && value <= range.highest) return;
  raise(kUnpackable,
        std::string(name) + "=" + std::to_string(value) + " does not fit into " +
            std::string(name_of(dtype)),
        "to=\"int64\"");
}

template <class Add>
void check_samples(const Source& source, const SampleOptions& options, const Add& add) {
  if (!options.mask.empty()) {
    const Field& mask = checked_field(source, options.mask, false);
    if (is_floating(mask.dtype)) {
      raise(kUnpackable, "mask='" + options.mask + "' is " + text_of(mask.dtype, mask.shape) +
                             ", not booleans or integers");
    }
  }
  if (options.images.empty()) return;
  for (const char* name : {kSampleImages, kSamplePositions, kSampleSizes}) add(name);
  for (const std::string& name : options.images) {
    const Field& field = existing_field(source, name);
    if (field.kind != FieldKind::kImage || !field.encoded) {
      raise(kUnpackable,
            "'" + name + "' is " + std::string(name_of(field.kind)) + " " +
                text_of(field.dtype, field.shape) + ", not encoded images",
            "pass files or their bytes, with kinds={\"" + name + "\": \"image\"}");
    }
  }
}

void check_along(const Source& source, const std::string& tokens, const std::string& name,
                 const std::vector<int64_t>& lengths) {
  if (name == tokens) return;
  const std::vector<int64_t> others =
      value_lengths(source, field_number(source.schema(), name), {});
  const auto [other, own] = std::ranges::mismatch(others, lengths);
  if (own == lengths.end()) return;
  const int64_t document = own - lengths.begin();
  throw Exception(document_error(
      kOtherLength, source, document,
      value_text(name, document) + " has " + counted(*other, "value") + ", but '" + tokens + "' " +
          grouped(*own),
      "write both files again from the same documents, with a value for each token"));
}

}  // namespace

void check_packable(const Source& source, const PackedRowOptions& options) {
  checked_field(source, options.tokens, true);
  if (!options.labels.empty()) checked_field(source, options.labels, true);
  std::vector<std::string> names{"position_ids", "segment_ids", "cu_seqlens"};
  const auto add = [&](const std::string& name) {
    if (std::ranges::find(names, name) != names.end()) {
      raise(kUnpackable, "a packed row has '" + name + "' already", "rename the field");
    }
    names.push_back(name);
  };
  if (options.shift >= 0) add(options.shift == 0 ? "labels" : "targets");
  add(options.shift == 0 ? "input_ids" : options.tokens);
  for (const std::string& name : options.along) {
    checked_field(source, name, false);
    add(name);
  }
  if (options.samples) check_samples(source, *options.samples, add);
  check_fits("pad", options.pad, options.to);
  if (options.shift >= 0) check_fits("ignore_index", options.ignore_index, options.to);
}

void check_lengths(const std::vector<int64_t>& lengths, const PackedRowOptions& options) {
  const int64_t length = options.pack.length;
  const bool splits = options.pack.method == PackMethod::kSplit;
  if (options.refuse_long && !splits) {
    const auto longer = std::ranges::count_if(lengths, [&](int64_t l) { return l > length; });
    const auto first = std::ranges::find_if(lengths, [&](int64_t l) { return l > length; });
    if (first != lengths.end()) {
      raise(kUnpackable,
            counted(longer, "document") + " longer than a row of " + grouped(length) +
                ", the first is " + grouped(first - lengths.begin()) + " with " +
                counted(*first, "token"),
            "too_long=\"split\", \"truncate\" or \"drop\"; or a larger length=");
    }
  }
  int64_t pieces = 0;
  for (const int64_t tokens : lengths) pieces += tokens / length + 2;
  if (pieces > kMostPieces) {
    raise(kUnpackable,
          "documents are too many: " + grouped(pieces) + " pieces, " + grouped(kMostPieces) +
              " are possible",
          "pack parts of them, and combine these with hr.concat");
  }
}

void check_parts(const Source& source, const PackedRowOptions& options,
                 const std::vector<int64_t>& lengths) {
  if (!has_parts(source)) return;
  if (options.shift >= 0 && !options.labels.empty()) {
    check_along(source, options.tokens, options.labels, lengths);
  }
  for (const std::string& name : options.along) {
    check_along(source, options.tokens, name, lengths);
  }
}

}  // namespace headrace
