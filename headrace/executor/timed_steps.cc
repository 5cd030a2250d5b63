// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/timed_steps.h"

#include <algorithm>

#include "headrace/base/clock.h"

namespace headrace {

Result<int> advance_timed(const RowTask& task, int step, Record& record, Renderer& renderer,
                          int64_t epoch, int end) {
  const auto rendered = [&] {
    const StageSeconds& seconds = renderer.seconds();
    return seconds.read + seconds.entropy + seconds.resample + seconds.store + seconds.transform;
  };
  const double begin = now(), before = rendered();
  Result<int> stopped =
      task.plan->advance(step, record, renderer, task.seed, static_cast<uint64_t>(epoch), end);
  renderer.seconds().transform += std::max(0.0, now() - begin - (rendered() - before));
  return stopped;
}

}  // namespace headrace
