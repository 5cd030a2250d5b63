// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/packed/packed.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "headrace/sources/columns/array_elements.h"
#include "headrace/sources/fingerprint.h"
#include "headrace/sources/packed/document_errors.h"
#include "headrace/sources/readable_text.h"
#include "headrace/sources/value_parts.h"

namespace headrace {
namespace {

const ErrorCode kNothingLeft{
    "HR1460", ErrorKind::kConfig, "no documents to pack",
    "Every document is empty, or was dropped by too_long=\"drop\" or bad_images=\"drop\"."};

const ErrorCode kUnpackable{
    "HR1450", ErrorKind::kConfig, "documents cannot be packed",
    "hr.packed() fills rows of one length with documents: records with a one-dimensional integer "
    "field. Fields packed along with the tokens (token_fields=) have one value per token. "
    "Documents longer than a row are split, truncated, left out or rejected, depending on "
    "too_long=."};

constexpr int64_t kMaxPieces = std::numeric_limits<int32_t>::max();

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

void check_token_aligned(const Source& source, const std::string& tokens, const std::string& name,
                         const std::vector<int64_t>& lengths) {
  if (name == tokens) return;
  const std::vector<int64_t> others =
      value_lengths(source, field_number(source.schema(), name), {});
  const auto [other, own] = std::ranges::mismatch(others, lengths);
  if (own == lengths.end()) return;
  const int64_t document = own - lengths.begin();
  throw Exception(document_error(
      kOtherLength, source, document,
      value_text(name, document) + " has " + count_text(*other, "value") + ", but '" + tokens +
          "' " + with_commas(*own),
      "write both files again from the same documents, with a value for each token"));
}

// Checks the fields and the numeric options. Throws Exception HR1450.
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

// `lengths`: in tokens, as packed. Throws Exception HR1450.
void check_lengths(const std::vector<int64_t>& lengths, const PackedRowOptions& options) {
  const int64_t length = options.pack.length;
  const bool splits = options.pack.method == PackMethod::kSplit;
  if (options.refuse_long && !splits) {
    const auto longer = std::ranges::count_if(lengths, [&](int64_t l) { return l > length; });
    const auto first = std::ranges::find_if(lengths, [&](int64_t l) { return l > length; });
    if (first != lengths.end()) {
      raise(kUnpackable,
            count_text(longer, "document") + " longer than a row of " + with_commas(length) +
                ", the first is " + with_commas(first - lengths.begin()) + " with " +
                count_text(*first, "token"),
            "too_long=\"split\", \"truncate\" or \"drop\"; or a larger length=");
    }
  }
  int64_t pieces = 0;
  for (const int64_t tokens : lengths) pieces += tokens / length + 2;
  if (pieces > kMaxPieces) {
    raise(kUnpackable,
          "there are too many documents: " + with_commas(pieces) + " pieces, but at most " +
              with_commas(kMaxPieces) + " are supported",
          "pack parts of them, and combine these with hr.concat");
  }
}

// Labels and additional fields must have a value for each token. Parts of documents are read by the
// lengths of the tokens: past the end of a shorter value, they would belong to the next document.
// If documents are read completely, lengths are compared then. Throws Exception HR1451.
void check_parts(const Source& source, const PackedRowOptions& options,
                 const std::vector<int64_t>& lengths) {
  if (!has_parts(source)) return;
  if (options.shift >= 0 && !options.labels.empty()) {
    check_token_aligned(source, options.tokens, options.labels, lengths);
  }
  for (const std::string& name : options.along) {
    check_token_aligned(source, options.tokens, name, lengths);
  }
}

}  // namespace

Packed packed(const SourcePtr& given, const PackedRowOptions& given_options,
              const Progress& progress) {
  check_packable(*given, given_options);
  SourcePtr source = given;
  PackedRowOptions options = given_options;
  std::vector<int64_t> lengths;
  DocumentFields fields;
  if (options.samples) {
    SampleOptions& of = *options.samples;
    of.tokens = options.tokens;
    of.labeled = options.shift >= 0;
    of.labels = options.labels;
    of.along = options.along;
    of.ignore_index = options.ignore_index;
    Samples made = samples(given, of, progress);
    source = std::move(made.source);
    lengths = std::move(made.lengths);
    fields = made.fields;
    of.sizes.clear();
  } else {
    fields.tokens = field_number(source->schema(), options.tokens);
    if (!options.labels.empty()) fields.labels = field_number(source->schema(), options.labels);
    for (const std::string& name : options.along) {
      fields.along.push_back(field_number(source->schema(), name));
    }
    lengths = value_lengths(*source, fields.tokens, progress);
  }
  check_lengths(lengths, options);
  check_parts(*source, options, lengths);
  DocumentRows packing = pack_documents(lengths, options.pack);
  if (packing.rows() == 0) {
    raise(kNothingLeft, "no document of " + source->description() + " is left",
          "documents without tokens are dropped, and with too_long=\"drop\" also long ones");
  }
  Fingerprint print;
  for (const int64_t length : lengths) print.add(static_cast<uint64_t>(length));
  Packed out{.source = nullptr,
             .truncated = options.pack.truncates() ? packing.cut : 0,
             .left_out = packing.dropped,
             .tokens_left_out = packing.tokens_left_out};
  out.source = packed_source(std::move(source), options, fields, std::move(packing), print.value());
  return out;
}

}  // namespace headrace
