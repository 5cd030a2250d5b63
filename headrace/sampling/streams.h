// SPDX-License-Identifier: Apache-2.0
// A sampler for many machines. Each machine takes whole streams of blocks, so that all machines
// together read each byte about once per epoch.
//
// Note [Streams]: the blocks are arranged in a row, in an order determined by a key
// (block_sequence.h), and the row of N records is split into C streams. Rows [s c/C, (s+1) c/C) of
// every global batch of c records come from stream s; all batches but the last have G records. Each
// stream must have exactly the records that the batches need from it, which determines where
// streams begin:
//
//   records before stream s = floor(N/G) * floor(s G/C) + floor((N mod G) s/C)
//
// So all streams end with the epoch's last batch, regardless of the sizes of blocks; at most C - 1
// blocks are split, each between two or more neighboring streams. In every epoch each stream
// permutes its blocks, and the records in every window of some of them. Ranks take equal slices of
// a batch (batch_layout.h): whole streams, if their number divides C.
//
// Nothing here depends on the number of ranks, and no table has an entry per record. Memory holds a
// table of the blocks and, for each stream that a rank draws from, its order and the beginnings of
// its windows, as far as the epoch has progressed.
#pragma once

#include <cstdint>
#include <span>

#include "headrace/sampling/sampler.h"

namespace headrace {

struct StreamOptions {
  int64_t count = 64;        // number of streams; see stream_count()
  int64_t window = 8;        // number of blocks whose records are mixed, per stream
  bool sticky = true;        // streams have the same blocks in every epoch
  int64_t global_batch = 1;  // records
};

// For this many machines: the smallest of 64, 128 and 256 that is at least twice as many.
int64_t streams_for(int64_t machines);
// `count`, halved until there are no more streams than blocks, or than records in a batch.
int64_t stream_count(int64_t count, int64_t blocks, int64_t global_batch);

// Each record once. block_ends: cumulative record counts after each block. REQUIRES: count, window
// and global_batch >= 1; fewer than 2^31 records per batch, and 2^32 blocks.
SamplerPtr shuffled_streams(std::span<const int64_t> block_ends, const StreamOptions& options);

}  // namespace headrace
