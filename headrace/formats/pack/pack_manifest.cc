// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstring>

#include "headrace/formats/pack/pack_output.h"

namespace headrace {
namespace {

std::string_view npy_type(DType dtype) {
  switch (dtype) {
    case DType::kUInt8:
      return "|u1";
    case DType::kInt8:
      return "|i1";
    case DType::kInt16:
      return "<i2";
    case DType::kInt32:
      return "<i4";
    case DType::kInt64:
      return "<i8";
    case DType::kUInt16:
      return "<u2";
    case DType::kUInt32:
      return "<u4";
    case DType::kUInt64:
      return "<u8";
    case DType::kFloat16:
      return "<f2";
    case DType::kBFloat16:
      return "|V2";  // NumPy has no such type: two bytes each
    case DType::kFloat32:
      return "<f4";
    case DType::kFloat64:
      return "<f8";
    case DType::kBool:
      return "|b1";
  }
  return "|u1";
}

// Determines a record's path in a folder: class, folder, name.
using PlaceInFolder = std::array<std::string, 3>;

PlaceInFolder place_of_key(std::string_view key) {
  const size_t slash = key.rfind('/');
  const std::string_view folder = slash == key.npos ? "" : key.substr(0, slash);
  return {std::string(folder.substr(0, folder.find('/'))), std::string(folder),
          std::string(key.substr(slash + 1))};
}

// Only pictures, with or without a label.
bool has_folders_fields(const PackHeader& header) {
  const Schema& schema = header.schema;
  const bool labeled = schema.size() == 2 && schema[1].kind == FieldKind::kLabel &&
                       schema[1].name == "label" && !header.classes.empty();
  return header.keys_are_paths && schema[0].encoded && schema[0].name == "image" &&
         (schema.size() == 1 || labeled);
}

}  // namespace

bool folders_suffice(const OpenedPack& pack) {
  const PackHeader& header = pack.files.front().header();
  if (!has_folders_fields(header) ||
      !std::is_sorted(header.classes.begin(), header.classes.end())) {
    return false;
  }
  const bool labeled = header.schema.size() == 2;
  std::vector<bool> used(header.classes.size(), false);
  PlaceInFolder last;
  for (const PackFile& file : pack.files) {
    for (int64_t i = 0; i < file.records(); ++i) {
      PlaceInFolder place = place_of_key(file.key(i));
      if (labeled == place[1].empty() || last >= place) return false;
      last = std::move(place);
      if (!labeled) continue;
      int64_t label = 0;
      std::memcpy(&label, file.column(1, i).data(), sizeof label);
      if (label < 0 || label >= static_cast<int64_t>(used.size())) return false;
      const auto number = static_cast<size_t>(label);
      if (header.classes[number] != last[0]) return false;
      used[number] = true;
    }
  }
  return std::find(used.begin(), used.end(), false) == used.end();
}

std::vector<uint8_t> npy_header(DType dtype, const Shape& shape) {
  std::string text =
      "{'descr': '" + std::string(npy_type(dtype)) + "', 'fortran_order': False, 'shape': (";
  for (int64_t size : shape) text += std::to_string(size) + ", ";
  text += "), }";
  constexpr size_t kBefore = 10, kAlignment = 64;
  text.append(kAlignment - (kBefore + text.size() + 1) % kAlignment, ' ');
  text += '\n';
  std::string out("\x93NUMPY\x01\x00", 8);
  out += {static_cast<char>(text.size() & 0xFF), static_cast<char>(text.size() >> 8)};
  out += text;
  return {out.begin(), out.end()};
}

}  // namespace headrace
