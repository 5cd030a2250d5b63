// SPDX-License-Identifier: Apache-2.0
// A sampler by its name: its per-record values, its parameters, and its factory. The file of an
// order registers one, and hr.sampling has a class for each.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "headrace/base/error.h"
#include "headrace/base/parameters.h"
#include "headrace/base/registry.h"
#include "headrace/sampling/sampler.h"

namespace headrace {

// Values per record that an order needs, and how users give them: the first argument of its class.
enum class PerRecord : uint8_t {
  kWeights,    // a number for each
  kLabels,     // a value for each, or the name of an integer field; numbered in sorted order
  kLengths,    // a number for each, or the name of a field: of one number, or of sounds (samples)
  kDurations,  // the same; of sounds seconds
  kIndices,    // not one for each: numbers of records
  kOrder,      // not one for each: another order, or none: the loader's
  kNothing,    // its class has no first argument
};

// A length of each record, and how many of its numbers are one of the user's unit.
struct Measure {
  std::vector<int64_t> lengths;
  int64_t parts = 1;
};

// Input of an order, next to its arguments.
struct SamplerData {
  int64_t records = 0;                 // of the source
  std::vector<double> weights = {};    // kWeights
  std::vector<int64_t> integers = {};  // all others
  int64_t parts = 1;  // lengths count one of so many of the user's unit: a power of ten
  std::vector<Measure> further = {};  // kDurations: what else is known of each record
  SamplerPtr order = {};              // kOrder
  bool shuffle = false;               // the loader's
  // kNothing: Source::block_ends(), the records of a global batch, the machines that the ranks are
  // on, and how many streams a state that is resumed has; 0: none is.
  std::vector<int64_t> block_ends = {};
  int64_t global_batch = 1, machines = 1, streams = 0;
};

struct SamplerRecord {
  std::string_view name;  // "buckets", as in hr.sampling.buckets
  std::string_view doc;
  std::string_view example;  // a call of it
  PerRecord per_record;
  Param given;                     // its argument; of the type that its PerRecord has
  std::vector<Param> params = {};  // the arguments after it
  bool shuffles = false;           // the loader's shuffle= is about this order, and not beside it
  // Checks what ranges cannot express. Throws Exception; null if they suffice.
  void (*check)(const Arguments& arguments) = nullptr;
  // Throws Exception where there is no such order of these records.
  SamplerPtr (*make)(SamplerData data, const Arguments& arguments);
};

extern const ErrorCode kUnusableOrder;  // HR0722

// The parameter of orders whose epochs have any number of records.
Param draws_param();
Param replacement_param();
// Throws HR0722 where an epoch would have none.
void check_draws(int64_t draws);
// Its value: as many as there are records, where it is None.
int64_t draws_of(const SamplerData& data, const Arguments& arguments);

}  // namespace headrace
