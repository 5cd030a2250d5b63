// SPDX-License-Identifier: Apache-2.0
#include "headrace/loader/counters.h"

#include <string>
#include <vector>

namespace headrace {
namespace {

using LoaderCounter = Counter<LoaderStats>;
using Values = const LoaderStats&;

CounterValue number_of(auto number) { return static_cast<int64_t>(number); }

// Pictures by where they were decoded, or why not on the device.
CounterValue decoded(Values stats) {
  CountsByReason out;
  for (size_t i = 0; i < stats.decoded.size(); ++i) {
    out.emplace_back(DeviceDecoding::text_of(static_cast<DeviceDecoding::Place>(i)),
                     stats.decoded[i]);
  }
  return out;
}

std::vector<LoaderCounter> delivered_counters() {
  return {
      {.name = "batches",
       .unit = "batches",
       .doc = "Batches received.",
       .value = [](Values s) { return number_of(s.batches); },
       .adds = Adds::kMost},
      {.name = "records",
       .unit = "records",
       .doc = "Records in these batches.",
       .value = [](Values s) { return number_of(s.records); }},
      {.name = "bad_records",
       .unit = "records",
       .doc = "Records that were bad.",
       .value = [](Values s) { return number_of(s.bad_records); },
       .metric = "bad_records_total"},
      {.name = "warnings",
       .unit = "places",
       .doc = "Damaged places in images that decoders repaired.",
       .value = [](Values s) { return number_of(s.warnings); }},
      {.name = "repaired",
       .unit = "images",
       .doc = "Images that were delivered with repaired damage.",
       .value = [](Values s) { return number_of(s.remarks.repaired); }},
      {.name = "exif_ignored",
       .unit = "images",
       .doc = "Images with an Exif orientation that exif_orientation= does not mention.",
       .value = [](Values s) { return number_of(s.remarks.exif_ignored); }},
      {.name = "finished_before_crossing",
       .unit = "rows",
       .doc = "Rows that the host finished although a device finishes the others, by reason.",
       .value =
           [](Values s) {
             return CounterValue(
                 CountsByReason(s.finished_before.begin(), s.finished_before.end()));
           }},
      {.name = "copies",
       .unit = "batches",
       .doc = "Batches for which memory had to be made, because the consumer keeps others.",
       .value = [](Values s) { return number_of(s.copies); },
       .metric = "copies_total"},
      {.name = "foreseen",
       .unit = "batches",
       .doc = "Batches of ragged values whose memory was ready before the values.",
       .value = [](Values s) { return number_of(s.foreseen); }},
  };
}

std::vector<LoaderCounter> time_counters() {
  return {
      {.name = "wall_seconds",
       .unit = "seconds",
       .doc = "Time of iteration.",
       .value = [](Values s) { return CounterValue(s.wall_seconds); },
       .adds = Adds::kMost},
      {.name = "wait_seconds",
       .unit = "seconds",
       .doc = "Time that the loop waited for batches.",
       .value = [](Values s) { return CounterValue(s.wait_seconds); },
       .adds = Adds::kMost},
      {.name = "stages.read",
       .unit = "seconds",
       .doc = "Reading records, all threads together; stages are estimated by sampling.",
       .value = [](Values s) { return CounterValue(s.stages.read); },
       .work = "reading"},
      {.name = "stages.entropy",
       .unit = "seconds",
       .doc = "Entropy decoding of images, and all decoding of audio and video.",
       .value = [](Values s) { return CounterValue(s.stages.entropy); },
       .work = "entropy decoding"},
      {.name = "stages.transform",
       .unit = "seconds",
       .doc = "Decoding after the entropy stage: IDCT, upsampling, colour.",
       .value = [](Values s) { return CounterValue(s.stages.transform); },
       .work = "decoding after the entropy stage"},
      {.name = "stages.resample",
       .unit = "seconds",
       .doc = "Resizing.",
       .value = [](Values s) { return CounterValue(s.stages.resample); },
       .work = "resizing"},
      {.name = "stages.store",
       .unit = "seconds",
       .doc = "Writing batches.",
       .value = [](Values s) { return CounterValue(s.stages.store); },
       .work = "writing batches"},
      {.name = "stages.python",
       .unit = "seconds",
       .doc = "Functions in Python, all processes together.",
       .value = [](Values s) { return CounterValue(s.stages.python); },
       .work = "steps in Python"},
      {.name = "stages.wait",
       .unit = "seconds",
       .doc = "wait_seconds once more, next to the stages.",
       .value = [](Values s) { return CounterValue(s.wait_seconds); },
       .adds = Adds::kMost},
  };
}

std::vector<LoaderCounter> memory_counters() {
  return {
      {.name = "threads",
       .unit = "threads",
       .doc = "Threads of the loader.",
       .value = [](Values s) { return number_of(s.threads); },
       .grows = false,
       .metric = "threads"},
      {.name = "memory_limit",
       .unit = "bytes",
       .doc = "Memory that the engine may hold.",
       .value = [](Values s) { return number_of(s.memory_limit); },
       .grows = false,
       .metric = "memory_limit_bytes"},
      {.name = "memory_used",
       .unit = "bytes",
       .doc = "Memory that the engine holds.",
       .value = [](Values s) { return number_of(s.memory_used); },
       .grows = false,
       .metric = "memory_bytes"},
      {.name = "memory_peak",
       .unit = "bytes",
       .doc = "The most that it held.",
       .value = [](Values s) { return number_of(s.memory_peak); },
       .grows = false},
      {.name = "memory_wait_seconds",
       .unit = "seconds",
       .doc = "Time that records waited for memory within the limit, all threads together.",
       .value = [](Values s) { return CounterValue(s.memory_wait_seconds); }},
      {.name = "resident_bytes",
       .unit = "bytes",
       .doc = "Of memory_used, for records that stay.",
       .value = [](Values s) { return number_of(s.resident_bytes); },
       .grows = false},
      {.name = "decoded",
       .unit = "images",
       .doc = "With decode= on a device: images by where they were decoded, or why not there.",
       .value = decoded},
  };
}

std::vector<LoaderCounter> index_counters() {
  return {
      {.name = "index.file",
       .doc = "The row index in use, or the folder of several.",
       .value = [](Values s) { return CounterValue(s.row_index.file); },
       .grows = false},
      {.name = "index.note",
       .doc = "Why no row index is used, or none for a part of the records.",
       .value = [](Values s) { return CounterValue(s.row_index.note); },
       .grows = false},
      {.name = "index.grows",
       .doc = "Whether it is extended while batches are made.",
       .value = [](Values s) { return CounterValue(s.row_index.learns); },
       .grows = false},
      {.name = "index.pictures",
       .unit = "images",
       .doc = "Images that the dataset has.",
       .value = [](Values s) { return number_of(s.row_index.pictures); },
       .grows = false,
       .adds = Adds::kMost},
      {.name = "index.entries",
       .unit = "images",
       .doc = "Of these, images with an entry in the row index.",
       .value = [](Values s) { return number_of(s.row_index.entries); },
       .grows = false,
       .adds = Adds::kMost},
      {.name = "index.used",
       .unit = "images",
       .doc = "Images that were read by their entry.",
       .value = [](Values s) { return number_of(s.row_index.used); }},
      {.name = "index.stale",
       .unit = "images",
       .doc = "Images whose entry was of other bytes.",
       .value = [](Values s) { return number_of(s.row_index.stale); }},
      {.name = "index.learned",
       .unit = "images",
       .doc = "Images that got an entry.",
       .value = [](Values s) { return number_of(s.row_index.learned); }},
  };
}

// Loaders of a process that read the same records share these.
std::vector<LoaderCounter> cache_counters() {
  return {
      {.name = "cache.records",
       .unit = "records",
       .doc = "Records in the cache (cache=).",
       .value = [](Values s) { return number_of(s.cache.records); },
       .grows = false},
      {.name = "cache.bytes",
       .unit = "bytes",
       .doc = "Memory that they take.",
       .value = [](Values s) { return number_of(s.cache.bytes); },
       .grows = false},
      {.name = "cache.limit",
       .unit = "bytes",
       .doc = "Memory that they may take.",
       .value = [](Values s) { return number_of(s.cache.limit); },
       .grows = false},
      {.name = "cache.hits",
       .unit = "records",
       .doc = "Records that were taken from the cache.",
       .value = [](Values s) { return number_of(s.cache.hits); }},
      {.name = "cache.misses",
       .unit = "records",
       .doc = "Records that were not in it.",
       .value = [](Values s) { return number_of(s.cache.misses); }},
      {.name = "cache.read_bytes",
       .unit = "bytes",
       .doc = "Bytes that were read for it.",
       .value = [](Values s) { return number_of(s.cache.read_bytes); }},
  };
}

std::vector<LoaderCounter> all_counters() {
  std::vector<LoaderCounter> all = delivered_counters();
  for (const auto& part :
       {time_counters(), memory_counters(), index_counters(), cache_counters()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

}  // namespace

std::span<const LoaderCounter> loader_counters() {
  static const auto* counters = new std::vector<LoaderCounter>(all_counters());
  return *counters;
}

}  // namespace headrace
