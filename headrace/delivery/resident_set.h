// SPDX-License-Identifier: Apache-2.0
// A dataset in a device's memory, sliced into batches there. (On the host:
// host_set.h.)
//
//   values of a field, record by record ──slice, or gather by a keyed permutation──> batch
//
// Nothing is decoded, and no table of the order is stored: if the sampler is a keyed permutation,
// each row's record is computed when the row is copied. Batches are copies, because what the
// consumer does to a batch must not change the data; with `view` they are slices of the data
// itself. Each field has a ring of batches (device_ring.h), so keeping labels keeps no images.
//
// Note [Arenas]: requesting a batch of small records costs more than copying it: a kernel, an event
// and a lease per field take about 50 us. So consecutive batches are made together, up to 2 MiB:
// one kernel per field fills an arena, a slab with separate rows for each batch, and take() returns
// its parts. An arena returns to its ring when the last of its batches is dropped. The edits for
// the next arena are computed in the meantime (edits_ahead.h).
//
// Used by one thread at a time; batches may be kept and dropped on any thread, even after the set.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headrace/delivery/device_ring.h"
#include "headrace/delivery/device_steps.h"
#include "headrace/delivery/edits_ahead.h"
#include "headrace/delivery/resident_field.h"
#include "headrace/delivery/staging.h"
#include "headrace/kernels/batch/resize_batch.h"
#include "headrace/kernels/batch/row_choice.h"
#include "headrace/sampling/batch_layout.h"
#include "headrace/sampling/sampler.h"

namespace headrace {

struct ResidentOptions {
  int64_t batch_rows = 1;  // of a full batch
  bool view = false;
  // How many records are kept on the device, starting at the first one; the others stay on the host
  // and are copied when they are needed. Negative: all.
  int64_t on_device = -1;
  // Operations on images when a batch is made. shared: with the code that checked whether a device
  // supports them.
  std::shared_ptr<DeviceSteps> steps = {};
  MemoryFormat memory_format = MemoryFormat::kChannelsFirst;  // of pictures that the steps change
  int threads = 1;  // for the steps, including the caller's
};

class ResidentSet {
 public:
  static constexpr int kBatches = 4;          // per ring; or arenas
  static constexpr int64_t kMaxInArena = 64;  // batches

  // Copies the fields to the device. Throws Exception HR0891 if it has no room for them.
  ResidentSet(DevicePtr device, std::vector<ResidentField> fields, int64_t records,
              ResidentOptions options);
  ~ResidentSet();
  ResidentSet(const ResidentSet&) = delete;
  ResidentSet& operator=(const ResidentSet&) = delete;

  // The records at the positions of `range` in this epoch; positions at or beyond the sampler's
  // size wrap around, and are not `valid`. The lease of each field is a DeviceLease.
  // Throws Exception HR0894, or an operator's error, if steps cannot be applied.
  // REQUIRES: at most batch_rows rows; with `view` a sampler in order, and no padding.
  Batch take(const Sampler& sampler, uint64_t seed, uint64_t epoch, int64_t batch,
             BatchRange range);
  // The same for a batch of a layout, from an arena if arenas are used: Note [Arenas].
  Batch take(const Sampler& sampler, const BatchLayout& layout, uint64_t seed, uint64_t epoch,
             int64_t batch);

  const DevicePtr& device() const { return device_; }
  ResidentStats stats() const;

 private:
  struct Table;
  // Describes the rows of a batch.
  struct Rows {
    std::vector<BatchRange> positions;
    int64_t count = 0;
    int64_t epoch_size = 0;
    bool in_order = false;
    std::optional<Permutation> order;
    std::vector<int64_t> indices;  // if they have to be known on the host
    std::vector<int64_t> places;   // if so, the row of each in device memory
  };
  // Batches that were made together; those starting at `next` have not been returned yet.
  struct Arena {
    uint64_t seed = 0, epoch = 0;
    int64_t next = 0, end = 0;       // batch numbers; equal: no batches
    int64_t row = 0;                 // first row of the next batch
    std::vector<BatchField> fields;  // of all rows
  };
  bool is_partial() const { return on_device_ < records_; }
  void check_room() const;
  size_t resize_room(const Table& table) const;
  const Table* device_copy_of(const Table& table) const;
  void load(Table& table);
  void place_pictures(Table& table) const;
  void load_pictures(const Table& table, uint8_t* values);
  void load_steps(Table& table);
  int64_t batches_in_arena() const;
  int64_t max_rows() const;  // made at once
  void fill_arena(const Sampler& sampler, const BatchLayout& layout, uint64_t seed, uint64_t epoch,
                  int64_t batch);
  void choose(const Sampler& sampler, uint64_t seed, uint64_t epoch,
              std::vector<BatchRange> positions);
  // The fields of the chosen rows, each in a slab for `slab_rows`.
  std::vector<BatchField> cut(int64_t slab_rows);
  // Appends the leases that wait for the stream's work to `leases`.
  BatchField make_field(Table& table, int64_t slab_rows, uint8_t*& stage,
                        std::vector<std::shared_ptr<DeviceLease>>& leases);
  std::shared_ptr<DeviceLease> lease_of(Table& table, int64_t slab_rows);
  void fill(const Table& table, uint8_t* to, uint8_t*& stage);
  void gather(const Table& table, const RowChoice& choice, uint8_t* to, int64_t done,
              int64_t count);
  void plan_resize_of(Table& table) const;
  void resize(const Table& table, uint8_t*& stage);
  void edit(const Table& table, const RowChoice& choice, uint8_t* to, int64_t done, int64_t count);
  void stage_edits(const Table& table, uint8_t*& stage);
  size_t staged_bytes() const;
  const int64_t* stage_indices(uint8_t*& stage);
  void stage_rows(const Table& table, uint8_t*& stage);

  const DevicePtr device_;
  const int64_t records_;
  const ResidentOptions options_;
  const int64_t on_device_;
  const StreamPtr stream_;
  std::vector<std::unique_ptr<Table>> tables_;
  StagingRing staging_;
  std::shared_ptr<void> device_indices_;  // of the current batch; reused in the order of the stream
  const int64_t* indices_ = nullptr;      // for the gather
  Rows rows_;                             // its vectors keep their memory
  int64_t arena_batches_ = 0;             // 0: no arenas
  Arena arena_;
  std::unique_ptr<EditsAhead> edits_ahead_;  // if there are arenas and steps
  std::atomic<int64_t> beyond_{0};
};

}  // namespace headrace
