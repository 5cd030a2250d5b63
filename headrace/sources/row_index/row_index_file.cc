// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/row_index/row_index_file.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "headrace/base/byte_stream.h"
#include "headrace/base/number_text.h"
#include "headrace/kernels/content_hash.h"
#include "headrace/storage/file.h"

// The file, all numbers little-endian:
//   8 bytes    "HRROWIDX"
//   u32        version;  u32 flags, 0: a reader refuses a file with any that it does not know
//   u64        fingerprint of the dataset;  u64 records;  u64 pictures of each record
//   16 bytes   zero
//   u64        content_hash() of the 56 bytes before
//   slots x    u64 content_hash() of the picture's file;  u64 place: offset << 24 | length,
//              0: there is none
//   entries    u32 checksum, then `length` bytes; the offset is the checksum's
//
// A checksum also covers slot and hash, so that a half-written slot, or an entry overwritten by
// another process, is not mistaken for an index of this picture.

namespace headrace {
namespace {

const ErrorCode kNoRowIndex{
    "HR0460", ErrorKind::kConfig, "not a row index",
    "The file given as index= is not a row index this version can read: it is another file, "
    "truncated, or written by a later version. Create it again with `headrace index`."};

const ErrorCode kOtherDataset{
    "HR0461", ErrorKind::kConfig, "row index belongs to another dataset",
    "A row index belongs to one dataset: the same records with the same names in the same order "
    "(the source's fingerprint). The index given as index= was made from a different dataset. "
    "Create one with `headrace index SOURCE -o FILE`."};

constexpr std::string_view kRowIndexMagic = "HRROWIDX";
// The format of entries has a separate version: those of version 2 can still be read.
constexpr uint32_t kRowIndexVersion = 3, kOldestVersion = 2;
constexpr size_t kKeyAt = 16, kSumAt = 56, kCheckBytes = 4;
constexpr int kLengthBits = 24;  // indexes up to 16 MiB (two days of video), and 1 TiB of entries
constexpr uint64_t kLargestOffset = uint64_t{1} << (64 - kLengthBits);
constexpr int64_t kMaxSlots = int64_t{1} << 36;  // so that table sizes cannot overflow
// A file with at least this many unreferenced bytes, if they are more than half of it, is
// rewritten.
constexpr uint64_t kWasteful = uint64_t{1} << 20;
constexpr size_t kSlotsAtOnce = 4096;

using Header = std::vector<uint8_t>;
using Slot = std::array<uint64_t, 2>;

Header header_of(const RowIndexKey& key, uint32_t version = kRowIndexVersion) {
  ByteWriter header;
  header.bytes(kRowIndexMagic);
  header.number(version);
  header.number(uint32_t{0});
  header.number(key.fingerprint);
  header.number(static_cast<uint64_t>(key.records));
  header.number(static_cast<uint64_t>(key.pictures));
  header.zeros(kSumAt - header.out.size());
  header.number(content_hash(header.out));
  return std::move(header.out);
}

uint64_t end_of_table(const RowIndexKey& key) {
  return RowIndexFile::kHeaderBytes + RowIndexFile::kSlotBytes * uint64_t(key.slots());
}

uint32_t checksum(int64_t slot, uint64_t hash, std::span<const uint8_t> row_index) {
  const uint64_t seed = hash + 0x9E3779B97F4A7C15 * static_cast<uint64_t>(slot);
  return static_cast<uint32_t>(content_hash(row_index, seed));
}

std::optional<RowIndexFile::Place> place_from(const Slot& slot) {
  if (slot[1] == 0) return std::nullopt;
  return RowIndexFile::Place{slot[0], slot[1] >> kLengthBits, slot[1] & RowIndexFile::kLongest};
}

std::span<const uint8_t> bytes_of(const Slot& slot) {
  return {reinterpret_cast<const uint8_t*>(slot.data()), sizeof slot};
}

// Checks that the header belongs to this dataset; returns an error if not.
Result<void> check(const Header& found, const RowIndexKey& key, const std::string& path,
                   bool writable) {
  ByteReader in(found);
  const bool magic = in.text(kRowIndexMagic.size()) == kRowIndexMagic;
  const auto version = in.number<uint32_t>(), flags = in.number<uint32_t>();
  const auto sum = ByteReader(std::span(found).subspan(kSumAt)).number<uint64_t>();
  if (!magic || sum != content_hash(std::span(found).first(kSumAt))) {
    return Error{
        .code = &kNoRowIndex, .what = path + " is not a row index", .where = Where{.file = path}};
  }
  // Readers must understand all flags, and none are defined. Files of older versions are never
  // extended, since older readers accept them.
  const uint32_t oldest = writable ? kRowIndexVersion : kOldestVersion;
  if (version < oldest || version > kRowIndexVersion || flags != 0) {
    return Error{.code = &kNoRowIndex,
                 .what = path + " has version " + std::to_string(version) +
                         ", but this program reads versions " + std::to_string(kOldestVersion) +
                         " to " + std::to_string(kRowIndexVersion),
                 .where = Where{.file = path}};
  }
  if (found == header_of(key, version)) return {};
  return Error{.code = &kOtherDataset,
               .what = path + " was made from another dataset, or this one has changed",
               .where = Where{.file = path},
               .hint = "headrace index SOURCE -o FILE recreates it"};
}

}  // namespace

std::string row_index_cache_name(uint64_t fingerprint) { return "rows-" + hex_text(fingerprint); }

Result<std::unique_ptr<RowIndexFile>> RowIndexFile::open(const std::string& path,
                                                         const RowIndexKey& key, bool writable) {
  std::unique_ptr<GrowingFile> file = GrowingFile::open(path, writable);
  if (!file) return storage_error(errno, "open", path);
  Header header(kHeaderBytes);
  if (!file->read(0, header)) {
    return Error{
        .code = &kNoRowIndex, .what = path + " is too short", .where = Where{.file = path}};
  }
  if (Result<void> good = check(header, key, path, writable); !good) return std::move(good.error());
  if (key.slots() > kMaxSlots || file->size() < end_of_table(key)) {
    return Error{
        .code = &kNoRowIndex, .what = path + " was truncated", .where = Where{.file = path}};
  }
  return std::unique_ptr<RowIndexFile>(new RowIndexFile(path, key, std::move(file)));
}

Result<RowIndexKey> RowIndexFile::key_of(const std::string& path) {
  const std::unique_ptr<GrowingFile> file = GrowingFile::open(path, /*writable=*/false);
  if (!file) return storage_error(errno, "open", path);
  Header header(kHeaderBytes);
  if (!file->read(0, header)) {
    return Error{
        .code = &kNoRowIndex, .what = path + " is too short", .where = Where{.file = path}};
  }
  ByteReader in(std::span<const uint8_t>(header).subspan(kKeyAt));
  const RowIndexKey key{.fingerprint = in.number<uint64_t>(),
                        .records = static_cast<int64_t>(in.number<uint64_t>()),
                        .pictures = static_cast<int64_t>(in.number<uint64_t>())};
  if (Result<void> good = check(header, key, path, false); !good) return std::move(good.error());
  int64_t slots = 0;
  const bool fits = key.records >= 0 && key.pictures >= 0 &&
                    !__builtin_mul_overflow(key.records, key.pictures, &slots);
  if (!fits || slots > kMaxSlots) {
    return Error{
        .code = &kNoRowIndex, .what = path + " is too large", .where = Where{.file = path}};
  }
  return key;
}

std::unique_ptr<RowIndexFile> RowIndexFile::create(const std::string& path,
                                                   const RowIndexKey& key) {
  if (key.slots() > kMaxSlots) return nullptr;
  std::unique_ptr<GrowingFile> file = GrowingFile::create(path);
  // The table is a hole in the file until something is written to it.
  if (!file || !file->write(0, header_of(key)) || !file->grow_to(end_of_table(key))) return nullptr;
  return std::unique_ptr<RowIndexFile>(new RowIndexFile(path, key, std::move(file)));
}

std::unique_ptr<RowIndexFile> RowIndexFile::extend(const std::string& path,
                                                   const RowIndexKey& key) {
  // Checked before opening: a file that another process publishes in between is opened, not
  // replaced.
  const bool missing = ::access(path.c_str(), F_OK) != 0;
  Result<std::unique_ptr<RowIndexFile>> there = open(path, key, /*writable=*/true);
  if (there) {
    const uint64_t live = (*there)->contents().live_bytes + end_of_table(key);
    if ((*there)->file_bytes() < 2 * live + kWasteful) return std::move(*there);
  } else {
    there = open(path, key, false);  // maybe an older version
  }
  const RowIndexFile* old = there ? there->get() : nullptr;
  std::unique_ptr<RowIndexFile> file = create(path, key);
  if (!file || (old && !file->copy_from(*old))) return nullptr;
  if (file->publish(/*replace=*/!missing)) return file;
  there = open(path, key, true);  // another process was faster
  return there ? std::move(*there) : nullptr;
}

RowIndexFile::~RowIndexFile() { flush(); }

bool RowIndexFile::publish(bool replace) { return flush() && file_->publish(replace); }

std::optional<RowIndexFile::Place> RowIndexFile::place_of(int64_t slot) const {
  Slot raw;
  const uint64_t at = kHeaderBytes + kSlotBytes * static_cast<uint64_t>(slot);
  if (!file_->read(at, {reinterpret_cast<uint8_t*>(raw.data()), sizeof raw})) return std::nullopt;
  return place_from(raw);
}

bool RowIndexFile::read(int64_t slot, const Place& place, std::span<uint8_t> out) const {
  uint32_t check;
  std::array<uint8_t, kCheckBytes> raw;
  if (!file_->read(place.offset, raw) || !file_->read(place.offset + kCheckBytes, out))
    return false;
  std::memcpy(&check, raw.data(), sizeof check);
  return check == checksum(slot, place.hash, out);
}

bool RowIndexFile::add(int64_t slot, uint64_t hash, std::span<const uint8_t> row_index) {
  if (row_index.size() > kLongest) {
    errno = EFBIG;
    return false;
  }
  const uint32_t check = checksum(slot, hash, row_index);
  Block full;
  {
    MutexLock lock(mutex_);
    if (failed_ != 0) {
      errno = failed_;
      return false;
    }
    if (block_.bytes.capacity() < kBlockBytes) block_.bytes.reserve(kBlockBytes);
    block_.entries.push_back({slot, hash, block_.bytes.size(), row_index.size()});
    const auto* raw = reinterpret_cast<const uint8_t*>(&check);
    block_.bytes.insert(block_.bytes.end(), raw, raw + sizeof check);
    block_.bytes.insert(block_.bytes.end(), row_index.begin(), row_index.end());
    if (block_.bytes.size() + kSlotBytes * block_.entries.size() < kBlockBytes) return true;
    std::swap(full, block_);
  }
  return write(full);  // without the lock, so that others can continue to add
}

bool RowIndexFile::has_longer(int64_t slot, uint64_t hash, size_t length) const {
  {
    MutexLock lock(mutex_);
    const auto is_longer = [&](const Pending& entry) {
      return entry.slot == slot && entry.hash == hash && entry.length > length;
    };
    if (std::ranges::any_of(block_.entries, is_longer)) return true;
  }
  const std::optional<Place> place = place_of(slot);
  if (!place || place->hash != hash || place->length <= length) return false;
  std::vector<uint8_t> bytes(place->length);
  return read(slot, *place, bytes);
}

bool RowIndexFile::flush() {
  Block rest;
  {
    MutexLock lock(mutex_);
    if (failed_ != 0) {
      errno = failed_;
      return false;
    }
    std::swap(rest, block_);
  }
  return rest.entries.empty() || write(rest);
}

bool RowIndexFile::failed() const {
  MutexLock lock(mutex_);
  return failed_ != 0;
}

bool RowIndexFile::write(const Block& block) {
  const std::optional<uint64_t> begin = file_->append(block.bytes);
  bool good = begin && *begin + block.bytes.size() < kLargestOffset;
  if (begin && !good) errno = EFBIG;
  for (const Pending& entry : block.entries) {
    if (!good) break;
    const Slot slot{entry.hash, (*begin + entry.offset) << kLengthBits | entry.length};
    const uint64_t at = kHeaderBytes + kSlotBytes * static_cast<uint64_t>(entry.slot);
    good = file_->write(at, bytes_of(slot));
  }
  if (!good) {
    const int why = errno;
    MutexLock lock(mutex_);
    failed_ = why != 0 ? why : EIO;
    errno = failed_;
  }
  return good;
}

RowIndexFile::Contents RowIndexFile::contents() const {
  Contents out;
  std::vector<Slot> slots(std::min<size_t>(kSlotsAtOnce, static_cast<size_t>(key_.slots())));
  for (int64_t first = 0; first < key_.slots(); first += kSlotsAtOnce) {
    const size_t count = std::min<size_t>(slots.size(), static_cast<size_t>(key_.slots() - first));
    const uint64_t at = kHeaderBytes + kSlotBytes * static_cast<uint64_t>(first);
    if (!file_->read(at, {reinterpret_cast<uint8_t*>(slots.data()), count * kSlotBytes})) break;
    for (size_t i = 0; i < count; ++i) {
      const std::optional<Place> place = place_from(slots[i]);
      if (!place) continue;
      ++out.entries;
      out.live_bytes += kCheckBytes + place->length;
    }
  }
  return out;
}

bool RowIndexFile::copy_from(const RowIndexFile& other, int64_t first) {
  std::vector<uint8_t> bytes;
  for (int64_t slot = 0; slot < other.key_.slots(); ++slot) {
    const std::optional<Place> place = other.place_of(slot);
    if (!place) continue;
    bytes.resize(place->length);
    if (other.read(slot, *place, bytes) && !add(first + slot, place->hash, bytes)) return false;
  }
  return true;
}

}  // namespace headrace
