// SPDX-License-Identifier: Apache-2.0
// For tests: HDF5 files made of structures that a test writes byte by byte, according to "File
// Format Specification Version 3.0". Addresses and lengths have eight bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "headrace/formats/hdf5/hdf5_checksum.h"
#include "headrace/formats/hdf5/hdf5_file.h"
#include "headrace/storage/temporary_folder.h"

namespace headrace::hdf5_test {

template <class Number>
std::string raw(Number value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}
inline std::string u8(uint64_t value) { return raw(static_cast<uint8_t>(value)); }
inline std::string u16(uint64_t value) { return raw(static_cast<uint16_t>(value)); }
inline std::string u32(uint64_t value) { return raw(static_cast<uint32_t>(value)); }
inline std::string u64(uint64_t value) { return raw(value); }
inline std::string zeros(size_t count) { return std::string(count, '\0'); }

inline std::span<const uint8_t> span_of(const std::string& bytes) {
  return {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()};
}
inline std::string text_of(std::span<const uint8_t> bytes) { return {bytes.begin(), bytes.end()}; }

inline std::string with_checksum(const std::string& bytes) {
  return bytes + u32(hdf5_metadata_checksum(span_of(bytes)));
}

class TestFile {
 public:
  // Writes a structure at this address; gaps are filled with zeros.
  void put(uint64_t address, const std::string& bytes) {
    if (bytes_.size() < address + bytes.size()) bytes_.resize(address + bytes.size());
    bytes_.replace(address, bytes.size(), bytes);
  }
  // The same, followed by its checksum.
  void put_checked(uint64_t address, const std::string& bytes) {
    put(address, with_checksum(bytes));
  }
  // Opens the file with a version 0 superblock. For other versions, put one at address 0 and use
  // open_unmodified().
  Hdf5File open() {
    if (bytes_.size() < kSuperblock) bytes_.resize(kSuperblock);
    put(0, "\x89HDF\r\n\x1a\n" + zeros(5) + u8(8) + u8(8) + zeros(9) + u64(0) + u64(UINT64_MAX) +
               u64(bytes_.size()) + u64(UINT64_MAX) + u64(0) + u64(kSuperblock));
    return open_unmodified();
  }
  Hdf5File open_unmodified() const { return Hdf5File::open(folder_.write("file.h5", bytes_)); }

  static constexpr uint64_t kSuperblock = 72;

 private:
  std::string bytes_;
  TemporaryFolder folder_;
};

// "HR0489: what is wrong", or "" if there is no error.
inline std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const Exception& exception) {
    return std::string(exception.error().code->id) + ": " + exception.error().what;
  }
  return "";
}

}  // namespace headrace::hdf5_test
