// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/memory_files.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <new>
#include <utility>
#include <vector>

#include "headrace/base/clock.h"
#include "headrace/base/mutex.h"
#include "headrace/base/random.h"
#include "headrace/base/registry.h"
#include "headrace/base/text.h"
#include "headrace/storage/async_storage.h"
#include "headrace/storage/delayed_calls.h"
#include "headrace/storage/file.h"
#include "headrace/storage/file_times.h"
#include "headrace/storage/folder_entries.h"
#include "headrace/storage/storage_errors.h"

namespace headrace {
namespace {

const ErrorCode kNameTaken{
    "HR0215", ErrorKind::kConfig, "volume name already in use",
    "In-memory files are addressed by the name of their volume, so names must be unique. Close "
    "the other volume first, or choose another name."};

constexpr std::string_view kMemory = "memory://";

struct MemoryFile {
  std::shared_ptr<const std::vector<uint8_t>> bytes;  // shared: with reads in progress
  FileIdentity identity;
};

// "NAME/a//b/" -> NAME, "a/b".
std::pair<std::string, std::string> split(std::string_view path) {
  if (path.starts_with(kMemory)) path.remove_prefix(kMemory.size());
  std::string name, rest;
  bool first = true;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    begin = end + 1;
    if (first) {
      name = part;
      first = false;
    } else if (!part.empty() && part != ".") {
      rest += (rest.empty() ? "" : "/") + std::string(part);
    }
  }
  return {std::move(name), std::move(rest)};
}

}  // namespace

struct MemoryVolume::State {
  mutable Mutex mutex;
  MemoryBehavior behavior GUARDED_BY(mutex);
  std::map<std::string, MemoryFile, std::less<>> files GUARDED_BY(mutex);
  uint64_t versions GUARDED_BY(mutex) = 0;
  int64_t changed_ns GUARDED_BY(mutex) = now_ns();
  double line_free GUARDED_BY(mutex) =
      0;  // when the simulated connection is done with everything sent so far
  int64_t requests GUARDED_BY(mutex) = 0, under_way GUARDED_BY(mutex) = 0,
                   most_under_way GUARDED_BY(mutex) = 0;
  uint64_t bytes_sent GUARDED_BY(mutex) = 0;

  // When the answer to a request that is sent at `begin` arrives.
  double due(double begin, uint64_t bytes, double extra) REQUIRES_LOCK(mutex) {
    double end = begin + behavior.latency_seconds + extra;
    if (behavior.bytes_per_second > 0) {
      line_free = std::max(line_free, begin + behavior.latency_seconds) +
                  static_cast<double>(bytes) / behavior.bytes_per_second;
      end = std::max(end, line_free);
    }
    return end;
  }

  PathStatus status(const std::string& path) const REQUIRES_LOCK(mutex) {
    if (const auto file = files.find(path); file != files.end()) {
      return {PathKind::kFile, file->second.identity, file->second.identity.modified_ns};
    }
    const std::string prefix = path.empty() ? "" : path + "/";
    const auto inside = files.lower_bound(prefix);
    if (inside == files.end() || !inside->first.starts_with(prefix)) return {};
    return {PathKind::kFolder, {.inode = hash_name(path), .modified_ns = changed_ns}, changed_ns};
  }
};

namespace {

using State = MemoryVolume::State;

struct Volumes {
  Mutex mutex;
  std::map<std::string, std::shared_ptr<State>> by_name GUARDED_BY(mutex);
};

Volumes& volumes() {
  static Volumes* const all = new Volumes;  // outlives all reads at exit
  return *all;
}

std::shared_ptr<State> volume_named(const std::string& name) {
  MutexLock lock(volumes().mutex);
  const auto found = volumes().by_name.find(name);
  return found == volumes().by_name.end() ? nullptr : found->second;
}

class MemoryFiles final : public AsyncStorage {
 public:
  Result<PathStatus> look_at(const std::string& path) const override {
    const auto [name, rest] = split(path);
    const std::shared_ptr<State> volume = volume_named(name);
    if (!volume) return storage_error(ENOENT, "look at", path);
    wait_for(*volume);
    MutexLock lock(volume->mutex);
    const PathStatus status = volume->status(rest);
    if (status.kind == PathKind::kNothing) return storage_error(ENOENT, "look at", path);
    return status;
  }

