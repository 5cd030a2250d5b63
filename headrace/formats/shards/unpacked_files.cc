// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/shards/unpacked_files.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#include "headrace/base/number_text.h"
#include "headrace/base/process_limits.h"
#include "headrace/sources/fingerprint.h"
#include "headrace/sources/in_order.h"
#include "headrace/storage/paths.h"

namespace headrace {
namespace {

constexpr size_t kFirstBytes = 512;

struct Work {
  size_t file;
  Packing packing;
};

uint64_t bytes_of_file(const std::string& path) {
  const Result<FileIdentity> identity = identity_of(path);
  return identity ? identity->size : 0;
}

// The cache's entry that says that none of these files, in these versions, is compressed; empty: a
// version is unknown.
std::string plain_name(const std::vector<std::string>& paths) {
  Fingerprint print;
  for (const std::string& path : paths) {
    const Result<FileIdentity> identity = identity_of(path);
    if (!identity || (identity->inode == 0 && identity->modified_ns == 0)) return {};
    print.add(stable_path(path));
    for (const uint64_t part : {identity->device, identity->inode, identity->size,
                                static_cast<uint64_t>(identity->modified_ns)}) {
      print.add(part);
    }
  }
  return "plain-" + hex_text(print.value());
}

void unpack(const std::vector<Work>& work, UnpackedFiles& files, const CacheDirectory& cache,
            const Progress& progress) {
  int64_t total = 0;
  for (const Work& each : work)
    total += static_cast<int64_t>(bytes_of_file(files.names[each.file]));
  std::atomic<int64_t> passed{0};
  std::atomic<bool> stopping{false};
  struct Stop {};
  const auto unpack_one = [&](int64_t number) {
    const Work& job = work[static_cast<size_t>(number)];
    const std::string& path = files.names[job.file];
    int64_t reached = 0;
    const auto report = [&](uint64_t bytes) {
      if (stopping) throw Stop();
      const int64_t now = std::max(reached, static_cast<int64_t>(bytes));
      passed += now - std::exchange(reached, now);
    };
    try {
      Result<UnpackedCopy> copy = unpacked_copy(path, job.packing, cache, report);
      passed += static_cast<int64_t>(bytes_of_file(path)) - reached;
      return copy;
    } catch (const Stop&) {
      return Result<UnpackedCopy>(UnpackedCopy{});
    }
  };
  size_t next = 0;
  const auto take = [&](Result<UnpackedCopy> copy) {
    if (!copy) throw Exception(std::move(copy.error()));
    std::string& path = files.paths[work[next++].file];
    path = std::move(copy->path);
    if (copy->damage) files.damage.emplace(path, std::move(*copy->damage));
  };
  const auto tick = [&](int64_t) {
    if (progress) progress(std::min(passed.load(), total), total);
  };
  const auto count = static_cast<int64_t>(work.size());
  // Stops the other threads if one throws, before they are joined.
  const auto or_stop = [&](const auto& call) {
    return [&](auto&&... arguments) {
      try {
        call(std::forward<decltype(arguments)>(arguments)...);
      } catch (...) {
        stopping = true;
        throw;
      }
    };
  };
  each_in_order(0, count, allowed_cores().count(), unpack_one, or_stop(take), or_stop(tick));
}

}  // namespace

std::unique_ptr<FileSet> UnpackedFiles::file_set() const {
  auto files = std::make_unique<FileSet>(paths);
  files->show_as(names);
  return files;
}

const Error* UnpackedFiles::damage_of(const std::string& path) const {
  const auto found = damage.find(path);
  return found == damage.end() ? nullptr : &found->second;
}

Packing packing_of_file(const std::string& path, IsPlain is_plain) {
  std::array<uint8_t, kFirstBytes> first;
  const Result<size_t> count = read_prefix(path, first);
  if (!count) return Packing::kNone;  // opening it reports the reason
  const std::span<const uint8_t> bytes(first.data(), *count);
  return is_plain(bytes) ? Packing::kNone : packing_of(bytes);
}

bool begins_like(const std::string& path, IsPlain is_plain) {
  constexpr size_t kPackedBytes = size_t{160} << 10;  // more than a compressed zstd block
  std::array<uint8_t, kFirstBytes> first;
  const Result<size_t> count = read_prefix(path, first);
  if (!count) return false;
  const std::span<const uint8_t> bytes(first.data(), *count);
  if (is_plain(bytes)) return true;
  const Packing packing = packing_of(bytes);
  if (packing == Packing::kNone) return false;
  std::vector<uint8_t> packed(kPackedBytes);
  const Result<size_t> more = read_prefix(path, packed);
  if (!more) return false;
  std::span<const uint8_t> in(packed.data(), *more);
  const std::unique_ptr<Unpacker> unpacker = Unpacker::make(packing);
  std::array<uint8_t, kFirstBytes> plain;
  for (size_t done = 0;;) {
    const Unpacker::Step step = unpacker->run(in, std::span(plain).subspan(done));
    done += step.produced;
    in = in.subspan(step.consumed);
    const bool stuck = step.consumed == 0 && step.produced == 0;
    if (done == plain.size() || in.empty() || stuck || !step.result) {
      return is_plain({plain.data(), done});
    }
    if (step.ended) unpacker->restart();
  }
}

UnpackedFiles unpacked_files(std::vector<std::string> paths, IsPlain is_plain,
                             const Progress& progress, const CacheDirectory& cache) {
  UnpackedFiles files;
  files.names = std::move(paths);
  files.paths = files.names;
  std::vector<Work> work;
  size_t next = 0;
  const auto take = [&](Packing packing) {
    if (packing != Packing::kNone) work.push_back({next, packing});
    ++next;
  };
  const auto look = [&](int64_t i) {
    return packing_of_file(files.names[static_cast<size_t>(i)], is_plain);
  };
  const auto count = static_cast<int64_t>(files.names.size());
  if (count > 1 && is_async(files.names.front())) {
    const std::string name = plain_name(files.names);
    Buffer kept;
    if (!name.empty() && cache.read(name, kept)) return files;
    each_in_order(0, count, kFarFilesAtOnce, look, take);
    constexpr uint8_t kPlain[] = {1};
    if (!name.empty() && work.empty()) (void)cache.write(name, kPlain);
  } else {
    for (int64_t i = 0; i < count; ++i) take(look(i));
  }
  if (work.empty()) return files;
  unpack(work, files, cache, progress);
  return files;
}

}  // namespace headrace
