// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/shards/container_index.h"

#include <algorithm>
#include <atomic>
#include <cstdio>

#include "headrace/base/byte_stream.h"
#include "headrace/base/cores.h"
#include "headrace/formats/shards/index_beside_data.h"
#include "headrace/sources/fingerprint.h"
#include "headrace/sources/in_order.h"
#include "headrace/storage/crc32c.h"
#include "headrace/storage/file_times.h"
#include "headrace/storage/paths.h"

// The kept file, all numbers little-endian (text: u64 length, bytes):
//   8 bytes    "HRCONTNR"
//   u64        version
//   u32        CRC-32C of all that follows
//   text       kind
//   u64        files;    files x   text path, u64 device, inode, size, i64 modified_ns,
//                                  i64 status changed (shows a write in place), u64 records
//   u64        damage;   damage x  i64 record, u64 offset, text code, what, hint
//   u64        tallies;  tallies x text name, i64 count
//   u64        longs;    longs x   i64 record, u64 bytes: of those whose length below is 2^32 - 1
//   u64        records
//   zeros      to a multiple of 8 bytes from the begin
//   records x  u64 offset
//   records x  u32 bytes
//
// Note [Why a kept index is mapped]: at 10^9 records it has 12 GB, which the processes of a machine
// cannot each hold. A mapped file that is cut off ends the process with a signal, so no file of a
// dataset is mapped. This one is the engine's own: complete before it gets its name, replaced and
// never changed, in a folder or with an owner that CacheDirectory trusts, and on no file system of
// a network, whose server forgets what another machine has replaced.

