// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string_view>
#include <vector>

#include "headrace/formats/coco/coco.h"
#include "headrace/formats/coco/coco_values.h"
#include "headrace/sources/fingerprint.h"
#include "headrace/sources/labeled_files.h"
#include "headrace/sources/named_files.h"
#include "headrace/sources/readable_text.h"

namespace headrace {
namespace {

enum class CocoField : uint8_t {
  kImage,
  kBoxes,
  kLabels,
  kCrowd,
  kAreas,
  kImageId,
  kMasks,
  kKeypoints,
  kCaption,
  kCaptions,
};

constexpr uint8_t kObjects = 1;  // the row group: an annotation is a row in each of these fields

// Fields that are invalid if a row of the picture is.
bool is_of_rows(CocoField field) {
  return field != CocoField::kImage && field != CocoField::kImageId &&
         field != CocoField::kCaption && field != CocoField::kCaptions;
}

class CocoSource final : public Source {
 public:
  CocoSource(File file, CocoAnnotations data, std::string folder, const CocoWanted& wanted)
      : file_(std::move(file)),
        data_(std::move(data)),
        folder_(std::move(folder)),
        values_(file_),
        wanted_(wanted) {
    const auto add = [&](CocoField part, Field field) {
      parts_.push_back(part);
      schema_.push_back(std::move(field));
    };
    add(CocoField::kImage, {.name = "image",
                            .kind = FieldKind::kImage,
                            .dtype = DType::kUInt8,
                            .shape = {-1, -1, -1},
                            .encoded = true});
    if (data_.has_boxes) {
      add(CocoField::kBoxes, {.name = "boxes",
                              .kind = FieldKind::kBoxes,
                              .dtype = DType::kFloat32,
                              .shape = {-1, 4},
                              .box_format = wanted_.box_format,
                              .row_group = kObjects});
      const auto add_column = [&](CocoField part, const char* name, DType dtype) {
        add(part, {.name = name, .dtype = dtype, .shape = {-1}, .row_group = kObjects});
      };
      add_column(CocoField::kLabels, "labels", DType::kInt64);
      add_column(CocoField::kCrowd, "crowd", DType::kUInt8);
      add_column(CocoField::kAreas, "areas", DType::kFloat32);
    }
    add(CocoField::kImageId, {.name = "image_id", .dtype = DType::kInt64});
    if (wanted_.masks) {
      add(CocoField::kMasks, {.name = "masks",
                              .kind = FieldKind::kMasks,
                              .dtype = DType::kUInt8,
                              .shape = {-1, -1, -1},
                              .row_group = kObjects});
    }
    if (wanted_.keypoints > 0) {
      add(CocoField::kKeypoints, {.name = "keypoints",
                                  .kind = FieldKind::kKeypoints,
                                  .dtype = DType::kFloat32,
                                  .shape = {-1, wanted_.keypoints, 3},
                                  .row_group = kObjects});
    }
    if (wanted_.captions) {
      add(CocoField::kCaption, {.name = "caption", .kind = FieldKind::kText});
      add(CocoField::kCaptions, {.name = "captions", .kind = FieldKind::kText});
    }
    fingerprint_ = make_fingerprint();
  }

  int64_t size() const override { return static_cast<int64_t>(data_.images.size()); }
  const Schema& schema() const override { return schema_; }
  ReadStyle read_style() const override {
    return is_async(folder_) ? ReadStyle::kLater : ReadStyle::kFiles;
  }
  void pieces(int64_t index, const std::vector<bool>& wanted,
              std::vector<FilePiece>& out) const override {
    if (wanted[0])
      add_piece({.path = key(index)}, out);  // values of annotations are read
                                             // individually
  }
  uint64_t fingerprint() const override { return fingerprint_; }
  std::string root() const override { return folder_.empty() ? "." : folder_; }

