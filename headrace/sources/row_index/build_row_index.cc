// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/row_index/build_row_index.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <map>

#include "headrace/base/cores.h"
#include "headrace/kernels/content_hash.h"
#include "headrace/sources/in_order.h"
#include "headrace/sources/row_index/indexed_source.h"
#include "headrace/sources/subset.h"
#include "headrace/storage/cache_directory.h"

namespace headrace {
namespace {

const ErrorCode kNothingToIndex{
    "HR0462", ErrorKind::kConfig, "nothing to index",
    "A row index is for pictures that are stored encoded, such as JPEG files. The records of this "
    "source have none: their pictures are arrays, or they have no pictures."};

const ErrorCode kCannotWrite{
    "HR0463", ErrorKind::kStorage, "row index cannot be written",
    "The folder of the row index is missing, full, or not allowed to be written. Without -o it is "
    "the cache folder (HEADRACE_CACHE, else ~/.cache/headrace). Name a file with -o FILE, and give "
    "it to the loader: Loader(index=FILE)."};

constexpr int64_t kRecordsAtOnce = 8;  // that a thread takes: enough for a call of Python's

[[noreturn]] void cannot_write(const std::string& file, int error_number) {
  throw Exception(
      Error{.code = &kCannotWrite,
            .what = file.empty() ? "there is no cache folder" : std::strerror(error_number),
            .where = {.file = file},
            .hint = "name a file in a folder that can be written: -o FILE"});
}

// What became of a few records.
struct Indexed {
  int64_t records = 0, pictures = 0, indexed = 0, bad = 0;
  uint64_t picture_bytes = 0;
};

class Build {
 public:
  Build(const Source& source, RowIndexFile& file)
      : source_(source), pictures_(source), file_(file), wanted_(source.schema().size()) {
    for (size_t field : pictures_.fields()) wanted_[field] = true;
  }

  void run(int threads, const Progress& progress, BuiltRowIndex& out) {
    const int64_t groups = (source_.size() + kRecordsAtOnce - 1) / kRecordsAtOnce;
    // What waits are numbers: it may grow.
    InOrder<Indexed> order(0, groups, std::numeric_limits<size_t>::max());
    order.run(
        threads, [this] { return worker(); },
        [](const Indexed& group) { return sizeof group + group.picture_bytes; },
        [&](const Indexed& group) {
          out.records += group.records;
          out.pictures += group.pictures;
          out.indexed += group.indexed;
          out.bad += group.bad;
          out.picture_bytes += group.picture_bytes;
        },
        [&](int64_t) {
          if (progress) progress(out.records, source_.size());
        });
  }

 private:
  // A thread's own.
  struct Worker {
    std::vector<RecordData> records = std::vector<RecordData>(kRecordsAtOnce);
    std::map<const CodecRecord*, std::unique_ptr<ImageDecoder>> decoders;
    Indexed group;
  };

  std::function<Indexed(int64_t)> worker() {
    auto worker = std::make_shared<Worker>();  // shared: std::function wants copies
    return [this, worker](int64_t group) {
      worker->group = {};
      take(group * kRecordsAtOnce, *worker);
      return worker->group;
    };
  }

  void take(int64_t first, Worker& worker) {
    std::vector<int64_t> indices;
    for (int64_t i = 0; i < std::min(kRecordsAtOnce, source_.size() - first); ++i) {
      indices.push_back(first + i);
    }
    const auto records = std::span(worker.records).first(indices.size());
    source_.read(indices, wanted_, records);
    for (const RecordData& record : records) {
      ++worker.group.records;
      if (!record.result) {
        if (!is_bad_record(record.result.error())) throw Exception(record.result.error());
        ++worker.group.bad;
      } else {
        for (size_t p = 0; p < pictures_.fields().size(); ++p) index(record, p, worker);
      }
    }
  }

  void index(const RecordData& record, size_t picture, Worker& worker) {
    const std::span<const uint8_t> bytes = record.fields[pictures_.fields()[picture]].bytes;
    ++worker.group.pictures;
    worker.group.picture_bytes += bytes.size();
    const CodecRecord* const codec = codec_of(bytes);
    std::unique_ptr<ImageDecoder>* decoder = codec ? &worker.decoders[codec] : nullptr;
    if (decoder && !*decoder) *decoder = codec->make();
    if (!decoder || !(*decoder)->read_header(bytes)) {
      ++worker.group.bad;
      return;
    }
    Result<std::vector<uint8_t>> rows = (*decoder)->row_index(bytes);
    if (!rows) {
      ++worker.group.bad;
    } else if (!rows->empty() && rows->size() <= RowIndexFile::kLongest) {
      if (!file_.add(pictures_.slot(record.index, picture), content_hash(bytes), *rows)) {
        cannot_write(file_.path(), errno);
      }
      ++worker.group.indexed;
    }
  }

  const Source& source_;
  const IndexedFields pictures_;
  RowIndexFile& file_;
  std::vector<bool> wanted_;
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
  Build(source, *file).run(threads, progress, out);
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
    out = build(*viewed, path, threads > 0 ? threads : allowed_cores().count(), progress);
    return viewed;
  });
  return out;
}

}  // namespace headrace
