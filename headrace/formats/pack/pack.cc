// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/pack/pack.h"

#include <algorithm>
#include <memory>

#include "headrace/base/clock.h"
#include "headrace/base/mutex.h"
#include "headrace/base/process_limits.h"
#include "headrace/fields/kind.h"
#include "headrace/formats/pack/indexed_video.h"
#include "headrace/formats/pack/pack_input.h"
#include "headrace/formats/pack/pack_place.h"
#include "headrace/formats/pack/pack_transcode.h"
#include "headrace/formats/pack/pack_writer.h"
#include "headrace/sources/fingerprint.h"
#include "headrace/sources/in_order.h"

namespace headrace {
namespace {

// Limit of finished results per thread that wait for their turn.
constexpr size_t kWaitingBytes = size_t{16} << 20;

// Makes PackedRecords on several threads.
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
    header.video_indexes = options_.level && std::ranges::any_of(input_.schema(), is_indexed_video);
    header.entries_in_rows = options_.level == PackLevel::kDense &&
                             std::ranges::any_of(input_.schema(), [](const Field& field) {
                               return field.encoded && is_picture(field.kind);
                             });
    header.schema = input_.schema();
    header.classes = input_.classes();
    return header;
  }

  // Writes the shard's remaining records.
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
  // Equal parts; the first ones get one more record each if there is a remainder.
  static uint64_t begin_of(uint64_t shard, uint64_t size, uint64_t shards) {
    return size / shards * shard + std::min(shard, size % shards);
  }

  // The input that determines the result: an interrupted run only continues from pages with the
  // same input.
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
    // shared_ptr, because std::function must be copyable.
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
        value.error().where = Where{.file = out.key, .member = {}, .record = index};
        throw Exception(std::move(value.error()));
      }
      out.values.push_back(std::move(*value));
    }
    return out;
  }

  // Only one thread at a time takes the GIL: several would only wait for each other.
  void read(int64_t index, RecordData& data) {
    if (!input_.reads_in_python()) return input_.read(index, data);
    MutexLock lock(python_);
    input_.read(index, data);
  }

  const PackInput input_;
  const PackOptions options_;
  int threads_ = 1;
  Mutex python_;
};

}  // namespace

PackReport pack(const std::vector<SourcePtr>& sources, const std::string& given_out,
                const PackOptions& options, const Progress& progress) {
  const double begin = now();
  Packing packing(PackInput(sources), options);
  const PackPlace place(given_out, options.only ? 1 : options.shards, options.overwrite);
  const auto first = static_cast<uint32_t>(options.only.value_or(0));
  const uint32_t end = options.only ? first + 1 : static_cast<uint32_t>(options.shards);
  PackReport report;
  uint64_t content = 0;
  PackHeader header;
  std::unique_ptr<PackWriter> writer;  // the last one keeps its lock until the pack is renamed
  for (uint32_t shard = first; shard < end; ++shard) {
    header = packing.header(shard);
    writer = std::make_unique<PackWriter>(place.shard(shard), header, [&](uint64_t records) {
      const uint64_t done = header.first_record + records;
      if (progress)
        progress(static_cast<int64_t>(done), static_cast<int64_t>(header.dataset_records));
    });
    if (shard == first) place.check();
    report.resumed_records += static_cast<int64_t>(writer->records());
    packing.fill(*writer, header, progress);
    writer->finish();
    report.summary.add(header, writer->table());
    report.summary.pages += static_cast<int64_t>(writer->pages());
    report.summary.file_bytes += writer->file_bytes();
    content += writer->content();
  }
  place.take();
  report.summary.sort_reasons();
  report.summary.shards = options.shards;
  report.summary.fingerprint =
      pack_fingerprint(header.schema, header.classes, report.summary.records, content);
  report.seconds = now() - begin;
  return report;
}

}  // namespace headrace
