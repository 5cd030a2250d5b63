// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/file_array.h"

#include <algorithm>
#include <cstring>

namespace headrace {
namespace {

constexpr size_t kBlock = size_t{1} << 20;      // what is read at once to gather strided records
constexpr uint64_t kWide = uint64_t{32} << 10;  // a gap that costs more to read than to step over

template <class Word>
void swap_words(std::span<uint8_t> bytes) {
  for (size_t i = 0; i + sizeof(Word) <= bytes.size(); i += sizeof(Word)) {
    Word word;
    std::memcpy(&word, bytes.data() + i, sizeof word);
    if constexpr (sizeof(Word) == 2) word = __builtin_bswap16(word);
    if constexpr (sizeof(Word) == 4) word = __builtin_bswap32(word);
    if constexpr (sizeof(Word) == 8) word = __builtin_bswap64(word);
    std::memcpy(bytes.data() + i, &word, sizeof word);
  }
}

template <class Word>
void planes_from_pixels(const uint8_t* in, uint8_t* out, size_t pixels, size_t channels) {
  for (size_t c = 0; c < channels; ++c) {
    for (size_t i = 0; i < pixels; ++i) {
      std::memcpy(out, in + (i * channels + c) * sizeof(Word), sizeof(Word));
      out += sizeof(Word);
    }
  }
}

}  // namespace

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
    if (size < 0 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(size), &bytes)) {
      return "sizes that no file can have";
    }
  }
  uint64_t all = 0;
  const int64_t records = count();
  if (records < 0 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(records), &all) ||
      all > static_cast<uint64_t>(INT64_MAX)) {
    return "sizes that no file can have";
  }
  if (channels_last && shape.size() != 3) return "channels to move, but no three dimensions";
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
    if (end > part.file->size()) {
      return "it ends at byte " + std::to_string(end) + ", but " + part.file->path() + " has " +
             std::to_string(part.file->size());
    }
  }
  return {};
}

const FilePart& FileArray::part_of(int64_t& record) const {
  size_t part = 0;
  while (record >= parts[part].count) record -= parts[part++].count;
  return parts[part];
}

void FileArray::make_native(std::span<uint8_t> bytes) const {
  if (dtype == DType::kBool) {  // any other value than 0 and 1 would be none of the type
    for (uint8_t& byte : bytes) byte = byte != 0;
  }
  if (!big_endian) return;
  if (size_of(dtype) == 2) swap_words<uint16_t>(bytes);
  if (size_of(dtype) == 4) swap_words<uint32_t>(bytes);
  if (size_of(dtype) == 8) swap_words<uint64_t>(bytes);
}

void FileArray::move_channels(const uint8_t* in, uint8_t* out) const {
  const auto channels = static_cast<size_t>(shape[0]);
  const auto pixels = static_cast<size_t>(shape[1] * shape[2]);
  switch (size_of(dtype)) {
    case 1:
      return planes_from_pixels<uint8_t>(in, out, pixels, channels);
    case 2:
      return planes_from_pixels<uint16_t>(in, out, pixels, channels);
    case 4:
      return planes_from_pixels<uint32_t>(in, out, pixels, channels);
    default:
      return planes_from_pixels<uint64_t>(in, out, pixels, channels);
  }
}

Result<void> FileArray::read(int64_t record, Buffer& out, Buffer& scratch) const {
  const FilePart& part = part_of(record);
  Buffer& stored = channels_last ? scratch : out;
  stored.resize(record_bytes());
  const std::span<uint8_t> bytes(stored.data(), stored.size());
  if (Result<void> read =
          part.file->read(part.offset + static_cast<uint64_t>(record) * step(), bytes);
      !read) {
    return read;
  }
  make_native(bytes);
  if (channels_last) {
    out.resize(bytes.size());
    move_channels(scratch.data(), out.data());
  }
  return {};
}

Result<void> FileArray::load(std::span<uint8_t> out) const {
  const size_t bytes = record_bytes();
  const std::span<uint8_t> all = out;
  if (bytes == 0) return {};
  Buffer block;
  // Dense records and those that lie wide apart go straight to their place.
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
      if (Result<void> read = part.file->read(offset, into); !read) return read;
      for (size_t i = 0; gathers && i < records; ++i) {
        std::memcpy(out.data() + i * bytes, block.data() + i * apart, bytes);
      }
      out = out.subspan(records * bytes);
    }
  }
  make_native(all);
  if (!channels_last) return {};
  for (size_t at = 0; at < all.size(); at += bytes) {
    block.resize(bytes);
    std::memcpy(block.data(), all.data() + at, bytes);
    move_channels(block.data(), all.data() + at);
  }
  return {};
}

Result<void> FileArray::peek(int64_t record, std::span<uint8_t> out) const {
  const FilePart& part = part_of(record);
  return part.file->read(part.offset + static_cast<uint64_t>(record) * step(), out);
}

}  // namespace headrace
