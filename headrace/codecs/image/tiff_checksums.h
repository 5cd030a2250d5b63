// SPDX-License-Identifier: Apache-2.0
// Checksums that libtiff may skip: it stops unpacking when a strip or tile has its bytes, and the
// sum comes after whatever follows them. (Builds with libdeflate look at most of them.) Those of
// deflate, and of Zstandard where a frame has one; LZMA's stay libtiff's.
#pragma once

#include <cstdint>
#include <string>

namespace headrace {

class TiffSession;

// The error in the sum of strip or tile `number`; empty if it is right, and for
// compressions that have none. Takes memory for its stored bytes, which are no more than the
// file's.
std::string wrong_checksum(const TiffSession& session, uint32_t number);

}  // namespace headrace
