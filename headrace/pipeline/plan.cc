// SPDX-License-Identifier: Apache-2.0
#include "headrace/pipeline/plan.h"

#include <map>
#include <utility>

#include "headrace/fields/audio.h"
#include "headrace/fields/rows.h"

namespace headrace {
namespace {

const ErrorCode kNoPartners{
    "HR0132", ErrorKind::kConfig, "record needs other records",
    "A transform that mixes in other records of the epoch requires a Loader, which makes batches. "
    "Here, a single record is inspected on its own."};

const ErrorCode kRowsDiffer{
    "HR0123", ErrorKind::kData, "fields of one record differ in row count",
    "Fields that describe the same objects (boxes, their labels and areas) have one row per "
    "object, but in this record their row counts differ: the file is damaged, or the program that "
    "wrote it has a bug."};

// A copy of a step's fields before it runs, if it may have to wait for pixels (Note [Pixels
// together] in executor/record_worker.h).
class FieldsBefore {
 public:
  explicit FieldsBefore(const OpContext& context)
      : context_(context), requests_(context.renderer.requests()) {
    if (!requests_) return;
    requests_->answered = 0;
    for (const int field : context.fields) values_.push_back(context.record.fields[field]);
  }
  // Called after the step; if true, its fields have been restored.
  bool must_wait() const {
    if (!requests_) return false;
    if (!requests_->waits) {
      requests_->clear();
      return false;
    }
    for (size_t i = 0; i < values_.size(); ++i) {
      context_.record.fields[context_.fields[i]] = values_[i];
    }
    return true;
  }

 private:
  const OpContext& context_;
  PixelRequests* const requests_;
  std::vector<FieldValue> values_;
};

Error rows_differ(const std::string& name, int64_t rows, const std::string& other, int64_t others) {
  return {.code = &kRowsDiffer,
          .what = "\"" + name + "\" has " + std::to_string(rows) + " rows, \"" + other + "\" " +
                  std::to_string(others)};
}

}  // namespace

Result<void> Plan::begin(const RecordData& data, Record& record, Renderer& renderer) const {
  record.fields.resize(parts_.inputs.size());
  record.pixels.resize(parts_.inputs.size());
  // Fields made by steps: release the previous record's memory.
  for (size_t i = parts_.schema.size(); i < parts_.inputs.size(); ++i) {
    record.fields[i].kind = parts_.inputs[i].kind;
    record.fields[i].owned.reset();
    record.fields[i].audio = {};
    record.fields[i].video = {};
    record.fields[i].frame.reset();
    if (is_picture(parts_.inputs[i].kind)) record.fields[i].picture = Recipe();
  }
  for (size_t i = 0; i < parts_.schema.size(); ++i) {
    FieldValue& value = record.fields[i];
    value.kind = parts_.inputs[i].kind;
    value.owned.reset();
    if (!parts_.wanted[i]) continue;
    const BeginContext from{parts_.schema[i], parts_.inputs[i], parts_.input_bytes[i],
                            data.fields[i],   parts_.options,   renderer,
                            record.pixels[i]};
    if (Result<void> begun = record_of(value.kind).begin(from, value); !begun) return begun;
    if (value.kind == FieldKind::kAudio && !parts_.any_rate[i]) {
      if (Result<void> one = check_rate(parts_.inputs[i], value); !one) return one;
    }
  }
  return check_row_groups(record);
}

std::vector<bool> Plan::by_range() const {
  std::vector<bool> out(parts_.schema.size());
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = parts_.wanted[i] && record_of(parts_.inputs[i].kind).by_range;
  }
  return out;
}

Result<void> Plan::check_row_groups(const Record& record) const {
  std::map<uint8_t, size_t> first;  // by group
  for (size_t i = 0; i < parts_.schema.size(); ++i) {
    const uint8_t group = parts_.schema[i].row_group;
    const Shape& shape = record.fields[i].shape;
    if (group == 0 || !parts_.wanted[i] || shape.empty()) continue;
    const size_t with = first.emplace(group, i).first->second;
    const int64_t rows = record.fields[with].shape[0];
    if (shape[0] == rows) continue;
    return rows_differ(parts_.schema[i].name, shape[0], parts_.schema[with].name, rows);
  }
  return {};
}

// A function may have changed the rows of one field only.
Result<void> Plan::check_rows(const Step& step, const Record& record) const {
  for (const int field : step.rows) {
    const int64_t rows = row_count(record.fields[field]);
    const int64_t first = row_count(record.fields[step.rows.front()]);
    if (rows != first)
      return rows_differ(parts_.inputs[field].name, rows, parts_.inputs[step.rows[0]].name, first);
  }
  return {};
}

