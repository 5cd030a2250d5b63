// SPDX-License-Identifier: Apache-2.0
// A batch kernel as work of a stream: on a GPU it is launched, elsewhere it runs as a loop in
// stream order.
#pragma once

#include <utility>

#include "headrace/device/cuda/cuda_devices.h"
#include "headrace/kernels/batch/launch.h"

namespace headrace {

// Memory that the kernel refers to must stay valid until an event recorded after it completes.
// Throws HR0860 if CUDA fails.
template <class Kernel>
void queue(Stream& stream, const Kernel& kernel) {
  void* const cuda_stream = cuda_stream_of(stream);
  const Target target = cuda_stream ? Target::stream(cuda_stream) : Target::host();
  stream.run([kernel, target] {
    if (Result<void> done = run(kernel, target); !done) throw Exception(std::move(done.error()));
  });
}

}  // namespace headrace
