// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include "headrace/sources/combined/combined.h"
#include "headrace/sources/combined/reads_in_time.h"
#include "headrace/sources/fingerprint.h"
#include "headrace/sources/readable_text.h"

namespace headrace {
namespace {

const ErrorCode kUnlike{
    "HR0496", ErrorKind::kConfig, "incompatible sources",
    "Sources can be concatenated if they have the same fields, with the same kinds and dtypes, "
    "and the same classes: otherwise a label would have two meanings. Open each with the same "
    "classes=[...], and with the same fields."};

std::string names_of(const Schema& schema) {
  std::vector<std::string> names;
  for (const Field& field : schema) names.push_back(field.name);
  return quoted_list(names, 8);
}

// The index of each field of `schema` in the source's own schema.
std::vector<size_t> places_of(const Schema& schema, const Source& source, size_t number) {
  const Schema& own = source.schema();
  const std::string which = "source " + std::to_string(number);
  if (own.size() != schema.size()) {
    raise(kUnlike, which + " has " + names_of(own) + ", but source 0 has " + names_of(schema),
          "open them so that they have the same fields");
  }
  std::vector<size_t> places;
  for (const Field& field : schema) {
    const auto same = std::find_if(own.begin(), own.end(),
                                   [&](const Field& each) { return each.name == field.name; });
    if (same == own.end()) {
      raise(kUnlike, which + " has no field '" + field.name + "', only " + names_of(own),
            "open them so that they have the same fields");
    }
    if (same->kind != field.kind || same->dtype != field.dtype || same->encoded != field.encoded ||
        same->shape.size() != field.shape.size()) {
      raise(kUnlike,
            "'" + field.name + "' of " + which + " is " + std::string(name_of(same->kind)) + " " +
                std::string(name_of(same->dtype)) + ", of source 0 " +
                std::string(name_of(field.kind)) + " " + std::string(name_of(field.dtype)) +
                (same->shape.size() != field.shape.size() ? ", with other dimensions" : ""),
            "convert them to the same form first");
    }
    const bool both_said =
        same->box_format != BoxFormat::kUnspecified && field.box_format != BoxFormat::kUnspecified;
    if (both_said && same->box_format != field.box_format) {
      raise(kUnlike,
            "'" + field.name + "' of " + which + " is in " +
                std::string(name_of(same->box_format)) + ", of source 0 in " +
                std::string(name_of(field.box_format)),
            "open both with the same format of boxes: boxes=\"xyxy\"");
    }
    places.push_back(static_cast<size_t>(same - own.begin()));
  }
  return places;
}

class Concat final : public Source {
 public:
  explicit Concat(std::vector<SourcePtr> sources) : schema_(sources[0]->schema()) {
    Fingerprint print;
    print.add("concat");
    for (size_t i = 0; i < sources.size(); ++i) {
      const Source& source = *sources[i];
      Part part{.source = sources[i], .begin = size_, .places = places_of(schema_, source, i)};
      for (size_t field = 0; field < schema_.size(); ++field) {
        Shape& joint = schema_[field].shape;
        const Field& theirs = source.schema()[part.places[field]];
        const Shape& own = theirs.shape;
        if (theirs.box_format == BoxFormat::kUnspecified)
          schema_[field].box_format = theirs.box_format;
        if (theirs.row_group != schema_[field].row_group) schema_[field].row_group = 0;
        for (size_t axis = 0; axis < joint.size(); ++axis) {
          if (own[axis] != joint[axis]) joint[axis] = -1;
        }
        part.in_order = part.in_order && part.places[field] == field;
      }
      if (source.classes() != sources[0]->classes()) {
        raise(kUnlike, "source " + std::to_string(i) + " has different classes from source 0",
              "open both with the same classes=[...]");
      }
      size_ += source.size();
      print.add(source.fingerprint());
      style_ = std::max(style_, source.read_style());
      parts_.push_back(std::move(part));
    }
    fingerprint_ = print.value();
  }

  int64_t size() const override { return size_; }
  const Schema& schema() const override { return schema_; }
  ReadStyle read_style() const override { return style_; }
  uint64_t fingerprint() const override { return fingerprint_; }
  std::vector<std::string> classes() const override { return parts_[0].source->classes(); }
  std::string key(int64_t index) const override {
    const Part& part = part_of(index);
    return part.source->key(index - part.begin);
  }
  Where where(int64_t index) const override {
    const Part& part = part_of(index);
    Where place = part.source->where(index - part.begin);
    place.record = index;
    return place;
  }
  bool shares_files(size_t field) const override {
    return std::ranges::any_of(
        parts_, [&](const Part& part) { return part.source->shares_files(part.places[field]); });
  }
  std::vector<const Source*> origins() const override {
    std::vector<const Source*> out;
    for (const Part& part : parts_) add_origins(*part.source, out);
    return out;
  }
  Origin origin(int64_t index, size_t field) const override {
    const Part& part = part_of(index);
    return part.source->origin(index - part.begin, part.places[field]);
  }
  std::vector<int64_t> block_ends() const override {
    std::vector<int64_t> ends;
    for (const Part& part : parts_) {
      for (const int64_t end : part.source->block_ends()) ends.push_back(part.begin + end);
    }
    return ends;
  }
  void will_read(int64_t begin, int64_t end, const std::vector<bool>& wanted) const override {
    for (const Part& part : parts_) {
      const int64_t first = std::max(begin, part.begin),
                    last = std::min(end, part.begin + part.source->size());
      if (first >= last) continue;
      part.source->will_read(first - part.begin, last - part.begin, wanted_of(part, wanted));
    }
  }
  std::string root() const override {
    const std::string first = parts_[0].source->root();
    const bool same = std::all_of(parts_.begin(), parts_.end(),
                                  [&](const Part& part) { return part.source->root() == first; });
    return same ? first : first.empty() ? "" : ".";
  }
  std::string description() const override {
    std::string out = "concat (" + count_text(size_, "record") + "): ";
    for (size_t i = 0; i < std::min<size_t>(parts_.size(), 3); ++i) {
      out += (i ? ", " : "") + parts_[i].source->description();
    }
    if (parts_.size() > 3) out += " and " + std::to_string(parts_.size() - 3) + " more";
    return out;
  }

