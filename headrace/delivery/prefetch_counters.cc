// SPDX-License-Identifier: Apache-2.0
#include "headrace/delivery/prefetcher.h"

namespace headrace {
namespace {

using S = PrefetchStats;

constexpr Counter<PrefetchStats> kPrefetchCounters[] = {
    {"batches", "batches", "Batches copied.", value_of<&S::batches>, CounterKind::kCumulative,
     Aggregation::kMax},
    {"bytes", "bytes", "Bytes copied.", value_of<&S::bytes>},
    {"delivered_bytes", "bytes",
     "Bytes of the batches as delivered; this exceeds the copied bytes if rows are finished on the "
     "device.",
     value_of<&S::delivered_bytes>},
    {"wait_seconds", "seconds", "Time that the training loop waited for batches.",
     value_of<&S::wait_seconds>, CounterKind::kCumulative, Aggregation::kMax},
    {"source_seconds", "seconds", "Time spent in the source.", value_of<&S::feed_seconds>},
    {"prepare_seconds", "seconds",
     "Time spent assembling the input of rows that the device finishes.",
     value_of<&S::prepare_seconds>},
    {"staging_seconds", "seconds",
     "Time of copies into pinned memory, including waits for free buffers.",
     value_of<&S::staging_seconds>},
    {"batches_beyond_depth", "batches",
     "Batches for which memory had to be allocated, because the consumer holds earlier batches.",
     value_of<&S::beyond>},
    {"device_bytes", "bytes", "Memory on the device.", value_of<&S::device_bytes>,
     CounterKind::kCurrent},
    {"scratch_bytes", "bytes", "The part of device_bytes for rows that are finished on the device.",
     value_of<&S::scratch_bytes>, CounterKind::kCurrent},
    {"lanes", "streams", "Streams that finish rows in parallel on the device.", value_of<&S::lanes>,
     CounterKind::kCurrent},
    {"lane_bytes", "bytes", "The part of scratch_bytes that one lane may use.",
     value_of<&S::lane_bytes>, CounterKind::kCurrent, Aggregation::kMax},
    {"parts", "parts", "Number of parts in which batches were finished on the device.",
     value_of<&S::parts>},
    {"pinned_bytes", "bytes", "Pinned memory on the host.", value_of<&S::pinned_bytes>,
     CounterKind::kCurrent},
};

}  // namespace

std::span<const Counter<PrefetchStats>> prefetch_counters() { return kPrefetchCounters; }

}  // namespace headrace
