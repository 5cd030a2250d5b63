// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/hdf5/hdf5_object.h"

#include <algorithm>
#include <cstring>
#include <map>

namespace headrace {
namespace {

constexpr size_t kMaxBlocks = 1024, kMaxMessages = size_t{1} << 20;
constexpr uint64_t kMaxBytes = uint64_t{64} << 20;  // of one object's header
constexpr uint8_t kSharedFlag = 0x02, kFailIfUnknownFlag = 0x80;
constexpr uint16_t kLastKnownType = 0x18;

}  // namespace

const Hdf5Message* Hdf5Object::find(Hdf5MessageType type) const {
  for (const Hdf5Message& message : messages_) {
    if (message.type == type) return &message;
  }
  return nullptr;
}

Hdf5Object Hdf5Object::read(const Hdf5File& file, uint64_t address) {
  Hdf5Object object = read_shallow(file, address);
  object.fetch_shared(file);
  return object;
}

Hdf5Object Hdf5Object::read_shallow(const Hdf5File& file, uint64_t address) {
  Hdf5Object object(address);
  const std::vector<uint8_t> begin = file.read(address, 4, "an object header");
  if (std::memcmp(begin.data(), "OHDR", 4) == 0) {
    object.read_new(file);
  } else {
    object.read_old(file);
  }
  return object;
}

void Hdf5Object::read_old(const Hdf5File& file) {
  const std::vector<uint8_t> prefix = file.read(address_, 16, "an object header");
  Hdf5Cursor in = file.cursor(prefix);
  const uint8_t version = in.u8();
  if (version != 1) {
    file.damaged(address_, "an object header of version " + std::to_string(version));
  }
  in.skip(7);
  const uint32_t bytes = in.u32();
  memory_.push_back(file.read(address_ + 16, bytes, "an object header"));
  parse(file, 1, 0, memory_.back(), address_ + 16);
  read_continuations(file, 1, 0);
}

void Hdf5Object::read_new(const Hdf5File& file) {
  const std::vector<uint8_t> begin = file.read(address_, 6, "an object header");
  if (begin[4] != 2) {
    file.damaged(address_, "an object header of version " + std::to_string(begin[4]));
  }
  const uint8_t flags = begin[5];
  const int width = 1 << (flags & 3);
  const uint64_t prefix = 6 + (flags & 0x20 ? 16 : 0) + (flags & 0x10 ? 4 : 0) + width;
  const std::vector<uint8_t> head = file.read(address_, prefix, "an object header");
  Hdf5Cursor in = file.cursor(std::span(head).last(width));
  const uint64_t bytes = in.number(width);
  if (bytes > file.file().size()) file.damaged(address_, "an object header longer than the file");
  memory_.push_back(file.read_checked(address_, prefix + bytes + 4, "OHDR", "an object header"));
  parse(file, 2, flags, std::span(memory_.back()).subspan(prefix, bytes), address_ + prefix);
  read_continuations(file, 2, flags);
}

void Hdf5Object::read_continuations(const Hdf5File& file, int version, uint8_t flags) {
  uint64_t bytes = memory_[0].size();
  for (size_t i = 0; i < continuations_.size(); ++i) {
    const Block block = continuations_[i];
    bytes += std::min(block.bytes, kMaxBytes);
    if (bytes > kMaxBytes) file.damaged(address_, "an object header of more than 64 MiB");
    for (size_t j = 0; j < i; ++j) {
      if (continuations_[j].address == block.address) {
        file.damaged(block.address, "an object header that refers to itself");
      }
    }
    if (i >= kMaxBlocks) file.damaged(address_, "an object header of more than 1,024 parts");
    if (version == 1) {
      memory_.push_back(file.read(block.address, block.bytes, "a part of an object header"));
      parse(file, version, flags, memory_.back(), block.address);
      continue;
    }
    memory_.push_back(
        file.read_checked(block.address, block.bytes, "OCHK", "a part of an object header"));
    parse(file, version, flags, std::span(memory_.back()).subspan(4, block.bytes - 8),
          block.address + 4);
  }
}

void Hdf5Object::parse(const Hdf5File& file, int version, uint8_t flags,
                       std::span<const uint8_t> bytes, uint64_t address) {
  const size_t head = version == 1 ? 8 : flags & 0x04 ? 6 : 4;
  size_t at = 0;
  while (bytes.size() - at >= head) {
    Hdf5Cursor in = file.cursor(bytes.subspan(at));
    const uint16_t type = version == 1 ? in.u16() : in.u8();
    const uint16_t size = in.u16();
    const uint8_t message_flags = in.u8();
    if (size > bytes.size() - at - head) {
      file.damaged(address + at, "a message of " + std::to_string(size) +
                                     " bytes does not fit into its object header");
    }
    const std::span<const uint8_t> body = bytes.subspan(at + head, size);
    if (type == static_cast<uint16_t>(Hdf5MessageType::kContinuation)) {
      Hdf5Cursor place = file.cursor(body);
      const uint64_t where = place.address(), count = place.length();
      if (!place.good() || where == kHdf5Undefined || (version == 2 && count < 8)) {
        file.damaged(address + at, "a continuation of an object header without an address");
      }
      continuations_.push_back({where, count});
    } else if (type > kLastKnownType && (message_flags & kFailIfUnknownFlag)) {
      throw Exception(hdf5_unsupported(
          file.file(), "an object with a message of the unknown type " + std::to_string(type),
          "write the file with an older libver"));
    } else if (type != static_cast<uint16_t>(Hdf5MessageType::kNil)) {
      if (messages_.size() >= kMaxMessages) file.damaged(address_, "too many messages");
      if (message_flags & kSharedFlag) shared_.push_back(messages_.size());
      messages_.push_back({static_cast<Hdf5MessageType>(type), body, address + at + head});
    }
    at += head + size;
  }
}

// Only messages that datasets need are fetched from other objects. Each object is read once,
// without resolving messages that it shares in turn.
void Hdf5Object::fetch_shared(const Hdf5File& file) {
  std::map<uint64_t, Hdf5Object> others;
  for (size_t index : shared_) {
    Hdf5Message& message = messages_[index];
    if (message.type != Hdf5MessageType::kDatatype && message.type != Hdf5MessageType::kDataspace &&
        message.type != Hdf5MessageType::kFillValue && message.type != Hdf5MessageType::kFilters) {
      continue;
    }
    Hdf5Cursor in = file.cursor(message.bytes);
    const uint8_t version = in.u8(), type = in.u8();
    if (version == 1) in.skip(6);
    const bool in_heap = version == 3 && type == 1;
    if (version < 1 || version > 3)
      file.damaged(message.address,
                   "a shared message of an unknown "
                   "version");
    if (in_heap) {
      throw Exception(hdf5_unsupported(file.file(), "messages in a table that objects share",
                                       "rewrite it with h5repack --low=0"));
    }
    const uint64_t where = in.address();
    if (!in.good() || where == kHdf5Undefined || where == address_) {
      file.damaged(message.address, "a shared message without an address");
    }
    auto at = others.find(where);
    if (at == others.end()) at = others.emplace(where, read_shallow(file, where)).first;
    const Hdf5Object& other = at->second;
    const Hdf5Message* found = other.find(message.type);
    const auto is_shared = [&](const Hdf5Message* it) {
      const size_t number = static_cast<size_t>(it - other.messages_.data());
      return std::binary_search(other.shared_.begin(), other.shared_.end(), number);
    };
    if (!found || is_shared(found)) {
      file.damaged(message.address, "a shared message that is not at its address");
    }
    message = *found;
  }
  for (auto& [address, other] : others) {
    for (std::vector<uint8_t>& memory : other.memory_) memory_.push_back(std::move(memory));
  }
}

}  // namespace headrace