  std::optional<FileIdentity> version_of(const std::string& path) const override {
    const auto [name, rest] = split(path);
    const std::shared_ptr<State> volume = volume_named(name);
    if (!volume) return {};
    MutexLock lock(volume->mutex);
    const auto file = volume->files.find(rest);
    if (file == volume->files.end()) return {};
    return file->second.identity;
  }

  Result<PathStatus> list(const std::string& path, const EachEntry& each) const override {
    const auto [name, rest] = split(path);
    const std::shared_ptr<State> volume = volume_named(name);
    if (!volume) return storage_error(ENOENT, "list", path);
    wait_for(*volume);
    std::vector<std::pair<std::string, PathKind>> entries;
    PathStatus status;
    {
      MutexLock lock(volume->mutex);
      status = volume->status(rest);
      const std::string prefix = rest.empty() ? "" : rest + "/";
      for (auto file = volume->files.lower_bound(prefix);
           file != volume->files.end() && file->first.starts_with(prefix);) {
        const std::string_view inside = std::string_view(file->first).substr(prefix.size());
        const size_t slash = inside.find('/');
        const std::string entry(inside.substr(0, slash));
        const bool folder = slash != std::string_view::npos;
        entries.emplace_back(entry, folder ? PathKind::kFolder : PathKind::kFile);
        // Paths in a folder sort below "folder0": '0' follows '/'.
        file = folder ? volume->files.lower_bound(prefix + entry + "0") : std::next(file);
      }
    }
    if (status.kind == PathKind::kNothing) return storage_error(ENOENT, "list", path);
    if (status.kind == PathKind::kFile) return storage_error(ENOTDIR, "list", path);
    for (const auto& [entry, kind] : entries) {
      if (!each(entry, kind)) break;
    }
    return status;
  }

 protected:
  void ask(const Request& request, std::function<void(Answer)> answer) const override;

 private:
  void wait_for(State& volume) const {
    double seconds = 0;
    {
      MutexLock lock(volume.mutex);
      seconds = volume.behavior.latency_seconds;
      if (seconds <= 0) return;
    }
    Mutex mutex;
    Condition changed;
    bool passed = false;
    call_later(seconds, [&] {
      MutexLock lock(mutex);
      passed = true;
      changed.notify_all();
    });
    MutexLock lock(mutex);
    while (!passed) changed.wait(mutex);
  }

  // The file is looked up and copied when the answer arrives.
  static Answer answer_to(const Request& request, State& volume, const std::string& path,
                          const MemoryFault& fault);
};

void MemoryFiles::ask(const Request& request, std::function<void(Answer)> answer) const {
  auto [name, rest] = split(request.piece.path);
  const std::shared_ptr<State> volume = volume_named(name);
  if (!volume) {
    Answer nothing;
    nothing.error_number = ENOENT;
    return call_later(0, [answer = std::move(answer), nothing = nothing.error_number] {
      Answer out;
      out.error_number = nothing;
      answer(std::move(out));
    });
  }
  MemoryFault fault;
  double due = 0;
  {
    MutexLock lock(volume->mutex);
    uint64_t bytes = request.bytes.size() - request.begin;
    if (!request.sized) {
      const auto file = volume->files.find(rest);
      bytes = file == volume->files.end() ? 0 : file->second.identity.size;
    }
    const MemoryRequest seen{.number = volume->requests++,
                             .path = rest,
                             .offset = request.piece.offset + request.begin,
                             .bytes = bytes,
                             .unneeded = request.unneeded};
    if (volume->behavior.fault) fault = volume->behavior.fault(seen);
    const uint64_t sent = fault.error_number != 0 ? 0 : std::min(bytes, fault.most);
    volume->bytes_sent += sent;
    volume->most_under_way = std::max(volume->most_under_way, ++volume->under_way);
    due = volume->due(now(), sent, fault.extra_seconds);
  }
  call_later(due - now(), [volume, request, rest, fault, answer = std::move(answer)] {
    Answer out;
    try {
      out = answer_to(request, *volume, rest, fault);
    } catch (const std::bad_alloc&) {
      out.error_number = ENOMEM;
    }
    {
      MutexLock lock(volume->mutex);
      --volume->under_way;
    }
    answer(std::move(out));
  });
}

MemoryFiles::Answer MemoryFiles::answer_to(const Request& request, State& volume,
                                           const std::string& path, const MemoryFault& fault) {
  Answer out;
  out.error_number = fault.error_number;
  if (out.error_number != 0) return out;
  MemoryFile file;
  {
    MutexLock lock(volume.mutex);
    const auto found = volume.files.find(path);
    if (found == volume.files.end()) {
      out.error_number = volume.status(path).kind == PathKind::kFolder ? EISDIR : ENOENT;
    } else {
      file = found->second;
    }
  }
  if (out.error_number == EISDIR) {
    out.error_number = 0;
    out.failure = not_regular_error(request.piece.path, "a folder");
  }
  if (!file.bytes) return out;
  const std::optional<FileIdentity>& known = request.piece.known;
  if (known && *known != file.identity) {
    out.failure = changed_error(request.piece.path, *known, file.identity);
    return out;
  }
  if (!request.sized) out.identity = file.identity;
  const std::span<uint8_t> room = room_for(request, file.identity.size, out);
  out.got = std::min<size_t>(room.size(), fault.most);
  const uint64_t offset = request.piece.offset + request.begin;
  if (out.got > 0) std::memcpy(room.data(), file.bytes->data() + offset, out.got);
  return out;
}

const Storage& memory_files() {
  static const MemoryFiles* const files = new MemoryFiles;  // outlives all reads at exit
  return *files;
}

const StorageRecord kMemoryFiles{
    .name = "memory",
    .doc = "In-memory files with a configurable latency, for tests and benchmarks.",
    .example = "memory://photos/train",
    .storage = memory_files};
const Register<StorageRecord> registered_memory_files(kMemoryFiles);

}  // namespace