  std::vector<int64_t> integer_column(std::string_view field) const override {
    std::vector<int64_t> out;
    for (const Part& part : parts_) {
      const std::vector<int64_t> some = part.source->integer_column(field);
      if (static_cast<int64_t>(some.size()) != part.source->size()) return {};
      out.insert(out.end(), some.begin(), some.end());
    }
    return out;
  }

  void pieces(int64_t index, const std::vector<bool>& wanted,
              std::vector<FilePiece>& out) const override {
    const Part& part = part_of(index);
    part.source->pieces(index - part.begin, wanted_of(part, wanted), out);
  }
  bool prepare_pieces(int64_t index, const std::vector<bool>& wanted, bool wait) const override {
    const Part& part = part_of(index);
    return part.source->prepare_pieces(index - part.begin, wanted_of(part, wanted), wait);
  }
  std::string separate_file(int64_t index, size_t field) const override {
    const Part& part = part_of(index);
    return part.source->separate_file(index - part.begin, part.places[field]);
  }

  void read(std::span<const int64_t> indices, const std::vector<bool>& wanted,
            std::span<RecordData> out) const override {
    std::vector<int64_t> own;
    for (size_t begin = 0; begin < out.size();) {
      const Part& part = part_of(indices[begin]);
      own.clear();
      size_t end = begin;
      for (; end < out.size() && &part_of(indices[end]) == &part; ++end) {
        own.push_back(indices[end] - part.begin);
      }
      read_part(part, own, wanted, out.subspan(begin, end - begin));
      for (; begin < end; ++begin) {
        out[begin].index = indices[begin];
        if (!out[begin].result) out[begin].result.error().where.record = indices[begin];
      }
    }
  }

 private:
  struct Part {
    SourcePtr source;
    int64_t begin = 0;
    std::vector<size_t> places;  // indices of this source's fields, in joint order
    bool in_order = true;
  };

  const Part& part_of(int64_t index) const {
    // The last source that begins at or before `index`, because empty sources begin where the next
    // one does.
    return *std::prev(
        std::upper_bound(parts_.begin(), parts_.end(), index,
                         [](int64_t record, const Part& part) { return record < part.begin; }));
  }

  std::vector<bool> wanted_of(const Part& part, const std::vector<bool>& wanted) const {
    std::vector<bool> own = wanted;
    if (!part.in_order) {
      for (size_t i = 0; i < own.size(); ++i) own[part.places[i]] = wanted[i];
    }
    return own;
  }

  void read_part(const Part& part, std::span<const int64_t> indices,
                 const std::vector<bool>& wanted, std::span<RecordData> out) const {
    const std::vector<bool>* const by_range = out.front().by_range;  // in the joint order
    const std::vector<bool> own = by_range ? wanted_of(part, *by_range) : std::vector<bool>();
    for (RecordData& record : out) {
      if (record.by_range) record.by_range = record.by_range == by_range ? &own : nullptr;
      // Annotated sizes may be left from another part's record, and this part may not set any.
      for (FieldData& field : record.fields) field.annotated_width = field.annotated_height = 0;
    }
    read_in_time(*part.source, indices, wanted_of(part, wanted), out);
    const Schema& schema = part.source->schema();
    for (RecordData& record : out) {
      record.by_range = by_range;
      if (!part.in_order) {
        std::vector<FieldData> fields(record.fields.size());
        for (size_t i = 0; i < fields.size(); ++i) {
          fields[i] = std::move(record.fields[part.places[i]]);
        }
        record.fields = std::move(fields);
      }
      for (size_t i = 0; i < record.fields.size() && record.result; ++i) {
        if (!wanted[i] || schema_[i].encoded || !record.fields[i].shape.empty()) continue;
        const Shape& fixed = schema[part.places[i]].shape;
        if (fixed != schema_[i].shape) record.fields[i].shape = fixed;
      }
    }
  }

  Schema schema_;
  std::vector<Part> parts_;
  int64_t size_ = 0;
  uint64_t fingerprint_ = 0;
  ReadStyle style_ = ReadStyle::kMemory;
};

}  // namespace

SourcePtr concat(std::vector<SourcePtr> sources) {
  if (sources.empty()) raise(kUnlike, "no source was given", "hr.concat(a, b)");
  if (sources.size() == 1) return sources[0];
  return std::make_shared<Concat>(std::move(sources));
}

}  // namespace headrace
