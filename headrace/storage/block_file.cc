// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/block_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <utility>

#include "headrace/base/byte_stream.h"
#include "headrace/storage/crc32c.h"

// The file:
//   the block's bytes
//   text     path as shown to the user (u64 length, bytes)
//   u64 x 3  device, inode and size of the file;  i64 modification time
//   u64      offset of the block in it;  u64 bytes
//   u32 ...  CRC-32C of each chunk
//   u32      bytes from the path up to here;  u32 CRC-32C of these
//   8 bytes  "HRBLOCK1"

namespace headrace {
namespace {

constexpr std::string_view kBlockMagic = "HRBLOCK1";
constexpr uint64_t kBlockTail = 16, kMaxFooter = uint64_t{16} << 20;

uint64_t chunks_of(uint64_t bytes) { return (bytes + BlockFile::kChunk - 1) / BlockFile::kChunk; }

// Fills all of `out` by pread.
bool read_bytes_at(int descriptor, uint64_t offset, std::span<uint8_t> out) {
  while (!out.empty()) {
    const ssize_t got = ::pread(descriptor, out.data(), out.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    out = out.subspan(static_cast<size_t>(got));
    offset += static_cast<uint64_t>(got);
  }
  return true;
}

}  // namespace

std::vector<uint8_t> BlockFile::footer(const BlockId& id, std::span<const uint8_t> bytes) {
  ByteWriter out;
  out.number(uint64_t{id.path.size()});
  out.bytes(id.path);
  out.number(id.identity.device);
  out.number(id.identity.inode);
  out.number(id.identity.size);
  out.number(id.identity.modified_ns);
  out.number(id.offset);
  out.number(id.bytes);
  for (uint64_t begin = 0; begin < bytes.size(); begin += kChunk) {
    out.number(crc32c(bytes.subspan(begin, std::min<uint64_t>(kChunk, bytes.size() - begin))));
  }
  const uint32_t sum = crc32c(out.out);
  out.number(static_cast<uint32_t>(out.out.size()));
  out.number(sum);
  out.bytes(kBlockMagic);
  return std::move(out.out);
}

std::unique_ptr<const BlockFile> BlockFile::open(int descriptor) {
  struct Closer {
    int descriptor;
    ~Closer() {
      if (descriptor >= 0) ::close(descriptor);
    }
  } closer{descriptor};
  struct stat status{};
  std::array<uint8_t, kBlockTail> tail;
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) return nullptr;
  const auto size = static_cast<uint64_t>(status.st_size);
  if (size < kBlockTail || !read_bytes_at(descriptor, size - kBlockTail, tail)) return nullptr;
  ByteReader end(tail);
  const auto footer_bytes = end.number<uint32_t>();
  const auto sum = end.number<uint32_t>();
  if (end.text(kBlockMagic.size()) != kBlockMagic) return nullptr;
  if (footer_bytes > kMaxFooter || footer_bytes > size - kBlockTail) return nullptr;
  std::vector<uint8_t> footer(footer_bytes);
  if (!read_bytes_at(descriptor, size - kBlockTail - footer_bytes, footer) ||
      crc32c(footer) != sum) {
    return nullptr;
  }
  ByteReader in(footer);
  BlockId id;
  id.path = std::string(in.text(in.number<uint64_t>()));
  id.identity.device = in.number<uint64_t>();
  id.identity.inode = in.number<uint64_t>();
  id.identity.size = in.number<uint64_t>();
  id.identity.modified_ns = in.number<int64_t>();
  id.offset = in.number<uint64_t>();
  id.bytes = in.number<uint64_t>();
  if (!in.good() || id.bytes != size - kBlockTail - footer_bytes) return nullptr;
  if (in.left() != chunks_of(id.bytes) * sizeof(uint32_t)) return nullptr;
  std::vector<uint32_t> sums(chunks_of(id.bytes));
  for (uint32_t& each : sums) each = in.number<uint32_t>();
  return std::unique_ptr<const BlockFile>(
      new BlockFile(std::exchange(closer.descriptor, -1), std::move(id), std::move(sums)));
}

BlockFile::~BlockFile() { ::close(descriptor_); }

BlockFile::Got BlockFile::read(uint64_t begin, std::span<uint8_t> out, bool may_wait) const {
  if (out.empty()) return Got::kAll;
  // Reads whole chunks, to verify their checksums: directly into `out`, except for the parts before
  // and after it.
  std::array<uint8_t, kChunk> before, after;
  const uint64_t end = begin + out.size(), first = begin / kChunk;
  const uint64_t head = begin - first * kChunk;
  const uint64_t last_end = std::min(id_.bytes, chunks_of(end) * kChunk);
  std::array<iovec, 3> parts{iovec{before.data(), head}, iovec{out.data(), out.size()},
                             iovec{after.data(), last_end - end}};
  const uint64_t wanted = last_end - first * kChunk;
  ssize_t got;
  do {
    got = ::preadv2(descriptor_, parts.data(), int{parts.size()},
                    static_cast<off_t>(first * kChunk), may_wait ? 0 : RWF_NOWAIT);
    if (got < 0 && errno == EOPNOTSUPP && !may_wait) return Got::kWouldWait;
  } while (got < 0 && errno == EINTR);
  if (got < 0 && errno == EAGAIN) return Got::kWouldWait;
  if (got >= 0 && static_cast<uint64_t>(got) < wanted && !may_wait) return Got::kWouldWait;
  if (got < 0 || static_cast<uint64_t>(got) != wanted) return Got::kDamaged;
  uint64_t at = first * kChunk;
  for (uint64_t chunk = first; at < last_end; ++chunk) {
    const uint64_t chunk_end = std::min(id_.bytes, (chunk + 1) * kChunk);
    uint32_t sum = 0;
    if (at < begin) sum = crc32c(std::span(before).first(head));
    const uint64_t from = std::max(at, begin), to = std::min(chunk_end, end);
    sum = crc32c(out.subspan(from - begin, to - from), sum);
    if (chunk_end > end) sum = crc32c(std::span(after).first(chunk_end - end), sum);
    if (sum != sums_[chunk]) return Got::kDamaged;
    at = chunk_end;
  }
  return Got::kAll;
}

void BlockFile::set_time(int64_t seconds) const {
  const timespec times[] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT},
                            {.tv_sec = seconds, .tv_nsec = 0}};
  (void)::futimens(descriptor_, times);
}

bool BlockFile::is_deleted() const {
  struct stat status{};
  return ::fstat(descriptor_, &status) == 0 && status.st_nlink == 0;
}

}  // namespace headrace
