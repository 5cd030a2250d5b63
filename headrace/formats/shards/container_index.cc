// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/shards/container_index.h"

#include <algorithm>
#include <atomic>
#include <cstdio>

#include "headrace/base/byte_stream.h"
#include "headrace/base/cores.h"
#include "headrace/sources/fingerprint.h"
#include "headrace/sources/in_order.h"
#include "headrace/storage/crc32c.h"
#include "headrace/storage/file_times.h"

// The kept file, all numbers little-endian (text: u64 length, bytes):
//   8 bytes    "HRCONTNR"
//   u64        version
//   u32        CRC-32C of all that follows
//   text       kind
//   u64        files;    files x   text path, u64 device, inode, size, i64 modified_ns,
//                                  i64 status changed (shows a write in place), u64 records
//   u64        records;  records x u64 offset, u64 bytes
//   u64        damage;   damage x  i64 record, u64 offset, text code, what, hint
//   u64        tallies;  tallies x text name, i64 count

namespace headrace {
namespace {

constexpr std::string_view kMagic = "HRCONTNR";
constexpr uint64_t kVersion = 2;
constexpr size_t kChecksumEnd = 20;
// Looking through a small container is quicker than it is worth a file in the cache.
constexpr int64_t kWorthKeeping = 1000;

void write_text(std::string_view text, ByteWriter& out) {
  out.number(uint64_t{text.size()});
  out.bytes(text);
}

std::string read_text(ByteReader& in) { return std::string(in.text(in.number<uint64_t>())); }

// What one thread brings back from one file.
struct Scanned {
  ContainerIndex index;
  std::optional<Error> error;
};

ContainerIndex scan_all(const FileSet& files, const ScanFile& scan, const Progress& progress) {
  ContainerIndex all;
  const auto total = static_cast<int64_t>(files.total_bytes());
  std::atomic<int64_t> passed{0};
  std::atomic<bool> stopping{false};
  struct Stop {};
  const auto scan_one = [&](int64_t number) {
    Scanned out;
    Result<File> file = File::open(files.path(static_cast<size_t>(number)));
    if (!file) {
      out.error = std::move(file.error());
      return out;
    }
    uint64_t reached = 0;
    const auto report = [&](uint64_t offset) {
      if (stopping) throw Stop();
      passed += static_cast<int64_t>(offset - reached);
      reached = offset;
    };
    try {
      if (Result<void> done = scan(*file, out.index, report); !done) out.error = done.error();
    } catch (const Stop&) {
    }
    out.index.records.end_file();
    passed += static_cast<int64_t>(file->size()) - static_cast<int64_t>(reached);
    return out;
  };
  const auto take = [&](Scanned one) {
    if (one.error) throw Exception(std::move(*one.error));
    for (Damage& damage : one.index.damage) {
      damage.record += all.records.size();
      all.damage.push_back(std::move(damage));
    }
    all.records.append(one.index.records);
    for (const auto& [name, count] : one.index.tallies) all.tallies[name] += count;
  };
  const auto tick = [&](int64_t) {
    if (!progress) return;
    try {
      progress(std::min(passed.load(), total), total);
    } catch (...) {
      stopping = true;
      throw;
    }
  };
  const auto count = static_cast<int64_t>(files.size());
  InOrder<Scanned> threads(0, count, SIZE_MAX);
  try {
    threads.run(
        static_cast<int>(std::min<int64_t>(allowed_cores().count(), count)),
        [&] { return scan_one; }, [](const Scanned&) { return size_t{1} << 20; }, take, tick);
  } catch (...) {
    stopping = true;
    throw;
  }
  all.records.shrink();
  return all;
}

}  // namespace

void ContainerIndex::add_damage(const File& file, uint64_t offset, const ErrorCode& code,
                                std::string what, std::string hint) {
  damage.push_back({.record = records.size(),
                    .offset = offset,
                    .code = std::string(code.id),
                    .what = std::move(what),
                    .hint = std::move(hint)});
  records.add(offset, file.size() - std::min(offset, file.size()));
}

std::string container_index_name(std::string_view kind, const FileSet& files) {
  Fingerprint print;
  print.add(kind);
  for (size_t i = 0; i < files.size(); ++i) print.add(files.path(i));
  char name[40];
  std::snprintf(name, sizeof name, "container-%016llx",
                static_cast<unsigned long long>(print.value()));
  return name;
}

std::vector<uint8_t> bytes_from_index(const ContainerIndex& index, std::string_view kind,
                                      const FileSet& files) {
  ByteWriter out;
  out.out.reserve(static_cast<size_t>(index.records.size()) * 16 + 4096);
  out.bytes(kMagic);
  out.number(kVersion);
  out.number(uint32_t{0});
  write_text(kind, out);
  out.number(uint64_t{files.size()});
  for (size_t i = 0; i < files.size(); ++i) {
    const FileIdentity& file = files.identity(i);
    write_text(files.path(i), out);
    out.number(file.device);
    out.number(file.inode);
    out.number(file.size);
    out.number(file.modified_ns);
    out.number(status_changed_ns(files.path(i)));
    out.number(static_cast<uint64_t>(index.records.end_of(i) - index.records.first_of(i)));
  }
  out.number(static_cast<uint64_t>(index.records.size()));
  for (int64_t i = 0; i < index.records.size(); ++i) {
    const Extent extent = index.records[i];
    out.number(extent.offset);
    out.number(extent.bytes);
  }
  out.number(uint64_t{index.damage.size()});
  for (const Damage& damage : index.damage) {
    out.number(damage.record);
    out.number(damage.offset);
    for (const std::string* text : {&damage.code, &damage.what, &damage.hint}) {
      write_text(*text, out);
    }
  }
  out.number(uint64_t{index.tallies.size()});
  for (const auto& [name, count] : index.tallies) {
    write_text(name, out);
    out.number(count);
  }
  const uint32_t sum = crc32c(std::span<const uint8_t>(out.out).subspan(kChecksumEnd));
  std::memcpy(out.out.data() + kChecksumEnd - sizeof sum, &sum, sizeof sum);
  return std::move(out.out);
}

std::optional<ContainerIndex> index_from_bytes(std::span<const uint8_t> bytes,
                                               std::string_view kind, const FileSet& files) {
  ByteReader in(bytes);
  if (in.text(kMagic.size()) != kMagic || in.number<uint64_t>() != kVersion) return {};
  const auto sum = in.number<uint32_t>();
  if (!in.good() || sum != crc32c(bytes.subspan(kChecksumEnd))) return {};
  if (read_text(in) != kind || in.number<uint64_t>() != files.size()) return {};
  std::vector<uint64_t> counts;
  for (size_t i = 0; i < files.size(); ++i) {
    if (read_text(in) != files.path(i)) return {};
    FileIdentity file;
    file.device = in.number<uint64_t>();
    file.inode = in.number<uint64_t>();
    file.size = in.number<uint64_t>();
    file.modified_ns = in.number<int64_t>();
    if (in.number<int64_t>() != status_changed_ns(files.path(i))) return {};
    counts.push_back(in.number<uint64_t>());
    if (!in.good() || file != files.identity(i)) return {};
  }
  ContainerIndex index;
  auto left = in.number<uint64_t>();
  if (!in.good() || left > in.left() / 16) return {};
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] > left) return {};
    const uint64_t size = files.identity(i).size;
    for (uint64_t record = 0; record < counts[i]; ++record) {
      const auto offset = in.number<uint64_t>(), length = in.number<uint64_t>();
      if (offset > size || length > size - offset) return {};
      index.records.add(offset, length);
    }
    index.records.end_file();
    left -= counts[i];
  }
  if (left != 0) return {};
  for (auto damages = in.number<uint64_t>(); damages > 0 && in.good(); --damages) {
    Damage damage;
    damage.record = in.number<int64_t>();
    damage.offset = in.number<uint64_t>();
    for (std::string* text : {&damage.code, &damage.what, &damage.hint}) *text = read_text(in);
    const bool follows = index.damage.empty() || damage.record > index.damage.back().record;
    if (!follows || damage.record < 0 || damage.record >= index.records.size()) return {};
    index.damage.push_back(std::move(damage));
  }
  for (auto tallies = in.number<uint64_t>(); tallies > 0 && in.good(); --tallies) {
    const std::string name = read_text(in);
    index.tallies[name] = in.number<int64_t>();
  }
  if (!in.good() || in.left() != 0) return {};
  return index;
}

ContainerIndex index_of(std::string_view kind, const FileSet& files, const ScanFile& scan,
                        const Progress& progress, const CacheDirectory& cache) {
  const std::string name = container_index_name(kind, files);
  Buffer kept;
  if (cache.read(name, kept)) {
    if (std::optional<ContainerIndex> index = index_from_bytes(kept.bytes(), kind, files)) {
      return std::move(*index);
    }
  }
  kept.free();
  const int64_t began_ns = now_ns();
  ContainerIndex index = scan_all(files, scan, progress);
  bool settled = index.records.size() >= kWorthKeeping;
  for (size_t i = 0; i < files.size() && settled; ++i) {
    settled = !changed_just_now(files.identity(i).modified_ns, began_ns);
  }
  if (settled) cache.write(name, bytes_from_index(index, kind, files));
  return index;
}

}  // namespace headrace
