// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/build_row_index.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <new>
#include <thread>

#include "headrace/base/mutex.h"
#include "headrace/base/registry.h"
#include "headrace/formats/indexed_source.h"
#include "headrace/formats/subset.h"
#include "headrace/kernels/content_hash.h"
#include "headrace/storage/cache_directory.h"

namespace headrace {
namespace {

constexpr ErrorCode kNothingToIndex{
    "HR0462", ErrorKind::kConfig, "nothing to index",
    "A row index is for pictures that are stored encoded, such as JPEG files. The records of this "
    "source have none: their pictures are arrays, or they have no pictures."};
const Register<ErrorCode> registered_nothing(kNothingToIndex);

constexpr ErrorCode kCannotWrite{
    "HR0463", ErrorKind::kStorage, "row index cannot be written",
    "The folder of the row index is missing, full, or not allowed to be written. Without -o it is "
    "the cache folder (HEADRACE_CACHE, else ~/.cache/headrace). Name a file with -o FILE, and give "
    "it to the loader: Loader(index=FILE)."};
const Register<ErrorCode> registered_cannot_write(kCannotWrite);

constexpr int64_t kRecordsAtOnce = 8;  // that a thread takes: enough for a call of the host's
constexpr auto kSlice = std::chrono::milliseconds(50);

[[noreturn]] void cannot_write(const std::string& file, int error_number) {
  throw Exception(
      Error{.code = &kCannotWrite,
            .what = file.empty() ? "there is no cache folder" : std::strerror(error_number),
            .where = {.file = file},
            .hint = "name a file in a folder that can be written: -o FILE"});
}

// What the threads share.
class Build {
 public:
  Build(const Source& source, RowIndexFile& file)
      : source_(source), pictures_(source), file_(file) {}

  // A thread's part: until there are no more records, or something ended it.
  void run() {
    try {
      std::vector<RecordData> records(kRecordsAtOnce);
      std::map<const CodecRecord*, std::unique_ptr<ImageDecoder>> decoders;
      while (!stopped_) {
        const int64_t first = next_.fetch_add(kRecordsAtOnce);
        if (first >= source_.size()) break;
        take(first, std::min(kRecordsAtOnce, source_.size() - first), records, decoders);
      }
    } catch (...) {
      MutexLock lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
      stopped_ = true;
    }
    MutexLock lock(mutex_);
    ++ended_;
    changed_.notify_all();
  }

  void stop() { stopped_ = true; }

  // Until all threads have ended; tells how far they are.
  void wait(int threads, const Progress& progress) {
    for (bool all = false; !all;) {
      {
        MutexLock lock(mutex_);
        if (ended_ < threads) changed_.wait_for(mutex_, kSlice);
        all = ended_ == threads;
      }
      if (progress) progress(done_, source_.size());
    }
    MutexLock lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
  }

  void add_to(BuiltRowIndex& out) const {
    out.records = source_.size();
    out.pictures = seen_;
    out.indexed = indexed_;
    out.bad = bad_;
    out.picture_bytes = bytes_;
  }

 private:
  using Decoders = std::map<const CodecRecord*, std::unique_ptr<ImageDecoder>>;

  void take(int64_t first, int64_t count, std::vector<RecordData>& records, Decoders& decoders) {
    std::vector<bool> wanted(source_.schema().size());
    for (size_t field : pictures_.fields()) wanted[field] = true;
    std::vector<int64_t> indices;
    for (int64_t i = 0; i < count; ++i) indices.push_back(first + i);
    source_.read(indices, wanted, std::span(records).first(static_cast<size_t>(count)));
    for (int64_t i = 0; i < count && !stopped_; ++i) {
      RecordData& record = records[static_cast<size_t>(i)];
      if (!record.result) {
        if (!is_bad_record(record.result.error())) throw Exception(record.result.error());
        ++bad_;
      } else {
        for (size_t p = 0; p < pictures_.fields().size(); ++p) index(record, p, decoders);
      }
      ++done_;
    }
  }

  void index(const RecordData& record, size_t picture, Decoders& decoders) {
    const std::span<const uint8_t> bytes = record.fields[pictures_.fields()[picture]].bytes;
    ++seen_;
    bytes_ += bytes.size();
    const CodecRecord* const codec = codec_of(bytes);
    std::unique_ptr<ImageDecoder>* decoder = codec ? &decoders[codec] : nullptr;
    if (decoder && !*decoder) *decoder = codec->make();
    if (!decoder || !(*decoder)->read_header(bytes)) {
      ++bad_;
      return;
    }
    Result<std::vector<uint8_t>> rows = (*decoder)->row_index(bytes);
    if (!rows) {
      ++bad_;
    } else if (!rows->empty() && rows->size() <= RowIndexFile::kLongest) {
      if (!file_.add(pictures_.slot(record.index, picture), content_hash(bytes), *rows)) {
        cannot_write(file_.path(), errno);
      }
      ++indexed_;
    }
  }

  const Source& source_;
  const IndexedFields pictures_;
  RowIndexFile& file_;
  std::atomic<int64_t> next_{0}, done_{0}, seen_{0}, indexed_{0}, bad_{0};
  std::atomic<uint64_t> bytes_{0};
  std::atomic<bool> stopped_{false};
  Mutex mutex_;
  Condition changed_;
  int ended_ GUARDED_BY(mutex_) = 0;
  std::exception_ptr failure_ GUARDED_BY(mutex_);
};

BuiltRowIndex build(const Source& source, const std::string& path, int threads,
                    const Progress& progress) {
  const RowIndexKey key = IndexedFields(source).key();
  if (key.slots() == 0) {
    raise(kNothingToIndex, source.description() + " has no encoded pictures");
  }
  BuiltRowIndex out{.file = path};
  std::unique_ptr<RowIndexFile> file = RowIndexFile::create(path, key);
  if (!file) cannot_write(path, errno);
  {
    Build work(source, *file);
    std::vector<std::jthread> workers;
    for (int i = 0; i < threads; ++i) workers.emplace_back([&work] { work.run(); });
    try {
      work.wait(threads, progress);
    } catch (...) {
      work.stop();
      throw;  // the threads are waited for as their handles go
    }
    work.add_to(out);
  }
  if (!file->publish(/*replace=*/true)) cannot_write(path, errno);
  out.file_bytes = file->file_bytes();
  return out;
}

}  // namespace

BuiltRowIndex build_row_index(const SourcePtr& source, const std::string& file, int threads,
                              const Progress& progress) {
  BuiltRowIndex out;
  with_viewed(source, [&](const SourcePtr& viewed) {
    const CacheDirectory cache = CacheDirectory::of_user();
    std::string path = file;
    if (path.empty()) {
      path = cache.path_of(row_index_cache_name(viewed->fingerprint()));
      if (path.empty()) cannot_write(path, 0);
      cache.make();
    }
    const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    out = build(*viewed, path, threads > 0 ? threads : cores, progress);
    return viewed;
  });
  return out;
}

}  // namespace headrace
