// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "headrace/base/json_reader.h"
#include "headrace/base/number_text.h"
#include "headrace/base/text.h"
#include "headrace/formats/numpy/npy_array.h"
#include "headrace/formats/webdataset/wds_fields.h"
#include "headrace/sources/columns/array_elements.h"

namespace headrace {
namespace {

const ErrorCode kBadSample{
    "HR0466", ErrorKind::kData, "invalid sample",
    "A sample of a WebDataset lacks a component that is a field, has it twice, or has a component "
    "whose content does not match its extension (cls: an integer or a class name; txt and json: "
    "UTF-8; npy: an array of numbers). missing=\"skip\" skips samples that lack a component; "
    "fields= selects the components that are fields."};

Result<NpyHeader> npy_header(std::span<const uint8_t> bytes, uint64_t size) {
  const ReadBytes read = [&](uint64_t offset, std::span<uint8_t> out) -> Result<void> {
    if (offset > bytes.size() || out.size() > bytes.size() - offset) {
      return bad_sample("the array's header is truncated");
    }
    std::memcpy(out.data(), bytes.data() + offset, out.size());
    return {};
  };
  Result<NpyHeader> header = read_npy_header(read, size, "");
  if (!header) {
    Error error = bad_sample(std::move(header.error().what), std::move(header.error().hint));
    error.where.offset = header.error().where.offset;
    return error;
  }
  if (!header->members.empty() || header->type.kind != NpyType::Kind::kNumber) {
    return bad_sample("an array of strings or structures", "store an array of numbers");
  }
  return header;
}

std::string shape_text(const Shape& shape, DType dtype) {
  std::string out = std::string(name_of(dtype)) + " (";
  for (size_t i = 0; i < shape.size(); ++i) {
    out += (i ? ", " : "") + (shape[i] < 0 ? std::string("any") : std::to_string(shape[i]));
  }
  return out + ")";
}

bool fits(const Shape& shape, const Shape& wanted) {
  if (shape.size() != wanted.size()) return false;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (wanted[i] >= 0 && wanted[i] != shape[i]) return false;
  }
  return true;
}

void set_bytes(std::span<const uint8_t> value, Buffer& own, FieldData& out) {
  own.resize(value.size());
  if (!value.empty()) std::memcpy(own.data(), value.data(), value.size());
  out.bytes = own.bytes();
}

void set_float(double value, const Field& field, Buffer& own, FieldData& out) {
  if (field.dtype == DType::kFloat64) {
    set_bytes({reinterpret_cast<const uint8_t*>(&value), sizeof value}, own, out);
  } else {
    const auto single = static_cast<float>(value);
    set_bytes({reinterpret_cast<const uint8_t*>(&single), sizeof single}, own, out);
  }
}

// Moves before the value at the path; false if there is none.
bool go_to(const std::vector<std::string>& path, JsonReader& json) {
  for (const std::string& name : path) {
    if (json.type() != JsonReader::Type::kObject) return false;
    bool found = false;
    json.begin_object();
    while (json.next_key()) {
      if (json.key() == name) {
        found = true;
        break;
      }
      json.skip();
    }
    if (!found) return false;
  }
  return json.type() != JsonReader::Type::kNull && json.type() != JsonReader::Type::kNone;
}

}  // namespace

Error bad_sample(std::string what, std::string hint) {
  return {.code = &kBadSample, .what = std::move(what), .hint = std::move(hint)};
}

Result<int64_t> wds_integer(std::span<const uint8_t> bytes, const ClassList& classes) {
  std::string_view text = trimmed(text_from_bytes(bytes));
  if (const auto named = classes.number(text)) return *named;
  const auto value = number_from<int64_t>(text.substr(text.starts_with('+') ? 1 : 0));
  const std::string shown = "\"" + std::string(text.substr(0, 60)) + "\"";
  if (!value) {
    return bad_sample(
        shown + (classes.size() > 0 ? " is neither an integer nor a class" : " is not an integer"),
        classes.size() > 0 ? "classes= must list all classes"
                           : "if it names a class, list all classes in classes=");
  }
  if (classes.size() > 0 && (*value < 0 || *value >= classes.size())) {
    return bad_sample("class " + shown + " of " + std::to_string(classes.size()),
                      "classes= must list all classes");
  }
  return *value;
}

