// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "headrace/base/utf8.h"
#include "headrace/formats/tfrecord/tf_fields.h"
#include "headrace/sources/readable_text.h"

namespace headrace {
namespace {

const ErrorCode kNotAnExample{
    "HR0472", ErrorKind::kData, "not a tf.train.Example",
    "The data of a TFRecord is not a protobuf message of type tf.train.Example or "
    "tf.train.SequenceExample, although its checksum is correct: it contains other data, or the "
    "program that wrote it has a bug. content=\"bytes\" reads records that are not Examples."};

const ErrorCode kBadFeature{
    "HR0473", ErrorKind::kData, "missing or unexpected feature",
    "A record lacks a feature that is a field, or has it with a different type or number of "
    "values. Unless specified, fields are inferred from some of the records: "
    "fields=[\"NAME=FEATURE:TYPE[-1]\"] allows any number of values, missing=\"empty\" substitutes "
    "empty text and bytes, and fields= can omit the feature."};

class Converter {
 public:
  Converter(const TfField& field, const uint8_t* begin, FieldData& out)
      : field_(field), begin_(begin), out_(out) {}

  Result<size_t> missing(bool empty_if_missing) const {
    const Field& field = field_.field;
    const bool list = field.kind == FieldKind::kText || field.kind == FieldKind::kBytes;
    if (list && (empty_if_missing || field_.optional)) return size_t{0};
    if (!field.encoded && !field.shape.empty() && field.shape[0] < 0) {
      out_.shape = field.shape;
      out_.shape[0] = 0;
      return size_t{0};
    }
    return refuse("the record does not have it",
                  list ? "missing=\"empty\" makes it empty; fields= can exclude it"
                       : "skip the record with on_error=, or exclude the feature with fields=");
  }

  Result<size_t> one(std::span<const uint8_t> value, bool empty_if_missing) const {
    TfFeature feature;
    TfProblem problem;
    if (!feature.parse(value, problem)) return not_an_example(problem, begin_);
    if (feature.count() == 0) return missing(empty_if_missing);
    const Field& field = field_.field;
    const bool takes_bytes =
        field.encoded || field.kind == FieldKind::kText || field.kind == FieldKind::kBytes;
    if (takes_bytes) return bytes_of(feature);
    if (field.dtype == DType::kInt64 && field.shape.empty() && feature.kind() == TfKind::kInt64) {
      if (feature.count() != 1) return other_count(feature.count());
      out_.scalar = feature.first_number();
      return size_t{0};
    }
    Result<size_t> bytes = array_bytes(feature);
    if (!bytes) return bytes;
    if (Result<void> fits = take_shape(*bytes / size_of(field.dtype)); !fits) {
      return std::move(fits.error());
    }
    if (feature.kind() == TfKind::kBytes && size_of(field.dtype) == 1 && *bytes > 0) {
      out_.bytes = feature.first_bytes();
      return size_t{0};
    }
    return bytes;
  }

  Result<size_t> list(std::span<const uint8_t> value, bool empty_if_missing) const {
    const Field& field = field_.field;
    const int64_t row = element_count({field.shape.begin() + 1, field.shape.end()});
    ProtoReader steps(value);
    size_t bytes = 0;
    int64_t count = 0;
    while (steps.next()) {
      if (steps.field() != 1 || !steps.is(ProtoType::kBytes)) continue;
      TfFeature feature;
      TfProblem problem;
      if (!feature.parse(steps.bytes(), problem)) return not_an_example(problem, begin_);
      Result<size_t> more = array_bytes(feature);
      if (!more) return more;
      if (static_cast<int64_t>(*more / size_of(field.dtype)) != row) {
        return refuse("step " + std::to_string(count) + " has " +
                          count_text(static_cast<int64_t>(*more / size_of(field.dtype)), "value") +
                          ", but the field expects " + std::to_string(row),
                      "fields= can exclude it");
      }
      bytes += *more;
      ++count;
    }
    if (!steps.good()) {
      return not_an_example({.what = steps.problem(), .place = value.data() + steps.offset()},
                            begin_);
    }
    if (count == 0) return missing(empty_if_missing);
    if (Result<void> fits = take_shape(static_cast<size_t>(count * row)); !fits) {
      return std::move(fits.error());
    }
    return bytes;
  }

