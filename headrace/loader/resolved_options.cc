// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "headrace/executor/resources.h"
#include "headrace/loader/options.h"

namespace headrace {

const ErrorCode kBadLoaderOption{
    "HR0710", ErrorKind::kConfig, "invalid loader option",
    "A loader's options must be consistent; the message names the inconsistent option and a valid "
    "alternative."};

namespace {

void check(const LoaderOptions& options, const Source& source) {
  if (options.world_size < 1 || options.rank < 0 || options.rank >= options.world_size) {
    raise(kBadLoaderOption, "rank " + std::to_string(options.rank) + " of world size " +
                                std::to_string(options.world_size) + " does not exist");
  }
  if (options.threads < 0) {
    raise(kBadLoaderOption,
          "threads must be positive (got " + std::to_string(options.threads) + ")");
  }
  if (options.on_error == OnError::kSkip && options.world_size > 1) {
    raise(kBadLoaderOption,
          "on_error=\"skip\" shortens batches, but all ranks must have the same number of records",
          "use on_error=\"substitute\", which keeps every batch full");
  }
  if (options.shuffle_window < 0 || (options.shuffle_window > 0 && !options.shuffle)) {
    raise(kBadLoaderOption,
          "shuffle_window=" + std::to_string(options.shuffle_window) +
              " must be a positive number of blocks, and requires shuffle=\"blocks\"");
  }
  if (options.shuffle && options.sampler) {
    raise(kBadLoaderOption, "shuffle=True and sampler= both decide the order",
          "pass only one of them");
  }
  if (source.size() == 0)
    raise(kBadLoaderOption, "the source has no records: " + source.description());
}

// Records in a batch, over all ranks.
int64_t global_batch_of(const LoaderOptions& options) {
  if ((options.batch_size > 0) == (options.global_batch_size > 0)) {
    raise(kBadLoaderOption,
          "pass exactly one of batch_size (per rank) and global_batch_size, as a positive number",
          "Loader(..., batch_size=256)");
  }
  constexpr int64_t kMax = int64_t{1} << 31;  // multiplied by a rank, it fits into 64 bits
  const int64_t times = options.global_batch_size > 0 ? 1 : options.world_size;
  const int64_t records = std::max(options.global_batch_size, options.batch_size);
  if (records > kMax / times) {
    raise(kBadLoaderOption,
          "a batch of " + std::to_string(records) + " records" +
              (times > 1 ? " on each of " + std::to_string(times) + " ranks" : "") +
              " exceeds the limit of 2^31 records");
  }
  return records * times;
}

}  // namespace

BatchLayout layout_of(const LoaderOptions& options, const Sampler& sampler, int64_t group) {
  const std::span<const int64_t> sizes = sampler.batch_sizes();
  if (sizes.empty()) {
    return {sampler.size(),     global_batch_of(options), options.rank,
            options.world_size, options.last_batch,       group,
            options.uneven};
  }
  if (options.batch_size > 0 || options.global_batch_size > 0) {
    raise(kBadLoaderOption,
          "the sampler sets the number of records per batch, so it cannot be combined with " +
              std::string(options.batch_size > 0 ? "batch_size" : "global_batch_size"),
          "omit it");
  }
  if (options.last_batch != LastBatch::kKeep) {
    raise(kBadLoaderOption,
          "the sampler sets the number of records per batch, so no batch is incomplete and "
          "last_batch has no effect",
          "omit it");
  }
  return {sizes, options.rank, options.world_size, group};
}

RecordCacheOptions cache_options(const LoaderOptions& options) {
  return {.bytes = options.cache, .scope = options.cache_scope, .ranks = local_world_size()};
}

ResolvedOptions resolve(LoaderOptions options, const Source& source) {
  check(options, source);
  ResolvedOptions out;
  if (options.threads == 0) {
    const ResolvedThreads found = default_threads();
    options.threads = found.threads;
    out.threads_origin = found.origin;
  }
  if (options.memory_limit == 0) {
    const ResolvedMemory found = default_memory_limit();
    options.memory_limit = found.bytes;
    out.memory_origin = found.origin;
  }
  const size_t cache = cache_options(options).part_of(options.cache);
  if (cache >= options.memory_limit) {
    raise(kBadLoaderOption,
          "the cache of " + std::to_string(cache >> 20) + " MiB" +
              (cache < options.cache ? " per rank" : "") + " leaves no memory of " +
              std::to_string(options.memory_limit >> 20) + " MiB of memory_limit (" +
              out.memory_origin + ")",
          "use a smaller cache=, or a memory_limit= large enough for it and the batches");
  }
  out.options = std::move(options);
  return out;
}

}  // namespace headrace