Result<void> wds_array(std::span<const uint8_t> bytes, const Field& field, Buffer& own,
                       FieldData& out) {
  Result<NpyHeader> header = npy_header(bytes, bytes.size());
  if (!header) return std::move(header.error());
  const NpyType& type = header->type;
  if (type.dtype != field.dtype || !fits(header->shape, field.shape)) {
    return bad_sample("an array of " + shape_text(header->shape, type.dtype) +
                          ", but the field has " + shape_text(field.shape, field.dtype),
                      "the arrays of a field may differ only in their sizes");
  }
  std::span<const uint8_t> data = bytes.subspan(header->data_offset, header->data_bytes);
  const bool aligned = reinterpret_cast<uintptr_t>(data.data()) % type.bytes == 0;
  const bool foreign = type.big_endian && type.bytes > 1;
  if (header->fortran && header->shape.size() > 1) {
    own.resize(data.size());
    c_order_from_fortran(data.data(), header->shape, type.bytes, own.data());
    data = own.bytes();
  } else if (foreign || !aligned || type.dtype == DType::kBool) {
    own.resize(data.size());
    if (!data.empty()) std::memcpy(own.data(), data.data(), data.size());
    data = own.bytes();
  }
  if (foreign || type.dtype == DType::kBool) {
    make_native({own.data(), own.size()}, type.dtype, foreign);
  }
  out.bytes = data;
  if (std::find(field.shape.begin(), field.shape.end(), -1) != field.shape.end()) {
    out.shape = header->shape;
  }
  if (field.shape.empty() && field.dtype == DType::kInt64) {
    std::memcpy(&out.scalar, data.data(), sizeof out.scalar);
    out.bytes = {};
  }
  return {};
}

void describe_wds_array(std::span<const std::vector<uint8_t>> samples, Field& field) {
  bool first = true;
  for (const std::vector<uint8_t>& sample : samples) {
    // Its data may be after the part that was read.
    const Result<NpyHeader> header = npy_header(sample, INT64_MAX);
    if (!header) continue;
    if (first) {
      field.dtype = header->type.dtype;
      field.shape = header->shape;
      first = false;
    } else if (header->shape.size() == field.shape.size()) {
      for (size_t i = 0; i < field.shape.size(); ++i) {
        if (field.shape[i] != header->shape[i]) field.shape[i] = -1;
      }
    }
  }
}

Result<void> wds_json(std::span<const uint8_t> bytes, const WdsField& field, Buffer& own,
                      FieldData& out, bool& found) {
  JsonReader json(text_from_bytes(bytes));
  found = go_to(field.json_path, json);
  if (found) {
    if (field.field.kind == FieldKind::kText) {
      const std::string_view text = json.string();
      set_bytes(bytes_from_text(text), own, out);
    } else {
      const bool flag = json.type() == JsonReader::Type::kBool;
      const JsonNumber number = flag ? JsonNumber{} : json.number();
      const int64_t truth = flag && json.boolean() ? 1 : 0;
      if (field.field.dtype != DType::kInt64) {
        set_float(flag ? double(truth) : number.value, field.field, own, out);
      } else if (flag || number.integer) {
        out.scalar = flag ? truth : *number.integer;
      } else if (json.ok()) {
        json.fail("no integer");
      }
    }
  }
  if (json.ok()) return {};
  Error error = json.error(kBadSample, "");
  error.where.file.clear();
  return error;
}

bool set_empty(const WdsField& field, Buffer& own, FieldData& out) {
  const Field& schema = field.field;
  if (schema.encoded || field.how == WdsField::How::kArray) return false;
  if (schema.kind == FieldKind::kText || schema.kind == FieldKind::kBytes) {
    out.bytes = {};
  } else if (schema.dtype == DType::kInt64) {
    out.scalar = -1;
  } else {
    set_float(std::numeric_limits<double>::quiet_NaN(), schema, own, out);
  }
  return true;
}

}  // namespace headrace
