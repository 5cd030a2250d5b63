// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/packed/row_images.h"

#include <cstring>

#include "headrace/base/byte_stream.h"
#include "headrace/sources/packed/samples.h"

namespace headrace {
namespace {

const ErrorCode kNotImages{
    "HR1458", ErrorKind::kData, "not the images of a packed row",
    "EachImage works on the field `images` of rows made by hr.packed(images=...), which holds the "
    "encoded images of a row and their sizes at packing time."};

constexpr uint64_t kMagic = 0x534547414d495248;  // "HRIMAGES"
constexpr size_t kNumber = sizeof(int64_t);

}  // namespace

void RowImages::add(int64_t at, std::span<const uint8_t> bytes, std::span<const uint8_t> positions,
                    std::span<const uint8_t> sizes, std::span<const uint8_t> entries) {
  const size_t before = positions_.size();
  append_numbers(positions, positions_);
  for (size_t i = before; i < positions_.size(); ++i) positions_[i] += at;
  append_numbers(sizes, sizes_);
  append_numbers(entries, entries_);
  encoded_.push_back(bytes);
  bytes_ += bytes.size();
}

void RowImages::write(Buffer& out) const {
  const auto images = static_cast<uint64_t>(count());
  const size_t head = 2 * kNumber + entries_.size() * kNumber;
  out.resize(head + bytes_);
  std::memcpy(out.data(), &kMagic, kNumber);
  std::memcpy(out.data() + kNumber, &images, kNumber);
  if (!entries_.empty()) {
    std::memcpy(out.data() + 2 * kNumber, entries_.data(), entries_.size() * kNumber);
  }
  uint8_t* at = out.data() + head;
  for (const std::span<const uint8_t> part : encoded_) {
    if (!part.empty()) std::memcpy(at, part.data(), part.size());
    at += part.size();
  }
}

void RowImages::write_positions(Buffer& out) const { copy_bytes(raw_bytes(positions_), out); }
void RowImages::write_sizes(Buffer& out) const { copy_bytes(raw_bytes(sizes_), out); }

Result<std::vector<RowImage>> row_images_from(std::span<const uint8_t> value) {
  const Error wrong{.code = &kNotImages,
                    .what = "a value of " + std::to_string(value.size()) + " bytes"};
  uint64_t head[2] = {};
  if (value.size() < sizeof head) return wrong;
  std::memcpy(head, value.data(), sizeof head);
  value = value.subspan(sizeof head);
  constexpr size_t kEntry = static_cast<size_t>(kEntryNumbers) * kNumber;
  if (head[0] != kMagic || head[1] > value.size() / kEntry) return wrong;
  const auto entries = value.first(static_cast<size_t>(head[1]) * kEntry);
  value = value.subspan(entries.size());
  std::vector<RowImage> out(static_cast<size_t>(head[1]));
  for (size_t i = 0; i < out.size(); ++i) {
    int64_t numbers[kEntryNumbers];
    std::memcpy(numbers, entries.data() + i * kEntry, kEntry);
    if (numbers[0] < 0 || static_cast<uint64_t>(numbers[0]) > value.size()) return wrong;
    const auto bytes = static_cast<size_t>(numbers[0]);
    out[i] = {.bytes = value.first(bytes),
              .height = numbers[1],
              .width = numbers[2],
              .parts = numbers[3],
              .document = numbers[4]};
    value = value.subspan(bytes);
  }
  if (!value.empty()) return wrong;
  return out;
}

}  // namespace headrace
