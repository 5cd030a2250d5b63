// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "headrace/formats/hdf5/hdf5_heap.h"

namespace headrace {
namespace {

constexpr uint64_t kLook = 4096;      // size of collections with small values
constexpr int kMaxObjects = 1 << 16;  // per collection: object numbers have 16 bits

uint64_t padded(uint64_t bytes) { return (bytes + 7) / 8 * 8; }

// The header of a collection, and of each of its objects.
struct Heads {
  explicit Heads(const Hdf5File& file)
      : collection(padded(8 + file.length_bytes())), object(padded(8 + file.length_bytes())) {}
  uint64_t collection, object;
};

Error damaged(const Hdf5File& file, uint64_t address, std::string what) {
  return hdf5_damaged(file.file(), file.offset_of(address), std::move(what));
}

// The value after the last one read, if that is the wanted one.
std::optional<std::span<uint8_t>> read_next(const Hdf5File& file, const Hdf5Reference& reference,
                                            uint64_t bytes, Buffer& out, Hdf5Place& place) {
  const uint64_t head = Heads(file).object, room = place.size - place.next;
  if (place.file != &file || place.address != reference.address || room < head + bytes) return {};
  out.resize(head + bytes);
  if (!file.read(place.address + place.next, {out.data(), out.size()})) return {};
  Hdf5Cursor in = file.cursor(out.bytes());
  const uint16_t index = in.u16();
  in.skip(6);
  const uint64_t object_bytes = in.length();
  if (index == 0 || index != reference.index) return {};
  if (object_bytes < bytes || object_bytes > room - head) return {};
  place.next = std::min(place.next + head + padded(object_bytes), place.size);
  return std::span(out.data() + head, bytes);
}

}  // namespace

Hdf5Reference hdf5_reference(const Hdf5File& file, std::span<const uint8_t> element) {
  Hdf5Cursor in = file.cursor(element);
  Hdf5Reference reference;
  reference.count = in.u32();
  reference.address = in.address();
  reference.index = in.u32();
  return reference;
}

// A value is usually the first of its collection, and then the first read contains all of it. Small
// values share collections that fit in one read. To reach one stored after large ones, this goes
// from header to header without reading the values.
Result<std::span<uint8_t>> read_hdf5_value(const Hdf5File& file, const Hdf5Reference& reference,
                                           uint64_t bytes, Buffer& out, Hdf5Place& place) {
  const Heads heads(file);
  const uint64_t address = reference.address;
  const uint64_t room = file.file().size();
  if (bytes > room || !file.holds(address, heads.collection)) {
    return damaged(file, address,
                   "a value of " + std::to_string(bytes) + " bytes is not inside the file of " +
                       std::to_string(room) + " bytes");
  }
  if (const auto next = read_next(file, reference, bytes, out, place)) return *next;
  uint64_t look = kLook;
  if (reference.index == 1) look = std::max(look, heads.collection + heads.object + bytes);
  while (look > heads.collection && !file.holds(address, look)) {
    look = look > kLook ? kLook : look / 2;  // near the end of the file
  }
  look = std::max(look, heads.collection);
  out.resize(look);
  if (Result<void> read = file.read(address, {out.data(), look}); !read) {
    return std::move(read.error());
  }
  Hdf5Cursor start = file.cursor(out.bytes());
  const std::span<const uint8_t> signature = start.bytes(4);
  const uint8_t version = start.u8();
  start.skip(3);
  const uint64_t size = start.length();
  if (!start.good() || std::memcmp(signature.data(), "GCOL", 4) != 0 || version != 1 ||
      !file.holds(address, size)) {
    return damaged(file, address, "a collection of values that does not begin with GCOL");
  }
  uint64_t at = heads.collection;
  std::vector<uint8_t> head(heads.object);
  for (int objects = 0; objects < kMaxObjects && size - at >= heads.object && at < size;
       ++objects) {
    if (at + heads.object <= look) {
      std::memcpy(head.data(), out.data() + at, heads.object);
    } else if (Result<void> read = file.read(address + at, head); !read) {
      return std::move(read.error());
    }
    Hdf5Cursor in = file.cursor(head);
    const uint16_t index = in.u16();
    in.skip(6);
    const uint64_t object_bytes = in.length();
    if (index == 0) break;  // the rest is free
    const uint64_t begin = at + heads.object;
    if (object_bytes > size - begin) {
      return damaged(file, address + at, "a value that does not fit into its collection");
    }
    if (index != reference.index) {
      at = begin + padded(object_bytes);
      if (at > size) break;
      continue;
    }
    if (object_bytes < bytes) {
      return damaged(file, address + at,
                     "a value of " + std::to_string(object_bytes) + " bytes instead of " +
                         std::to_string(bytes));
    }
    place = {&file, address, size, std::min(begin + padded(object_bytes), size)};
    if (begin + bytes > look) {
      out.resize(bytes);
      const std::span<uint8_t> value(out.data(), bytes);
      if (Result<void> read = file.read(address + begin, value); !read) {
        return std::move(read.error());
      }
      return value;
    }
    return std::span<uint8_t>(out.data() + begin, bytes);
  }
  return damaged(file, address,
                 "value " + std::to_string(reference.index) + " is not in its collection");
}

}  // namespace headrace