MemoryVolume::MemoryVolume(std::string name, MemoryBehavior behavior)
    : name_(std::move(name)), state_(std::make_shared<State>()) {
  this->behave(std::move(behavior));
  MutexLock lock(volumes().mutex);
  if (!volumes().by_name.try_emplace(name_, state_).second) {
    raise(kNameTaken, "there already is a volume \"" + name_ + "\"",
          "close it, or choose another name");
  }
}

MemoryVolume::~MemoryVolume() {
  MutexLock lock(volumes().mutex);
  volumes().by_name.erase(name_);
}

std::string MemoryVolume::root() const { return std::string(kMemory) + name_; }

std::string MemoryVolume::write(const std::string& path, std::span<const uint8_t> bytes) {
  const std::string inside = split("/" + path).second;
  MutexLock lock(state_->mutex);
  state_->changed_ns = now_ns();
  state_->files[inside] = {
      .bytes = std::make_shared<const std::vector<uint8_t>>(bytes.begin(), bytes.end()),
      .identity = {.device = 1,
                   .inode = ++state_->versions,
                   .size = bytes.size(),
                   .modified_ns = state_->changed_ns}};
  return root() + "/" + inside;
}

std::string MemoryVolume::write(const std::string& path, std::string_view text) {
  return write(path, bytes_from_text(text));
}

void MemoryVolume::remove(const std::string& path) {
  MutexLock lock(state_->mutex);
  state_->changed_ns = now_ns();
  state_->files.erase(split("/" + path).second);
}

void MemoryVolume::copy_from(const std::string& folder) {
  std::vector<std::string> below{""};
  Buffer bytes;
  while (!below.empty()) {
    const std::string inside = std::move(below.back());
    below.pop_back();
    for (const FolderEntry& entry : entries_in(folder + "/" + inside)) {
      const std::string path = inside + (inside.empty() ? "" : "/") + entry.name;
      if (entry.is_folder) {
        below.push_back(path);
      } else if (Result<void> read = read_file(folder + "/" + path, bytes); read) {
        write(path, bytes.bytes());
      } else {
        throw Exception(std::move(read.error()));
      }
    }
  }
}

void MemoryVolume::behave(MemoryBehavior behavior) {
  MutexLock lock(state_->mutex);
  state_->behavior = std::move(behavior);
}

int64_t MemoryVolume::requests() const {
  MutexLock lock(state_->mutex);
  return state_->requests;
}

uint64_t MemoryVolume::bytes_sent() const {
  MutexLock lock(state_->mutex);
  return state_->bytes_sent;
}

int64_t MemoryVolume::most_under_way() const {
  MutexLock lock(state_->mutex);
  return state_->most_under_way;
}

}  // namespace headrace
