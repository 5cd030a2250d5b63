// SPDX-License-Identifier: Apache-2.0
// Shared by tests of resident data: random fields and orders, the expected rows of a batch,
// and a consumer that reads them.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "headrace/delivery/device_ring.h"
#include "headrace/delivery/resident_field.h"
#include "headrace/sampling/batch_layout.h"
#include "headrace/sampling/sampler.h"

namespace headrace {

using Bytes = std::vector<uint8_t>;

// The rows of a field that a batch should have, from the data and the sampler's indices.
inline Bytes expected_rows(const Bytes& values, size_t row_bytes, const Sampler& sampler,
                           uint64_t seed, uint64_t epoch, BatchRange range) {
  Bytes out;
  for (int64_t p = range.begin; p < range.end; ++p) {
    const int64_t record = sampler.index(seed, epoch, p % sampler.size());
    const auto row = values.begin() + record * int64_t(row_bytes);
    out.insert(out.end(), row, row + int64_t(row_bytes));
  }
  return out;
}

// Reads a field as a consumer on its own stream.
inline Bytes read(Device& device, const BatchField& field) {
  Bytes out(field.view.dense_bytes());
  if (!field.is_on_device) {
    if (!out.empty()) std::memcpy(out.data(), field.view.data, out.size());
    return out;
  }
  const StreamPtr consumer = device.make_stream();
  std::static_pointer_cast<DeviceLease>(field.lease)->use_on(consumer->handle());
  consumer->copy(out.data(), field.view.data, out.size());
  consumer->synchronize();
  return out;
}

struct ResidentData {
  std::vector<Bytes> values;
  std::vector<ResidentField> fields;
};

inline ResidentData random_data(std::mt19937& random, int64_t records) {
  const Shape shapes[] = {{}, {1}, {3, 5, 7}, {0, 4}, {2, 40, 30}, {13}};
  const DType dtypes[] = {DType::kUInt8, DType::kInt64, DType::kFloat32, DType::kFloat16};
  ResidentData data;
  const size_t count = 1 + random() % 3;
  for (size_t i = 0; i < count; ++i) {
    ResidentField field{.name = "field" + std::to_string(i),
                        .dtype = dtypes[random() % 4],
                        .shape = shapes[random() % 6]};
    Bytes& values = data.values.emplace_back(field.record_bytes() * size_t(records));
    for (uint8_t& byte : values) byte = static_cast<uint8_t>(random());
    data.fields.push_back(std::move(field));
  }
  for (size_t i = 0; i < count; ++i) data.fields[i].values = data.values[i].data();
  return data;
}

inline SamplerPtr any_sampler(std::mt19937& random, int64_t records) {
  switch (random() % 4) {
    case 0:
      return sequential(records);
    case 1:
      return weighted(std::vector<double>(size_t(records), 1.0), records + 3);
    default:
      return shuffled(records);
  }
}

}  // namespace headrace
