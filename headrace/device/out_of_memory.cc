// SPDX-License-Identifier: Apache-2.0
#include "headrace/device/out_of_memory.h"

#include <cstdio>

namespace headrace {
namespace {

const ErrorCode kOutOfMemory{
    "HR0880", ErrorKind::kResource, "not enough memory on the device",
    "Headrace needs device memory for the batches that it copies ahead (depth of them, plus one "
    "for the consumer) and for data that stays on the device. The message has the numbers. The "
    "rest of the device's memory belongs to the model and to the framework's own cache, which "
    "keeps what it has taken: create the loader before the model, use a smaller depth or batch, "
    "or keep a smaller part of the data on the device."};

}  // namespace

std::string mebibytes(size_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f MiB", double(bytes) / 1048576);
  return text;
}

void throw_out_of_memory(const std::string& device, size_t wanted, size_t free, size_t total) {
  raise(kOutOfMemory,
        device + ": " + mebibytes(wanted) + " are needed, " + mebibytes(free) + " of " +
            mebibytes(total) + " are free",
        "a smaller depth= or batch_size=");
}

bool is_out_of_memory(const Exception& exception) {
  return exception.error().code == &kOutOfMemory;
}

}  // namespace headrace
