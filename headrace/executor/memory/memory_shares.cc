// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/memory/memory_shares.h"

#include <algorithm>
#include <string>

#include "headrace/finish/coded_rows.h"

namespace headrace {
namespace {

constexpr size_t kMiB = size_t{1} << 20;
// Three buffers keep all threads busy: one at the consumer, one ready, one being filled. Small
// batches get more, so that an uneven consumer does not stall the workers. A device that decodes
// holds the buffers of several batches at once.
constexpr int kUsualDepth = 3, kDecodingDepth = 4, kDeepest = 8;
constexpr size_t kDeepBytes = 64 * kMiB;
// Memory that a worker keeps between records: kKeptBytes for its run's read buffers, the rest for
// the Renderer; and the smallest useful budgets of the others.
constexpr size_t kThreadBytes = 8 * kMiB, kKeptBytes = 4 * kMiB, kMinRecords = 8 * kMiB,
                 kMinReadAhead = kMiB;

// A clip's frames that a worker keeps: 16 of 1920 x 1080 take 48 MiB.
constexpr size_t kMaxKeptFrames = 64 * kMiB;

// Average memory of a near partner, apart from its pictures.
constexpr size_t kNearRows = 16 << 10;

const ErrorCode kLimitTooSmall{
    "HR0702", ErrorKind::kConfig, "memory_limit too small",
    "The limit must hold at least two batches, the scratch memory of every thread, and the "
    "working memory of one record. Use a smaller batch, fewer threads, uint8 or float16 batches, "
    "or a higher limit."};

std::string in_mib(size_t bytes) { return std::to_string((bytes + kMiB - 1) / kMiB) + " MiB"; }

}  // namespace

size_t batch_bytes(const Plan& plan, int64_t rows, const DeviceWork& left) {
  size_t bytes = 0;
  for (size_t i = 0; i < plan.outputs().size(); ++i) {
    const Output& output = plan.outputs()[i];
    if (left.finishes(i)) bytes += slot_row_bytes(output, i, left);
    if (left.decodes(i)) bytes += CodedRows::instruction_row_bytes(left.coded_row);
    if (left.place(i) != FinishPlace::kDevice) bytes += output.bytes_per_record;
  }
  return bytes * size_t(rows);
}

MemoryShares divide_memory(size_t limit, size_t batch_bytes, int threads, bool reads_ahead,
                           bool has_lists, std::optional<size_t> host_bytes, bool decodes_on_device,
                           bool reads_far) {
  MemoryShares shares;
  shares.renderer_bytes = kThreadBytes - kKeptBytes;
  shares.threads = kThreadBytes * static_cast<size_t>(threads);
  // Whether a record is too large must not depend on the number of threads, or on whether a device
  // finishes and decodes, because batches would depend on it, too.
  const size_t on_host = host_bytes.value_or(batch_bytes);
  const size_t beside_batches = limit - std::min(limit, 2 * on_host);
  shares.largest_record = beside_batches / (has_lists ? 6 : 3);
  shares.largest_listed = beside_batches / 2;  // a batch of larger ones is rejected anyway
  const size_t fixed = shares.threads + (reads_ahead ? kMinReadAhead : 0);
  const size_t least = fixed + std::max(kMinRecords, fixed / 2);  // so that a third remains
  const size_t wanted = std::max(least, fixed + shares.largest_record * (has_lists ? 2 : 1));
  shares.depth = decodes_on_device ? kDecodingDepth : kUsualDepth;
  while (shares.depth < kDeepest && (shares.depth + 1) * batch_bytes <= kDeepBytes) ++shares.depth;
  while (shares.depth > 2 && shares.depth * batch_bytes + wanted > limit) --shares.depth;
  shares.slots = shares.depth * batch_bytes;
  size_t lowest = 2 * batch_bytes + least;
  if (batch_bytes > on_host) {  // the largest record needs room in addition to these
    const size_t beside =
        has_lists ? 3 * fixed - 3 * std::min(2 * fixed, least) / 2 : fixed * 3 / 2;
    lowest = std::max(lowest, 3 * batch_bytes - on_host + beside + 1);
  }
  if (lowest > limit) {
    raise(kLimitTooSmall,
          "memory_limit is " + in_mib(limit) + ", but the minimum here is " + in_mib(lowest) +
              " (2 batches of " + in_mib(batch_bytes) + ", " + std::to_string(threads) +
              " threads)",
          "raise memory_limit, or use a smaller batch_size or fewer threads");
  }
  size_t rest = limit - shares.slots - shares.threads;
  if (has_lists) shares.lists = (rest - least + shares.threads) / 2;
  rest -= shares.lists;
  if (reads_ahead) {
    const size_t most = reads_far ? std::max(rest / 2, 64 * kMiB) : 64 * kMiB;
    shares.read_ahead = std::clamp(reads_far ? rest / 2 : rest / 4, kMinReadAhead, most);
    shares.read_ahead = std::min(shares.read_ahead, rest - shares.largest_record);
    // A single file may exceed the budget; the excess is taken from the budget of records.
    shares.largest_file = std::max(kMinReadAhead, shares.largest_record);
  }
  shares.records = rest - shares.read_ahead;
  return shares;
}

MemoryShares divide_memory(size_t limit, const MemoryUse& use) {
  MemoryShares shares =
      divide_memory(limit, batch_bytes(use.plan, use.rows, use.left), use.threads, use.reads_ahead,
                    use.plan.delivers_lists(), batch_bytes(use.plan, use.rows),
                    use.left.decodes_any() || use.lends, use.reads_far);
  shares = with_kept_frames(with_near_partners(shares, use.plan), use.plan, use.threads);
  if (use.plan.assembles()) {  // while a tensor is made, the values exist as well
    shares.lists /= 2;
    shares.assembled = shares.lists;
  }
  return shares;
}

MemoryShares with_near_partners(MemoryShares shares, const Plan& plan) {
  const int64_t within = plan.partners_within();
  const size_t to_spare = shares.records - std::min(shares.records, shares.largest_record);
  const size_t each = plan.prepared_bytes() + kNearRows;
  shares.kept = size_t(std::min<int64_t>(within, int64_t(to_spare / 2 / each))) * each;
  shares.records -= shares.kept;
  return shares;
}

MemoryShares with_kept_frames(MemoryShares shares, const Plan& plan, int threads) {
  const bool takes_clips = std::ranges::any_of(
      plan.steps(), [](const Step& step) { return step.op && step.op->clip(); });
  if (!takes_clips) return shares;
  const size_t to_spare = shares.records - std::min(shares.records, shares.largest_record);
  const size_t each = std::min(to_spare / 2 / size_t(threads), kMaxKeptFrames);
  shares.renderer_bytes += each;
  shares.threads += each * size_t(threads);
  shares.records -= each * size_t(threads);
  return shares;
}

}  // namespace headrace
