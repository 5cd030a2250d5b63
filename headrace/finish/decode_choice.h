// SPDX-License-Identifier: Apache-2.0
// Decides whether the device that batches are copied to also decodes pictures. Batches are the same
// either way.
#pragma once

#include <cstdint>
#include <string>

#include "headrace/device/device.h"
#include "headrace/finish/device_decoding.h"
#include "headrace/finish/finish_choice.h"

namespace headrace {

// kAuto: on a GPU, if it can decode nearly all pictures.
enum class DecodeUse : uint8_t { kCpu, kAuto, kDevice };

// Input of the choice.
struct DecodeInputs {
  DecodeUse use = DecodeUse::kCpu;
  FinishUse finish = FinishUse::kHost;
  // The device that batches are copied to, the first one of several; null: none.
  const Device* device = nullptr;
  bool encoded = false;  // the source has encoded pictures
  bool strict = false;   // strict=True: each file is inspected completely
};

struct DecodeChoice {
  bool on_device = false;
  std::string text;  // "device: cuda:0", "cpu: batches stay on the host"
};

// For kDevice, throws Exception HR0717 if no picture can be decoded there, giving the reason.
DecodeChoice choose_decode(const DecodeInputs& question);
// The same once it is known which fields are finished on the device: others cannot be decoded
// there.
DecodeChoice choose_decode(const DecodeInputs& question, const FinishChoice& finish);
// For kAuto, after a few pictures were sampled. index: command that makes a row index, for
// messages.
DecodeChoice choose_decode(const DecodeChoice& chosen, const DecodedShare& tried,
                           const std::string& index);

}  // namespace headrace
