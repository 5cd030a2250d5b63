// SPDX-License-Identifier: Apache-2.0
// Storage of plug-ins: synchronous requests by the threads that need the bytes, and by read-ahead's
// threads when these turn out to wait (executor/reading/read_ahead.h).
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <new>
#include <optional>
#include <thread>

#include "headrace/base/mutex.h"
#include "headrace/base/random.h"
#include "headrace/base/registry.h"
#include "headrace/plugin/checked_call.h"
#include "headrace/plugin/declared.h"
#include "headrace/plugin/plugin_error.h"
#include "headrace/storage/storage_errors.h"

struct headrace_entries {
  const headrace::Storage::EachEntry* each;
  bool enough = false;
  std::string wrong = {};          // an invalid entry
  std::exception_ptr thrown = {};  // by the engine, not the plug-in
};

namespace headrace {
namespace {

constexpr size_t kLongestEntry = 4096;

// What a request does: in messages, and as the plug-in's function.
struct RequestVerb {
  std::string_view verb, function;
};
constexpr RequestVerb kLookAt{"get the status of", "get_status()"}, kList{"list", "list()"},
    kRead{"read", "read()"};

PluginPart part_of(const PluginStorage& storage) {
  return {"storage", std::string(storage.record.name), &storage.plugin->origin};
}

int32_t take_entry(headrace_entries* entries, const char* name, int32_t kind) {
  if (entries->enough) return 0;
  const std::string_view text(name ? name : "", name ? strnlen(name, kLongestEntry + 1) : 0);
  if (text.empty() || text.size() > kLongestEntry || text == "." || text == ".." ||
      text.find('/') != std::string_view::npos) {
    entries->wrong = "list() has an entry \"" + std::string(text.substr(0, 100)) +
                     "\", which is not the name of a file or folder";
  } else if (kind != HEADRACE_FILE && kind != HEADRACE_FOLDER) {
    entries->wrong = "list() has an entry of the kind " + std::to_string(kind);
  }
  entries->enough =
      !entries->wrong.empty() ||
      !(*entries->each)(text, kind == HEADRACE_FILE ? PathKind::kFile : PathKind::kFolder);
  return entries->enough ? 0 : 1;
}

// One entry of a folder, from the plug-in.
int32_t add_entry(headrace_entries* entries, const char* name, int32_t kind) {
  return call_from_plugin(entries->thrown, 0, [&] { return take_entry(entries, name, kind); });
}

class PluginFiles final : public Storage {
 public:
  explicit PluginFiles(const PluginStorage& storage)
      : storage_(storage), table_(storage.table), part_(part_of(storage)) {}

  Result<PathStatus> look_at(const std::string& path) const override;
  Result<PathStatus> list(const std::string& path, const EachEntry& each) const override;
  Result<std::unique_ptr<OpenFile>> open(const std::string& path,
                                         const FileIdentity* known) const override;
  Result<void> read_file(const std::string& path, Buffer& out,
                         const ReadLimits& limits) const override;
  Result<size_t> read_prefix(const std::string& path, std::span<uint8_t> out) const override;

  // Fills `out`; `known`: what status_of() returned.
  Result<void> read(const std::string& path, const headrace_path_status& known, uint64_t offset,
                    std::span<uint8_t> out) const;

 private:
  bool checked() const { return storage_.plugin->checked.load(std::memory_order_relaxed); }
  // On first use, once.
  Result<void> create() const;
  // Calls until it succeeds, or fails for good; pauses after HEADRACE_TRY_AGAIN.
  template <class Call>
  Result<void> retried(const std::string& path, const RequestVerb& doing, int64_t offset,
                       const Call& call) const;
  Error failure(int32_t status, const PluginMessage& message, const std::string& path,
                std::string_view doing, int64_t offset) const;
  Error broken(const std::string& path, const std::string& what) const {
    Error error = broken_plugin(part_, what);
    error.where.file = path;
    return error;
  }
  Result<headrace_path_status> status_of(const std::string& path) const;
  Result<headrace_path_status> file_at(const std::string& path) const;
  int32_t checked_read(const std::string& path, const headrace_path_status& known, uint64_t offset,
                       std::span<uint8_t> out, uint64_t& got, PluginMessage& message,
                       std::string& wrong) const;

