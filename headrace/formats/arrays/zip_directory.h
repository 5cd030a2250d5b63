// SPDX-License-Identifier: Apache-2.0
// The files in a zip archive (PKWARE's APPNOTE 6.3, including zip64), read from its central
// directory. Nothing is extracted to disk, so names are never used as paths.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "headrace/base/error.h"
#include "headrace/storage/file.h"

namespace headrace {

struct ZipMember {
  std::string name;
  uint64_t offset = 0;  // offset of its data in the archive
  uint64_t stored = 0;  // size in the archive
  uint64_t bytes = 0;   // after decompression
  uint32_t crc32 = 0;   // CRC of the decompressed bytes
  bool deflated = false;
};

// All members, in the order of the directory; each is within the file, and offsets and names are
// checked for overlaps and duplicates. HR0426 for a damaged archive, or one that is encrypted or
// uses a method other than stored and deflate; the message names the member.
Result<std::vector<ZipMember>> read_zip_directory(const File& file);

// Reads and decompresses a member, and verifies its CRC. HR0422, HR0423, HR0426.
Result<void> read_zip_member(const File& file, const ZipMember& member, Buffer& out);

// Decompresses the first out.size() bytes of a member, and nothing more of it. HR0422, HR0426.
Result<void> read_zip_begin(const File& file, const ZipMember& member, std::span<uint8_t> out);

bool begins_as_zip(const std::string& path);
// The name in the archive's first local header: at most 255 bytes, empty if there is none. The
// directory may have a different name.
std::string first_zip_name(const std::string& path);

}  // namespace headrace