namespace headrace {
namespace {

constexpr std::string_view kMagic = "HRCONTNR";
constexpr uint64_t kVersion = 4;
constexpr size_t kChecksumEnd = 20;
// Looking through a small container is quicker than it is worth a file in the cache.
constexpr int64_t kWorthKeeping = 1000;
constexpr uint64_t kWorthMapping = uint64_t{1} << 20;  // bytes

void write_text(std::string_view text, ByteWriter& out) {
  out.number(uint64_t{text.size()});
  out.bytes(text);
}

size_t padding_after(size_t bytes) { return (8 - bytes % 8) % 8; }

template <class Number>
std::span<const uint8_t> raw_bytes(std::span<const Number> numbers) {
  return {reinterpret_cast<const uint8_t*>(numbers.data()), numbers.size_bytes()};
}

// The records, if all are inside the files, each long one with its length; else nothing.
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

std::string read_text(ByteReader& in) { return std::string(in.text(in.number<uint64_t>())); }

// Files of an asynchronous storage: threads wait for it, not for a core.
constexpr int64_t kFarAtOnce = 16;

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
  const int64_t at_once = files.answers_later() ? kFarAtOnce : allowed_cores().count();
  InOrder<Scanned> threads(0, count, SIZE_MAX);
  try {
    threads.run(
        static_cast<int>(std::min(at_once, count)), [&] { return scan_one; },
        [](const Scanned&) { return size_t{1} << 20; }, take, tick);
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
  for (size_t i = 0; i < files.size(); ++i) print.add(lasting_path(files.path(i)));
  char name[40];
  std::snprintf(name, sizeof name, "container-%016llx",
                static_cast<unsigned long long>(print.value()));
  return name;
}

namespace {

// All before the records' own arrays, the checksum over these too.
std::vector<uint8_t> front_of_index(const ContainerIndex& index, std::string_view kind,
                                    const FileSet& files) {
  ByteWriter out;
  out.bytes(kMagic);
  out.number(kVersion);
  out.number(uint32_t{0});
  write_text(kind, out);
  out.number(uint64_t{files.size()});
  for (size_t i = 0; i < files.size(); ++i) {
    const FileIdentity& file = files.identity(i);
    write_text(lasting_path(files.path(i)), out);
    out.number(file.device);
    out.number(file.inode);
    out.number(file.size);
    out.number(file.modified_ns);
    out.number(status_changed_ns(files.path(i)));
    out.number(static_cast<uint64_t>(index.records.end_of(i) - index.records.first_of(i)));
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

// The records of a kept index: borrowed from `owner`, or copied where there is none.
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
    copies->offsets.resize(count);
    copies->lengths.resize(count);
    if (count > 0) std::memcpy(copies->offsets.data(), offsets.data(), offsets.size());
    if (count > 0) std::memcpy(copies->lengths.data(), lengths.data(), lengths.size());
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
  if (read_text(in) != kind || in.number<uint64_t>() != files.size()) return {};
  std::vector<int64_t> ends;
  uint64_t total = 0;
  for (size_t i = 0; i < files.size(); ++i) {
    if (read_text(in) != lasting_path(files.path(i))) return {};
    FileIdentity file;
    file.device = in.number<uint64_t>();
    file.inode = in.number<uint64_t>();
    file.size = in.number<uint64_t>();
    file.modified_ns = in.number<int64_t>();
    if (in.number<int64_t>() != status_changed_ns(files.path(i))) return {};
    const auto count = in.number<uint64_t>();
    if (!in.good() || file != files.identity(i) || count > bytes.size() - total) return {};
    ends.push_back(static_cast<int64_t>(total += count));
  }
  ContainerIndex index;
  for (auto damages = in.number<uint64_t>(); damages > 0 && in.good(); --damages) {
    Damage damage;
    damage.record = in.number<int64_t>();
    damage.offset = in.number<uint64_t>();
    for (std::string* text : {&damage.code, &damage.what, &damage.hint}) *text = read_text(in);
    const bool follows = index.damage.empty() || damage.record > index.damage.back().record;
    if (!follows || damage.record < 0 || damage.record >= static_cast<int64_t>(total)) return {};
    index.damage.push_back(std::move(damage));
  }
  for (auto tallies = in.number<uint64_t>(); tallies > 0 && in.good(); --tallies) {
    const std::string name = read_text(in);
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

// Shared by the processes of a machine, where it is large and there is a cache.
std::optional<ContainerIndex> kept_index(std::string_view kind, const FileSet& files,
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

}  // namespace

namespace {

// Also into the cache, so that it is asked for once for each machine.
std::optional<ContainerIndex> found_beside(std::string_view kind, const FileSet& files,
                                           const CacheDirectory& cache) {
  const std::optional<Buffer> bytes = bytes_beside(kind, files);
  if (!bytes) return {};
  std::optional<ContainerIndex> index = index_from_bytes(bytes->bytes(), kind, files);
  if (index && cache.write(container_index_name(kind, files), bytes->bytes())) {
    if (std::optional<ContainerIndex> kept = kept_index(kind, files, cache)) return kept;
  }
  return index;
}

ContainerIndex found_or_made(std::string_view kind, const FileSet& files, const ScanFile& scan,
                             const Progress& progress, const CacheDirectory& cache) {
  if (std::optional<ContainerIndex> kept = kept_index(kind, files, cache)) return std::move(*kept);
  if (std::optional<ContainerIndex> beside = found_beside(kind, files, cache)) {
    return std::move(*beside);
  }
  const int64_t began_ns = now_ns();
  ContainerIndex index = scan_all(files, scan, progress);
  bool settled = files.answers_later() || index.records.size() >= kWorthKeeping;
  for (size_t i = 0; i < files.size() && settled; ++i) {
    const FileIdentity& file = files.identity(i);  // an inode of 0: its size is all that is known
    settled = file.inode != 0 && !changed_just_now(file.modified_ns, began_ns);
  }
  if (!settled) return index;
  const std::vector<uint8_t> front = front_of_index(index, kind, files);
  const std::span<const uint8_t> parts[] = {front, raw_bytes(index.records.offsets()),
                                            raw_bytes(index.records.lengths())};
  const bool kept = cache.write(container_index_name(kind, files), parts);
  if (kept && index.records.lengths().size_bytes() >= kWorthMapping) {
    // Who made it shares it, too.
    if (std::optional<ContainerIndex> mapped = kept_index(kind, files, cache)) {
      return std::move(*mapped);
    }
  }
  return index;
}

}  // namespace

ContainerIndex index_of(std::string_view kind, const FileSet& files, const ScanFile& scan,
                        const Progress& progress, const CacheDirectory& cache) {
  ContainerIndex index = found_or_made(kind, files, scan, progress, cache);
  index.kind = kind;
  return index;
}

}  // namespace headrace
