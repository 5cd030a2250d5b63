// SPDX-License-Identifier: Apache-2.0
// Whether the records of a loader stay in memory after the deterministic part of its pipeline, and
// how they are used there: sliced into batches on the host (host_set.h) or on a device
// (resident_set.h), if the host or the device can do the rest of the pipeline; otherwise by the
// engine, which runs the rest of the pipeline on them in each epoch.
//
// Order, draws, policies and resume states are the same as when streaming, and batches are equal
// bit for bit. Used by one thread, except for const members.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "headrace/base/mutex.h"
#include "headrace/delivery/host_set.h"
#include "headrace/delivery/resident_set.h"
#include "headrace/delivery/resident_source.h"
#include "headrace/pipeline/split_pipeline.h"
#include "headrace/sampling/batch_layout.h"

namespace headrace {

// kAuto: if they take at most half of the memory limit. kOn: always; an error if they do not fit.
enum class ResidentUse : uint8_t { kOff, kAuto, kOn };

struct ResidenceInputs {
  ResidentUse use = ResidentUse::kOff;
  SourcePtr source;  // as opened
  Pipeline pipeline;
  std::shared_ptr<const Plan> plan;  // of the whole pipeline. shared: with the loader
  SamplerPtr sampler;
  std::optional<BatchLayout> layout;  // nullopt with kOff
  int threads = 1;
  size_t memory_limit = 0;       // for these records and the engine
  bool view = false;             // batches are slices of the data
  std::string why_no_view = {};  // because of the order; empty: slices are possible
  DevicePtr device = {};         // where batches are needed; null: on the host
  double fraction = 1;           // fraction of the records that stay on the device
};

class Residence {
 public:
  // Decides without decoding anything; if records differ in size, from the headers of a few. Throws
  // Exception HR0890 for kOn if they do not fit or nothing can be kept, HR0892 if views are
  // impossible.
  explicit Residence(const ResidenceInputs& question);

  bool is_on() const { return on_; }
  bool is_prepared() const { return prepared_; }
  // Bytes taken from memory_limit, estimated until the records are loaded.
  size_t bytes() const EXCLUDES_LOCK(mutex_);
  // "49.2 MiB after Resize, CenterCrop (auto: at most 512 MiB, half of memory_limit)"
  std::string text() const EXCLUDES_LOCK(mutex_);

  // Makes the records, once; `source`: the source of the loader, including its caches. Turns itself
  // off with kAuto if they take more than was estimated. Throws errors that end a run.
  void prepare(const SourcePtr& source, const std::function<void(const std::string&)>& warn,
               const std::function<void()>& interrupted);
  // After prepare(): the source that the engine uses instead; null: it keeps its source.
  std::shared_ptr<const ResidentSource> source() const EXCLUDES_LOCK(mutex_);
  const std::shared_ptr<const Plan>& plan() const { return rest_; }
  // After prepare(): whether cut() makes the batches, without the engine.
  bool cuts() const { return set_ || host_set_; }
  // A batch by its number. Nothing if one of its records needs work that only the engine can do;
  // then the engine makes it and all later batches, and cuts() is false from then on.
  std::optional<Batch> cut(uint64_t seed, uint64_t epoch, int64_t batch);
  ResidentStats stats() const EXCLUDES_LOCK(mutex_);
  // Frees the records.
  void drop() EXCLUDES_LOCK(mutex_);
  // Whether its batches are on the requested device.
  bool is_on_device() const { return set_ != nullptr; }

 private:
  void decide(size_t limit, const std::string& limit_text);
  void turn_off(const std::string& why);
  void add_text(const std::string& more) EXCLUDES_LOCK(mutex_);
  std::string after() const;
  Schema schema_behind() const;
  bool lies_in_memory() const;
  size_t estimated_bytes() const;
  void make_set();
  std::unique_ptr<ResidentSet> set_on_device(const Source& source);
  std::unique_ptr<HostSet> set_on_host(const Source& source);
  std::vector<ResidentField> fields_of(const Source& source) const;
  std::string edit_fields(std::vector<ResidentField>& fields, const Source& source, bool resizes,
                          std::shared_ptr<DeviceSteps>& steps) const;

  ResidenceInputs asked_;
  SplitPipeline parts_;
  std::shared_ptr<const Plan> first_, rest_;
  Schema schema_;
  bool borrows_ = false, prepared_ = false;
  size_t estimate_ = 0, most_ = 0;
  // The thread that uses this object writes these under the lock and reads them without it; other
  // threads read them under the lock.
  mutable Mutex mutex_;
  std::atomic<bool> on_ = false;
  std::string text_;
  std::shared_ptr<const ResidentSource> source_;
  // shared: with stats(), which other threads call.
  std::shared_ptr<ResidentSet> set_;
  std::shared_ptr<HostSet> host_set_;
};

}  // namespace headrace
