// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/columns/file_array.h"

#include <algorithm>
#include <cstring>

#include "headrace/sources/columns/array_elements.h"

namespace headrace {
namespace {

constexpr size_t kBlock = size_t{1} << 20;      // bytes read at once to gather strided records
constexpr uint64_t kWide = uint64_t{32} << 10;  // a gap that is more expensive to read than to skip

}  // namespace

Result<void> FilePart::read(uint64_t at, std::span<uint8_t> out) const {
  if (!memory) return file->read(at, out);
  // problem() has checked the bounds.
  std::memcpy(out.data(), memory->data() + at, out.size());
  return {};
}

int64_t FileArray::count() const {
  int64_t count = 0;
  for (const FilePart& part : parts) {
    if (part.count < 0 || __builtin_add_overflow(count, part.count, &count)) return -1;
  }
  return count;
}

std::string FileArray::problem() const {
  uint64_t bytes = size_of(dtype);
  for (const int64_t size : shape) {
    if (size < 0 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(size), &bytes) ||
        bytes > static_cast<uint64_t>(INT64_MAX)) {
      return "sizes that no file can have";
    }
  }
  uint64_t all = 0;
  const int64_t records = count();
  if (records < 0 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(records), &all) ||
      all > static_cast<uint64_t>(INT64_MAX)) {
    return "sizes that no file can have";
  }
  if (channels_last && shape.size() != 3) return "channels to move, but not three dimensions";
  if (stride && stride < bytes) return "records that overlap";
  for (const FilePart& part : parts) {
    if (part.count == 0 || bytes == 0) continue;
    uint64_t end = 0;
    if (__builtin_mul_overflow(stride ? stride : bytes, static_cast<uint64_t>(part.count - 1),
                               &end) ||
        __builtin_add_overflow(end, bytes, &end) ||
        __builtin_add_overflow(end, part.offset, &end)) {
      return "sizes that no file can have";
    }
    if (end > part.size()) {
      return "it ends at byte " + std::to_string(end) + ", but " +
             (part.memory ? std::string("there are") : part.file->path() + " has") + " " +
             std::to_string(part.size());
    }
  }
  return {};
}

const uint8_t* FileArray::in_place() const {
  const bool as_delivered = !channels_last && step() == record_bytes() && dtype != DType::kBool &&
                            (!big_endian || size_of(dtype) == 1);
  if (parts.size() != 1 || !parts[0].memory || !as_delivered) return nullptr;
  const uint8_t* place = parts[0].memory->data() + parts[0].offset;
  return reinterpret_cast<uintptr_t>(place) % size_of(dtype) == 0 ? place : nullptr;
}

const FilePart& FileArray::part_of(int64_t& record) const {
  size_t part = 0;
  while (record >= parts[part].count) record -= parts[part++].count;
  return parts[part];
}

Result<void> FileArray::read(int64_t record, Buffer& out, Buffer& scratch) const {
  const FilePart& part = part_of(record);
  Buffer& stored = channels_last ? scratch : out;
  stored.resize(record_bytes());
  const std::span<uint8_t> bytes(stored.data(), stored.size());
  if (Result<void> read = part.read(part.offset + static_cast<uint64_t>(record) * step(), bytes);
      !read) {
    return read;
  }
  make_native(bytes, dtype, big_endian);
  if (channels_last) {
    out.resize(bytes.size());
    move_channels_first(scratch.data(), shape, size_of(dtype), out.data());
  }
  return {};
}

Result<void> FileArray::load(std::span<uint8_t> out) const {
  const size_t bytes = record_bytes();
  const std::span<uint8_t> all = out;
  if (bytes == 0) return {};
  Buffer block;
  // Dense records, and those far apart, are read directly to their destination.
  const uint64_t apart = step();
  const bool gathers = apart > bytes && apart < kWide;
  const int64_t together = apart == bytes
                               ? static_cast<int64_t>(std::max<size_t>(kBlock / bytes, 1))
                           : gathers ? static_cast<int64_t>(kBlock / apart)
                                     : 1;
  for (const FilePart& part : parts) {
    for (int64_t first = 0; first < part.count; first += together) {
      const auto records = static_cast<size_t>(std::min(together, part.count - first));
      const uint64_t offset = part.offset + static_cast<uint64_t>(first) * apart;
      if (gathers) block.resize((records - 1) * apart + bytes);
      const std::span<uint8_t> into =
          gathers ? std::span(block.data(), block.size()) : out.first(records * bytes);
      if (Result<void> read = part.read(offset, into); !read) return read;
      for (size_t i = 0; gathers && i < records; ++i) {
        std::memcpy(out.data() + i * bytes, block.data() + i * apart, bytes);
      }
      out = out.subspan(records * bytes);
    }
  }
  make_native(all, dtype, big_endian);
  if (!channels_last) return {};
  for (size_t at = 0; at < all.size(); at += bytes) {
    block.resize(bytes);
    std::memcpy(block.data(), all.data() + at, bytes);
    move_channels_first(block.data(), shape, size_of(dtype), all.data() + at);
  }
  return {};
}

void FileArray::add_piece(int64_t record, std::vector<FilePiece>& out) const {
  const FilePart& part = part_of(record);
  if (!part.file || part.memory || !part.file->is_async() || record_bytes() == 0) return;
  const uint64_t offset = part.offset + static_cast<uint64_t>(record) * step();
  out.push_back(part.file->piece(offset, record_bytes()));
}

bool FileArray::is_async() const {
  return std::ranges::any_of(parts, [](const FilePart& part) {
    return part.file && !part.memory && part.file->is_async();
  });
}

Result<void> FileArray::peek(int64_t record, std::span<uint8_t> out) const {
  const FilePart& part = part_of(record);
  return part.read(part.offset + static_cast<uint64_t>(record) * step(), out);
}

}  // namespace headrace