  const PluginStorage& storage_;
  const headrace_storage& table_;
  const PluginPart part_;
  mutable Mutex mutex_;  // of the thread that creates
  mutable std::atomic<bool> created_ = false;
  mutable void* self_ = nullptr;  // written before created_ is true
};

class PluginFile final : public OpenFile {
 public:
  PluginFile(const PluginFiles& files, std::string path, const headrace_path_status& status)
      : files_(files), path_(std::move(path)), status_(status) {}
  using OpenFile::read;
  uint64_t size() const override { return status_.size; }
  Result<void> read(uint64_t offset, std::span<uint8_t> out) const override {
    return files_.read(path_, status_, offset, out);
  }
  Result<FileIdentity> identity() const override {
    const Result<PathStatus> status = files_.look_at(path_);
    if (!status) return status.error();
    return status->identity;
  }

 private:
  const PluginFiles& files_;
  const std::string path_;
  const headrace_path_status status_;
};

FileIdentity identity_from(const std::string& path, const headrace_path_status& status) {
  // Also by path: a folder whose identity occurs again inside itself is a loop of links.
  return {.inode = mix64(hash_name(path), status.version),
          .size = status.kind == HEADRACE_FILE ? status.size : 0,
          .modified_ns = status.modified_ns};
}

Result<void> PluginFiles::create() const {
  if (created_.load(std::memory_order_acquire)) return {};
  const MutexLock lock(mutex_);
  if (created_.load(std::memory_order_relaxed)) return {};
  try {
    if (table_.create) {
      create_plugin_object(part_,
                           [&](headrace_error* error) { return table_.create(&self_, error); });
    }
  } catch (const Exception& failed) {
    return failed.error();
  }
  created_.store(true, std::memory_order_release);
  return {};
}

Error PluginFiles::failure(int32_t status, const PluginMessage& message, const std::string& path,
                           std::string_view doing, int64_t offset) const {
  int error_number = 0;
  switch (message.threw() ? HEADRACE_OK : status) {
    case HEADRACE_NOT_FOUND:
      error_number = ENOENT;
      break;
    case HEADRACE_NOT_ALLOWED:
      error_number = EACCES;
      break;
    case HEADRACE_TRY_AGAIN:
      error_number = EAGAIN;
      break;
    case HEADRACE_FAILED:
      error_number = EREMOTEIO;
      break;
    default: {
      Error error = plugin_failure(part_, status, message, "the storage");
      error.where = Where{.file = path, .offset = offset};
      return error;
    }
  }
  Error error = storage_error(error_number, doing, path, offset);
  if (const std::string said = message.text(); !said.empty())
    error.what = "could not " + std::string(doing) + " it: " + said;
  if (status == HEADRACE_TRY_AGAIN || status == HEADRACE_FAILED)
    error.hint = "the message is from the " + text_of(*part_.origin);
  if (status == HEADRACE_FAILED) error.note.clear();  // tried once
  return error;
}

template <class Call>
Result<void> PluginFiles::retried(const std::string& path, const RequestVerb& doing, int64_t offset,
                                  const Call& call) const {
  if (path.find('\0') != std::string::npos) return storage_error(ENOENT, doing.verb, path);
  if (Result<void> created = create(); !created) return created;
  std::string name;
  std::optional<RunningCall> running;
  if (checked()) {
    name = part_.call(doing.function) + ", " + path;
    running.emplace(name);
  }
  RetryCount tries;
  for (;;) {
    PluginMessage message;
    const int32_t status = message.status_of([&] { return call(message); });
    if (status == HEADRACE_OK) return {};
    const int pause = status == HEADRACE_TRY_AGAIN ? tries.pause_before_next(EAGAIN) : -1;
    if (pause < 0) return failure(status, message, path, doing.verb, offset);
    std::this_thread::sleep_for(std::chrono::milliseconds(pause));
  }
}

Result<headrace_path_status> PluginFiles::status_of(const std::string& path) const {
  headrace_path_status status;
  Result<void> looked = retried(path, kLookAt, -1, [&](PluginMessage& message) {
    status = {};
    status.struct_size = sizeof status;
    return table_.get_status(self_, path.c_str(), &status, message.get());
  });
  if (!looked) return std::move(looked.error());
  if (status.kind != HEADRACE_FILE && status.kind != HEADRACE_FOLDER)
    return broken(path, "get_status() returned the kind " + std::to_string(status.kind));
  if (status.size > uint64_t{INT64_MAX})
    return broken(path,
                  "get_status() returned a size of " + std::to_string(status.size) + " bytes");
  return status;
}

Result<PathStatus> PluginFiles::look_at(const std::string& path) const {
  const Result<headrace_path_status> status = status_of(path);
  if (!status) return status.error();
  const bool file = status->kind == HEADRACE_FILE;
  return PathStatus{.kind = file ? PathKind::kFile : PathKind::kFolder,
                    .identity = identity_from(path, *status)};
}

Result<PathStatus> PluginFiles::list(const std::string& path, const EachEntry& each) const {
  Result<PathStatus> before = look_at(path);
  if (!before) return before;
  if (before->kind != PathKind::kFolder) return storage_error(ENOTDIR, "list", path);
  if (!table_.list) {
    Error error = storage_error(EACCES, "list", path);
    error.what = "the storage " + part_.name + ":// has no listings";
    error.hint = "open a single file, or pass the paths: hr.records(image=[...])";
    return error;
  }
  // Collected before they are passed on: a second try begins at the beginning.
  std::vector<std::pair<std::string, PathKind>> found;
  const EachEntry collect = [&](std::string_view name, PathKind kind) {
    found.emplace_back(name, kind);
    return true;
  };
  headrace_entries entries{.each = &collect};
  Result<void> listed = retried(path, kList, -1, [&](PluginMessage& message) {
    found.clear();
    entries = {.each = &collect};
    const headrace_listing listing{sizeof(headrace_listing), 0, &entries, add_entry};
    const int32_t status = table_.list(self_, path.c_str(), &listing, message.get());
    return entries.thrown ? HEADRACE_FAILED : status;
  });
  if (entries.thrown) std::rethrow_exception(entries.thrown);
  if (!entries.wrong.empty()) return broken(path, entries.wrong);
  if (!listed) return std::move(listed.error());
  for (const auto& [name, kind] : found) {
    if (!each(name, kind)) break;
  }
  return before;
}

Result<headrace_path_status> PluginFiles::file_at(const std::string& path) const {
  Result<headrace_path_status> status = status_of(path);
  if (status && status->kind != HEADRACE_FILE) return not_regular_error(path, "a folder");
  return status;
}

Result<std::unique_ptr<OpenFile>> PluginFiles::open(const std::string& path,
                                                    const FileIdentity* known) const {
  const Result<headrace_path_status> status = file_at(path);
  if (!status) return status.error();
  const FileIdentity identity = identity_from(path, *status);
  if (known && *known != identity) return changed_error(path, *known, identity);
  return std::unique_ptr<OpenFile>(std::make_unique<PluginFile>(*this, path, *status));
}

Result<void> PluginFiles::read_file(const std::string& path, Buffer& out,
                                    const ReadLimits& limits) const {
  const Result<headrace_path_status> status = file_at(path);
  if (!status) return status.error();
  if (status->size > limits.max_bytes) return above_cap_error(path, status->size, limits.max_bytes);
  try {
    out.resize(status->size);
  } catch (const std::bad_alloc&) {
    return too_large_error(path, status->size, "more than the remaining memory");
  }
  return read(path, *status, 0, {out.data(), out.size()});
}

Result<size_t> PluginFiles::read_prefix(const std::string& path, std::span<uint8_t> out) const {
  const Result<headrace_path_status> status = file_at(path);
  if (!status) return status.error();
  const size_t count = std::min<uint64_t>(out.size(), status->size);
  if (Result<void> done = read(path, *status, 0, out.first(count)); !done)
    return std::move(done.error());
  return count;
}

// In guarded memory, twice.
int32_t PluginFiles::checked_read(const std::string& path, const headrace_path_status& known,
                                  uint64_t offset, std::span<uint8_t> out, uint64_t& got,
                                  PluginMessage& message, std::string& wrong) const {
  const std::string name =
      part_.call(kRead.function) + ", " + path + " from byte " + std::to_string(offset) + " on";
  const auto once = [&](const void*, void* to) {
    got = 0;
    return table_.read(self_, path.c_str(), &known, offset, to, out.size(), &got, message.get());
  };
  return checked_call({}, out, 1, name, once, wrong, &got);
}

Result<void> PluginFiles::read(const std::string& path, const headrace_path_status& known,
                               uint64_t offset, std::span<uint8_t> out) const {
  if (offset > known.size || out.size() > known.size - offset)
    return ended_early_error(path, offset + out.size(), known.size);
  while (!out.empty()) {
    uint64_t got = 0;
    std::string wrong;
    Result<void> done = retried(path, kRead, int64_t(offset), [&](PluginMessage& message) {
      got = 0;
      if (checked()) return checked_read(path, known, offset, out, got, message, wrong);
      return table_.read(self_, path.c_str(), &known, offset, out.data(), out.size(), &got,
                         message.get());
    });
    if (!wrong.empty()) return broken(path, "read() " + wrong);
    if (!done) return done;
    if (got > out.size()) {
      return broken(path, "read() reported that it wrote " + std::to_string(got) +
                              " bytes, but "
                              "only " +
                              std::to_string(out.size()) + " were requested");
    }
    if (got == 0) return ended_early_error(path, offset + out.size(), offset);
    offset += got;
    out = out.subspan(size_t(got));
  }
  return {};
}

}  // namespace

std::unique_ptr<PluginStorage> declared_storage(DeclarationCheck& check,
                                                const headrace_storage& table,
                                                const Plugin& plugin) {
  auto out = std::make_unique<PluginStorage>();
  out->plugin = &plugin;
  out->table = table;
  const std::string& scheme =
      out->texts.emplace_back(check.text(table.scheme, "a storage's scheme"));
  if (!is_lowercase_name(scheme, "+-."))
    check.refuse("the scheme \"" + scheme + "\" must consist of a-z, 0-9, +, - and .");
  const bool again = std::ranges::any_of(
      plugin.storages, [&](const auto& other) { return other->record.name == scheme; });
  if (again || scheme == "file" || Registry<StorageRecord>::find(scheme))
    check.refuse("there already is a storage " + scheme + "://");
  check.set_subject("storage " + scheme);
  check.check_flags(table.flags, 0);
  check.check_function(table.get_status, "get_status");
  check.check_function(table.read, "read");
  if (table.list) check.check_function(table.list, "list");
  if (table.create) check.check_function(table.create, "create");
  StorageRecord& record = out->record;
  record.name = scheme;
  record.doc = out->texts.emplace_back(check.text(table.help, "its help") + origin_line(plugin));
  record.example = out->texts.emplace_back(check.text(table.example, "its example"));
  if (!record.example.starts_with(scheme + "://"))
    check.refuse("its example does not begin with " + scheme + "://");
  // shared: std::function copies what it holds. Requests may come until the process ends.
  const auto files = std::make_shared<const PluginFiles>(*out);
  record.storage = [files]() -> const Storage& { return *files; };
  return out;
}

}  // namespace headrace
