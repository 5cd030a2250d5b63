// SPDX-License-Identifier: Apache-2.0
// The public API: source + pipeline + sampler -> batches.
//
//   auto source = headrace::open_source("train/");
//   headrace::Loader loader(
//       source, {.transforms = {{"RandomResizedCrop", {{"size", int64_t{224}}}}}},
//       {.batch_size = 256, .shuffle = true});
//   for (int epoch = 0; epoch < 90; ++epoch)
//     while (auto batch = loader.next()) use((*batch)["image"]);
//
// Only one thread at a time may advance a Loader (next, restart, set_epoch, load_state, take_back,
// load_resident, close); others may call const members at the same time, and also batch() and the
// functions about rows. Batches may be kept and dropped on any thread, even after the Loader is
// destroyed.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/delivery/residence.h"
#include "headrace/device/device.h"
#include "headrace/executor/bad_records.h"
#include "headrace/executor/batch/batch.h"
#include "headrace/executor/batch/batch_rows.h"
#include "headrace/executor/engine_stats.h"
#include "headrace/executor/lent_rows.h"
#include "headrace/finish/decode_choice.h"
#include "headrace/finish/device_decoding.h"
#include "headrace/finish/finish_choice.h"
#include "headrace/formats/format.h"
#include "headrace/pipeline/plan.h"
#include "headrace/sampling/batch_layout.h"
#include "headrace/sampling/sampler.h"
#include "headrace/sources/record_cache.h"
#include "headrace/sources/row_index/indexed_source.h"
#include "headrace/sources/source.h"
#include "headrace/storage/block_cache.h"

namespace headrace {

struct LoaderOptions {
  int64_t batch_size = 0;         // per rank; give exactly one of the two
  int64_t global_batch_size = 0;  // over all ranks
  bool shuffle = false;
  // Shuffle the source's blocks, and the records within this many blocks at a time; 0: all records.
  int64_t shuffle_window = 0;
  uint64_t seed = 0;
  int threads = 0;  // 0: allowed cores / LOCAL_WORLD_SIZE (executor/resources.h)
  // Maximum number of concurrent calls of Python steps, each waiting in a separate thread for a
  // worker process; 0: one call at a time, on the thread that all loaders share.
  int python_workers = 0;
  size_t memory_limit = 0;  // bytes; 0: a quarter of the available memory / LOCAL_WORLD_SIZE
  // Whether records stay in memory after the deterministic part of the pipeline, as part of
  // memory_limit: same batches, made without reading and decoding again.
  ResidentUse resident = ResidentUse::kOff;
  bool view = false;               // resident batches are slices of the data itself, not copies
  bool on_demand = false;          // only batches by number, on the caller's thread; none ahead
  double fraction = 1;             // of resident records: the fraction kept on `device`, if given
  bool resident_on_device = true;  // false: resident data stays on the host, even with `device`
  size_t cache = 0;                // bytes of memory_limit for caching records as stored
  CacheScope cache_scope = CacheScope::kAuto;  // the processes that share these bytes
  // Disk space for blocks of files in asynchronous storages, in this machine's cache folder
  // (storage/block_cache.h); 0: the value of HEADRACE_DISK_CACHE.
  uint64_t disk_cache = 0;
  OnError on_error = OnError::kRaise;
  int64_t error_budget = 1000;  // bad records per epoch before the run ends
  double error_rate = 0.01;     // or the fraction of bad records, after 1,000 records
  std::string quarantine = {};  // a JSON-lines file; empty: kept in memory only
  LastBatch last_batch = LastBatch::kKeep;
  Uneven uneven = Uneven::kNo;  // if ranks do not divide the global batch (Loader::weight)
  int rank = 0, world_size = 1;
  // shared: Python's object and the loader use the same sampler. Null: all records once, in
  // order or by the keyed permutation.
  std::shared_ptr<const Sampler> sampler = {};
  PlanOptions plan = {};
  // Whether the row index is used, and extended; batches do not depend on it.
  RowIndexUse row_index = RowIndexUse::kUse;
  std::string row_index_file = {};  // instead of the dataset's file in the cache folder
  // The device that batches are copied to: their memory is pinned for it. shared: with the
  // prefetcher.
  DevicePtr device = {};
  // Whether that device applies the final transforms to pictures. Then next() returns fields that
  // are `unfinished`, for the prefetchers that copy them to the device (loader_feed.h).
  FinishUse finish = FinishUse::kHost;
  // Whether it also decodes pictures, if it can.
  DecodeUse decode = DecodeUse::kCpu;
  // Rows may be made elsewhere, if that is possible (loader->resolved("workers")).
  bool lends = false;
  double record_timeout = 0;     // seconds to wait for a record's bytes; 0: no limit
  double patience_seconds = 60;  // until `warn` reports the stage that next() waits for; 0: never
  // Called on the consumer's thread with warnings (a copied batch, a stage that hangs).
  std::function<void(const std::string&)> warn = {};
};

struct LoaderState {  // for resuming: what the consumer has received
  uint64_t seed = 0;
  int64_t epoch = 0;
  int64_t batch = 0;  // global batches received in the epoch
  int64_t global_batch = 0;
  int64_t records = 0;       // of the epoch
  int64_t bad_records = 0;   // so far in the epoch, for the error budget
  uint64_t fingerprint = 0;  // of source, sampler and the policies that decide order
  int64_t streams = 0;       // Sampler::streams()
};

// A loader's position and its counts there, for go_back().
struct LoaderMark {
  LoaderState state;
  DeliveredCounts counts;
  std::optional<int64_t> repaired_before;  // images, at the beginning of the current iteration
};

struct RowIndexStats {
  std::string file;                          // in use; if several, their folder; empty: none
  std::string note;                          // why no index is used, or not for all records
  bool learns = false;                       // it is extended while batches are made
  int64_t pictures = 0;                      // in the dataset
  int64_t entries = 0;                       // of these, with an index
  int64_t used = 0, stale = 0, learned = 0;  // of the pictures read so far
};

// The table of counters (loader/counters.cc) defines each of these.
struct LoaderStats : EngineStats {
  int64_t bad_records = 0;
  double wall_seconds = 0;
  int threads = 0;
  size_t memory_limit = 0, resident_bytes = 0;
  RowIndexStats row_index;
  DeviceDecoding::Counts decoded{};
  RecordCache::Counts cache;      // shared by loaders that read the same records
  BlockCache::Counts disk_cache;  // of all reads of the process
};

class Loader {
 public:
  // Throws Exception on misuse, before any thread is started.
  Loader(SourcePtr source, const Pipeline& pipeline, const LoaderOptions& options);
  ~Loader();

