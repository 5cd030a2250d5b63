// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/shards/extent_source.h"

#include <algorithm>
#include <array>
#include <new>
#include <optional>

#include "headrace/base/process_limits.h"
#include "headrace/base/registry.h"
#include "headrace/base/text.h"
#include "headrace/sources/fingerprint.h"
#include "headrace/sources/in_order.h"
#include "headrace/sources/labeled_files.h"
#include "headrace/sources/readable_text.h"
#include "headrace/storage/paths.h"
#include "headrace/storage/staged_reads.h"

namespace headrace {
namespace {

const ErrorCode kTooLarge{
    "HR0411", ErrorKind::kResource, "record too large",
    "A record of a container exceeds one record's share of memory_limit, or the available memory. "
    "Raise memory_limit, or skip the record with on_error=\"skip\" or \"substitute\"."};

const ErrorCode kUnknownDamage{
    "HR0412", ErrorKind::kData, "damaged container",
    "Part of the container could not be read while its records were located. `headrace scan` "
    "lists all such places; copy or recreate the file."};

constexpr uint64_t kBlockBytes = uint64_t{8} << 20;  // a block of shuffle="blocks"
constexpr size_t kMaxTogether = 64;                  // records per read
constexpr uint64_t kBytesTogether = 256 << 10;  // and as many as fit in a core's cache for parsing
constexpr size_t kPrefetched = 4;               // records looked up ahead

uint64_t fingerprint_of(const Extents& records, const Schema& schema, size_t files) {
  Fingerprint print;
  print.add("extents");
  print.add(uint64_t{files});
  for (const Field& field : schema) {
    print.add(field.name);
    print.add(static_cast<uint64_t>(field.kind));
    print.add(name_of(field.dtype));
    for (const int64_t size : field.shape) print.add(static_cast<uint64_t>(size));
  }
  for (size_t file = 0; file < files; ++file) {
    print.add(static_cast<uint64_t>(records.end_of(file)));
  }
  for (int64_t i = 0; i < records.size(); ++i) {
    const Extent extent = records[i];
    print.add(extent.offset);
    print.add(extent.bytes);
  }
  return print.value();
}

constexpr int64_t kTogether = 1024;  // records claimed by a thread at a time
using Values = std::vector<int64_t>;

Values read_chunk(const FileSet& files, const ContainerIndex& index, const ReadInteger& read,
                  int64_t chunk) {
  const Extents& records = index.records;
  Values out;
  std::optional<FileWindow> window;
  size_t open = SIZE_MAX;
  const int64_t end = std::min(records.size(), (chunk + 1) * kTogether);
  for (int64_t i = chunk * kTogether; i < end; ++i) {
    if (index.is_damaged(i)) {
      out.push_back(-1);
      continue;
    }
    const Extent extent = records[i];
    if (extent.file != open) {
      open = extent.file;
      window.emplace(files.identity(open).size,
                     [&files, open](uint64_t offset, std::span<uint8_t> bytes) {
                       return files.read(open, offset, bytes);
                     });
    }
    Result<int64_t> value = read(*window, i, extent);
    if (!value && value.error().code->kind == ErrorKind::kStorage) {
      Error& error = value.error();
      error.where.file = files.shown(extent.file);
      error.where.record = i;
      throw Exception(std::move(error));
    }
    out.push_back(value ? *value : -1);
  }
  return out;
}

}  // namespace

ExtentSource::ExtentSource(std::unique_ptr<FileSet> files, ContainerIndex index, Schema schema)
    : files_(std::move(files)),
      index_(std::move(index)),
      schema_(std::move(schema)),
      fingerprint_(fingerprint_of(index_.records, schema_, files_->size())) {}

Where ExtentSource::where(int64_t record) const {
  const Extent extent = index_.records[record];
  return {.file = files_->shown(extent.file),
          .member = key(record),
          .record = record,
          .offset = static_cast<int64_t>(extent.offset)};
}

std::string ExtentSource::key(int64_t index) const {
  const Extent extent = index_.records[index];
  return std::string(last_name(without_query(files_->shown(extent.file)))) + ":" +
         std::to_string(index - index_.records.first_of(extent.file));
}

std::optional<IndexSidecar> ExtentSource::index_sidecar() const {
  std::string path = sidecar_path(index_.kind, *files_);
  if (path.empty()) return {};
  return IndexSidecar{std::move(path), bytes_from_index(index_, index_.kind, *files_)};
}

std::string ExtentSource::described(std::string_view format, const std::string& path) const {
  std::string out = std::string(format) + " " + path + " (" + count_text(size(), "record");
  if (files_->size() > 1) {
    out += " in " + count_text(static_cast<int64_t>(files_->size()), "file");
  }
  if (const auto damaged = static_cast<int64_t>(index_.damage.size()); damaged > 0) {
    out += "; " + count_text(damaged, "damaged place");
  }
  return out + ")";
}

Result<void> ExtentSource::read_part(int64_t record, uint64_t offset,
                                     std::span<uint8_t> out) const {
  const Extent extent = index_.records[record];
  return files_->read(extent.file, extent.offset + offset, out);
}

std::vector<int64_t> ExtentSource::block_ends() const {
  std::vector<int64_t> ends;
  for (size_t file = 0; file < files_->size(); ++file) {
    uint64_t bytes = 0;
    for (int64_t i = index_.records.first_of(file); i < index_.records.end_of(file); ++i) {
      const uint64_t more = index_.records[i].bytes;
      if (bytes > 0 && bytes + more > kBlockBytes) {
        ends.push_back(i);
        bytes = 0;
      }
      bytes += more;
    }
    ends.push_back(index_.records.end_of(file));
  }
  return ends;
}

void ExtentSource::will_read(int64_t begin, int64_t end, const std::vector<bool>&) const {
  while (begin < end) {
    const int64_t record = begin;
    const Extent first = index_.records[begin];
    begin = std::min(end, index_.records.end_of(first.file));
    const Extent last = index_.records[begin - 1];
    uint64_t bytes = 0;
    for (int64_t i = record; i < begin; ++i) bytes += index_.records[i].bytes;
    // If records are scattered over the file, this would fetch everything in between.
    const uint64_t span = last.offset + last.bytes - first.offset;
    if (last.offset < first.offset || span > 2 * bytes + kBlockBytes) continue;
    files_->will_read(first.file, first.offset, span);
  }
}

Error ExtentSource::damage_of(const Damage& damage) const {
  const ErrorCode* code = Registry<ErrorCode>::find(damage.code);
  Error error{.code = code && code->kind != ErrorKind::kStorage ? code : &kUnknownDamage,
              .what = damage.what,
              .where = where(damage.record),
              .hint = damage.hint};
  error.where.offset = static_cast<int64_t>(damage.offset);
  return error;
}

void ExtentSource::finish(int64_t record, const std::vector<bool>& wanted, RecordData& out) const {
  Result<void> parsed = parse(record, out.owned[0].bytes(), wanted, out);
  if (parsed) return;
  Where place = where(record);
  Where& given = parsed.error().where;
  given.file = std::move(place.file);
  if (given.member.empty()) given.member = std::move(place.member);
  given.record = record;
  given.offset = place.offset + std::max<int64_t>(given.offset, 0);
  for (FieldData& field : out.fields) field = {};
  out.result = std::move(parsed);
}

Error ExtentSource::too_large(std::string what) {
  return {.code = &kTooLarge,
          .what = std::move(what),
          .hint = "raise memory_limit, or skip the record"};
}

// Memory for its bytes, unless it is known to be bad. Returns whether they are in it already.
Result<bool> ExtentSource::prepare(int64_t record, const Extent& extent, RecordData& out) const {
  begin_record(record, schema_.size(), buffers(), out);
  const auto damage =
      std::lower_bound(index_.damage.begin(), index_.damage.end(), record,
                       [](const Damage& each, int64_t number) { return each.record < number; });
  if (damage != index_.damage.end() && damage->record == record) return damage_of(*damage);
  const auto refused = [&](std::string_view why) {  // a lambda, because formatting the message is
                                                    // slow
    Error error = too_large("the record has " + with_commas(static_cast<int64_t>(extent.bytes)) +
                            " bytes, but " + std::string(why));
    error.where = where(record);
    return error;
  };
  if (extent.bytes > out.max_bytes) {
    return refused("the limit is " + with_commas(static_cast<int64_t>(out.max_bytes)));
  }
  const std::string& path = files_->path(extent.file);
  const FileIdentity& version = files_->identity(extent.file);
  if (StagedReads::take(path, extent.offset, extent.bytes, &version, out.owned[0])) return true;
  try {
    out.owned[0].resize(extent.bytes);
  } catch (const std::bad_alloc&) {
    return refused("there is not enough memory for them");
  }
  return false;
}

// Reads and parses `out`, consecutive records starting at `first`.
void ExtentSource::read_run(const Extent& first, const std::vector<bool>& wanted,
                            std::span<RecordData> out) const {
  std::array<std::span<uint8_t>, kMaxTogether> parts;
  for (size_t i = 0; i < out.size(); ++i) {
    parts[i] = {out[i].owned[0].data(), out[i].owned[0].size()};
  }
  Result<void> all = files_->read(first.file, first.offset, {parts.data(), out.size()});
  uint64_t offset = first.offset;
  for (size_t i = 0; i < out.size(); ++i) {
    // Finds out which of several could not be read.
    if (!all) out[i].result = files_->read(first.file, offset, parts[i]);
    offset += parts[i].size();
    if (out[i].result) {
      finish(out[i].index, wanted, out[i]);
    } else {
      out[i].result.error().where.record = out[i].index;
    }
  }
}

void ExtentSource::pieces(int64_t index, const std::vector<bool>&,
                          std::vector<FilePiece>& out) const {
  if (!files_->is_async() || index_.is_damaged(index)) return;
  const Extent extent = index_.records[index];
  out.push_back(files_->piece(extent.file, extent.offset, extent.bytes));
}

void ExtentSource::read(std::span<const int64_t> indices, const std::vector<bool>& wanted,
                        std::span<RecordData> out) const {
  Extent run;
  size_t begin = 0;
  for (size_t i = 0; i < std::min(kPrefetched, out.size()); ++i) {
    index_.records.prefetch(indices[i]);
  }
  for (size_t i = 0; i < out.size(); ++i) {
    if (i + kPrefetched < out.size()) index_.records.prefetch(indices[i + kPrefetched]);
    if (i + 1 < out.size()) {
      __builtin_prefetch(out[i + 1].owned.data());
      __builtin_prefetch(out[i + 1].fields.data());
    }
    const Extent extent = index_.records[indices[i]];
    const bool follows = i > begin && i - begin < kMaxTogether && run.bytes < kBytesTogether &&
                         extent.file == run.file && extent.offset == run.offset + run.bytes;
    if (!follows) {
      if (i > begin) read_run(run, wanted, out.subspan(begin, i - begin));
      run = {.file = extent.file, .offset = extent.offset, .bytes = 0};
      begin = i;
    }
    run.bytes += extent.bytes;
    const Result<bool> is_here = prepare(indices[i], extent, out[i]);
    if (is_here && !*is_here) continue;
    if (is_here) {
      finish(indices[i], wanted, out[i]);
    } else {
      out[i].result = is_here.error();
    }
    if (i > begin) read_run(run, wanted, out.subspan(begin, i - begin));
    begin = i + 1;
  }
  if (begin < out.size()) read_run(run, wanted, out.subspan(begin));
}

std::vector<int64_t> column_of(const FileSet& files, const ContainerIndex& index,
                               const ReadInteger& read) {
  Values column;
  column.reserve(static_cast<size_t>(index.records.size()));
  const int64_t chunks = (index.records.size() + kTogether - 1) / kTogether;
  const auto work = [&](int64_t chunk) { return read_chunk(files, index, read, chunk); };
  each_in_order(0, chunks, allowed_cores().count(), work, [&](const Values& values) {
    column.insert(column.end(), values.begin(), values.end());
  });
  return column;
}

}  // namespace headrace
