// SPDX-License-Identifier: Apache-2.0
// A loader's options, checked together, with every default resolved. Misuse throws here, before a
// thread starts.
#pragma once

#include <string>

#include "headrace/loader.h"
#include "headrace/sampling/batch_layout.h"
#include "headrace/sampling/sampler.h"

namespace headrace {

extern const ErrorCode kBadLoaderOption;  // HR0710

struct ResolvedOptions {
  LoaderOptions options;
  std::string threads_origin = "given", memory_origin = "given";
};

// Throws Exception HR0710 for options that cannot be combined, or do not fit this source.
ResolvedOptions resolve(LoaderOptions options, const Source& source);

RecordCacheOptions cache_options(const LoaderOptions& options);

// The positions of each batch. Throws Exception HR0710, and as BatchLayout does.
BatchLayout layout_of(const LoaderOptions& options, const Sampler& sampler, int64_t group);

}  // namespace headrace
