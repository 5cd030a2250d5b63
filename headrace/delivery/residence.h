// SPDX-License-Identifier: Apache-2.0
// Whether the records of a loader stay in memory after the deterministic part of its pipeline, and
// how they are used there: sliced into batches on the host (host_set.h) or on a device
// (resident_set.h), if these can do the rest of the pipeline; otherwise by the engine, which runs
// the rest of the pipeline on them in each epoch.
//
// Order, draws, policies and resume states are those of streaming: batches are equal bit for bit.
// Used by one thread, except for const members.
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

// kAuto: where they take at most half of the memory limit. kOn: an error where they do not fit.
enum class ResidentUse : uint8_t { kOff, kAuto, kOn };

struct ResidenceQuestion {
  ResidentUse use = ResidentUse::kOff;
  SourcePtr source;                  // as it is opened
  Pipeline pipeline;                 //
  std::shared_ptr<const Plan> plan;  // shared: with the loader. Of all of the pipeline
  SamplerPtr sampler;
  std::optional<BatchLayout> layout;  // none: for kOff
  int threads = 1;
  size_t memory_limit = 0;       // for this and its engine
  bool view = false;             // batches are slices of the data
  std::string why_no_view = {};  // of the order; empty: it has slices
  DevicePtr device = {};         // where batches are wanted; null: the host
  double fraction = 1;           // of the records that stay on the device
};

class Residence {
 public:
  // Decides by what is known before anything is decoded; where records differ in size, by the
  // headers of a few. Throws Exception HR0890 for kOn where they do not fit or nothing can be kept,
  // HR0892 for views that cannot be.
  explicit Residence(const ResidenceQuestion& question);

  bool is_on() const { return on_; }
  bool is_prepared() const { return prepared_; }
  // Bytes taken from memory_limit, estimated until the records are loaded.
  size_t bytes() const EXCLUDES_LOCK(mutex_);
  // "49.2 MiB after Resize, CenterCrop (auto: at most 512 MiB, half of memory_limit)"
  std::string text() const EXCLUDES_LOCK(mutex_);

  // Makes the records, once; `source` is the loader's, through its caches. Turns kAuto off where
  // they take more than was estimated. Throws what ends a run.
  void prepare(const SourcePtr& source, const std::function<void(const std::string&)>& warn,
               const std::function<void()>& interrupted);
  // After prepare(): what the engine uses instead; null: what it used anyway.
  std::shared_ptr<const ResidentSource> source() const EXCLUDES_LOCK(mutex_);
  const std::shared_ptr<const Plan>& plan() const { return rest_; }
  // After prepare(): whether cut() makes the batches, without an engine.
  bool cuts() const { return set_ || host_set_; }
  // A batch by its number. Nothing where its records come to something that only the engine does,
  // which makes it, and those that follow: cuts() is false from then on.
  std::optional<Batch> cut(uint64_t seed, uint64_t epoch, int64_t batch);
  ResidentStats stats() const EXCLUDES_LOCK(mutex_);
  // Nothing stays any more.
  void drop() EXCLUDES_LOCK(mutex_);
  // Whether its batches lie on the device that was asked for.
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

  ResidenceQuestion asked_;
  SplitPipeline parts_;
  std::shared_ptr<const Plan> first_, rest_;
  Schema schema_;
  bool borrows_ = false, prepared_ = false;
  size_t estimate_ = 0, most_ = 0;
  // The one thread writes these under the lock and reads them without; others read under it.
  mutable Mutex mutex_;
  std::atomic<bool> on_ = false;
  std::string text_;
  std::shared_ptr<const ResidentSource> source_;
  // shared: with stats(), asked for by another thread.
  std::shared_ptr<ResidentSet> set_;
  std::shared_ptr<HostSet> host_set_;
};

}  // namespace headrace
