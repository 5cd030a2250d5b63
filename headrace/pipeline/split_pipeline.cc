// SPDX-License-Identifier: Apache-2.0
#include "headrace/pipeline/split_pipeline.h"

#include <algorithm>

#include "headrace/base/registry.h"
#include "headrace/fields/kind.h"

namespace headrace {
namespace {

// Whether the operator keeps 8-bit pictures 8-bit; found by planning it.
bool keeps_bytes(const OpRecord& record, const Spec& spec) {
  const std::unique_ptr<Op> op = record.make(Arguments(record.name, record.params, spec.arguments));
  if (op->clip()) return false;
  for (const KindRecord* kind : all_kinds()) {
    if (kind->form != ValueForm::kPicture || !op->takes(kind->kind)) continue;
    for (int64_t channels = 1; channels <= 4; ++channels) {
      FieldState state{"picture", kind->kind, DType::kUInt8, {channels, -1, -1}, {}};
      try {
        op->plan(state);
      } catch (const Exception&) {
        continue;  // does not support this number of channels, or only supports floats
      }
      if (state.dtype != DType::kUInt8) return false;
    }
  }
  return true;
}

// The transforms of a nested list that is only notation; null if it is not.
const std::vector<Spec>* inner_list(const OpRecord& record, const Spec& spec) {
  if (record.name != "Compose" || !spec.fields.empty()) return nullptr;
  const auto given = spec.arguments.find("transforms");
  if (given == spec.arguments.end()) return nullptr;
  const auto* branches = std::get_if<std::vector<Branch>>(&given->second);
  return branches && branches->size() == 1 ? &branches->front().transforms : nullptr;
}

std::vector<Spec> flat(const std::vector<Spec>& list) {
  std::vector<Spec> out;
  for (const Spec& spec : list) {
    const OpRecord* record = spec.function ? nullptr : Registry<OpRecord>::find(spec.name);
    if (const std::vector<Spec>* inner = record ? inner_list(*record, spec) : nullptr) {
      std::ranges::copy(flat(*inner), std::back_inserter(out));
    } else {
      out.push_back(spec);
    }
  }
  return out;
}

bool is_deterministic(const Spec& spec) {
  const OpRecord* record = spec.function ? nullptr : Registry<OpRecord>::find(spec.name);
  return record && record->make && record->scope == OpScope::kRecord && !record->random &&
         keeps_bytes(*record, spec);
}

void split(const std::vector<Spec>& list, std::vector<Spec>& first, std::vector<Spec>& rest,
           std::string& ends_at) {
  const std::vector<Spec> steps = flat(list);
  const auto end = std::ranges::find_if_not(steps, is_deterministic);
  first.assign(steps.begin(), end);
  rest.assign(end, steps.end());
  if (end == steps.end() || !ends_at.empty()) return;
  ends_at = end->function ? "a Python transform" : end->name;
}

}  // namespace

SplitPipeline split_pipeline(const Pipeline& pipeline) {
  SplitPipeline out;
  out.first.dropped = pipeline.dropped;
  split(pipeline.transforms, out.first.transforms, out.rest.transforms, out.ends_at);
  for (const auto& [field, list] : pipeline.by_field) {
    // A step for the whole record comes before the lists of single fields.
    if (!out.rest.transforms.empty()) {
      out.rest.by_field[field] = list;
      continue;
    }
    split(list, out.first.by_field[field], out.rest.by_field[field], out.ends_at);
  }
  return out;
}

}  // namespace headrace