 private:
  Error refuse(const std::string& what, const std::string& hint) const {
    return Error{
        .code = &kBadFeature, .what = "feature \"" + field_.feature + "\": " + what, .hint = hint};
  }
  Error other_count(int64_t count) const {
    return refuse("it has " + count_text(count, "value") + ", which do not fit the field's shape",
                  "fields=[\"" + field_.field.name + "=" + field_.feature +
                      ":TYPE[-1]\"] accepts any number of values");
  }

  Result<size_t> bytes_of(const TfFeature& feature) const {
    if (feature.kind() != TfKind::kBytes)
      return refuse("it contains numbers, not bytes", type_hint());
    if (feature.count() != 1) {
      return refuse(
          "it contains " + count_text(feature.count(), "byte string") + ", but a field has one",
          "fields= can exclude it");
    }
    if (field_.field.kind == FieldKind::kText && !is_utf8(feature.first_bytes())) {
      return refuse("it is not text: the bytes are not UTF-8",
                    "fields=[\"" + field_.field.name + "=" + field_.feature + ":bytes\"]");
    }
    out_.bytes = feature.first_bytes();
    return size_t{0};
  }

  // As an array of the field's dtype.
  Result<size_t> array_bytes(const TfFeature& feature) const {
    const DType dtype = field_.field.dtype;
    const auto count = static_cast<size_t>(feature.count());
    switch (feature.kind()) {
      case TfKind::kNone:
        return size_t{0};
      case TfKind::kFloat:
        if (dtype == DType::kFloat32) return count * 4;
        break;
      case TfKind::kInt64:
        if (dtype == DType::kInt64) return count * 8;
        break;
      case TfKind::kBytes:
        if (count != 1) {
          return refuse("it contains " + count_text(feature.count(), "byte string") +
                            ", but an array is one byte string",
                        "fields= can exclude it");
        }
        if (feature.total_bytes() % size_of(dtype) == 0) return feature.total_bytes();
        return refuse("its " + count_text(static_cast<int64_t>(feature.total_bytes()), "byte") +
                          " are not a whole number of " + std::string(name_of(dtype)),
                      type_hint());
    }
    return refuse(feature.kind() == TfKind::kFloat ? "it contains float32" : "it contains int64",
                  type_hint());
  }

  std::string type_hint() const {
    return "its type differs between records, or from the type in fields=";
  }

  // The shape for this many elements; for fixed shapes, only checks that they fit.
  Result<void> take_shape(size_t elements) const {
    const Shape& shape = field_.field.shape;
    const auto count = static_cast<int64_t>(elements);
    if (shape.empty() || shape[0] >= 0) {
      if (count == element_count(shape)) return {};
      return other_count(count);
    }
    const int64_t row = element_count({shape.begin() + 1, shape.end()});
    if (count % row != 0) return other_count(count);
    out_.shape = shape;
    out_.shape[0] = count / row;
    return {};
  }

  const TfField& field_;
  const uint8_t* begin_;
  FieldData& out_;
};

void write_feature(std::span<const uint8_t> value, uint8_t* to, size_t& bytes, const DType dtype) {
  TfFeature feature;
  TfProblem problem;
  if (!feature.parse(value, problem) || feature.kind() == TfKind::kNone) return;
  if (feature.kind() == TfKind::kBytes) {
    feature.copy_bytes(to + bytes);
    bytes += feature.total_bytes();
  } else {
    feature.copy_numbers(to + bytes);
    bytes += static_cast<size_t>(feature.count()) * size_of(dtype);
  }
}

}  // namespace

Error not_an_example(const TfProblem& problem, const uint8_t* begin) {
  return Error{.code = &kNotAnExample,
               .what = problem.what,
               .where = Where{.offset = problem.place ? problem.place - begin : 0},
               .hint = "the program that wrote it has a bug; on_error= can skip the record"};
}

Result<size_t> prepare_value(const TfField& field, std::span<const uint8_t> value,
                             bool empty_if_missing, const uint8_t* begin, FieldData& out) {
  out.bytes = {};
  const Converter convert(field, begin, out);
  if (value.data() == nullptr) return convert.missing(empty_if_missing);
  return field.is_list ? convert.list(value, empty_if_missing)
                       : convert.one(value, empty_if_missing);
}

void write_value(const TfField& field, std::span<const uint8_t> value, uint8_t* to) {
  size_t bytes = 0;
  if (!field.is_list) return write_feature(value, to, bytes, field.field.dtype);
  ProtoReader steps(value);
  while (steps.next()) {
    if (steps.field() == 1 && steps.is(ProtoType::kBytes)) {
      write_feature(steps.bytes(), to, bytes, field.field.dtype);
    }
  }
}

}  // namespace headrace