  void read(std::span<const int64_t> indices, const std::vector<bool>& wanted,
            std::span<RecordData> out) const override {
    for (size_t i = 0; i < out.size(); ++i) {
      begin_record(indices[i], parts_.size(), parts_.size(), out[i]);
      for (size_t f = 0; f < parts_.size() && out[i].result; ++f) {
        if (wanted[f]) read_part(indices[i], f, out[i]);
      }
      if (wanted[0] && wanted_.check_sizes && wants_scatter(wanted)) {
        note_size(indices[i], out[i].fields[0]);
      }
    }
  }

  std::string key(int64_t index) const override {
    const std::string_view name = data_.file_names[index];
    return name.starts_with('/') ? std::string(name) : folder_ + std::string(name);
  }

  std::vector<int64_t> integer_column(std::string_view field) const override {
    if (field != "image_id") return {};
    std::vector<int64_t> ids;
    ids.reserve(data_.images.size());
    for (const CocoImage& image : data_.images) ids.push_back(image.id);
    return ids;
  }

  std::vector<std::string> classes() const override {
    std::vector<std::string> names;
    if (!data_.has_boxes) return names;
    if (wanted_.keep_category_ids) return names_by_id();
    for (const CocoCategory& category : data_.categories) names.push_back(category.name);
    return names;
  }

  std::string description() const override {
    std::string out = "coco " + file_.path() + " (" + count_text(size(), "record");
    if (data_.has_boxes) {
      out += ", " + count_text(data_.row_begins.back(), "box", "boxes");
      out += ", " + count_text(static_cast<int64_t>(data_.categories.size()), "class", "classes");
    }
    if (wanted_.captions) out += ", " + count_text(data_.caption_begins.back(), "caption");
    if (!data_.problems.empty()) {
      out += ", " + count_text(static_cast<int64_t>(data_.problems.size()), "record") +
             " with bad annotations";
    }
    if (data_.orphans > 0) {
      out += ", " + count_text(data_.orphans, "annotation") + " of unlisted images skipped";
    }
    if (data_.over_edge > 0) {
      out += ", " + count_text(data_.over_edge, "box", "boxes") + " beyond the image's edge";
    }
    return out + ")";
  }

 private:
  // The name of the category with id i at position i, like torchvision's list of COCO names. None
  // if ids are not suitable as list positions.
  std::vector<std::string> names_by_id() const {
    constexpr int64_t kMaxIds = 1 << 16;
    if (data_.categories.empty()) return {};
    const int64_t least = data_.categories.front().id, most = data_.categories.back().id;
    if (least < 0 || most >= kMaxIds) return {};
    std::vector<std::string> names(size_t(most) + 1, "N/A");
    if (least > 0) names[0] = "__background__";
    for (const CocoCategory& category : data_.categories)
      names[size_t(category.id)] = category.name;
    return names;
  }

  // Whether fields in the picture's coordinates are requested.
  bool wants_scatter(const std::vector<bool>& wanted) const {
    for (size_t f = 0; f < parts_.size(); ++f) {
      const FieldKind kind = schema_[f].kind;
      if (wanted[f] && is_spatial(kind) && !is_picture(kind)) return true;
    }
    return false;
  }
  void note_size(int64_t record, FieldData& picture) const {
    if (data_.row_begins[record] == data_.row_begins[record + 1]) return;
    picture.annotated_width = data_.images[record].width;
    picture.annotated_height = data_.images[record].height;
  }

