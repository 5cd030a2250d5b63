// SPDX-License-Identifier: Apache-2.0
// safetensors: a JSON header and after it the tensors, without gaps.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <set>

#include "headrace/base/json_reader.h"
#include "headrace/base/registry.h"
#include "headrace/base/text.h"
#include "headrace/formats/arrays/array_columns.h"
#include "headrace/formats/arrays/array_errors.h"
#include "headrace/formats/format.h"
#include "headrace/sources/readable_text.h"

namespace headrace {
namespace {

constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // the library's own limit
constexpr size_t kMaxTensorDimensions = 64;

std::optional<DType> type_of(std::string_view name) {
  struct Known {
    std::string_view name;
    DType dtype;
  };
  static constexpr Known kKnown[] = {
      {"U8", DType::kUInt8},      {"I8", DType::kInt8},     {"I16", DType::kInt16},
      {"U16", DType::kUInt16},    {"I32", DType::kInt32},   {"U32", DType::kUInt32},
      {"I64", DType::kInt64},     {"U64", DType::kUInt64},  {"F16", DType::kFloat16},
      {"BF16", DType::kBFloat16}, {"F32", DType::kFloat32}, {"F64", DType::kFloat64},
      {"BOOL", DType::kBool},
  };
  for (const Known& known : kKnown) {
    if (known.name == name) return known.dtype;
  }
  return {};
}

struct Tensor {
  std::string name, type;
  Shape shape;
  uint64_t begin = 0, end = 0;  // offset after the header
};

// {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}
Tensor read_tensor(JsonReader& json, std::string name) {
  Tensor tensor{.name = std::move(name), .type = {}, .shape = {}};
  std::array<uint64_t, 2> offsets{};
  size_t count = 0;
  const auto size = [&]() -> int64_t {
    const std::optional<int64_t> value = json.number().integer;
    if (json.ok() && (!value || *value < 0)) json.fail("a size that is not a non-negative number");
    return json.ok() ? *value : 0;
  };
  bool shaped = false;
  for (json.begin_object(); json.next_key();) {
    if (json.key() == "dtype") {
      tensor.type = json.string();
    } else if (json.key() == "shape") {
      shaped = true;
      for (json.begin_array(); json.next_element();) {
        tensor.shape.push_back(size());
        if (tensor.shape.size() > kMaxTensorDimensions) json.fail("too many dimensions");
      }
    } else if (json.key() == "data_offsets") {
      for (json.begin_array(); json.next_element();) {
        const int64_t value = size();
        if (count < 2) offsets[count] = static_cast<uint64_t>(value);
        ++count;
      }
    } else {
      json.skip();
    }
  }
  if (json.ok() && (count != 2 || !shaped || tensor.type.empty())) {
    json.fail("a tensor needs dtype, shape and two data_offsets");
  }
  tensor.begin = offsets[0];
  tensor.end = offsets[1];
  return tensor;
}

// The tensors in byte order; together they fill the file.
void check_places(std::vector<Tensor>& tensors, uint64_t data_bytes, const std::string& path) {
  std::stable_sort(tensors.begin(), tensors.end(), [](const Tensor& a, const Tensor& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  uint64_t at = 0;
  std::set<std::string_view> names;
  for (const Tensor& tensor : tensors) {
    const std::string it = "tensor '" + tensor.name.substr(0, 80) + "'";
    if (!names.insert(tensor.name).second) {
      throw Exception(damaged_array(path, it + " appears twice"));
    }
    if (tensor.begin != at || tensor.end < tensor.begin || tensor.end > data_bytes) {
      throw Exception(damaged_array(path, it + " is at bytes " + std::to_string(tensor.begin) +
                                              " to " + std::to_string(tensor.end) +
                                              ", but must start at " + std::to_string(at) +
                                              " and end by " + std::to_string(data_bytes)));
    }
    at = tensor.end;
  }
  if (at != data_bytes) {
    throw Exception(damaged_array(path, "the tensors end at byte " + std::to_string(at) + " of " +
                                            std::to_string(data_bytes)));
  }
}

FileArray array_of(const Tensor& tensor, const std::shared_ptr<const File>& file, uint64_t data) {
  const std::optional<DType> dtype = type_of(tensor.type);
  if (!dtype) {
    throw Exception(unsupported_array(file->path(),
                                      "tensor '" + tensor.name + "' is of type " + tensor.type,
                                      "convert it, or exclude it with fields=[...]"));
  }
  if (tensor.shape.empty()) {
    throw Exception(unsupported_array(file->path(), "tensor '" + tensor.name + "' is a scalar",
                                      "exclude it with fields=[...]"));
  }
  uint64_t bytes = size_of(*dtype);
  bool fits = true;
  for (const int64_t size : tensor.shape) {
    fits = fits && !__builtin_mul_overflow(bytes, static_cast<uint64_t>(size), &bytes);
  }
  if (!fits || bytes != tensor.end - tensor.begin) {
    throw Exception(damaged_array(file->path(), "tensor '" + tensor.name + "' of " + tensor.type +
                                                    " " + tuple_text(tensor.shape) + " has " +
                                                    std::to_string(tensor.end - tensor.begin) +
                                                    " bytes"));
  }
  return {.parts = {{file, data + tensor.begin, tensor.shape[0]}},
          .dtype = *dtype,
          .shape = Shape(tensor.shape.begin() + 1, tensor.shape.end())};
}

uint64_t header_bytes(const File& file) {
  std::array<uint8_t, 8> begin{};
  uint64_t bytes = 0;
  if (file.size() >= 8) {
    if (Result<void> read = file.read(0, begin); !read) throw Exception(std::move(read.error()));
    std::memcpy(&bytes, begin.data(), 8);
  }
  if (file.size() < 8 || bytes > kMaxHeaderBytes || bytes > file.size() - 8) {
    throw Exception(damaged_array(file.path(),
                                  "a header of " + std::to_string(bytes) + " bytes in a file of " +
                                      std::to_string(file.size()),
                                  0));
  }
  return bytes;
}

std::vector<Tensor> read_header(const File& file, uint64_t bytes) {
  Buffer header(static_cast<size_t>(bytes));
  if (Result<void> read = file.read(8, {header.data(), header.size()}); !read) {
    throw Exception(std::move(read.error()));
  }
  JsonReader json(text_from_bytes(header.bytes()), 8);
  std::vector<Tensor> tensors;
  for (json.begin_object(); json.next_key();) {
    if (json.key() == "__metadata__") {
      json.skip();
    } else {
      tensors.push_back(read_tensor(json, std::string(json.key())));
    }
  }
  json.end();
  if (!json.ok()) throw Exception(damaged_array(json, file.path(), "its header: "));
  check_places(tensors, file.size() - 8 - bytes, file.path());
  return tensors;
}

SourcePtr open_safetensors(const std::string& path, const Arguments& arguments, const Progress&) {
  Result<File> opened = File::open(path);
  if (!opened) throw Exception(std::move(opened.error()));
  const auto file = std::make_shared<const File>(std::move(*opened));
  const uint64_t bytes = header_bytes(*file);
  const std::vector<Tensor> tensors = read_header(*file, bytes);
  std::vector<std::string> names;
  for (const Tensor& tensor : tensors) names.push_back(tensor.name);
  if (names.empty()) {
    throw Exception(unsupported_array(path, "it contains no tensors",
                                      "safetensors.numpy.save_file({\"image\": images}, path)"));
  }
  std::vector<NamedArray> arrays;
  for (const ArrayChoice& choice : choose_arrays(names, arguments)) {
    const auto at = std::find(names.begin(), names.end(), choice.name) - names.begin();
    arrays.push_back({choice, array_of(tensors[static_cast<size_t>(at)], file, 8 + bytes)});
  }
  return records(columns_from_arrays(std::move(arrays), arguments), "safetensors " + path);
}

bool is_safetensors(const std::string& path) {
  std::array<uint8_t, 64> begin{};
  const Result<size_t> read = read_prefix(path, begin);
  if (!read) return false;
  if (has_suffix(path, ".safetensors")) return true;
  if (*read < 32 || begin[8] != '{') return false;
  uint64_t bytes = 0;
  std::memcpy(&bytes, begin.data(), 8);
  const std::string_view text(reinterpret_cast<const char*>(begin.data()) + 8, *read - 8);
  return bytes <= kMaxHeaderBytes && (text.find("\"dtype\"") != std::string_view::npos ||
                                      text.find("\"__metadata__\"") != std::string_view::npos);
}

const FormatRecord kSafetensors{
    .name = "safetensors",
    .doc =
        "Tensors of a safetensors file as fields; the first axis indexes the records and has the "
        "same size in all of them. Read in place, by position.",
    .example = "hr.open(\"train.safetensors\")",
    .params = {array_fields_param(), channels_param()},
    .recognizes = is_safetensors,
    .open = open_safetensors};
const Register<FormatRecord> registered_safetensors_format(kSafetensors);

}  // namespace
}  // namespace headrace
