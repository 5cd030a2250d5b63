// SPDX-License-Identifier: Apache-2.0
#include "headrace/delivery/staging_copier.h"

#include <algorithm>
#include <cstring>

#include "headrace/base/process_limits.h"
#include "headrace/kernels/non_temporal_copy.h"

namespace headrace {
namespace {

// Smaller tensors stay in the caches, from which the device reads them.
constexpr size_t kMinInPieces = size_t{256} << 10;
constexpr int kMaxHelpers = 8;  // together with the caller they saturate the bus

}  // namespace

int StagingCopier::default_helpers() { return std::min(kMaxHelpers, allowed_cores().count() / 2); }

void StagingCopier::copy(void* to, uint8_t* staged, const void* from, size_t bytes,
                         Stream& stream) {
  if (bytes < kMinInPieces) {
    if (bytes > 0) std::memcpy(staged, from, bytes);
    return stream.copy(to, staged, bytes);
  }
  const size_t pieces = (bytes + kPieceBytes - 1) / kPieceBytes;
  {
    MutexLock lock(mutex_);
    staged_ = staged;
    from_ = static_cast<const uint8_t*>(from);
    bytes_ = bytes;
    claimed_ = front_ = 0;
    is_staged_.assign(pieces, false);
  }
  helpers_.wake_for(pieces);
  try {
    for (size_t queued = 0; queued < bytes;) {
      stage_one();
      const size_t ready = wait_for_more_than(queued);
      if (ready == queued) continue;
      stream.copy(static_cast<uint8_t*>(to) + queued, staged + queued, ready - queued);
      queued = ready;
    }
  } catch (...) {
    abandon();
    throw;
  }
}

bool StagingCopier::work(Renderer&) { return stage_one(); }

// False if all pieces are taken.
bool StagingCopier::stage_one() {
  uint8_t* to;
  const uint8_t* from;
  size_t piece, bytes;
  {
    MutexLock lock(mutex_);
    const size_t begin = claimed_ * kPieceBytes;
    if (begin >= bytes_) return false;
    piece = claimed_++;
    to = staged_ + begin;
    from = from_ + begin;
    bytes = std::min(kPieceBytes, bytes_ - begin);
    ++active_;
  }
  copy_non_temporal(to, from, bytes);
  MutexLock lock(mutex_);
  --active_;
  is_staged_[piece] = true;
  staged_one_.notify_all();
  return true;
}

// The end of what is completely staged. Waits for more only if no piece remains to be staged.
size_t StagingCopier::wait_for_more_than(size_t queued) {
  MutexLock lock(mutex_);
  while (bytes_in_front() <= queued && claimed_ == is_staged_.size()) staged_one_.wait(mutex_);
  return bytes_in_front();
}

size_t StagingCopier::bytes_in_front() {
  while (front_ < is_staged_.size() && is_staged_[front_]) ++front_;
  return std::min(front_ * kPieceBytes, bytes_);
}

void StagingCopier::abandon() {
  MutexLock lock(mutex_);
  bytes_ = 0;  // no further piece is begun
  while (active_ > 0) staged_one_.wait(mutex_);
}

}  // namespace headrace