Error Plan::in_step(int at, Error error) const {
  if (error.note.empty()) {
    error.note = "in transform " + std::to_string(parts_.options.steps_before + at + 1) + ", " +
                 parts_.steps[at].label;
  }
  return error;
}

bool Plan::has_python_steps() const {
  return std::ranges::any_of(parts_.steps,
                             [](const Step& step) { return step.kind == Step::Kind::kPython; });
}

bool Plan::delivers_lists() const {
  return std::ranges::any_of(parts_.outputs, [](const Output& output) {
    return output.as_list && output.origin != OutputOrigin::kKey;
  });
}

bool Plan::assembles() const { return std::ranges::any_of(parts_.outputs, &Output::is_assembled); }

int64_t Plan::partners_within() const {
  return parts_.partner_step < 0 ? 0 : parts_.steps[parts_.partner_step].op->near_partners().within;
}

size_t Plan::prepared_bytes() const {
  if (parts_.partner_step < 0) return 0;
  const Step& step = parts_.steps[parts_.partner_step];
  size_t channels = 0;
  for (size_t i = 0; i < step.after.size(); ++i) {
    const FieldState& state = step.after[i];
    if (is_picture(state.kind))
      channels += static_cast<size_t>(std::max<int64_t>(state.shape[0], 1));
  }
  return channels * step.op->near_partners().pixels_of_each;
}

Result<void> Plan::prepare_partner(Record& record, Renderer& renderer, uint64_t seed,
                                   uint64_t epoch) const {
  const Step& step = parts_.steps[parts_.partner_step];
  const Draws draws(seed, epoch, static_cast<uint64_t>(record.position), step.key);
  OpContext context{record, step.fields, draws, renderer, {}, step.rows};
  if (Result<void> rows = check_rows(step, record); !rows) return rows;
  Result<void> done = step.op->prepare(context);
  if (!done) return in_step(parts_.partner_step, std::move(done.error()));
  return done;
}

Result<int> Plan::advance(int at, Record& record, Renderer& renderer, uint64_t seed, uint64_t epoch,
                          int end) const {
  const uint64_t position = static_cast<uint64_t>(record.position);
  if (end < 0) end = static_cast<int>(parts_.steps.size());
  while (at < end) {
    const Step& step = parts_.steps[at];
    switch (step.kind) {
      case Step::Kind::kPython:
        return at;
      case Step::Kind::kCoin:
        if (!Draws(seed, epoch, position, step.key).coin(step.probability)) {
          at = step.jump;
          continue;
        }
        break;
      case Step::Kind::kSelect:
        at = step.after_list(-1, Draws(seed, epoch, position, step.key));
        continue;
      case Step::Kind::kNext: {
        const Step& select = parts_.steps[step.select];
        at = select.after_list(step.list, Draws(seed, epoch, position, select.key));
        continue;
      }
      case Step::Kind::kCopy:
        // Compute a warp or a collage once, instead of again for each copy.
        if (Recipe& picture = record.fields[step.fields[0]].picture; picture.is_derived()) {
          if (Result<void> made = renderer.materialize(picture); !made) {
            return std::move(made.error());
          }
        }
        record.fields[step.fields[1]] = record.fields[step.fields[0]];
        break;
      case Step::Kind::kViews: {
        std::vector<Recipe*> views;
        for (const int field : step.fields) {
          Recipe& view = record.fields[field].picture;
          if (!view.left_to_device()) views.push_back(&view);  // otherwise no CPU thread decodes it
        }
        renderer.materialize_views(std::move(views));
        if (renderer.requests() && renderer.requests()->waits) return at;
        break;
      }
      case Step::Kind::kOp: {
        OpContext context{record,    step.fields,     Draws(seed, epoch, position, step.key),
                          renderer,  record.partners, step.rows,
                          step.after};
        if (std::ssize(record.partners) < step.op->partners()) {
          raise(kNoPartners, step.label + " mixes in other records of the epoch");
        }
        if (Result<void> rows = check_rows(step, record); !rows) return std::move(rows.error());
        const FieldsBefore before(context);
        Result<void> done = step.op->apply(context);
        if (before.must_wait()) return at;
        if (!done) return in_step(at, std::move(done.error()));
        break;
      }
    }
    ++at;
  }
  return at;
}

}  // namespace headrace
