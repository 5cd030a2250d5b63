// SPDX-License-Identifier: Apache-2.0
// The fields at the end of a plan, as far as they are known before a record is read: the same
// traversal of steps as advance(), with shapes in place of values.
#include "headrace/pipeline/plan.h"

namespace headrace {

void Plan::predict(std::vector<std::optional<Predicted>>& fields, uint64_t seed, uint64_t epoch,
                   int64_t position) const {
  const auto draws_of = [&](const Step& step) {
    return Draws(seed, epoch, static_cast<uint64_t>(position), step.key);
  };
  const auto end = static_cast<int>(parts_.steps.size());
  for (int at = 0; at < end; ++at) {
    const Step& step = parts_.steps[at];
    switch (step.kind) {
      case Step::Kind::kPython:
        for (const int field : step.fields) fields[field].reset();
        for (const int field : step.output_fields) fields[field].reset();
        break;
      case Step::Kind::kCoin:
        if (!draws_of(step).coin(step.probability)) at = step.jump - 1;
        break;
      case Step::Kind::kSelect:
        at = step.after_list(-1, draws_of(step)) - 1;
        break;
      case Step::Kind::kNext: {
        const Step& select = parts_.steps[step.select];
        at = select.after_list(step.list, draws_of(select)) - 1;
        break;
      }
      case Step::Kind::kCopy:
        fields[step.fields[1]] = fields[step.fields[0]];
        break;
      case Step::Kind::kViews:
        break;
      case Step::Kind::kOp:
        for (const int field : step.fields) {
          if (fields[field] && !step.op->predict(*fields[field], draws_of(step))) {
            fields[field].reset();
          }
        }
        break;
    }
  }
}

}  // namespace headrace
