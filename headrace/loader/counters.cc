// SPDX-License-Identifier: Apache-2.0
#include "headrace/loader/counters.h"

namespace headrace {
namespace {

using S = LoaderStats;

// Pictures by where they were decoded, or why not on the device.
CounterValue decoded(const S& stats) {
  CountsByReason out;
  for (size_t i = 0; i < stats.decoded.size(); ++i) {
    out.emplace_back(DeviceDecoding::text_of(static_cast<DeviceDecoding::Place>(i)),
                     stats.decoded[i]);
  }
  return out;
}

CounterValue finished_before(const S& stats) {
  return CountsByReason(stats.finished_before.begin(), stats.finished_before.end());
}

constexpr Counter<LoaderStats> kLoaderCounters[] = {
    {"batches", "batches", "Batches received.", value_of<&S::batches>, CounterKind::kCumulative,
     Aggregation::kMax},
    {"records", "records", "Records in these batches.", value_of<&S::records>},
    {"bad_records", "records", "Bad records.", value_of<&S::bad_records>, CounterKind::kCumulative,
     Aggregation::kSum, "bad_records_total"},
    {"warnings", "places", "Defects in images that decoders repaired.", value_of<&S::warnings>},
    {"repaired", "images", "Images that were delivered with repaired damage.",
     value_of<&S::remarks, &PictureRemarks::repaired>},
    {"exif_ignored", "images",
     "Images whose Exif orientation was ignored because exif_orientation= is not set.",
     value_of<&S::remarks, &PictureRemarks::exif_ignored>},
    {"finished_before_transfer", "rows",
     "Rows finished on the host instead of the device, by reason.", finished_before},
    {"copies", "batches",
     "Batches for which memory had to be allocated, because the consumer holds earlier batches.",
     value_of<&S::copies>, CounterKind::kCumulative, Aggregation::kSum, "copies_total"},
    {"predicted", "batches",
     "Batches of ragged values whose memory was allocated before the values were known.",
     value_of<&S::predicted>},

    // Times; stages are totals of all threads, estimated by sampling.
    {"wall_seconds", "seconds", "Wall time of iteration, including the training step.",
     value_of<&S::wall_seconds>, CounterKind::kCumulative, Aggregation::kMax},
    {"wait_seconds", "seconds", "Time that the training loop waited for batches.",
     value_of<&S::wait_seconds>, CounterKind::kCumulative, Aggregation::kMax},
    {"stages.read", "seconds",
     "Reading records, summed over all threads; stages are estimated by sampling.",
     value_of<&S::stages, &StageSeconds::read>, CounterKind::kCumulative, Aggregation::kSum, "",
     "reading"},
    {"stages.decode", "seconds", "Decoding images, audio and video.",
     value_of<&S::stages, &StageSeconds::entropy>, CounterKind::kCumulative, Aggregation::kSum, "",
     "decoding"},
    {"stages.prepare", "seconds", "Preparing encoded images that a device decodes.",
     value_of<&S::stages, &StageSeconds::coded>, CounterKind::kCumulative, Aggregation::kSum, "",
     "preparing images for the device"},
    {"stages.transform", "seconds",
     "Built-in transforms other than resizing: colors, filters, warps, audio features, mixing.",
     value_of<&S::stages, &StageSeconds::transform>, CounterKind::kCumulative, Aggregation::kSum,
     "", "transforms"},
    {"stages.resample", "seconds", "Resizing.", value_of<&S::stages, &StageSeconds::resample>,
     CounterKind::kCumulative, Aggregation::kSum, "", "resizing"},
    {"stages.store", "seconds", "Writing batches.", value_of<&S::stages, &StageSeconds::store>,
     CounterKind::kCumulative, Aggregation::kSum, "", "writing batches"},
    {"stages.python", "seconds", "Python functions, summed over all processes.",
     value_of<&S::stages, &StageSeconds::python>, CounterKind::kCumulative, Aggregation::kSum, "",
     "Python transforms"},
    {"stages.wait", "seconds", "The same as wait_seconds, repeated next to the stages.",
     value_of<&S::wait_seconds>, CounterKind::kCumulative, Aggregation::kMax},

    {"threads", "threads", "Threads of the loader.", value_of<&S::threads>, CounterKind::kCurrent,
     Aggregation::kSum, "threads"},
    {"memory_limit", "bytes", "Limit on the engine's memory.", value_of<&S::memory_limit>,
     CounterKind::kCurrent, Aggregation::kSum, "memory_limit_bytes"},
    {"memory_used", "bytes", "Current memory use of the engine.", value_of<&S::memory_used>,
     CounterKind::kCurrent, Aggregation::kSum, "memory_bytes"},
    {"memory_peak", "bytes", "Peak memory use of the engine.", value_of<&S::memory_peak>,
     CounterKind::kCurrent},
    {"memory_wait_seconds", "seconds",
     "Time that records waited for free memory under memory_limit, summed over all threads.",
     value_of<&S::memory_wait_seconds>},
    {"resident_bytes", "bytes", "Part of memory_used taken by resident records.",
     value_of<&S::resident_bytes>, CounterKind::kCurrent},
    {"decoded", "images",
     "With decoding on a device: images decoded there and, by reason, those decoded on the CPU.",
     decoded},

    {"remote_reads.requests", "requests",
     "Requests to remote storage for records, after merging adjacent ones, without retries.",
     value_of<&S::reads, &ReadCounts::requests>},
    {"remote_reads.bytes", "bytes", "Bytes requested from remote storage.",
     value_of<&S::reads, &ReadCounts::bytes>},
    {"remote_reads.clips", "videos",
     "Remote video files of which only the bytes of the clips were read.",
     value_of<&S::reads, &ReadCounts::videos_by_range>},
    {"remote_reads.whole_videos", "videos",
     "Remote video files read whole, because their frame table cannot be read by range.",
     value_of<&S::reads, &ReadCounts::videos_without_table>},

    // The row index.
    {"index.file", "", "The row index in use; if there are several, the folder that holds them.",
     value_of<&S::row_index, &RowIndexStats::file>, CounterKind::kCurrent},
    {"index.note", "", "Why no row index is used for all or some of the records.",
     value_of<&S::row_index, &RowIndexStats::note>, CounterKind::kCurrent},
    {"index.growing", "", "Whether the index is extended while batches are made.",
     value_of<&S::row_index, &RowIndexStats::learns>, CounterKind::kCurrent},
    {"index.images", "images", "Images in the dataset.",
     value_of<&S::row_index, &RowIndexStats::pictures>, CounterKind::kCurrent, Aggregation::kMax},
    {"index.entries", "images", "Images with an entry in the row index.",
     value_of<&S::row_index, &RowIndexStats::entries>, CounterKind::kCurrent, Aggregation::kMax},
    {"index.used", "images", "Images decoded using their index entry.",
     value_of<&S::row_index, &RowIndexStats::used>},
    {"index.stale", "images", "Images with an outdated entry.",
     value_of<&S::row_index, &RowIndexStats::stale>},
    {"index.added", "images", "Images added to the index.",
     value_of<&S::row_index, &RowIndexStats::learned>},

    // The cache, shared by loaders that read the same records. Ranks that share one all count it.
    {"cache.records", "records", "Records in the cache (cache=), over all processes that share it.",
     value_of<&S::cache, &RecordCache::Counts::records>, CounterKind::kCurrent, Aggregation::kMax},
    {"cache.bytes", "bytes", "Memory used by the cache, over all processes that share it.",
     value_of<&S::cache, &RecordCache::Counts::bytes>, CounterKind::kCurrent, Aggregation::kMax},
    {"cache.limit", "bytes", "Limit on the cache's memory.",
     value_of<&S::cache, &RecordCache::Counts::limit>, CounterKind::kCurrent, Aggregation::kMax},
    {"cache.hits", "records", "Records served from the cache.",
     value_of<&S::cache, &RecordCache::Counts::hits>},
    {"cache.shared_hits", "records", "Hits on records that another process had read.",
     value_of<&S::cache, &RecordCache::Counts::shared_hits>},
    {"cache.misses", "records", "Records not found in the cache.",
     value_of<&S::cache, &RecordCache::Counts::misses>},
    {"cache.read_bytes", "bytes", "Bytes read into the cache.",
     value_of<&S::cache, &RecordCache::Counts::read_bytes>},

    // The cache on disk, which all loaders of the process read through.
    {"disk_cache.hits", "reads", "Reads served entirely from the disk cache.",
     value_of<&S::disk_cache, &BlockCache::Counts::hits>, CounterKind::kCumulative,
     Aggregation::kSum, "disk_cache_hits_total"},
    {"disk_cache.misses", "reads",
     "Reads of cacheable files that were not served entirely from the disk cache.",
     value_of<&S::disk_cache, &BlockCache::Counts::misses>, CounterKind::kCumulative,
     Aggregation::kSum, "disk_cache_misses_total"},
    {"disk_cache.bypassed", "reads",
     "Misses that read only the requested bytes and cached nothing.",
     value_of<&S::disk_cache, &BlockCache::Counts::around>},
    {"disk_cache.hit_bytes", "bytes", "Bytes served from the disk cache.",
     value_of<&S::disk_cache, &BlockCache::Counts::hit_bytes>},
    {"disk_cache.remote_bytes", "bytes", "Bytes read from the original files.",
     value_of<&S::disk_cache, &BlockCache::Counts::far_bytes>, CounterKind::kCumulative,
     Aggregation::kSum, "remote_bytes_total"},
    {"disk_cache.evicted", "blocks", "Blocks evicted by this process.",
     value_of<&S::disk_cache, &BlockCache::Counts::evicted>},
    {"disk_cache.failed", "blocks", "Blocks that could not be stored.",
     value_of<&S::disk_cache, &BlockCache::Counts::failed>},
    {"disk_cache.limit", "bytes", "Limit on the disk cache.",
     value_of<&S::disk_cache, &BlockCache::Counts::limit>, CounterKind::kCurrent,
     Aggregation::kMax},
};

}  // namespace

std::span<const Counter<LoaderStats>> loader_counters() { return kLoaderCounters; }

}  // namespace headrace
