// SPDX-License-Identifier: Apache-2.0
// Takes a record through the plan's steps, and counts their time.
#pragma once

#include "headrace/executor/row_task.h"
#include "headrace/image/render.h"

namespace headrace {

// The plan's steps on a record that is at `step`, as by Plan::advance(); their time, except for
// rendering, which counts itself, counts as transforms.
Result<int> advance_timed(const RowTask& task, int step, Record& record, Renderer& renderer,
                          int64_t epoch, int end = -1);

}  // namespace headrace
