// SPDX-License-Identifier: Apache-2.0
// Whether the device that batches are copied to also decodes pictures. The batches are the same.
#pragma once

#include <cstdint>
#include <string>

#include "headrace/device/device.h"
#include "headrace/finish/device_decoding.h"
#include "headrace/finish/finish_choice.h"

namespace headrace {

// kAuto: on a GPU, where it can decode nearly all pictures.
enum class DecodeUse : uint8_t { kCpu, kAuto, kDevice };

// Input of the choice.
struct DecodeQuestion {
  DecodeUse use = DecodeUse::kCpu;
  FinishUse finish = FinishUse::kHost;
  const Device* device = nullptr;  // where batches go, the first of several; null: nowhere
  bool encoded = false;            // the source has encoded pictures
  bool strict = false;             // all of a file is to be looked at
};

struct DecodeChoice {
  bool on_device = false;
  std::string text;  // "device: cuda:0", "cpu: batches stay on the host"
};

// Throws Exception HR0717 for kDevice where no picture could be decoded there, with what stands in
// the way.
DecodeChoice choose_decode(const DecodeQuestion& question);
// The same once it is known whether a field is finished there: what is not cannot be decoded.
DecodeChoice choose_decode(const DecodeQuestion& question, const FinishChoice& finish);
// For kAuto, once a few pictures were tried. index: what makes a row index, for a person.
DecodeChoice choose_decode(const DecodeChoice& chosen, const DecodedShare& tried,
                           const std::string& index);

}  // namespace headrace
