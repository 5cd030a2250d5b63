// SPDX-License-Identifier: Apache-2.0
// An HDF5 file at the lowest level: its superblock, and reads of structures at an address.
//
// This is our own, read-only implementation: libhdf5 is not safe on untrusted files. It has the
// same levels as the format's specification (versions 3.0 and 4.0 of HDF Group's "File Format
// Specification"): this file, hdf5_object (object headers), hdf5_groups (names), hdf5_messages (a
// dataset's properties), hdf5_chunks (positions of its chunks), hdf5_filters, hdf5_dataset (its
// rows), hdf5_global_heap (variable-length values).
//
// Reads on opening throw Exception with a data error; a read for a record returns its own Result.
// All const members may be called from any thread.
#pragma once

#include <bit>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/byte_stream.h"
#include "headrace/formats/open_budget.h"
#include "headrace/storage/file.h"

namespace headrace {

// The width in bytes with which a file stores numbers whose maximum is `largest`.
inline int hdf5_width(uint64_t largest) { return (int(std::bit_width(largest | 1)) + 7) / 8; }

inline constexpr uint64_t kHdf5Undefined = UINT64_MAX;  // an undefined address

// HR0489 damaged file; HR0490 an unsupported feature; HR0493 more than the limits allow. `member`
// is the object inside the file, if known.
Error hdf5_damaged(const File& file, int64_t offset, std::string what, std::string member = {});
Error hdf5_unsupported(const File& file, std::string what, std::string hint,
                       std::string member = {});
Error hdf5_too_large(const File& file, std::string what, std::string hint, std::string member = {});
// HR0494: it links to another file; such links are never followed.
Error hdf5_leads_outside(const File& file, std::string what, std::string member = {});

// Finds the offset of the superblock; false if this is not an HDF5 file. `most`: the last offset to
// try.
bool find_hdf5_signature(const File& file, uint64_t most, uint64_t& offset);

// Reads consecutive numbers, with the widths stated in the file's superblock.
class Hdf5Cursor {
 public:
  Hdf5Cursor(std::span<const uint8_t> bytes, int address_bytes, int length_bytes)
      : in_(bytes), address_bytes_(address_bytes), length_bytes_(length_bytes) {}
  bool good() const { return in_.good(); }
  size_t left() const { return in_.left(); }
  std::span<const uint8_t> bytes(uint64_t count) { return in_.bytes(count); }
  void skip(uint64_t count) { in_.bytes(count); }
  // REQUIRES: 0 <= bytes <= 8.
  uint64_t number(int bytes);
  uint64_t address();
  uint64_t length() { return number(length_bytes_); }
  uint8_t u8() { return in_.number<uint8_t>(); }
  uint16_t u16() { return in_.number<uint16_t>(); }
  uint32_t u32() { return in_.number<uint32_t>(); }

 private:
  ByteReader in_;
  int address_bytes_, length_bytes_;
};

class Hdf5File {
 public:
  // Throws Exception.
  static Hdf5File open(const std::string& path);

  const File& file() const { return file_; }
  // From now on, structures that are read, and the memory built from them, count toward this
  // budget; null: the source is open and will not read more structures.
  void charge_to(OpenBudget* budget) { budget_ = budget; }
  void spend(uint64_t bytes, std::string_view what) const {
    if (budget_) budget_->spend(bytes, what);
  }
  int address_bytes() const { return address_bytes_; }
  int length_bytes() const { return length_bytes_; }
  uint64_t root() const { return root_; }  // address of the root group's object header

  Hdf5Cursor cursor(std::span<const uint8_t> bytes) const {
    return {bytes, address_bytes_, length_bytes_};
  }
  // The position of an address in the file, for messages.
  int64_t offset_of(uint64_t address) const { return static_cast<int64_t>(base_ + address); }
  // Whether the file contains that many bytes at the address.
  bool holds(uint64_t address, uint64_t bytes) const;
  // Reads a structure of this size. Throws if it is not inside the file. `what`: "a B-tree node".
  std::vector<uint8_t> read(uint64_t address, uint64_t bytes, std::string_view what) const;
  // The same for a structure that begins with a four-letter signature and ends with a checksum of
  // the rest.
  std::vector<uint8_t> read_checked(uint64_t address, uint64_t bytes, std::string_view signature,
                                    std::string_view what) const;
  // Throws if the last four bytes are not the checksum of the others.
  void check(std::span<const uint8_t> bytes, uint64_t address, std::string_view what) const;
  [[noreturn]] void damaged(uint64_t address, std::string what) const;
  // Reads raw data.
  Result<void> read(uint64_t address, std::span<uint8_t> out) const;

 private:
  explicit Hdf5File(File file) : file_(std::move(file)) {}
  void read_superblock();
  void read_widths(uint64_t offset);
  void read_old_superblock(int version);
  void read_new_superblock();
  void check_end(uint64_t end, uint64_t stored_base) const;

  File file_;
  OpenBudget* budget_ = nullptr;
  uint64_t base_ = 0;  // origin of all addresses: the position of the superblock
  int address_bytes_ = 8, length_bytes_ = 8;
  uint64_t root_ = kHdf5Undefined;
};

// --- Version 2 B-trees (hdf5_tree.cc) ---
// Sorted records of a fixed size, of any type. They store the names of large
// groups, and the chunks of datasets that can grow in several dimensions.

// Calls `use` with each record, in order. `types`: the accepted record types; `use` is passed the
// actual type. Throws Exception.
void visit_hdf5_tree(const Hdf5File& file, uint64_t address, std::span<const uint8_t> types,
                     const std::function<void(uint8_t type, std::span<const uint8_t>)>& use);

}  // namespace headrace
