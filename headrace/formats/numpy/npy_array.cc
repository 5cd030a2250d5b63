// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/numpy/npy_array.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "headrace/base/utf8.h"
#include "headrace/formats/arrays/array_errors.h"
#include "headrace/sources/readable_text.h"

namespace headrace {
namespace {

constexpr uint64_t kMaxTransposed = uint64_t{1} << 30;  // bytes
constexpr uint64_t kMaxText = uint64_t{256} << 20;      // bytes, as they are stored
constexpr uint64_t kMaxStrings = uint64_t{1} << 24;
constexpr size_t kBlock = 64;  // records that are transposed together

[[noreturn]] void fail(Error error, const NpyPlace& place) {
  error.where.file = place.path;
  error.where.member = place.member;
  throw Exception(std::move(error));
}

// Padded with zeros at the end; UTF-32 for Unicode.
std::string text_from(std::span<const uint8_t> stored, const NpyType& type) {
  std::string out;
  if (type.kind == NpyType::Kind::kBytes) {
    out.assign(stored.begin(), stored.end());
    out.erase(out.find_last_not_of('\0') + 1);
    return out;
  }
  size_t end = stored.size() / 4;
  while (end > 0 && std::all_of(&stored[end * 4 - 4], &stored[end * 4 - 4] + 4,
                                [](uint8_t byte) { return byte == 0; })) {
    --end;
  }
  for (size_t i = 0; i < end; ++i) {
    uint32_t code = 0;
    std::memcpy(&code, &stored[i * 4], 4);
    if (type.big_endian) code = __builtin_bswap32(code);
    const bool is_none = code > 0x10FFFF || (code >= 0xD800 && code < 0xE000);
    append_utf8(is_none ? 0xFFFD : code, out);
  }
  return out;
}

std::vector<std::string> texts_from(FileArray stored, const NpyType& type, const NpyPlace& place) {
  stored.dtype = DType::kUInt8;
  stored.shape = {static_cast<int64_t>(type.bytes)};
  stored.big_endian = false;
  const auto count = static_cast<uint64_t>(stored.count());
  if (const std::string problem = stored.problem(); !problem.empty()) {
    fail(damaged_array(place.path, problem), place);
  }
  if (count > kMaxStrings || count * type.bytes > kMaxText) {
    fail(unsupported_array(place.path,
                           "it has " + with_commas(static_cast<int64_t>(count)) + " strings of " +
                               with_commas(static_cast<int64_t>(type.bytes)) +
                               " bytes; they are kept in memory, and the limit is 256 MiB",
                           "store them in a CSV or Parquet file"),
         place);
  }
  Buffer bytes(count * type.bytes);
  if (Result<void> read = stored.load({bytes.data(), bytes.size()}); !read) {
    fail(std::move(read.error()), place);
  }
  std::vector<std::string> out;
  for (uint64_t i = 0; i < count; ++i) {
    out.push_back(text_from(bytes.bytes().subspan(i * type.bytes, type.bytes), type));
  }
  return out;
}

// The elements in C order: in place, or transposed in memory.
FilePart in_c_order(const NpyHeader& header, const NpyPlace& place) {
  FilePart part = place.part;
  part.offset += header.data_offset;
  const auto longer = std::count_if(header.shape.begin(), header.shape.end(),
                                    [](int64_t size) { return size > 1; });
  if (!header.fortran || longer < 2 || header.data_bytes == 0) return part;
  if (header.data_bytes > kMaxTransposed) {
    fail(unsupported_array(place.path,
                           "it has " + with_commas(static_cast<int64_t>(header.data_bytes)) +
                               " bytes in Fortran order, which scatters each record over the file; "
                               "only arrays of up to 1 GiB are converted to C order in memory",
                           "np.save(path, np.ascontiguousarray(np.load(path, mmap_mode=\"r\")))"),
         place);
  }
  Buffer stored(header.data_bytes);
  if (Result<void> read = part.read(part.offset, {stored.data(), stored.size()}); !read) {
    fail(std::move(read.error()), place);
  }
  const auto memory = std::make_shared<Buffer>(header.data_bytes);
  c_order_from_fortran(stored.data(), header.shape, header.item_bytes, memory->data());
  return {.file = nullptr, .offset = 0, .count = 0, .memory = memory};
}

// A run of columns of the Fortran array: `items` records starting at `first`.
template <size_t kItem>
void transpose_records(const uint8_t* in, const Shape& shape, size_t first, size_t items,
                       size_t item_bytes, uint8_t* out) {
  const size_t bytes = kItem ? kItem : item_bytes;
  const auto records = static_cast<size_t>(shape[0]);
  std::vector<int64_t> at(shape.size(), 0);
  std::vector<size_t> steps(shape.size(), records);  // strides of the source, in elements
  size_t elements = 1;
  for (size_t d = 1; d < shape.size(); ++d) {
    if (d > 1) steps[d] = steps[d - 1] * static_cast<size_t>(shape[d - 1]);
    elements *= static_cast<size_t>(shape[d]);
  }
  size_t source = first;
  for (size_t element = 0; element < elements; ++element) {
    for (size_t i = 0; i < items; ++i) {
      std::memcpy(out + ((first + i) * elements + element) * bytes, in + (source + i) * bytes,
                  bytes);
    }
    for (size_t d = shape.size() - 1; d > 0; --d) {  // the next one in C order
      source += steps[d];
      if (++at[d] < shape[d]) break;
      source -= steps[d] * static_cast<size_t>(shape[d]);
      at[d] = 0;
    }
  }
}

}  // namespace

void c_order_from_fortran(const uint8_t* in, const Shape& shape, size_t item_bytes, uint8_t* out) {
  const auto records = static_cast<size_t>(shape[0]);
  for (size_t first = 0; first < records; first += kBlock) {
    const size_t items = std::min(kBlock, records - first);
    const auto run = item_bytes == 1   ? transpose_records<1>
                     : item_bytes == 2 ? transpose_records<2>
                     : item_bytes == 4 ? transpose_records<4>
                     : item_bytes == 8 ? transpose_records<8>
                                       : transpose_records<0>;
    run(in, shape, first, items, item_bytes, out);
  }
}

std::vector<NpyValues> read_npy_array(const NpyPlace& place) {
  const ReadBytes read = [&](uint64_t offset, std::span<uint8_t> out) {
    return place.part.read(place.part.offset + offset, out);
  };
  Result<NpyHeader> header = read_npy_header(read, place.size, place.path);
  if (!header) fail(std::move(header.error()), place);
  if (header->shape.empty()) {
    fail(unsupported_array(place.path, "it contains a single value, not records",
                           "the first axis of an array indexes the records"),
         place);
  }
  FilePart part = in_c_order(*header, place);
  part.count = header->shape[0];
  const Shape record(header->shape.begin() + 1, header->shape.end());
  uint64_t per_record = 1;
  for (const int64_t size : record) per_record *= static_cast<uint64_t>(size);
  const auto values = [&](const NpyType& type, Shape shape, uint64_t offset) {
    FileArray array{.parts = {part}, .dtype = type.dtype, .shape = std::move(shape)};
    array.parts[0].offset += offset;
    array.stride = header->item_bytes * per_record;
    array.big_endian = type.big_endian;
    std::variant<FileArray, std::vector<std::string>> out = array;
    if (type.kind == NpyType::Kind::kNumber) return out;
    if (!array.shape.empty()) {
      fail(unsupported_array(place.path, "it contains several strings per record",
                             "save each column as a separate array"),
           place);
    }
    out = texts_from(array, type, place);
    return out;
  };
  std::vector<NpyValues> out;
  if (header->members.empty()) {
    out.push_back({"", values(header->type, record, 0)});
    return out;
  }
  if (!record.empty()) {
    fail(unsupported_array(place.path, "its records are arrays of a structured type",
                           "save each member as a separate array: np.savez(path, a=a[\"a\"])"),
         place);
  }
  for (const NpyMember& member : header->members) {
    out.push_back({member.name, values(member.type, member.shape, member.offset)});
  }
  return out;
}

}  // namespace headrace