  void read_part(int64_t record, size_t field, RecordData& out) const {
    const CocoField part = parts_[field];
    FieldData& data = out.fields[field];
    Buffer& own = out.owned[field];
    if (is_of_rows(part) && !check_rows(record, out)) return;
    const uint32_t begin = data_.row_begins[record], end = data_.row_begins[record + 1];
    const int64_t count = end - begin;
    Result<void> done;
    switch (part) {
      case CocoField::kImage:
        return read_named_picture(key(record), root(), record, field, field, out);
      case CocoField::kBoxes:
        return borrow(data_.boxes, size_t{begin} * 4, count * 4, {count, 4}, data);
      case CocoField::kLabels:
        return borrow(data_.labels, begin, count, {count}, data);
      case CocoField::kCrowd:
        return borrow(data_.crowd, begin, count, {count}, data);
      case CocoField::kAreas:
        return borrow(data_.areas, begin, count, {count}, data);
      case CocoField::kImageId:
        data.scalar = data_.images[record].id;
        return;
      case CocoField::kMasks: {
        const CocoImage& image = data_.images[record];
        data.shape = {count, image.height, image.width};
        done = values_.masks(std::span(data_.segmentations).subspan(begin, count), image.height,
                             image.width, out.max_bytes, own);
        break;
      }
      case CocoField::kKeypoints:
        data.shape = {count, wanted_.keypoints, 3};
        done = values_.keypoints(std::span(data_.keypoints).subspan(begin, count),
                                 wanted_.keypoints, out.max_bytes, own);
        break;
      case CocoField::kCaption:
      case CocoField::kCaptions: {
        const uint32_t first = data_.caption_begins[record];
        const auto ranges =
            std::span(data_.captions).subspan(first, data_.caption_begins[record + 1] - first);
        done = part == CocoField::kCaption ? values_.caption(ranges, own)
                                           : values_.captions(ranges, own);
      }
    }
    if (done) {
      data.bytes = own.bytes();
    } else {
      done.error().where.record = record;
      out.result = std::move(done);
    }
  }

  // Whether the rows of the picture are valid; otherwise sets the error.
  bool check_rows(int64_t record, RecordData& out) const {
    const CocoProblem* problem = data_.problem_of(record);
    if (!problem) return true;
    out.result = Error{.code = &kBadCocoRecord,
                       .what = problem->what,
                       .where = Where{.file = file_.path(),
                                      .member = std::string(data_.file_names[record]),
                                      .record = record,
                                      .offset = static_cast<int64_t>(problem->offset)}};
    return false;
  }

  template <class Number>
  static void borrow(const std::vector<Number>& column, size_t begin, int64_t count, Shape shape,
                     FieldData& out) {
    out.bytes = {reinterpret_cast<const uint8_t*>(column.data() + begin),
                 static_cast<size_t>(count) * sizeof(Number)};
    out.shape = std::move(shape);
  }

  template <class Number>
  static void add_column(const std::vector<Number>& column, Fingerprint& print) {
    print.add(std::string_view(reinterpret_cast<const char*>(column.data()),
                               column.size() * sizeof(Number)));
  }

  uint64_t make_fingerprint() const {
    Fingerprint print;
    print.add("coco");
    for (const CocoImage& image : data_.images) {
      print.add(static_cast<uint64_t>(image.id));
      print.add(static_cast<uint64_t>(image.width) << 32 | static_cast<uint32_t>(image.height));
    }
    print.add(data_.file_names.bytes());
    for (const std::string& name : classes()) print.add(name);
    add_column(data_.row_begins, print);
    add_column(data_.boxes, print);
    add_column(data_.labels, print);
    add_column(data_.areas, print);
    add_column(data_.crowd, print);
    for (const Field& field : schema_) print.add(field.name);
    // Values that stay in the file: their lengths reveal most edits.
    const auto add_ranges = [&](const std::vector<JsonRange>& ranges) {
      for (const JsonRange& range : ranges) print.add(uint64_t{range.bytes});
    };
    if (wanted_.masks) add_ranges(data_.segmentations);
    if (wanted_.keypoints > 0) add_ranges(data_.keypoints);
    if (wanted_.captions) add_ranges(data_.captions);
    return print.value();
  }

  File file_;
  CocoAnnotations data_;
  std::string folder_;  // of the pictures, with a final slash; empty: the current one
  CocoValues values_;   // ranges in file_
  CocoWanted wanted_;
  Schema schema_;
  std::vector<CocoField> parts_;  // by schema field
  uint64_t fingerprint_ = 0;
};

}  // namespace

SourcePtr coco_source(File file, CocoAnnotations data, std::string folder,
                      const CocoWanted& wanted) {
  return std::make_shared<CocoSource>(std::move(file), std::move(data), std::move(folder), wanted);
}

}  // namespace headrace
