// SPDX-License-Identifier: Apache-2.0
// A row index file as hostile input. The header is corrected, and the fuzzer chooses which slots
// get a correct checksum, so that it gets past both.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "headrace/kernels/content_hash.h"
#include "headrace/sources/row_index/row_index_file.h"
#include "headrace/storage/growing_file.h"

namespace {

using headrace::RowIndexFile;
using headrace::RowIndexKey;

constexpr RowIndexKey kKey{.fingerprint = 7, .records = 8, .pictures = 1};
constexpr size_t kTableEnd = RowIndexFile::kHeaderBytes + 8 * RowIndexFile::kSlotBytes;

// A file in memory that is recreated for each input.
const std::string& path() {
  static const std::string path = "/proc/self/fd/" + std::to_string(::memfd_create("index", 0));
  return path;
}

std::vector<uint8_t> header() {
  const std::string folder = "/tmp/row_index_fuzz." + std::to_string(::getpid());
  const auto file = RowIndexFile::create(folder, kKey);
  if (!file || !file->publish(true)) std::abort();
  std::vector<uint8_t> out(RowIndexFile::kHeaderBytes);
  if (!headrace::GrowingFile::open(folder, false)->read(0, out)) std::abort();
  ::unlink(folder.c_str());
  return out;
}

// Corrects the checksum of the entry that a slot points to.
void make_right(std::vector<uint8_t>& bytes, size_t slot) {
  uint64_t hash, place;
  std::memcpy(&hash, bytes.data() + RowIndexFile::kHeaderBytes + 16 * slot, sizeof hash);
  std::memcpy(&place, bytes.data() + RowIndexFile::kHeaderBytes + 16 * slot + 8, sizeof place);
  const uint64_t offset = place >> 24, length = place & RowIndexFile::kLongest;
  if (offset < kTableEnd || offset > bytes.size() || bytes.size() - offset < 4 + length) return;
  const uint64_t seed = hash + 0x9E3779B97F4A7C15 * slot;
  const auto sum = static_cast<uint32_t>(
      headrace::content_hash(std::span(bytes).subspan(offset + 4, length), seed));
  std::memcpy(bytes.data() + offset, &sum, sizeof sum);
}

void use(bool writable) {
  auto opened = RowIndexFile::open(path(), kKey, writable);
  if (!opened) return;
  RowIndexFile& file = **opened;
  if (file.contents().entries > kKey.slots()) std::abort();
  std::vector<uint8_t> out;
  for (int64_t slot = 0; slot < kKey.slots(); ++slot) {
    const auto place = file.place_of(slot);
    if (!place) continue;
    if (place->length > RowIndexFile::kLongest) std::abort();
    out.resize(place->length);
    (void)file.read(slot, *place, out);
  }
  if (!writable) return;
  const std::vector<uint8_t> rows{1, 2, 3};
  if (!file.add(3, 99, rows) || !file.flush()) std::abort();
  const auto place = file.place_of(3);
  out.resize(3);
  if (!place || place->hash != 99 || !file.read(3, *place, out) || out != rows) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  static const std::vector<uint8_t> start = header();
  std::vector<uint8_t> bytes;
  const uint8_t right = data[0];
  if (right != 0) bytes = start;  // otherwise not even the header
  bytes.insert(bytes.end(), data + 1, data + size);
  for (size_t slot = 0; slot < 8 && bytes.size() >= kTableEnd; ++slot) {
    if (right >> slot & 1) make_right(bytes, slot);
  }
  const auto file = headrace::GrowingFile::open(path(), true);
  if (!file || !file->grow_to(0) || !file->write(0, bytes)) std::abort();
  use(false);
  use(true);
  return 0;
}
