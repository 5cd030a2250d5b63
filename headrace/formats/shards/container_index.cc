// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/shards/container_index.h"

#include <algorithm>
#include <atomic>

#include "headrace/base/byte_stream.h"
#include "headrace/base/number_text.h"
#include "headrace/base/process_limits.h"
#include "headrace/sources/fingerprint.h"
#include "headrace/sources/in_order.h"
#include "headrace/storage/crc32c.h"
#include "headrace/storage/file_times.h"
#include "headrace/storage/paths.h"

// The cached file, all numbers little-endian (text: u64 length, bytes):
//   8 bytes    "HRCONTNR"
//   u64        version
//   u32        CRC-32C of all that follows
//   text       kind
//   u64        files;    files x   text path, u64 device, inode, size, i64 modified_ns,
//                                  i64 status changed (shows a write in place), u64 records
//   u64        damage;   damage x  i64 record, u64 offset, text code, what, hint
//   u64        tallies;  tallies x text name, i64 count
//   u64        longs;    longs x   i64 record, u64 bytes: if `bytes` below is 2^32 - 1
//   u64        records
//   zeros      to a multiple of 8 bytes from the start
//   records x  u64 offset
//   records x  u32 bytes
//
// Note [Why a kept index is mapped]: for 10^9 records it has 12 GB, too much for each process of a
// machine to hold a copy. Truncating a mapped file kills the process with a signal, so files of a
// dataset are never mapped. This file is the engine's own: complete before it is renamed, replaced
// but never modified, in a folder or with an owner that CacheDirectory trusts, and not on a network
// file system, whose server drops a file that another machine has replaced.

