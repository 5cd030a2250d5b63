// SPDX-License-Identifier: Apache-2.0
// COCO annotations: one JSON file that lists pictures, their boxes, outlines, keypoints, captions.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/registry.h"
#include "headrace/formats/coco/coco_values.h"
#include "headrace/formats/fingerprint.h"
#include "headrace/formats/labeled_files.h"
#include "headrace/formats/wording.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;

constexpr ErrorCode kCocoLacks{
    "HR0436", ErrorKind::kConfig, "not there for these COCO annotations",
    "What was asked for does not belong to the annotations: their pictures lie in none of the "
    "places "
    "where they were looked for (images= names the folder), or the file has no outlines, keypoints "
    "or captions."};
const Register<ErrorCode> registered_lacks(kCocoLacks);

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

// Those that are wrong when a row of the picture is.
bool is_of_rows(CocoField field) {
  return field != CocoField::kImage && field != CocoField::kImageId &&
         field != CocoField::kCaption && field != CocoField::kCaptions;
}

// Box conversions in the order and precision of torchvision.ops.box_convert.
void convert_boxes(std::vector<float>& boxes, std::string_view form) {
  if (form == "xywh") return;
  for (size_t at = 0; at < boxes.size(); at += 4) {
    float* box = &boxes[at];
    box[2] += box[0];
    box[3] += box[1];
    if (form != "cxcywh") continue;
    const float x = (box[0] + box[2]) / 2, y = (box[1] + box[3]) / 2;
    const float width = box[2] - box[0], height = box[3] - box[1];
    box[0] = x;
    box[1] = y;
    box[2] = width;
    box[3] = height;
  }
}

class CocoSource final : public Source {
 public:
  struct Wanted {
    bool masks = false, captions = false;
    int64_t keypoints = 0;
    bool keep_category_ids = false;
  };

