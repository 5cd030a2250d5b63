// SPDX-License-Identifier: Apache-2.0
// The loader's options: declared as data, and checked together.
//
// A table of the options converts Python's arguments to LoaderOptions. Everything else that lists
// options is generated from the table: the keywords of Python's Loader with their docstring, checks
// and type stubs, the reference, and the command line's options.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/parameters.h"
#include "headrace/loader.h"
#include "headrace/sampling/batch_layout.h"
#include "headrace/sampling/sampler.h"

namespace headrace {

struct LoaderOption {
  Param param;
  // The heading in the reference; empty: internal, not a keyword.
  std::string_view group;
  // Stores a value other than None, already checked by `param`, in LoaderOptions.
  std::function<void(LoaderOptions&, const ParamValue&)> set;
};

// In the order of the reference.
const std::vector<LoaderOption>& loader_options();

// Options by name; those not given get the defaults of the table. Throws Exception HR0101..HR0104.
LoaderOptions loader_options_from(const std::map<std::string, ParamValue>& given);

// --- Checked together, with every default resolved (resolved_options.cc) ---
// Misuse throws here, before a thread starts.

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