namespace headrace {
namespace {

constexpr std::string_view kMagic = "HRCONTNR";
constexpr uint64_t kVersion = 4;
constexpr size_t kChecksumEnd = 20;
// Scanning a small container is faster than using a cache file.
constexpr int64_t kWorthKeeping = 1000;
constexpr uint64_t kWorthMapping = uint64_t{1} << 20;  // bytes

size_t padding_after(size_t bytes) { return (8 - bytes % 8) % 8; }

// The records, if all are inside the files and each long one has its length; otherwise none.
std::optional<Extents> checked(Extents records, const FileSet& files) {
  const std::span<const uint64_t> offsets = records.offsets();
  const std::span<const uint32_t> lengths = records.lengths();
  const std::map<int64_t, uint64_t>& longs = records.longs();
  auto next_long = longs.begin();
  for (size_t file = 0; file < files.size(); ++file) {
    const uint64_t size = files.identity(file).size;
    for (int64_t i = records.first_of(file); i < records.end_of(file); ++i) {
      uint64_t bytes = lengths[static_cast<size_t>(i)];
      if (bytes == Extents::kLong) {
        if (next_long == longs.end() || next_long->first != i) return {};
        bytes = (next_long++)->second;
      }
      const uint64_t offset = offsets[static_cast<size_t>(i)];
      if (offset > size || bytes > size - offset) return {};
    }
  }
  if (next_long != longs.end()) return {};
  return records;
}

constexpr int64_t kFarScansAtOnce = 16;  // which wait for a storage, not for a core

// A thread's result for one file.
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
    Result<File> file = File::open_to_scan(files.path(static_cast<size_t>(number)));
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
  const int64_t at_once = files.is_async() ? kFarScansAtOnce : allowed_cores().count();
  try {
    each_in_order(0, count, at_once, scan_one, take, tick);
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
  for (size_t i = 0; i < files.size(); ++i) print.add(stable_path(files.path(i)));
  return "container-" + hex_text(print.value());
}

namespace {

// An asynchronous storage has no such time, and querying it would take a request per file.
int64_t changed_ns(const FileSet& files, size_t file) {
  return is_async(files.path(file)) ? 0 : status_changed_ns(files.path(file));
}

// Everything before the records' arrays; the checksum includes the arrays.
std::vector<uint8_t> front_of_index(const ContainerIndex& index, std::string_view kind,
                                    const FileSet& files) {
  ByteWriter out;
  out.bytes(kMagic);
  out.number(kVersion);
  out.number(uint32_t{0});
  out.text(kind);
  out.number(uint64_t{files.size()});
  for (size_t i = 0; i < files.size(); ++i) {
    const FileIdentity& file = files.identity(i);
    out.text(stable_path(files.path(i)));
    out.number(file.device);
    out.number(file.inode);
    out.number(file.size);
    out.number(file.modified_ns);
    out.number(changed_ns(files, i));
    out.number(static_cast<uint64_t>(index.records.end_of(i) - index.records.first_of(i)));
  }
  out.number(uint64_t{index.damage.size()});
  for (const Damage& damage : index.damage) {
    out.number(damage.record);
    out.number(damage.offset);
    for (const std::string* text : {&damage.code, &damage.what, &damage.hint}) {
      out.text(*text);
    }
  }
  out.number(uint64_t{index.tallies.size()});
  for (const auto& [name, count] : index.tallies) {
    out.text(name);
    out.number(count);
  }
  out.number(uint64_t{index.records.longs().size()});
  for (const auto& [record, bytes] : index.records.longs()) {
    out.number(record);
    out.number(bytes);
  }
  out.number(static_cast<uint64_t>(index.records.size()));
  out.zeros(padding_after(out.out.size()));
  uint32_t sum = crc32c(std::span<const uint8_t>(out.out).subspan(kChecksumEnd));
  sum = crc32c(raw_bytes(index.records.offsets()), sum);
  sum = crc32c(raw_bytes(index.records.lengths()), sum);
  std::memcpy(out.out.data() + kChecksumEnd - sizeof sum, &sum, sizeof sum);
  return std::move(out.out);
}

// The records of a cached index: borrowed from `owner`, or copied if there is none.
std::optional<Extents> records_from(ByteReader& in, uint64_t count, std::vector<int64_t> ends,
                                    std::map<int64_t, uint64_t> longs, const FileSet& files,
                                    std::shared_ptr<const void> owner) {
  if (count > in.left() / (sizeof(uint64_t) + sizeof(uint32_t))) return {};
  const std::span<const uint8_t> offsets = in.bytes(count * sizeof(uint64_t));
  const std::span<const uint8_t> lengths = in.bytes(count * sizeof(uint32_t));
  if (!in.at_end()) return {};
  if (!owner) {
    struct Copies {
      std::vector<uint64_t> offsets;
      std::vector<uint32_t> lengths;
    };
    auto copies = std::make_shared<Copies>();
    append_numbers(offsets, copies->offsets);
    append_numbers(lengths, copies->lengths);
    const std::span<const uint64_t> its_offsets = copies->offsets;
    const std::span<const uint32_t> its_lengths = copies->lengths;
    return checked(
        Extents(its_offsets, its_lengths, std::move(ends), std::move(longs), std::move(copies)),
        files);
  }
  return checked(Extents({reinterpret_cast<const uint64_t*>(offsets.data()), count},
                         {reinterpret_cast<const uint32_t*>(lengths.data()), count},
                         std::move(ends), std::move(longs), std::move(owner)),
                 files);
}

}  // namespace

std::vector<uint8_t> bytes_from_index(const ContainerIndex& index, std::string_view kind,
                                      const FileSet& files) {
  std::vector<uint8_t> out = front_of_index(index, kind, files);
  for (const auto& part :
       {raw_bytes(index.records.offsets()), raw_bytes(index.records.lengths())}) {
    out.insert(out.end(), part.begin(), part.end());
  }
  return out;
}

std::optional<ContainerIndex> index_from_bytes(std::span<const uint8_t> bytes,
                                               std::string_view kind, const FileSet& files,
                                               std::shared_ptr<const void> owner) {
  ByteReader in(bytes);
  if (in.text(kMagic.size()) != kMagic || in.number<uint64_t>() != kVersion) return {};
  const auto sum = in.number<uint32_t>();
  if (!in.good() || sum != crc32c(bytes.subspan(kChecksumEnd))) return {};
  if (in.text() != kind || in.number<uint64_t>() != files.size()) return {};
  std::vector<int64_t> ends;
  uint64_t total = 0;
  for (size_t i = 0; i < files.size(); ++i) {
    if (in.text() != stable_path(files.path(i))) return {};
    FileIdentity file;
    file.device = in.number<uint64_t>();
    file.inode = in.number<uint64_t>();
    file.size = in.number<uint64_t>();
    file.modified_ns = in.number<int64_t>();
    if (in.number<int64_t>() != changed_ns(files, i)) return {};
    const auto count = in.number<uint64_t>();
    if (!in.good() || file != files.identity(i) || count > bytes.size() - total) return {};
    ends.push_back(static_cast<int64_t>(total += count));
  }
  ContainerIndex index;
  for (auto damages = in.number<uint64_t>(); damages > 0 && in.good(); --damages) {
    Damage damage;
    damage.record = in.number<int64_t>();
    damage.offset = in.number<uint64_t>();
    for (std::string* text : {&damage.code, &damage.what, &damage.hint}) *text = in.text();
    const bool follows = index.damage.empty() || damage.record > index.damage.back().record;
    if (!follows || damage.record < 0 || damage.record >= static_cast<int64_t>(total)) return {};
    index.damage.push_back(std::move(damage));
  }
  for (auto tallies = in.number<uint64_t>(); tallies > 0 && in.good(); --tallies) {
    const std::string name(in.text());
    index.tallies[name] = in.number<int64_t>();
  }
  std::map<int64_t, uint64_t> longs;
  for (auto count = in.number<uint64_t>(); count > 0 && in.good(); --count) {
    const auto record = in.number<int64_t>();
    const auto length = in.number<uint64_t>();
    if (length < Extents::kLong || !longs.try_emplace(record, length).second) return {};
  }
  if (in.number<uint64_t>() != total) return {};
  const std::span<const uint8_t> padding = in.bytes(padding_after(bytes.size() - in.left()));
  if (!in.good() || std::ranges::any_of(padding, [](uint8_t byte) { return byte != 0; })) return {};
  std::optional<Extents> records =
      records_from(in, total, std::move(ends), std::move(longs), files, std::move(owner));
  if (!records) return {};
  index.records = std::move(*records);
  return index;
}

namespace {

// Maps the cached file, to share it with other processes, if it is large and there is a cache.
std::optional<ContainerIndex> cached_index(std::string_view kind, const FileSet& files,
                                           const CacheDirectory& cache) {
  const std::string name = container_index_name(kind, files);
  if (std::shared_ptr<const MappedEntry> mapped = cache.map(name, kWorthMapping)) {
    const std::span<const uint8_t> bytes = mapped->bytes();
    return index_from_bytes(bytes, kind, files, std::move(mapped));
  }
  Buffer kept;
  if (!cache.read(name, kept)) return {};
  return index_from_bytes(kept.bytes(), kind, files);
}

// Switches to the mapping of an index that was just cached, if it is large.
ContainerIndex shared(ContainerIndex made, std::string_view kind, const FileSet& files,
                      const CacheDirectory& cache) {
  if (made.records.lengths().size_bytes() < kWorthMapping) return made;
  std::optional<ContainerIndex> mapped = cached_index(kind, files, cache);
  return mapped ? std::move(*mapped) : std::move(made);
}

// Also stores it in the local cache, so that it is requested only once per machine.
std::optional<ContainerIndex> index_from_sidecar(std::string_view kind, const FileSet& files,
                                                 const CacheDirectory& cache) {
  const std::optional<Buffer> bytes = read_sidecar(kind, files);
  if (!bytes) return {};
  std::optional<ContainerIndex> index = index_from_bytes(bytes->bytes(), kind, files);
  if (index && cache.write(container_index_name(kind, files), bytes->bytes())) {
    return shared(std::move(*index), kind, files, cache);
  }
  return index;
}

ContainerIndex find_or_scan(std::string_view kind, const FileSet& files, const ScanFile& scan,
                            const Progress& progress, const CacheDirectory& cache) {
  if (std::optional<ContainerIndex> kept = cached_index(kind, files, cache))
    return std::move(*kept);
  if (std::optional<ContainerIndex> sidecar = index_from_sidecar(kind, files, cache)) {
    return std::move(*sidecar);
  }
  const int64_t began_ns = now_ns();
  ContainerIndex index = scan_all(files, scan, progress);
  bool settled = files.is_async() || index.records.size() >= kWorthKeeping;
  for (size_t i = 0; i < files.size() && settled; ++i) {
    const FileIdentity& file = files.identity(i);  // inode 0: only its size is known
    settled = file.inode != 0 && !changed_just_now(file.modified_ns, began_ns);
  }
  if (!settled) return index;
  const std::vector<uint8_t> front = front_of_index(index, kind, files);
  const std::span<const uint8_t> parts[] = {front, raw_bytes(index.records.offsets()),
                                            raw_bytes(index.records.lengths())};
  if (!cache.write(container_index_name(kind, files), parts)) return index;
  return shared(std::move(index), kind, files, cache);
}

}  // namespace

ContainerIndex index_of(std::string_view kind, const FileSet& files, const ScanFile& scan,
                        const Progress& progress, const CacheDirectory& cache) {
  ContainerIndex index = find_or_scan(kind, files, scan, progress, cache);
  index.kind = kind;
  return index;
}

}  // namespace headrace
