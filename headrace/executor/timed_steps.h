// SPDX-License-Identifier: Apache-2.0
// Runs the plan's steps on a record, and measures their time.
#pragma once

#include "headrace/executor/row_task.h"
#include "headrace/image/render.h"

namespace headrace {

// Runs Plan::advance() on a record that is at `step`. The time counts as transforms, except for
// rendering, which is counted by the renderer.
Result<int> advance_timed(const RowTask& task, int step, Record& record, Renderer& renderer,
                          int64_t epoch, int end = -1);

}  // namespace headrace
