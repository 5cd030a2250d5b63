// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/hdf5/hdf5_heap.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

#include "headrace/formats/hdf5/hdf5_checksum.h"

namespace headrace {
namespace {

constexpr uint64_t kMaxKept = uint64_t{64} << 20;
constexpr uint64_t kMaxBlock = uint64_t{16} << 20;  // libhdf5 makes direct blocks of 64 KiB

}  // namespace

Hdf5Heap::Hdf5Heap(const Hdf5File& file, uint64_t address) : file_(file), address_(address) {
  const uint64_t plain = 22 + 12 * file.length_bytes() + 3 * file.address_bytes();
  const std::vector<uint8_t> begin = file.read(address, plain, "a fractal heap");
  Hdf5Cursor in = file.cursor(begin);
  in.skip(4);
  const uint8_t version = in.u8();
  in.skip(2);  // size of an identifier
  const uint16_t filter_bytes = in.u16();
  const uint8_t flags = in.u8();
  if (filter_bytes > 0) {
    throw Exception(
        hdf5_unsupported(file.file(), "a group with filtered links", "rewrite it with h5repack"));
  }
  (void)file.read_checked(address, plain + 4, "FRHP", "a fractal heap");
  checked_ = (flags & 2) != 0;
  max_managed_ = in.u32();
  in.skip(10 * file.length_bytes() + 2 * file.address_bytes());  // huge objects, free space, counts
  width_ = in.u16();
  first_bytes_ = in.length();
  max_direct_ = in.length();
  const uint16_t heap_bits = in.u16();
  in.skip(2);  // initial number of rows of the root
  root_ = in.address();
  root_rows_ = in.u16();
  if (!in.good() || version != 0 || width_ == 0 || width_ > 1024 || heap_bits == 0 ||
      heap_bits > 64 || !std::has_single_bit(first_bytes_) || !std::has_single_bit(max_direct_) ||
      first_bytes_ > max_direct_ || max_direct_ > kMaxBlock) {
    file.damaged(address, "a fractal heap with invalid sizes");
  }
  offset_bytes_ = (heap_bits + 7) / 8;
  size_bytes_ = hdf5_width(std::min<uint64_t>(max_direct_, max_managed_));
  direct_rows_ =
      static_cast<unsigned>(std::bit_width(max_direct_) - std::bit_width(first_bytes_)) + 2;
  max_rows_ = 66;
  if (root_rows_ > max_rows_) file.damaged(address, "a fractal heap of too many rows");
}

uint64_t Hdf5Heap::row_bytes(unsigned row) const {
  const unsigned shift = row == 0 ? 0 : row - 1;
  return shift >= 63 || first_bytes_ > (uint64_t{1} << 62) >> shift ? uint64_t{1} << 62
                                                                    : first_bytes_ << shift;
}

std::span<const uint8_t> Hdf5Heap::object(std::span<const uint8_t> id) {
  Hdf5Cursor in = file_.cursor(id);
  const uint8_t flags = in.u8();
  if ((flags & 0x30) != 0) {
    throw Exception(hdf5_unsupported(file_.file(), "a group with a link of several kilobytes",
                                     "shorten the names in it"));
  }
  const uint64_t at = in.number(offset_bytes_), bytes = in.number(size_bytes_);
  if (!in.good() || (flags & 0xC0) != 0)
    file_.damaged(address_, "a wrong identifier in a fractal heap");
  uint64_t begin = 0, block_bytes = 0;
  const uint64_t address = find(at, begin, block_bytes);
  const Block& block = direct(address, begin, block_bytes);
  const uint64_t inside = at - begin;
  if (inside > block.bytes.size() || bytes > block.bytes.size() - inside) {
    file_.damaged(address, "an object that does not fit into its block of a fractal heap");
  }
  return std::span(block.bytes).subspan(inside, bytes);
}

uint64_t Hdf5Heap::find(uint64_t at, uint64_t& begin, uint64_t& bytes) {
  if (root_ == kHdf5Undefined) file_.damaged(address_, "an object in an empty fractal heap");
  begin = 0, bytes = first_bytes_;
  if (root_rows_ == 0) return root_;
  uint64_t address = root_;
  unsigned rows = root_rows_;
  for (int depth = 0; depth < 64; ++depth) {
    const std::vector<uint8_t>& block = indirect(address, rows, begin);
    unsigned row = 0;
    uint64_t row_begin = begin;
    uint64_t column = 0;
    for (;; ++row) {
      if (row >= rows) file_.damaged(address, "an object beyond the end of a fractal heap");
      column = (at - row_begin) / row_bytes(row);
      if (column < width_) break;
      row_begin += width_ * row_bytes(row);
    }
    const uint64_t entry = 5 + file_.address_bytes() + offset_bytes_ +
                           (uint64_t{row} * width_ + column) * file_.address_bytes();
    Hdf5Cursor in = file_.cursor(std::span(block).subspan(entry));
    address = in.address();
    if (address == kHdf5Undefined)
      file_.damaged(address_, "an object in no block of a fractal heap");
    begin = row_begin + column * row_bytes(row);
    bytes = row_bytes(row);
    if (row < direct_rows_) return address;
    // As many rows as add up to the size of the parent's entry.
    rows = static_cast<unsigned>(std::bit_width(bytes) - std::bit_width(first_bytes_ * width_)) + 1;
    if (bytes < first_bytes_ * width_ || rows > max_rows_) {
      file_.damaged(address, "a fractal heap with invalid rows");
    }
  }
  file_.damaged(address_, "a fractal heap that is nested too deeply");
}

const std::vector<uint8_t>& Hdf5Heap::indirect(uint64_t address, unsigned rows, uint64_t begin) {
  if (const auto known = indirect_.find(address); known != indirect_.end()) {
    const uint64_t entries = uint64_t{rows} * width_ * file_.address_bytes();
    if (known->second.size() == 5 + file_.address_bytes() + offset_bytes_ + entries + 4) {
      return known->second;
    }
    file_.damaged(address, "a fractal heap that refers to itself");
  }
  const uint64_t bytes = 5 + file_.address_bytes() + offset_bytes_ +
                         uint64_t{rows} * width_ * file_.address_bytes() + 4;
  std::vector<uint8_t> block =
      file_.read_checked(address, bytes, "FHIB", "a block of a fractal heap");
  Hdf5Cursor in = file_.cursor(std::span(block).subspan(5));
  if (in.address() != address_ || in.number(offset_bytes_) != begin) {
    file_.damaged(address, "a block of another fractal heap");
  }
  kept_ += bytes;
  if (kept_ > kMaxKept) direct_.clear(), indirect_.clear(), kept_ = bytes;
  return indirect_[address] = std::move(block);
}

const Hdf5Heap::Block& Hdf5Heap::direct(uint64_t address, uint64_t begin, uint64_t bytes) {
  if (const auto known = direct_.find(address); known != direct_.end()) {
    if (known->second.begin != begin || known->second.bytes.size() != bytes) {
      file_.damaged(address, "a fractal heap that refers to itself");
    }
    return known->second;
  }
  std::vector<uint8_t> block = file_.read(address, bytes, "a block of a fractal heap");
  Hdf5Cursor in = file_.cursor(block);
  const std::span<const uint8_t> signature = in.bytes(4);
  const uint8_t version = in.u8();
  const uint64_t heap = in.address(), offset = in.number(offset_bytes_);
  if (!in.good() || std::memcmp(signature.data(), "FHDB", 4) != 0 || version != 0 ||
      heap != address_ || offset != begin) {
    file_.damaged(address, "a block of another fractal heap");
  }
  if (checked_) {  // computed over the block with zeros in place of the checksum
    const size_t at = 5 + file_.address_bytes() + offset_bytes_;
    const uint32_t stored = in.u32();
    if (!in.good()) file_.damaged(address, "a block of a fractal heap that is too short");
    std::memset(block.data() + at, 0, sizeof stored);
    if (hdf5_metadata_checksum(block) != stored) {
      file_.damaged(address, "the checksum of a fractal heap's block is wrong");
    }
  }
  kept_ += bytes;
  if (kept_ > kMaxKept) direct_.clear(), indirect_.clear(), kept_ = bytes;
  return direct_[address] = {begin, std::move(block)};
}

}  // namespace headrace
