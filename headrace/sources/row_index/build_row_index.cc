// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/row_index/build_row_index.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <optional>

#include "headrace/base/process_limits.h"
#include "headrace/fields/kind.h"
#include "headrace/fields/media.h"
#include "headrace/kernels/content_hash.h"
#include "headrace/sources/in_order.h"
#include "headrace/sources/row_index/indexed_source.h"
#include "headrace/sources/subset.h"
#include "headrace/storage/cache_directory.h"
#include "headrace/storage/file.h"

namespace headrace {
namespace {

const ErrorCode kNothingToIndex{
    "HR0462", ErrorKind::kConfig, "nothing to index",
    "An index applies to images and videos stored as encoded files, such as JPEG and MP4. This "
    "source has none: its images are arrays, or it has no images. Videos that records share "
    "(LeRobot) need no index: their tables are read once per process."};

const ErrorCode kCannotWrite{
    "HR0463", ErrorKind::kStorage, "could not write the row index",
    "The folder of the row index is missing, full or not writable. Without -o it is the cache "
    "directory (HEADRACE_CACHE, else ~/.cache/headrace). Name a file with -o FILE, and pass it to "
    "the loader: Loader(index=FILE)."};

constexpr int64_t kRecordsAtOnce = 8;  // records per thread, enough for one call into Python

[[noreturn]] void cannot_write(const std::string& file, int error_number) {
  throw Exception(
      Error{.code = &kCannotWrite,
            .what = file.empty() ? "there is no cache folder" : std::strerror(error_number),
            .where = Where{.file = file},
            .hint = "choose a file in a writable folder: -o FILE"});
}

// Bytes of images per thread that may be read ahead of the one whose index is being written.
constexpr size_t kWaitingBytes = size_t{64} << 20;

struct IndexedPicture {
  int64_t slot;
  uint64_t hash;
  std::vector<uint8_t> index;
};

// The results of a few records.
struct Indexed {
  int64_t records = 0, pictures = 0, bad = 0;
  uint64_t picture_bytes = 0;
  std::vector<IndexedPicture> indexed;
};

struct Range {
  int64_t begin, end;
};

Range range_of(int64_t records, const RowIndexPart& part) {
  const auto at = [&](int64_t number) {
    return static_cast<int64_t>(static_cast<__int128>(records) * number / part.count);
  };
  return {at(part.number), at(part.number + 1)};
}

class Build {
 public:
  Build(const Source& source, RowIndexFile& file, Range records)
      : source_(source),
        pictures_(source),
        file_(file),
        records_(records),
        wanted_(source.schema().size()),
        by_range_(wanted_) {
    for (const size_t field : pictures_.fields()) {
      wanted_[field] = true;
      by_range_[field] = record_of(source.schema()[field].kind).by_range;
    }
  }

  void run(int threads, const Progress& progress, BuiltRowIndex& out) {
    const int64_t groups = (records_.end - records_.begin + kRecordsAtOnce - 1) / kRecordsAtOnce;
    InOrder<Indexed> order(0, groups, kWaitingBytes * static_cast<size_t>(threads));
    order.run(
        threads, [this] { return worker(); },
        [](const Indexed& group) { return sizeof group + group.picture_bytes; },
        [&](const Indexed& group) {
          out.records += group.records;
          out.pictures += group.pictures;
          out.indexed += static_cast<int64_t>(group.indexed.size());
          out.bad += group.bad;
          out.picture_bytes += group.picture_bytes;
          for (const IndexedPicture& each : group.indexed) {
            if (!file_.add(each.slot, each.hash, each.index)) cannot_write(file_.path(), errno);
          }
        },
        [&](int64_t) {
          if (progress) progress(out.records, records_.end - records_.begin);
        });
  }

 private:
  // Per-thread state.
  struct Worker {
    std::vector<RecordData> records = std::vector<RecordData>(kRecordsAtOnce);
    std::map<const CodecRecord*, std::unique_ptr<ImageDecoder>> decoders;
    Indexed group;
  };

  std::function<Indexed(int64_t)> worker() {
    auto worker = std::make_shared<Worker>();  // shared: std::function must be copyable
    return [this, worker](int64_t group) {
      worker->group = {};
      take(records_.begin + group * kRecordsAtOnce, *worker);
      return std::move(worker->group);
    };
  }

  void take(int64_t first, Worker& worker) {
    std::vector<int64_t> indices;
    for (int64_t i = 0; i < std::min(kRecordsAtOnce, records_.end - first); ++i) {
      indices.push_back(first + i);
    }
    const auto records = std::span(worker.records).first(indices.size());
    for (RecordData& record : records) record.by_range = &by_range_;
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
    const FieldData& data = record.fields[pictures_.fields()[picture]];
    const FieldKind kind = source_.schema()[pictures_.fields()[picture]].kind;
    ++worker.group.pictures;
    worker.group.picture_bytes += data.file ? data.file->size() : data.bytes.size();
    std::optional<std::vector<uint8_t>> index =
        is_picture(kind) ? row_index(data.bytes, worker) : index_of(*media_of(kind), data);
    if (!index) {
      ++worker.group.bad;
    } else if (!index->empty() && index->size() <= RowIndexFile::kLongest) {
      const std::optional<uint64_t> hash = indexed_hash(kind, data);
      if (!hash) cannot_write(file_.path(), errno);
      const int64_t slot = pictures_.slot(record.index - records_.begin, picture);
      worker.group.indexed.push_back({slot, *hash, std::move(*index)});
    }
  }

