// SPDX-License-Identifier: Apache-2.0
#include "headrace/loader/read_path.h"

#include <algorithm>
#include <utility>

#include "headrace/loader/options.h"
#include "headrace/sources/files_read.h"

namespace headrace {

ReadPath::ReadPath(const SourcePtr& source, const std::vector<bool>& wanted,
                   const LoaderOptions& options)
    : cache_use_(cache_options(options)),
      wanted_(wanted),
      disk_cache_use_(options.disk_cache > 0 ? BlockCache::use(options.disk_cache) : nullptr),
      disk_cache_(BlockCache::in_use()),
      cache_(with_record_cache(source, wanted, cache_use_)),
      row_index_(with_row_index(cache_.source, options.row_index, options.row_index_file)) {}

RecordCache::Counts ReadPath::cache() const {
  return cache_.cache ? cache_.cache->counts() : RecordCache::Counts{};
}

BlockCache::Counts ReadPath::disk_cache() const {
  return disk_cache_ ? disk_cache_->counts() : BlockCache::Counts{};
}

std::string ReadPath::cache_text() const {
  if (cache_.cache) return cache_.cache->text();
  return "none: " + (cache_.refusal.empty() ? "the records are in memory already" : cache_.refusal);
}

std::string ReadPath::caution() {
  if (!cache_.refusal.empty() && !std::exchange(reported_refusal_, true)) {
    return std::string("cache= keeps ") + (cache_.cache ? "not all" : "no") +
           " records: " + cache_.refusal;
  }
  std::string caution = cache_.cache ? cache_.cache->caution() : "";
  return caution.empty() && disk_cache_ ? disk_cache_->caution() : caution;
}

std::optional<std::string> ReadPath::look_at_files() {
  if (!cache_.cache) return {};
  return cache_.cache->forget_changed(*cache_.cached, wanted_, FilesRead::kMaxLooks);
}

RowIndexStats ReadPath::row_index() const {
  RowIndexStats out;
  out.note = row_index_.note;
  if (!row_index_.index) return out;
  const IndexedSource& index = *row_index_.index;
  const auto has_failed = [](const IndexedOrigin& part) { return part.file->failed(); };
  const bool failed = std::ranges::any_of(index.parts(), has_failed);
  out.file = row_index_.file;
  out.learns = index.learns() && !failed;
  if (failed) out.note = "it can no longer be written: is the disk full?";
  out.pictures = row_index_.pictures;
  const IndexedSource::Counts counts = index.counts();
  MutexLock lock(mutex_);
  if (counts.learned != counted_at_) {  // the whole table is read for it
    counted_at_ = counts.learned;
    entries_ = 0;
    for (const IndexedOrigin& part : index.parts()) entries_ += part.file->contents().entries;
  }
  out.entries = entries_;
  out.used = counts.used;
  out.stale = counts.stale;
  out.learned = counts.learned;
  return out;
}

void ReadPath::keep() {
  if (row_index_.index && row_index_.index->learns()) row_index_.index->keep();
}

std::string text_of(const RowIndexStats& stats) {
  if (stats.file.empty()) return stats.note.empty() ? "off" : "none (" + stats.note + ")";
  return std::to_string(stats.entries) + " of " + std::to_string(stats.pictures) + " images (" +
         (stats.learns ? "grows, " : "") + stats.file + ")" +
         (stats.note.empty() ? "" : "; " + stats.note);
}

}  // namespace headrace
