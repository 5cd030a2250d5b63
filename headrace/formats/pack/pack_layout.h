// SPDX-License-Identifier: Apache-2.0
// Reads and writes the bytes of a pack's header, pages and index, as specified in
// docs/spec/pack-format.md.
//
// Input may be hostile: every length, count and offset is checked, and nothing is allocated based
// only on a number in the file. These functions do not open files.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/error.h"
#include "headrace/sources/schema.h"

namespace headrace {

inline constexpr std::string_view kPackMagic = "\x89HRPACK\n";
inline constexpr std::string_view kPackEndMagic = "HRPACK/\n";
inline constexpr uint32_t kPageMagic = 0x47505248;  // "HRPG"
inline constexpr uint32_t kPackVersion = 1;
// Feature bits that a reader must support. kVideoIndexes: each encoded video is followed by its
// index. kEntriesInRows: dense images have version 2, whose row index has entries inside of rows.
inline constexpr uint64_t kVideoIndexes = 1, kEntriesInRows = 2;
inline constexpr uint64_t kPackFeatures = kVideoIndexes | kEntriesInRows;

inline constexpr size_t kPackHeaderFixed = 88, kPageHeaderBytes = 64, kPackTailBytes = 64;
inline constexpr size_t kPageAlignment = 4096, kBlobAlignment = 16, kSectionAlignment = 8;
inline constexpr uint64_t kDefaultPageBytes = uint64_t{8} << 20;
// Larger values of a fixed shape are stored as blobs, because columns stay in memory while a pack
// is open.
inline constexpr int64_t kMaxColumnBytes = 64;

inline constexpr uint64_t aligned(uint64_t bytes, uint64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

// The format of a blob's bytes in the pack.
enum class PackForm : uint8_t { kAsIs = 0, kFast = 1, kDense = 2, kIndexed = 3 };
inline constexpr int kPackForms = 4;
inline constexpr uint8_t kFormBits = 0x7F;
inline constexpr uint8_t kUnusableBit = 0x80;  // the image could not be decoded when it was packed

// Bytes of one value if a field is stored as a column, 0 if as a blob.
size_t column_bytes(const Field& field);
// Whether a blob ends with its shape: 64-bit sizes after the elements.
bool has_own_shape(const Field& field);

struct PackHeader {
  uint64_t header_bytes = 0;  // offset of the first page
  uint64_t page_bytes = kDefaultPageBytes;
  uint32_t shard = 0, shards = 1;
  uint64_t first_record = 0;     // index of the shard in the dataset
  uint64_t records = 0;          // of the complete shard
  uint64_t dataset_records = 0;  // of all shards
  uint64_t plan = 0;             // equal in all shards, and when packing resumes
  bool keys_are_paths = false;
  bool video_indexes = false;    // kVideoIndexes
  bool entries_in_rows = false;  // kEntriesInRows
  Schema schema;
  std::vector<std::string> classes;
};

std::vector<uint8_t> bytes_from_header(const PackHeader& header);
// The size of the header in bytes, from its first kPackHeaderFixed bytes. HR0440 if it is not a
// pack, HR0441 if the pack needs a newer reader.
Result<uint32_t> header_bytes(std::span<const uint8_t> fixed);
Result<PackHeader> header_from_bytes(std::span<const uint8_t> bytes);

struct PageHeader {
  uint64_t bytes = 0;  // of the whole page, a multiple of kPageAlignment
  uint64_t number = 0;
  uint64_t first_record = 0;  // in the shard
  uint32_t records = 0;
  uint32_t table_bytes = 0;
  uint32_t data_offset = 0;  // from the start of the page to the first blob
  uint32_t checksum = 0;     // of this header after its first 8 bytes, and of the table
};

// The header of a page with this table, including the checksum.
std::array<uint8_t, kPageHeaderBytes> bytes_from_page(PageHeader page,
                                                      std::span<const uint8_t> table);
// Returns zeros (bytes == 0) if it is not a page header, or is inconsistent.
PageHeader page_from_bytes(std::span<const uint8_t> bytes);
bool is_intact(std::span<const uint8_t> header_bytes, std::span<const uint8_t> table);

enum class SectionTag : uint32_t {
  kPages = 1,          // per page {u64 offset, u64 offset of its first blob, u64 first record}
  kColumn = 2,         // values of a field
  kStoredBytes = 3,    // u32 per blob of a field
  kStoredSum = 4,      // likewise: checksum of the stored bytes
  kOriginalBytes = 5,  // likewise: size after unpacking
  kOriginalSum = 6,
  kForm = 7,    // u8 each
  kReason = 8,  // u8 per blob, an index into kReasons, or 0
  kKeyBytes = 9,
  kKeys = 10,
  kReasons = 11,
};
inline constexpr uint32_t kMustUnderstand = 1;
inline constexpr size_t kSectionEntryBytes = 32, kPageEntryBytes = 24;

struct Section {
  SectionTag tag = SectionTag::kPages;
  uint32_t field = 0;
  uint64_t offset = 0, bytes = 0;
  uint32_t checksum = 0;
  uint32_t flags = 0;
};

std::vector<uint8_t> bytes_from_sections(const std::vector<Section>& sections);
// REQUIRES: bytes.size() is a multiple of kSectionEntryBytes.
std::vector<Section> sections_from_bytes(std::span<const uint8_t> bytes);

struct PackTail {
  uint64_t directory_offset = 0;
  uint32_t sections = 0;
  uint32_t directory_checksum = 0;
  uint64_t records = 0;
  uint64_t pages = 0;
  uint64_t content = 0;     // sum of the records' marks (pack_table.h)
  uint64_t file_bytes = 0;  // of the whole file
};

std::array<uint8_t, kPackTailBytes> bytes_from_tail(const PackTail& tail);
// False if the bytes are not a tail: the pack was truncated, or something was appended to it.
bool tail_from_bytes(std::span<const uint8_t> bytes, PackTail& out);

}  // namespace headrace
