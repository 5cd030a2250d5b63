// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/pack/pack.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <memory>
#include <system_error>

#include "headrace/base/cores.h"
#include "headrace/base/mutex.h"
#include "headrace/base/registry.h"
#include "headrace/formats/fingerprint.h"
#include "headrace/formats/folder_listing.h"
#include "headrace/formats/in_order.h"
#include "headrace/formats/pack/pack_input.h"
#include "headrace/formats/pack/pack_transcode.h"
#include "headrace/formats/pack/pack_writer.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;

constexpr ErrorCode kExists{
    "HR0446", ErrorKind::kConfig, "something stands there already",
    "A pack is not written over what stands at its path unless that is asked for, and then only "
    "over another pack. Choose another name, or say overwrite=True (--force)."};
const Register<ErrorCode> registered_exists(kExists);

constexpr ErrorCode kNotMoved{
    "HR0457", ErrorKind::kStorage, "could not put the pack into its place",
    "The pack was written whole under the name that ends in .partial, but could not be renamed, or "
    "an old one could not be removed. Look at the permissions of the folder, then run the same "
    "command again."};
const Register<ErrorCode> registered_not_moved(kNotMoved);

// Results that wait for their turn, for each thread.
constexpr size_t kWaitingBytes = size_t{16} << 20;

std::string partial_name(const std::string& out) { return out + ".partial"; }

[[noreturn]] void not_moved(const std::string& path, int error_number) {
  throw Exception({.code = &kNotMoved,
                   .what = std::generic_category().message(error_number),
                   .where = {.file = path},
                   .hint = "look at the permissions of the folder"});
}