  // Starts the threads, as the first next() would. Throws Exception if the memory limit is too
  // small.
  void prepare();

  // The next batch of the epoch, or nothing at its end (the next call begins the next epoch).
  // Throws Exception if a record is bad and on_error is kRaise, or the budget is exceeded.
  // `interrupted`, called every 50 ms while it waits, may throw (a signal arrived); here and below,
  // the call can then be repeated.
  std::optional<Batch> next(const std::function<void()>& interrupted = {});
  // Takes back the last batch of next() because it did not arrive: the next call returns it again,
  // and it does not count as received.
  void take_back();
  int64_t batches_per_epoch() const;
  // BatchLayout::weight().
  double weight(int64_t batch) const;

  // Restarts the current epoch, or begins the next one if a batch was received.
  void restart(const std::function<void()>& interrupted = {});
  void set_epoch(int64_t epoch, const std::function<void()>& interrupted = {});
  int64_t epoch() const;
  LoaderState state() const;
  void load_state(const LoaderState& state, const std::function<void()>& interrupted = {});

  // Marks a position. go_back() returns to it: batches of next() after it, which did not arrive,
  // are made again, as with load_state(), and are not counted.
  LoaderMark mark() const;
  void go_back(const LoaderMark& mark);

  // Makes the resident records now rather than with the first batch. True if they are on the device
  // of the options, and batches are made there.
  bool load_resident(const std::function<void()>& interrupted = {});

  // One batch by its number, independently of the iteration; equal to the one that next() returns.
  Batch batch(int64_t epoch, int64_t index);
  // Rows that this process makes for a loader elsewhere, and those that others make for this one:
  // see Engine::make_rows and the functions after it. Any thread may call these while another
  // advances the loader. Nothing is lent if no iteration is in progress, or rows cannot be lent.
  RowsResult make_rows(const RowsRequest& rows, const BatchRows::Memory& memory);
  std::optional<LentRows> rows_ahead(int most, double patience_seconds);
  bool rows_arrived(int64_t number, RowsResult made, const RowBytes& bytes);
  void rows_returned(int64_t number);
  bool rows_are_out(int64_t number) const;

  // Whether batches have `unfinished` fields, which are for a LoaderFeed, not for the host.
  bool leaves_unfinished() const;
  // Indices of the records of one batch, in order.
  std::vector<int64_t> indices(int64_t epoch, int64_t index) const;

  const Plan& plan() const;
  const LoaderOptions& options() const;  // with every default resolved
  LoaderStats stats() const;
  std::vector<BadRecord> quarantine() const;
  std::string resolved(std::string_view option) const;  // "2 (allowed cores)"
  // Stops the threads, also while another thread is in a call; if that call needs them, it waits
  // until its `interrupted` throws.
  void stop_workers();
  void close();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace headrace
