// SPDX-License-Identifier: Apache-2.0
// The plan as a table for users. Which steps fuse is not guessed: the steps are rehearsed on a
// blank picture, and a new pass begins where something had to be materialized.
#include <algorithm>
#include <cstring>
#include <iterator>

#include "headrace/pipeline/plan.h"

namespace headrace {
namespace {

constexpr int kBlankHeight = 480, kBlankWidth = 640;  // used where sizes are variable
constexpr size_t kMostRehearsed = size_t{32} << 20;   // for a picture that steps derive from a
                                                      // blank one

Recipe blank(const FieldState& state, Size open) {
  const auto size = [](int64_t known, int otherwise) {
    return known > 0 ? static_cast<int>(known) : otherwise;
  };
  auto picture =
      std::make_shared<Picture>(size(state.shape[0], 3), size(state.shape[1], open.height),
                                size(state.shape[2], open.width), state.dtype);
  std::memset(picture->pixels.data(), 0, picture->pixels.size());
  return Recipe(std::shared_ptr<const Picture>(std::move(picture)));
}

std::string padded(std::string text, size_t width) {
  text.resize(std::max(text.size(), width), ' ');
  return text;
}

// Rows of cells; each column is as wide as its widest cell.
std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths(rows.front().size());
  for (const auto& row : rows) {
    for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line = " ";
    for (size_t c = 0; c < row.size(); ++c) line += " " + padded(row[c], widths[c]) + " ";
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

std::string text_of_bytes(size_t bytes) {
  return bytes == 1 ? "1 byte" : std::to_string(bytes) + " bytes";
}

}  // namespace

// By step: which rendering of its first picture it belongs to, from 1; 0 if unknown.
std::vector<int> PlanParts::passes() const {
  std::vector<int> passes(steps.size());
  std::vector<int> pass(inputs.size(), 1);
  Renderer renderer;
  renderer.allow_values(kMostRehearsed);
  renderer.allow_pictures(kMostRehearsed);
  Record record;
  record.position = 0;
  record.fields.resize(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    record.fields[i].kind = inputs[i].kind;
    if (is_picture(inputs[i].kind) && inputs[i].clip_frame <= 0) {
      record.fields[i].picture = blank(inputs[i], {kBlankHeight, kBlankWidth});
    }
  }
  std::vector<std::vector<FieldValue>> outside;  // of the selections that contain a step
  for (size_t s = 0; s < steps.size(); ++s) {
    const Step& step = steps[s];
    if (step.kind == Step::Kind::kCoin) continue;
    if (step.kind == Step::Kind::kSelect) outside.push_back(record.fields);
    if (step.kind == Step::Kind::kNext) {  // the next list starts from the same state as this one
      const bool last = step.list + 1 == std::ssize(steps[step.select].lists);
      if (!last) record.fields = outside.back();
      if (last) outside.pop_back();
    }
    if (step.kind == Step::Kind::kSelect || step.kind == Step::Kind::kNext) continue;
    if (step.kind == Step::Kind::kCopy) {
      record.fields[step.fields[1]] = record.fields[step.fields[0]];
      pass[step.fields[1]] = pass[step.fields[0]];
      continue;
    }
    if (step.kind == Step::Kind::kViews) {
      for (size_t i = 0; i < step.fields.size(); ++i) {
        record.fields[step.fields[i]].picture = blank(step.after[i], {});
        passes[s] = ++pass[step.fields[i]];
      }
      continue;
    }
    if (step.kind == Step::Kind::kPython) {
      for (size_t i = 0; i < step.output_fields.size(); ++i) {
        FieldValue& value = record.fields[step.output_fields[i]];
        if (!is_picture(step.after[i].kind)) continue;
        Size open = value.picture.size();
        const size_t pixels = size_t(open.height) * size_t(open.width);
        if (pixels == 0 || pixels > kMostRehearsed / 4) open = {kBlankHeight, kBlankWidth};
        value.picture = blank(step.after[i], open);
        ++pass[step.output_fields[i]];
      }
      continue;
    }
    // Fields that follow a picture have no value here.
    std::vector<int> pictures;
    std::ranges::copy_if(step.fields, std::back_inserter(pictures), [&](int field) {
      return is_picture(record.fields[field].kind) &&
             inputs[field].clip_frame <= 0;  // one represents its clip
    });
    if (pictures.empty() || step.op->clip()) continue;
    const Recipe before = record.fields[pictures[0]].picture;
    std::vector<Record> partners(size_t(step.op->partners()), record);
    OpContext context{record, pictures, Draws::for_rehearsal(step.key), renderer, partners};
    // for example, the blank is too small
    if (Result<void> done = step.op->apply(context); !done) break;
    const bool anew =
        step.op->measures() || !before.same_source(record.fields[pictures[0]].picture);
    for (int field : pictures) pass[field] += anew;
    passes[s] = pass[pictures[0]];
  }
  return passes;
}

std::string Plan::text() const {
  const std::vector<int> pass = passes();
  std::vector<std::vector<std::string>> rows = {{"step", "what", "fields", "after it", "pass"}};
  std::vector<int> ends;  // of the coins that the step depends on
  for (size_t s = 0; s < parts_.steps.size(); ++s) {
    const Step& step = parts_.steps[s];
    std::erase_if(ends, [&](int end) { return end <= static_cast<int>(s); });
    const bool ends_list = step.kind == Step::Kind::kNext;
    const std::string indent(2 * (ends.size() - ends_list), ' ');
    const bool begins = step.kind == Step::Kind::kCoin || step.kind == Step::Kind::kSelect;
    if (begins) ends.push_back(step.jump);
    std::string fields, after;
    const bool copy = step.kind == Step::Kind::kCopy;
    for (int field : step.kind == Step::Kind::kPython ? step.output_fields : step.fields) {
      if (parts_.inputs[field].clip_frame > 0)
        continue;  // represented by the first picture of its clip
      fields += (fields.empty() ? "" : copy ? " -> " : ", ") + parts_.inputs[field].name;
    }
    for (const FieldState& state : step.after) {
      if (state.clip_frame > 0) continue;
      after += (after.empty() ? "" : ", ") + text_of(state);
    }
    rows.push_back({std::to_string(s + 1), indent + step.label, fields, after,
                    step.kind == Step::Kind::kPython ? "function"
                    : pass[s]                        ? std::to_string(pass[s])
                                                     : ""});
  }
  for (const BatchStep& step : parts_.batch_steps) {
    std::string fields;
    for (int output : step.outputs)
      fields += (fields.empty() ? "" : ", ") + parts_.outputs[output].name;
    rows.push_back({std::to_string(rows.size()), step.label, fields,
                    "groups of " + std::to_string(step.op->group()), "batch"});
  }
  std::string out = "Steps (those of one pass over an image are rendered as one):\n";
  out += rows.size() == 1 ? "  none\n" : table(rows);
  rows = {{"output", "from", "what", "per record"}};
  for (const Output& output : parts_.outputs) {
    rows.push_back({output.name,
                    output.field >= 0 ? std::string(name_of(output.state.kind)) : "record",
                    text_of(output.state),
                    output.is_assembled() ? output.ragged == Ragged::kPad ? "padded" : "packed"
                    : output.as_list      ? "list"
                                          : text_of_bytes(output.bytes_per_record)});
  }
  return out + "Outputs:\n" + table(rows);
}

}  // namespace headrace
