// SPDX-License-Identifier: Apache-2.0
// A cached index of a container as hostile input. The beginning, which contains the files, and the
// checksum are corrected first, so that the fuzzer gets past them. Accepted records must be inside
// of the files, and must be written again unchanged.
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "headrace/formats/shards/container_index.h"
#include "headrace/storage/crc32c.h"
#include "headrace/storage/temporary_folder.h"

namespace {

using namespace headrace;

constexpr std::string_view kKind = "fuzz";
constexpr size_t kSizes[] = {1000, 0, 70};

// Everything before the number of records; those of each file are at `counts`.
struct Begin {
  std::vector<uint8_t> bytes;
  std::vector<size_t> counts;
};

Begin begin_of(const FileSet& files) {
  ContainerIndex empty;
  for (size_t i = 0; i < files.size(); ++i) empty.records.end_file();
  Begin begin{.bytes = bytes_from_index(empty, kKind, files), .counts = {}};
  size_t at = 8 + 8 + 4 + 8 + kKind.size() + 8;
  for (size_t i = 0; i < files.size(); ++i) {
    at += 8 + files.path(i).size() + 5 * 8;
    begin.counts.push_back(at);
    at += 8;
  }
  // Followed by no damage, no tallies, no long records, no records; and zeros to a multiple of 8
  // bytes.
  if ((at + 4 * sizeof(uint64_t) + 7) / 8 * 8 != begin.bytes.size()) std::abort();
  begin.bytes.resize(at);
  return begin;
}

void check(const ContainerIndex& index, const FileSet& files) {
  for (int64_t i = 0; i < index.records.size(); ++i) {
    const Extent extent = index.records[i];
    const uint64_t size = files.identity(extent.file).size;
    if (extent.offset > size || extent.bytes > size - extent.offset) std::abort();
  }
  for (const Damage& damage : index.damage) {
    if (damage.record < 0 || damage.record >= index.records.size()) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const TemporaryFolder folder;
  static const FileSet files = [] {
    std::vector<std::string> paths;
    for (const size_t bytes : kSizes) {
      const std::string name = "file" + std::to_string(paths.size());
      paths.push_back(folder.write(name, std::string(bytes, 'x')));
    }
    return FileSet(std::move(paths));
  }();
  static const Begin begin = begin_of(files);
  if (size < begin.counts.size() + 1) return 0;
  std::vector<uint8_t> bytes = begin.bytes;
  for (size_t i = 0; i < begin.counts.size(); ++i) bytes[begin.counts[i]] = data[i];
  const std::span<const uint8_t> rest(data + begin.counts.size() + 1,
                                      size - begin.counts.size() - 1);
  if (data[begin.counts.size()] % 16 == 0) bytes.clear();  // too short even for the prefix
  bytes.insert(bytes.end(), rest.begin(), rest.end());
  if (bytes.size() >= 20) {
    const uint32_t sum = crc32c(std::span<const uint8_t>(bytes).subspan(20));
    std::memcpy(bytes.data() + 16, &sum, sizeof sum);
  }
  if (const auto index = index_from_bytes(bytes, kKind, files)) {
    check(*index, files);
    const std::vector<uint8_t> again = bytes_from_index(*index, kKind, files);
    const auto same = index_from_bytes(again, kKind, files);
    if (!same || bytes_from_index(*same, kKind, files) != again) std::abort();
  }
  return 0;
}
