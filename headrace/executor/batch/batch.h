// SPDX-License-Identifier: Apache-2.0
// A filled slot, as delivered to the consumer.
#pragma once

#include <climits>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/tensor.h"
#include "headrace/finish/unfinished_rows.h"

namespace headrace {

// One field of a batch. Copies share the memory; the slot is returned when the last copy is
// destroyed.
struct BatchField {
  std::string name;
  TensorView view;  // (B, ...) as it is delivered; unused if `is_list`
  // Set if a device finishes the field: then the view's data are the bytes in the slot, and its
  // dense_bytes() the size of the finished tensor. shared: with its transfer, until that is done.
  std::shared_ptr<const UnfinishedRows> unfinished = {};
  bool is_list = false;  // text, bytes, keys, ragged tensors that are not combined
  bool is_text = false, is_bytes = false;
  bool is_pinned = false;            // pinned: a device copies from it directly
  bool is_on_device = false;         // then the lease is a DeviceLease (delivery/)
  std::vector<std::string> strings;  // text, bytes, keys
  std::vector<TensorView> items;     // ragged tensors
  std::vector<int64_t> starts;       // of packed rows, by record, and where the last one ends
  size_t packed_axis = 0;            // along which they are concatenated
  bool is_offsets = false;           // `view` holds these numbers
  std::shared_ptr<void> lease;       // shared: views of the field outlive the batch
};

struct Batch {
  int64_t epoch = 0, index = 0;  // number of the global batch in the epoch
  int64_t size = 0;              // records of this rank
  std::vector<BatchField> fields;
  // If the pipeline mixes rows: where groups begin. A batch for several devices is divided only
  // there. Empty: anywhere.
  std::vector<int64_t> group_begins = {};
  // Slots that were free, or being filled, when it was handed over. If none was, the batch was
  // copied out of its slots.
  int slots_left = INT_MAX;
  const BatchField& operator[](std::string_view name) const;  // throws Exception HR0740
};

}  // namespace headrace
