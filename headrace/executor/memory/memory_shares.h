// SPDX-License-Identifier: Apache-2.0
// How the memory limit is divided; see Note [Why the memory limit cannot deadlock].
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "headrace/finish/device_work.h"
#include "headrace/pipeline/plan.h"

namespace headrace {

struct MemoryShares {
  size_t slots = 0;  // depth * bytes of a batch
  size_t read_ahead = 0;
  size_t threads = 0;           // memory that workers keep between records
  size_t records = 0;           // the memory gate
  size_t kept = 0;              // near partners
  size_t lists = 0;             // fields delivered as lists, of batches that are not yet delivered
  size_t assembled = SIZE_MAX;  // a batch's padded and packed fields
  // Limits of one record's memory, and of its file: the same for any number of threads.
  size_t largest_record = 0, largest_file = SIZE_MAX;
  size_t largest_listed = SIZE_MAX;  // of a picture in a list, likewise
  int depth = 0;                     // buffers in each ring
  // With `threads` threads, for one worker's Renderer.
  size_t renderer_bytes = 0;
};
// Reduces the depth to two before it throws Exception HR0702. host_bytes: size of a batch as
// finished by the host, if a device finishes it; the limits of single records are the same for
// both.
MemoryShares divide_memory(size_t limit, size_t batch_bytes, int threads, bool reads_ahead,
                           bool has_lists = false, std::optional<size_t> host_bytes = {},
                           bool decodes_on_device = false, bool reads_far = false);

// Input of the division of an engine's memory.
struct MemoryUse {
  const Plan& plan;
  int64_t rows = 0;  // of a batch
  const DeviceWork& left;
  int threads = 1;
  bool lends = false;  // rows are made elsewhere, with some delay: more buffers
  bool reads_ahead = false;
  bool reads_far = false;  // reads ahead from an asynchronous storage: ideally a window of blocks
};
// The same with shares for the plan's needs: near partners, frames of clips, and tensors made from
// lists.
MemoryShares divide_memory(size_t limit, const MemoryUse& use);

// The same with a share for near partners, taken from memory that single records do not need.
MemoryShares with_near_partners(MemoryShares shares, const Plan& plan);
// The same, if the plan takes clips of videos, with more memory kept by a worker between records: a
// clip's frames reuse the previous clip's memory, taken from what single records do not need.
MemoryShares with_kept_frames(MemoryShares shares, const Plan& plan, int threads);

// Size of one batch's dense fields, including those that a device finishes and may leave to the
// host.
size_t batch_bytes(const Plan& plan, int64_t rows, const DeviceWork& left = {});

}  // namespace headrace
