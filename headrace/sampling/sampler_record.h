// SPDX-License-Identifier: Apache-2.0
// A sampler by its name: its per-record values, its parameters, and its factory. Each sampler's .cc
// file registers a SamplerRecord, and hr.sampling gets a class for each record.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "headrace/base/error.h"
#include "headrace/base/parameters.h"
#include "headrace/base/registry.h"
#include "headrace/sampling/sampler.h"

namespace headrace {

// Values per record that a sampler needs, and how users specify them: the first argument of its
// class.
enum class PerRecord : uint8_t {
  kWeights,    // a number per record
  kLabels,     // a value per record, or the name of an integer field; numbered in sorted order
  kLengths,    // a number per record, or the name of a field: with one number, or audio (samples)
  kDurations,  // the same; for audio, seconds
  kIndices,    // not per record: record indices
  kOrder,      // not per record: another sampler; None: that of the loader
  kNothing,    // its class has no first argument
};

// A length per record, in parts of the user's unit, and how many parts the unit has.
struct Measure {
  std::vector<int64_t> lengths;
  int64_t parts = 1;
};

// Input of a sampler, in addition to its arguments.
struct SamplerData {
  int64_t records = 0;                 // of the source
  std::vector<double> weights = {};    // kWeights
  std::vector<int64_t> integers = {};  // kLabels, kLengths, kDurations, kIndices
  int64_t parts = 1;                   // lengths are in 1/parts of the user's unit; a power of ten
  std::vector<Measure> further = {};   // kDurations: further measures of each record
  SamplerPtr order = {};               // kOrder
  bool shuffle = false;                // the loader's
  // kNothing: Source::block_ends(), the records of a global batch, the number of machines, and the
  // number of streams of a resumed state; 0: not resumed.
  std::vector<int64_t> block_ends = {};
  int64_t global_batch = 1, machines = 1, streams = 0;
};

struct OpOrigin;  // ops/op.h

struct SamplerRecord {
  std::string_view name;  // "buckets", as in hr.sampling.buckets
  std::string_view doc;
  std::string_view example;  // an example call
  PerRecord per_record;
  Param given;                     // its first argument; its type depends on PerRecord
  std::vector<Param> params = {};  // the arguments after it
  bool shuffles = false;           // shuffle= of the loader configures it instead of conflicting
  // Checks what ranges cannot express. Throws Exception; null if ranges suffice.
  void (*check)(const Arguments& arguments) = nullptr;
  // Throws Exception if the sampler cannot be applied to these records.
  std::function<SamplerPtr(SamplerData data, const Arguments& arguments)> make;
  const OpOrigin* origin = nullptr;  // the plug-in that it is from
};

extern const ErrorCode kUnusableOrder;  // HR0722

// The parameter of samplers whose epochs have any number of records.
Param draws_param();
Param replacement_param();
// Throws HR0722 if an epoch would have none.
void check_draws(int64_t draws);
// Value of the parameter: the number of records if it is None.
int64_t draws_of(const SamplerData& data, const Arguments& arguments);

}  // namespace headrace