std::string trimmed(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

void check_out(const std::string& out, bool overwrite) {
  struct stat status{};
  if (::lstat(out.c_str(), &status) != 0) return;
  if (overwrite && is_pack(out)) return;
  raise(kExists, "\"" + out + "\" is there already",
        overwrite ? "it is no pack: choose another name"
                  : "choose another name, or replace it by overwrite=True (--force)");
}

// A folder of shards that no other process writes to at the same time.
class ShardFolder {
 public:
  explicit ShardFolder(const std::string& path) {
    std::error_code failed;
    fs::create_directory(path, failed);
    descriptor_ = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (descriptor_ < 0) not_moved(path, failed ? failed.value() : errno);
    try {
      lock_for_writing(descriptor_, path);
    } catch (...) {
      ::close(descriptor_);
      throw;
    }
  }
  ~ShardFolder() { ::close(descriptor_); }
  ShardFolder(const ShardFolder&) = delete;
  ShardFolder& operator=(const ShardFolder&) = delete;

 private:
  int descriptor_ = -1;
};

// What another number of shards has left under the partial name.
void clear_partial(const std::string& partial, int shards) {
  std::error_code ignored;
  const fs::file_status status = fs::symlink_status(partial, ignored);
  if (shards > 1 && fs::is_regular_file(status) && is_pack(partial)) fs::remove(partial, ignored);
  if (!fs::is_directory(status)) return;
  for (uint32_t i = shards > 1 ? static_cast<uint32_t>(shards) : 0;; ++i) {
    if (!fs::remove(joined(partial, shard_name(i)), ignored)) break;
  }
  if (shards == 1) fs::remove(partial, ignored);  // where nothing else is in it
}

// The last step: what stood at `out` goes, the new pack takes its name.
void move_into_place(const std::string& partial, const std::string& out, bool overwrite) {
  check_out(out, overwrite);
  std::error_code failed;
  const bool replaces_folder = fs::is_directory(fs::symlink_status(out, failed));
  const bool replaces_file = fs::exists(fs::symlink_status(out, failed)) && !replaces_folder;
  const bool is_folder = fs::is_directory(fs::symlink_status(partial, failed));
  const std::string old = out + ".old";
  failed.clear();
  const bool aside = replaces_folder || (replaces_file && is_folder);
  if (aside) fs::rename(out, old, failed);
  if (!failed) fs::rename(partial, out, failed);
  if (failed) not_moved(out, failed.value());
  if (aside) fs::remove_all(old, failed);
  // The name is on the disk when its folder is.
  const std::string parent = fs::path(out).has_parent_path() ? fs::path(out).parent_path() : ".";
  const int descriptor = ::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

// Makes PackedRecords on many threads.
class Packing {
 public:
  Packing(PackInput input, const PackOptions& options)
      : input_(std::move(input)), options_(options) {
    threads_ = options.threads > 0 ? options.threads : allowed_cores().count();
  }

  PackHeader header(uint32_t shard) const {
    PackHeader header;
    const auto shards = static_cast<uint64_t>(options_.shards);
    const auto size = static_cast<uint64_t>(input_.size());
    header.page_bytes = options_.page_bytes;
    header.shard = shard;
    header.shards = static_cast<uint32_t>(shards);
    header.first_record = begin_of(shard, size, shards);
    header.records = begin_of(shard + 1, size, shards) - header.first_record;
    header.dataset_records = size;
    header.plan = plan();
    header.keys_are_paths = input_.keys_are_paths();
    header.schema = input_.schema();
    header.classes = input_.classes();
    return header;
  }

  // Fills a shard from where it stands to its end.
  void fill(PackWriter& writer, const PackHeader& header, const Progress& progress) {
    const auto first = static_cast<int64_t>(header.first_record);
    const auto end = first + static_cast<int64_t>(header.records);
    InOrder<PackedRecord> order(first + static_cast<int64_t>(writer.records()), end,
                                kWaitingBytes * static_cast<size_t>(threads_));
    order.run(
        threads_, [this] { return worker(); }, size_of,
        [&](PackedRecord record) { writer.add(record); },
        [&](int64_t done) {
          if (progress) progress(done, input_.size());
        });
  }

 private:
  // In equal parts, the first ones a record longer where it does not come out even.
  static uint64_t begin_of(uint64_t shard, uint64_t size, uint64_t shards) {
    return size / shards * shard + std::min(shard, size % shards);
  }

  // What makes two runs the same: an interrupted one goes on only with its own pages.
  uint64_t plan() const {
    Fingerprint print;
    print.add(input_.fingerprint());
    print.add(options_.level ? static_cast<uint64_t>(*options_.level) + 1 : 0);
    print.add(options_.page_bytes);
    print.add(static_cast<uint64_t>(options_.shards));
    return print.value();
  }

  static size_t size_of(const PackedRecord& record) {
    size_t bytes = sizeof record + record.key.size();
    for (const PackedValue& value : record.values) bytes += sizeof value + value.bytes.size();
    return bytes;
  }

  std::function<PackedRecord(int64_t)> worker() {
    // shared: std::function wants copies.
    auto transcoder = std::make_shared<Transcoder>(options_.level);
    auto data = std::make_shared<RecordData>();
    return [this, transcoder, data](int64_t index) { return record(index, *transcoder, *data); };
  }

  PackedRecord record(int64_t index, Transcoder& transcoder, RecordData& data) {
    PackedRecord out;
    out.key = input_.key(index);
    read(index, data);
    if (!data.result) throw Exception(std::move(data.result.error()));
    for (size_t i = 0; i < input_.schema().size(); ++i) {
      Result<PackedValue> value = transcoder.value(input_.schema()[i], data.fields[i]);
      if (!value) {
        value.error().where = {.file = out.key, .member = {}, .record = index};
        throw Exception(std::move(value.error()));
      }
      out.values.push_back(std::move(*value));
    }
    return out;
  }

  // The host's lock is taken by one thread: several would only wait for each other.
  void read(int64_t index, RecordData& data) {
    if (!input_.reads_in_host()) return input_.read(index, data);
    MutexLock lock(host_);
    input_.read(index, data);
  }

  const PackInput input_;
  const PackOptions options_;
  int threads_ = 1;
  Mutex host_;
};

}  // namespace

PackReport pack(const std::vector<SourcePtr>& sources, const std::string& given_out,
                const PackOptions& options, const Progress& progress) {
  const auto begin = std::chrono::steady_clock::now();
  const std::string out = trimmed(given_out), partial = partial_name(out);
  check_out(out, options.overwrite);
  Packing packing(PackInput(sources), options);
  clear_partial(partial, options.shards);
  std::optional<ShardFolder> folder;
  if (options.shards > 1) folder.emplace(partial);
  PackReport report;
  uint64_t content = 0;
  PackHeader header;
  for (uint32_t shard = 0; shard < static_cast<uint32_t>(options.shards); ++shard) {
    header = packing.header(shard);
    const std::string path = folder ? joined(partial, shard_name(shard)) : partial;
    PackWriter writer(path, header, [&](uint64_t records) {
      const uint64_t done = header.first_record + records;
      if (progress)
        progress(static_cast<int64_t>(done), static_cast<int64_t>(header.dataset_records));
    });
    report.resumed_records += static_cast<int64_t>(writer.records());
    packing.fill(writer, header, progress);
    writer.finish();
    report.summary.add(header, writer.table());
    report.summary.pages += static_cast<int64_t>(writer.pages());
    report.summary.file_bytes += writer.file_bytes();
    content += writer.content();
  }
  move_into_place(partial, out, options.overwrite);
  report.summary.sort_reasons();
  report.summary.shards = options.shards;
  report.summary.fingerprint =
      pack_fingerprint(header.schema, header.classes, report.summary.records, content);
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return report;
}

}  // namespace headrace