  CocoSource(File file, CocoAnnotations data, std::string folder, const Wanted& wanted)
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
      add(CocoField::kBoxes, {.name = "boxes", .dtype = DType::kFloat32, .shape = {-1, 4}});
      add(CocoField::kLabels, {.name = "labels", .dtype = DType::kInt64, .shape = {-1}});
      add(CocoField::kCrowd, {.name = "crowd", .dtype = DType::kUInt8, .shape = {-1}});
      add(CocoField::kAreas, {.name = "areas", .dtype = DType::kFloat32, .shape = {-1}});
    }
    add(CocoField::kImageId, {.name = "image_id", .dtype = DType::kInt64});
    if (wanted_.masks) {
      add(CocoField::kMasks, {.name = "masks", .dtype = DType::kUInt8, .shape = {-1, -1, -1}});
    }
    if (wanted_.keypoints > 0) {
      add(CocoField::kKeypoints,
          {.name = "keypoints", .dtype = DType::kFloat32, .shape = {-1, wanted_.keypoints, 3}});
    }
    if (wanted_.captions) {
      add(CocoField::kCaption, {.name = "caption", .kind = FieldKind::kText});
      add(CocoField::kCaptions, {.name = "captions", .kind = FieldKind::kText});
    }
    fingerprint_ = make_fingerprint();
  }

  int64_t size() const override { return static_cast<int64_t>(data_.images.size()); }
  const Schema& schema() const override { return schema_; }
  ReadStyle read_style() const override { return ReadStyle::kFiles; }
  uint64_t fingerprint() const override { return fingerprint_; }
  std::string root() const override { return folder_.empty() ? "." : folder_; }

  void read(std::span<const int64_t> indices, const std::vector<bool>& wanted,
            std::span<RecordData> out) const override {
    for (size_t i = 0; i < out.size(); ++i) {
      begin_record(indices[i], parts_.size(), parts_.size(), out[i]);
      for (size_t f = 0; f < parts_.size() && out[i].result; ++f) {
        if (wanted[f]) read_part(indices[i], f, out[i]);
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
    if (!data_.has_boxes || wanted_.keep_category_ids) return names;
    for (const CocoCategory& category : data_.categories) names.push_back(category.name);
    return names;
  }

  std::string description() const override {
    std::string out = "coco " + file_.path() + " (" + counted(size(), "record");
    if (data_.has_boxes) {
      out += ", " + counted(data_.row_begins.back(), "box", "boxes");
      out += ", " + counted(static_cast<int64_t>(data_.categories.size()), "class", "classes");
    }
    if (wanted_.captions) out += ", " + counted(data_.caption_begins.back(), "caption");
    if (!data_.problems.empty()) {
      out += ", " + counted(static_cast<int64_t>(data_.problems.size()), "record") +
             " with bad annotations";
    }
    if (data_.orphans > 0) {
      out += ", " + counted(data_.orphans, "annotation") + " of unlisted pictures left out";
    }
    if (data_.over_edge > 0) {
      out += ", " + counted(data_.over_edge, "box", "boxes") + " over the edge";
    }
    return out + ")";
  }

 private:
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
        return read_file_field(key(record), record, field, field, out);
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

  // Whether the rows of the picture are good; else the result says why not.
  bool check_rows(int64_t record, RecordData& out) const {
    const CocoProblem* problem = data_.problem_of(record);
    if (!problem) return true;
    out.result = Error{.code = &kBadCocoRecord,
                       .what = problem->what,
                       .where = {.file = file_.path(),
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
    // Values that stay in the file: their lengths tell most edits.
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
  std::string folder_;  // of the pictures, with its slash; empty: the current one
  CocoValues values_;   // refers to file_
  Wanted wanted_;
  Schema schema_;
  std::vector<CocoField> parts_;  // as the schema
  uint64_t fingerprint_ = 0;
};

std::string with_slash(const fs::path& folder) {
  std::string out = folder.lexically_normal().string();
  if (out.empty() || out == ".") return {};
  if (!out.ends_with('/')) out += '/';
  return out;
}

// The names of annotation files end in that of their pictures' folder: instances_train2017.json.
std::vector<fs::path> likely_folders(const std::string& path) {
  const fs::path file(path), here = file.parent_path();
  const std::string stem = file.stem().string();
  const size_t mark = stem.rfind('_');
  const std::string split = mark == std::string::npos ? stem : stem.substr(mark + 1);
  std::vector<fs::path> out{here, here / "images"};
  if (!split.empty()) {
    out.insert(out.end(), {here / split, here / "images" / split, here / ".." / split,
                           here / ".." / "images" / split});
  }
  out.insert(out.end(), {here / ".." / "images", here / ".."});
  return out;
}

// The first likely folder that has one of the first pictures.
std::string find_folder(const std::string& path, const NameList& names) {
  constexpr int64_t kTried = 16;
  std::vector<std::string> tried;
  for (const fs::path& folder : likely_folders(path)) {
    const std::string prefix = with_slash(folder);
    for (int64_t i = 0; i < std::min(kTried, names.size()); ++i) {
      std::error_code ignored;
      if (names[i].starts_with('/') ||
          fs::is_regular_file(prefix + std::string(names[i]), ignored)) {
        return prefix;
      }
    }
    tried.push_back(prefix.empty() ? "." : prefix);
  }
  raise(kCocoLacks,
        "no picture such as " + std::string(names[0]) + " in " + quoted_list(tried, tried.size()),
        "images=\"FOLDER\" says where they are");
}

std::string folder_argument(const std::string& folder) {
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) {
    raise(kCocoLacks, "images=\"" + folder + "\" is no folder", "give the folder of the pictures");
  }
  return with_slash(folder);
}

bool is_coco(const std::string& path) {
  if (!path.ends_with(".json") && !path.ends_with(".JSON")) return false;
  std::vector<uint8_t> first(size_t{64} << 10);
  const Result<size_t> count = read_prefix(path, first);
  return count && looks_like_coco({reinterpret_cast<const char*>(first.data()), *count});
}

// How many points an annotation has, by the categories or by the first that has some.
int64_t keypoints_of(const CocoAnnotations& data, const File& file) {
  int64_t most = 0;
  for (const CocoCategory& category : data.categories) most = std::max(most, category.keypoints);
  for (size_t r = 0; r < data.keypoints.size() && most == 0; ++r) {
    if (data.keypoints[r].bytes == 0) continue;
    Result<int64_t> numbers = CocoValues(file).count_numbers(data.keypoints[r]);
    if (!numbers) throw Exception(std::move(numbers.error()));
    most = *numbers / 3;
  }
  constexpr int64_t kMost = 1 << 16;
  return std::min(most, kMost);
}

SourcePtr open_coco(const std::string& path, const Arguments& arguments, const Progress& progress) {
  Result<File> file = File::open(path);
  if (!file) throw Exception(std::move(file.error()));
  CocoSource::Wanted wanted;
  wanted.keep_category_ids = arguments.text("category_ids") == "keep";
  const CocoOptions options{.keep_category_ids = wanted.keep_category_ids,
                            .skip_empty = arguments.flag("skip_empty"),
                            .skip_crowd = arguments.flag("skip_crowd"),
                            .drop_orphans = arguments.text("orphans") == "drop",
                            .min_size = arguments.number("min_size"),
                            .min_area = arguments.number("min_area")};
  CocoAnnotations data = read_coco(*file, options, progress);
  if (data.images.empty()) {
    raise(kCocoLacks, "no picture in " + path,
          options.skip_empty ? "skip_empty=True leaves out those without boxes" : "");
  }
  const bool captions = arguments.is_none("captions") || arguments.flag("captions");
  wanted.captions = captions && !data.captions.empty();
  if (captions && !arguments.is_none("captions") && data.captions.empty()) {
    raise(kCocoLacks, "captions=True, and " + path + " has none", "captions_*.json has them");
  }
  wanted.masks = arguments.flag("masks");
  if (wanted.masks && data.segmentations.empty()) {
    raise(kCocoLacks, "masks=True, and no annotation of " + path + " has a segmentation",
          "instances_*.json has them");
  }
  if (arguments.flag("keypoints")) {
    wanted.keypoints = keypoints_of(data, *file);
    if (data.keypoints.empty() || wanted.keypoints == 0) {
      raise(kCocoLacks, "keypoints=True, and no annotation of " + path + " has any",
            "person_keypoints_*.json has them");
    }
  }
  convert_boxes(data.boxes, arguments.text("boxes"));
  std::string folder = arguments.is_none("images") ? find_folder(path, data.file_names)
                                                   : folder_argument(arguments.text("images"));
  return std::make_shared<CocoSource>(std::move(*file), std::move(data), std::move(folder), wanted);
}

Param flag(std::string_view name, std::string_view doc) {
  return {.name = name, .type = ParamType::kBool, .doc = doc, .fallback = false};
}

const FormatRecord kCoco{
    .name = "coco",
    .doc =
        "COCO annotations (.json) and the pictures that they list, in the order of their ids. "
        "Fields: "
        "image; boxes (-1, 4) float32, labels (-1) int64, crowd (-1) uint8, areas (-1) float32; "
        "image_id; where wanted masks (-1, H, W) uint8, keypoints (-1, K, 3) float32; caption and "
        "captions. Masks equal pycocotools'.",
    .example = "hr.coco(\"annotations/instances_train2017.json\", images=\"train2017/\")",
    .params =
        {{.name = "images",
          .type = ParamType::kString,
          .doc = "The folder of the pictures. None: the file's own, images/ in it, or the one "
                 "that the file is named for, beside it or above (instances_train2017.json: "
                 "../train2017)."},
         {.name = "boxes",
          .type = ParamType::kString,
          .doc = "How a box is given, in pixels: corners, corner and size, or centre and size.",
          .fallback = std::string("xyxy"),
          .choices = {"xyxy", "xywh", "cxcywh"}},
         {.name = "category_ids",
          .type = ParamType::kString,
          .doc = "remap: labels are 0, 1, 2, ... in the order of the ids, as classes are. keep: "
                 "labels are the ids.",
          .fallback = std::string("remap"),
          .choices = {"remap", "keep"}},
         flag("masks", "Draw outlines and run-length codes as the field masks."),
         flag("keypoints", "Deliver the field keypoints: x, y, visibility."),
         {.name = "captions",
          .type = ParamType::kBool,
          .doc = "Deliver the fields caption (the first, text) and captions (all, as a JSON "
                 "list). None: where the file has any."},
         flag("skip_empty", "Leave out pictures without a box, after all that is left out."),
         flag("skip_crowd", "Leave out boxes of crowds (iscrowd 1)."),
         {.name = "min_size",
          .type = ParamType::kFloat,
          .doc = "Leave out boxes whose width or height is smaller, in pixels.",
          .fallback = 0.0,
          .minimum = 0},
         {.name = "min_area",
          .type = ParamType::kFloat,
          .doc = "Leave out annotations whose area is smaller, in square pixels.",
          .fallback = 0.0,
          .minimum = 0},
         {.name = "orphans",
          .type = ParamType::kString,
          .doc = "What becomes of annotations whose picture is not listed.",
          .fallback = std::string("refuse"),
          .choices = {"refuse", "drop"}}},
    .recognizes = is_coco,
    .open = open_coco};
const Register<FormatRecord> registered(kCoco);

}  // namespace
}  // namespace headrace
