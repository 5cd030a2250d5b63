// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/packed/packed.h"

#include <utility>

#include "headrace/sources/fingerprint.h"
#include "headrace/sources/packed/packable.h"
#include "headrace/sources/packed/packed_source.h"
#include "headrace/sources/value_parts.h"

namespace headrace {
namespace {

const ErrorCode kNothingLeft{
    "HR1460", ErrorKind::kConfig, "no documents to pack",
    "Every document is empty, or was dropped by too_long=\"drop\" or bad_images=\"drop\"."};

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
