// SPDX-License-Identifier: Apache-2.0
// An object of an HDF5 file (a group, a dataset, a named type): the messages of its header.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "headrace/formats/hdf5/hdf5_file.h"

namespace headrace {

enum class Hdf5MessageType : uint16_t {
  kNil = 0x00,
  kDataspace = 0x01,
  kLinkInfo = 0x02,
  kDatatype = 0x03,
  kOldFillValue = 0x04,
  kFillValue = 0x05,
  kLink = 0x06,
  kExternalFiles = 0x07,
  kLayout = 0x08,
  kFilters = 0x0B,
  kContinuation = 0x10,
  kSymbolTable = 0x11,
};

struct Hdf5Message {
  Hdf5MessageType type = Hdf5MessageType::kNil;
  std::span<const uint8_t> bytes;
  uint64_t address = 0;  // of the bytes
};

class Hdf5Object {
 public:
  // Reads the header with all its continuation blocks; messages stored elsewhere (a named type) are
  // fetched. Throws Exception.
  static Hdf5Object read(const Hdf5File& file, uint64_t address);

  uint64_t address() const { return address_; }
  std::span<const Hdf5Message> messages() const { return messages_; }
  // The first message of its type, or null.
  const Hdf5Message* find(Hdf5MessageType type) const;

 private:
  struct Block {
    uint64_t address, bytes;
  };
  explicit Hdf5Object(uint64_t address) : address_(address) {}
  static Hdf5Object read_shallow(const Hdf5File& file, uint64_t address);
  void read_old(const Hdf5File& file);
  void read_new(const Hdf5File& file);
  void read_continuations(const Hdf5File& file, int version, uint8_t flags);
  void parse(const Hdf5File& file, int version, uint8_t flags, std::span<const uint8_t> bytes,
             uint64_t address);
  void fetch_shared(const Hdf5File& file);

  uint64_t address_;
  std::vector<std::vector<uint8_t>> memory_;  // what the messages point to
  std::vector<Hdf5Message> messages_;
  std::vector<size_t> shared_;  // indices of messages that refer to another object
  std::vector<Block> continuations_;
};

}  // namespace headrace
