// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "headrace/base/registry.h"
#include "headrace/executor/engine.h"

namespace headrace {
namespace {

constexpr size_t kMiB = size_t{1} << 20;
// Three buffers keep everybody busy: one at the consumer, one ready, one being filled. Small
// batches get more, so that an uneven consumer does not stall the workers.
constexpr int kUsualDepth = 3, kDeepest = 8;
constexpr size_t kDeepBytes = 64 * kMiB;
// What a worker keeps between records (Renderer::trim), and what the smallest useful share of the
// others is.
constexpr size_t kThreadBytes = 4 * kMiB, kLeastRecords = 8 * kMiB, kLeastReadAhead = kMiB;

constexpr ErrorCode kLimitTooSmall{
    "HR0702", ErrorKind::kConfig, "memory_limit too small",
    "The limit must hold at least two batches, the scratch of every thread, and the working memory "
    "of "
    "one record. Use a smaller batch, fewer threads, uint8 or float16 batches, or a higher limit."};
const Register<ErrorCode> registered(kLimitTooSmall);

std::string in_mib(size_t bytes) { return std::to_string((bytes + kMiB - 1) / kMiB) + " MiB"; }

}  // namespace

MemoryShares divide_memory(size_t limit, size_t batch_bytes, int threads, bool reads_ahead) {
  MemoryShares shares;
  shares.threads = kThreadBytes * static_cast<size_t>(threads);
  const size_t least = shares.threads + kLeastRecords + (reads_ahead ? kLeastReadAhead : 0);
  shares.depth = kUsualDepth;
  while (shares.depth < kDeepest && (shares.depth + 1) * batch_bytes <= kDeepBytes) ++shares.depth;
  while (shares.depth > 2 && shares.depth * batch_bytes + least > limit) --shares.depth;
  shares.slots = shares.depth * batch_bytes;
  if (shares.slots + least > limit) {
    raise(kLimitTooSmall,
          "memory_limit is " + in_mib(limit) + ", the least that works here is " +
              in_mib(2 * batch_bytes + least) + " (2 batches of " + in_mib(batch_bytes) + ", " +
              std::to_string(threads) + " threads)",
          "raise memory_limit, or use a smaller batch_size or fewer threads");
  }
  const size_t rest = limit - shares.slots - shares.threads;
  if (reads_ahead) shares.read_ahead = std::clamp(rest / 4, kLeastReadAhead, 256 * kMiB);
  shares.records = rest - shares.read_ahead;
  return shares;
}

}  // namespace headrace
