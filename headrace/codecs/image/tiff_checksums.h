// SPDX-License-Identifier: Apache-2.0
// Verifies checksums that libtiff may skip: it stops decompressing once a strip or tile is
// complete, and the checksum comes later. (Builds with libdeflate check most of them.) Covers
// deflate, and Zstandard frames with a checksum; libtiff checks LZMA's itself.
#pragma once

#include <cstdint>
#include <string>

namespace headrace {

class TiffSession;

// The checksum error of strip or tile `number`; empty if it is correct, or if the compression has
// no checksums. Allocates memory for its stored bytes, which is limited by the file's size.
std::string wrong_checksum(const TiffSession& session, uint32_t number);

}  // namespace headrace
