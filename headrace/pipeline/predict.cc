// SPDX-License-Identifier: Apache-2.0
// What is known of a record before it is read: the same traversal of steps as advance(), with
// shapes, or the tables of videos, in place of values.
#include <algorithm>

#include "headrace/pipeline/plan.h"

namespace headrace {
namespace {

// Visits the steps that the record at a position takes, other than those that decide about others.
// `visit` gets the step and its draws.
template <class Visit>
void visit_steps(const std::vector<Step>& steps, uint64_t seed, uint64_t epoch, int64_t position,
                 const Visit& visit) {
  const auto draws_of = [&](const Step& step) {
    return Draws(seed, epoch, static_cast<uint64_t>(position), step.key);
  };
  const auto end = static_cast<int>(steps.size());
  for (int at = 0; at < end; ++at) {
    const Step& step = steps[at];
    switch (step.kind) {
      case Step::Kind::kCoin:
        if (!draws_of(step).coin(step.probability)) at = step.jump - 1;
        break;
      case Step::Kind::kSelect:
        at = step.after_list(-1, draws_of(step)) - 1;
        break;
      case Step::Kind::kNext: {
        const Step& select = steps[step.select];
        at = select.after_list(step.list, draws_of(select)) - 1;
        break;
      }
      case Step::Kind::kPython:
      case Step::Kind::kCopy:
      case Step::Kind::kViews:
      case Step::Kind::kOp:
        visit(step, draws_of(step));
        break;
    }
  }
}

}  // namespace

void Plan::predict(std::vector<std::optional<Predicted>>& fields, uint64_t seed, uint64_t epoch,
                   int64_t position) const {
  visit_steps(parts_.steps, seed, epoch, position, [&](const Step& step, const Draws& draws) {
    if (step.kind == Step::Kind::kPython) {
      for (const int field : step.fields) fields[field].reset();
      for (const int field : step.output_fields) fields[field].reset();
    } else if (step.kind == Step::Kind::kCopy) {
      fields[step.fields[1]] = fields[step.fields[0]];
    } else if (step.kind == Step::Kind::kOp) {
      for (const int field : step.fields) {
        if (fields[field] && !step.op->predict(*fields[field], draws)) fields[field].reset();
      }
    }
  });
}

std::optional<std::vector<uint32_t>> Plan::clip_frames(int field, const VideoTrack& track,
                                                       uint64_t seed, uint64_t epoch,
                                                       int64_t position) const {
  if (parts_.partner_step >= 0) return {};  // mixed-in records are at other positions
  std::vector<int> videos = {field};        // the field, and copies of it
  std::vector<uint32_t> out;
  bool is_known = true;
  visit_steps(parts_.steps, seed, epoch, position, [&](const Step& step, const Draws& draws) {
    const auto has_video = [&](int each) {
      return std::ranges::find(videos, each) != videos.end();
    };
    if (!is_known || std::ranges::none_of(step.fields, has_video)) return;
    if (step.kind == Step::Kind::kCopy) {
      if (has_video(step.fields[0])) videos.push_back(step.fields[1]);
      return;
    }
    const bool is_clip = step.kind == Step::Kind::kOp && step.op->clip();
    const auto frames = is_clip ? step.op->clip_frames(track, draws) : std::nullopt;
    is_known = frames.has_value();
    if (frames) out.insert(out.end(), frames->begin(), frames->end());
    std::erase(videos, step.fields[0]);
  });
  for (const Output& output : parts_.outputs) {
    is_known &= std::ranges::find(videos, output.field) == videos.end();
  }
  if (!is_known) return {};
  return out;
}

}  // namespace headrace
