// SPDX-License-Identifier: Apache-2.0
// The .about file of an unpacked copy as hostile input, with a corrected checksum, so that the
// fuzzer gets past it. Whatever it contains, the resulting copy is complete, or is made again.
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "headrace/storage/crc32c.h"
#include "headrace/storage/file.h"
#include "headrace/storage/temporary_folder.h"
#include "headrace/storage/unpacked_copy.h"

namespace headrace {
namespace {

constexpr size_t kSum = 8, kSumEnd = 12;  // offsets in the .about file
// A gzip file of 1,000 letters a.
constexpr unsigned char kPacked[] = {0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03,
                                     0x4b, 0x4c, 0x1c, 0x05, 0xa3, 0x60, 0x14, 0x0c, 0x77, 0x00,
                                     0x00, 0x03, 0xda, 0x38, 0x9a, 0xe8, 0x03, 0x00, 0x00};

struct Kept {
  TemporaryFolder folder;
  CacheDirectory cache{folder / "cache"};
  std::string packed =
      folder.write("a.tar.gz", {reinterpret_cast<const char*>(kPacked), sizeof kPacked});
  std::string copy, about;
  std::vector<uint8_t> sound;

  Kept() {
    Result<UnpackedCopy> made = unpacked_copy(packed, Packing::kGzip, cache);
    if (!made || made->damage) std::abort();
    copy = made->path;
    about = copy + ".about";
    Buffer bytes;
    if (!read_file(about, bytes)) std::abort();
    sound.assign(bytes.bytes().begin(), bytes.bytes().end());
  }
};

}  // namespace
}  // namespace headrace

// The first byte selects how much of a valid file precedes the input.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headrace;
  static const Kept kept;
  if (size < 1) return 0;
  std::vector<uint8_t> bytes = kept.sound;
  bytes.resize(std::min<size_t>(data[0], bytes.size()));
  bytes.insert(bytes.end(), data + 1, data + size);
  if (bytes.size() >= kSumEnd) {
    const uint32_t sum = crc32c(std::span<const uint8_t>(bytes).subspan(kSumEnd));
    std::memcpy(bytes.data() + kSum, &sum, sizeof sum);
  }
  std::ofstream(kept.about, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), std::streamsize(bytes.size()));
  const Result<UnpackedCopy> got = unpacked_copy(kept.packed, Packing::kGzip, kept.cache);
  if (!got || got->path != kept.copy || std::filesystem::file_size(got->path) != 1000) std::abort();
  return 0;
}