  // nullopt if the file is damaged; an empty index for formats without one.
  static std::optional<std::vector<uint8_t>> index_of(const MediaRecord& media,
                                                      const FieldData& data) {
    Result<std::vector<uint8_t>> index =
        media.index(data.file ? ByteRanges(data.file) : ByteRanges(data.bytes));
    return index ? std::optional(std::move(*index)) : std::nullopt;
  }

  static std::optional<std::vector<uint8_t>> row_index(std::span<const uint8_t> bytes,
                                                       Worker& worker) {
    const CodecRecord* const codec = codec_of(bytes);
    std::unique_ptr<ImageDecoder>* decoder = codec ? &worker.decoders[codec] : nullptr;
    if (decoder && !*decoder) *decoder = codec->make();
    if (!decoder || !(*decoder)->read_header(bytes)) return std::nullopt;
    Result<std::vector<uint8_t>> rows = (*decoder)->row_index(bytes);
    return rows ? std::optional(std::move(*rows)) : std::nullopt;
  }

  const Source& source_;
  const IndexedFields pictures_;
  RowIndexFile& file_;
  const Range records_;
  std::vector<bool> wanted_, by_range_;
};

// Builds the index of one source, and adds the counts to `out`.
void build(const Source& source, const std::string& path, int threads, const Progress& progress,
           const RowIndexPart& part, BuiltRowIndex& out) {
  const Range records = range_of(source.size(), part);
  RowIndexKey key = IndexedFields(source).key();
  key.records = records.end - records.begin;
  std::unique_ptr<RowIndexFile> file = RowIndexFile::create(path, key);
  if (!file) cannot_write(path, errno);
  out.first = records.begin;
  Build(source, *file, records).run(threads, progress, out);
  if (!file->publish(/*replace=*/true)) cannot_write(path, errno);
  out.file_bytes += file->file_bytes();
}

void build_in_cache(const std::vector<const Source*>& sources, int threads,
                    const Progress& progress, BuiltRowIndex& out) {
  const CacheDirectory cache = CacheDirectory::of_user();
  if (cache.path().empty()) cannot_write({}, 0);
  cache.make();
  int64_t all = 0;
  for (const Source* source : sources) all += source->size();
  const auto report = [&](int64_t done, int64_t) {
    if (progress) progress(done, all);
  };
  for (const Source* source : sources) {
    const std::string path = cache.path_of(row_index_cache_name(source->fingerprint()));
    build(*source, path, threads, report, {}, out);
    out.file = sources.size() == 1 ? path : cache.path();
  }
}

}  // namespace

BuiltRowIndex build_row_index(const SourcePtr& source, const std::string& file, int threads,
                              const Progress& progress, RowIndexPart part) {
  BuiltRowIndex out{.file = file};
  with_viewed(source, [&](const SourcePtr& viewed) {
    std::vector<const Source*> sources = viewed->origins();
    std::erase_if(sources,
                  [](const Source* each) { return IndexedFields(*each).fields().empty(); });
    if (sources.empty()) {
      raise(kNothingToIndex, viewed->description() + " has no encoded images or videos");
    }
    const int workers = threads > 0 ? threads : allowed_cores().count();
    if (file.empty()) {
      build_in_cache(sources, workers, progress, out);
    } else {
      build(*viewed, file, workers, progress, part, out);
    }
    return viewed;
  });
  return out;
}

void join_row_indexes(const std::vector<std::string>& parts, const std::string& file) {
  std::vector<std::unique_ptr<RowIndexFile>> files;
  RowIndexKey whole;
  for (const std::string& part : parts) {
    Result<RowIndexKey> key = RowIndexFile::key_of(part);
    if (!key) throw Exception(std::move(key.error()));
    const RowIndexKey expected{.fingerprint = files.empty() ? key->fingerprint : whole.fingerprint,
                               .records = key->records,
                               .pictures = files.empty() ? key->pictures : whole.pictures};
    Result<std::unique_ptr<RowIndexFile>> opened = RowIndexFile::open(part, expected, false);
    if (!opened) throw Exception(std::move(opened.error()));
    files.push_back(std::move(*opened));
    whole = {expected.fingerprint, whole.records + key->records, expected.pictures};
  }
  std::unique_ptr<RowIndexFile> joined = RowIndexFile::create(file, whole);
  if (!joined) cannot_write(file, errno);
  int64_t first = 0;
  for (const std::unique_ptr<RowIndexFile>& part : files) {
    if (!joined->copy_from(*part, first)) cannot_write(file, errno);
    first += part->key().slots();
  }
  if (!joined->publish(/*replace=*/true)) cannot_write(file, errno);
}

}  // namespace headrace
