// SPDX-License-Identifier: Apache-2.0
// COCO annotations: one JSON file that lists pictures, their boxes, outlines, keypoints, captions.
#include "headrace/formats/coco/coco.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/registry.h"
#include "headrace/base/text.h"
#include "headrace/formats/coco/coco_values.h"
#include "headrace/formats/folder/record_files.h"
#include "headrace/formats/format.h"
#include "headrace/sources/named_files.h"
#include "headrace/sources/readable_text.h"
#include "headrace/storage/file.h"
#include "headrace/storage/paths.h"

namespace headrace {
namespace {

const ErrorCode kCocoLacks{
    "HR0436", ErrorKind::kConfig, "not available for these COCO annotations",
    "The arguments do not match the annotations: their images were not found in any of the usual "
    "folders (pass the folder as images=), or the file has no outlines, keypoints or captions."};

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

std::string with_slash(const std::string& folder) {
  std::string out = normal_path(folder);
  if (out.empty() || out == ".") return {};
  if (!out.ends_with('/')) out += '/';
  return out;
}

// Annotation files are named after their pictures' folder: instances_train2017.json.
std::vector<std::string> likely_folders(const std::string& path) {
  const std::string here = parent_path(path), stem(stem_of(path));
  const size_t mark = stem.rfind('_');
  const std::string split = mark == std::string::npos ? stem : stem.substr(mark + 1);
  std::vector<std::string> out{here, joined(here, "images")};
  if (!split.empty()) {
    for (const std::string& below :
         {split, "images/" + split, "../" + split, "../images/" + split}) {
      out.push_back(joined(here, below));
    }
  }
  out.insert(out.end(), {joined(here, "../images"), joined(here, "..")});
  return out;
}

// Whether one of the first pictures is in the folder.
bool holds_first(const std::string& folder, const NameList& names) {
  constexpr int64_t kTried = 16;
  for (int64_t i = 0; i < std::min(kTried, names.size()); ++i) {
    if (names[i].starts_with('/') || is_file(folder + std::string(names[i]))) return true;
  }
  return false;
}

[[noreturn]] void raise_no_pictures(const std::string& path, const NameList& names,
                                    const std::vector<std::string>& tried) {
  for (const std::string& near : {parent_path(path), parent_path(parent_path(path))}) {
    for (const std::string& folder : folders_below(near)) {
      if (!holds_first(with_slash(folder), names)) continue;
      raise(kCocoLacks, "no image such as " + std::string(names[0]) + " in " + quoted_list(tried),
            "hr.open(\"" + path + "\", images=\"" + folder + "\")");
    }
  }
  raise(kCocoLacks,
        "no image such as " + std::string(names[0]) + " in " + quoted_list(tried, tried.size()),
        "pass images=\"FOLDER\"");
}

// The first likely folder that contains one of the first pictures.
std::string find_folder(const std::string& path, const NameList& names) {
  std::vector<std::string> tried;
  for (const std::string& folder : likely_folders(path)) {
    std::string prefix = with_slash(folder);
    if (holds_first(prefix, names)) return prefix;
    tried.push_back(prefix.empty() ? "." : prefix);
  }
  raise_no_pictures(path, names, tried);
}

std::string given_folder(const std::string& path, const std::string& folder,
                         const NameList& names) {
  if (!is_folder(folder)) {
    raise(kCocoLacks, "images=\"" + folder + "\" is not a folder", "give the folder of the images");
  }
  std::string prefix = with_slash(folder);
  if (!is_async(folder) && !holds_first(prefix, names)) raise_no_pictures(path, names, {folder});
  return prefix;
}

bool is_coco(const std::string& path) {
  if (!path.ends_with(".json") && !path.ends_with(".JSON")) return false;
  std::vector<uint8_t> first(size_t{64} << 10);
  const Result<size_t> count = read_prefix(path, first);
  return count && looks_like_coco({reinterpret_cast<const char*>(first.data()), *count});
}

// How many points an annotation has, from the categories or from the first annotation with some.
int64_t keypoints_of(const CocoAnnotations& data, const File& file) {
  int64_t most = 0;
  for (const CocoCategory& category : data.categories) most = std::max(most, category.keypoints);
  for (size_t r = 0; r < data.keypoints.size() && most == 0; ++r) {
    if (data.keypoints[r].bytes == 0) continue;
    Result<int64_t> numbers = CocoValues(file).count_numbers(data.keypoints[r]);
    if (!numbers) throw Exception(std::move(numbers.error()));
    most = *numbers / 3;
  }
  constexpr int64_t kMax = 1 << 16;
  return std::min(most, kMax);
}

SourcePtr open_coco(const std::string& path, const Arguments& arguments, const Progress& progress) {
  if (is_folder(path)) {
    raise(kCocoLacks, "\"" + path + "\" is a folder",
          "name the file: \"" + with_slash(path) + "annotations/instances_train2017.json\"");
  }
  Result<File> file = File::open(path);
  if (!file) throw Exception(std::move(file.error()));
  CocoWanted wanted;
  wanted.keep_category_ids = arguments.text("category_ids") == "keep";
  wanted.check_sizes = arguments.flag("check_sizes");
  const CocoOptions options{.keep_category_ids = wanted.keep_category_ids,
                            .skip_empty = arguments.flag("skip_empty"),
                            .skip_crowd = arguments.flag("skip_crowd"),
                            .drop_orphans = arguments.text("orphans") == "drop",
                            .min_size = arguments.number("min_size"),
                            .min_area = arguments.number("min_area")};
  CocoAnnotations data = read_coco(*file, options, progress);
  if (data.images.empty()) {
    raise(kCocoLacks, "no image in " + path,
          options.skip_empty ? "skip_empty=True skips images without boxes" : "");
  }
  const bool captions = arguments.is_none("captions") || arguments.flag("captions");
  wanted.captions = captions && !data.captions.empty();
  if (captions && !arguments.is_none("captions") && data.captions.empty()) {
    raise(kCocoLacks, "captions=True, but " + path + " has no captions", "open captions_*.json");
  }
  wanted.masks = arguments.flag("masks");
  if (wanted.masks && data.segmentations.empty()) {
    raise(kCocoLacks, "masks=True, but no annotation of " + path + " has a segmentation",
          "open instances_*.json");
  }
  if (arguments.flag("keypoints")) {
    wanted.keypoints = keypoints_of(data, *file);
    if (data.keypoints.empty() || wanted.keypoints == 0) {
      raise(kCocoLacks, "keypoints=True, but no annotation of " + path + " has keypoints",
            "open person_keypoints_*.json");
    }
  }
  if (!arguments.flag("allow_outside")) refuse_outside(data.file_names, path);
  convert_boxes(data.boxes, arguments.text("boxes"));
  wanted.box_format = box_format_from_name(arguments.text("boxes"));
  std::string folder = arguments.is_none("images")
                           ? find_folder(path, data.file_names)
                           : given_folder(path, arguments.text("images"), data.file_names);
  return coco_source(std::move(*file), std::move(data), std::move(folder), wanted);
}

Param flag(std::string_view name, std::string_view doc) {
  return {.name = name, .type = ParamType::kBool, .doc = doc, .fallback = false};
}

const FormatRecord kCoco{
    .name = "coco",
    .doc =
        "COCO annotations (.json) and the images that they list, ordered by id. Fields: image; "
        "boxes (-1, 4) float32, labels (-1) int64, crowd (-1) uint8, areas (-1) float32; image_id; "
        "optionally masks (-1, H, W) uint8, keypoints (-1, K, 3) float32, caption and captions. "
        "Masks equal pycocotools'.",
    .example = "hr.coco(\"annotations/instances_train2017.json\", images=\"train2017/\")",
    .params =
        {{.name = "images",
          .type = ParamType::kString,
          .doc = "The folder of the images. None: the folder of the file, images/ in it, or a "
                 "folder named after the file, next to it or one level up "
                 "(instances_train2017.json: ../train2017).",
          .decides = Affects::kPlace},
         {.name = "boxes",
          .type = ParamType::kString,
          .doc = "Format of the boxes, in pixels: corners, corner and size, or center and size.",
          .fallback = std::string("xyxy"),
          .choices = {"xyxy", "xywh", "cxcywh"}},
         {.name = "category_ids",
          .type = ParamType::kString,
          .doc = "\"remap\": labels and classes are numbered 0, 1, 2, ... in the order of the "
                 "ids. \"keep\": labels are the ids, as torchvision's detectors expect (0 is the "
                 "background); classes[id] is the name.",
          .fallback = std::string("remap"),
          .choices = {"remap", "keep"}},
         flag("masks",
              "Whether to deliver the field masks, rasterized from polygons and run-length codes."),
         flag("keypoints", "Whether to deliver the field keypoints: x, y, visibility."),
         {.name = "captions",
          .type = ParamType::kBool,
          .doc = "Whether to deliver the fields caption (the first one, text) and captions (all, "
                 "as a JSON list). None: if the file has captions."},
         flag("skip_empty",
              "Whether to skip images without boxes, after the other filters have been applied."),
         flag("skip_crowd", "Whether to drop crowd boxes (iscrowd 1)."),
         {.name = "min_size",
          .type = ParamType::kFloat,
          .doc = "Minimum width and height of a box, in pixels; smaller boxes are dropped.",
          .fallback = 0.0,
          .minimum = 0},
         {.name = "min_area",
          .type = ParamType::kFloat,
          .doc = "Minimum area of an annotation, in square pixels; smaller ones are dropped.",
          .fallback = 0.0,
          .minimum = 0},
         {.name = "check_sizes",
          .type = ParamType::kBool,
          .doc = "Whether an image with boxes, masks or keypoints is a bad record if its size "
                 "differs from the one in the annotation file.",
          .fallback = true},
         {.name = "orphans",
          .type = ParamType::kString,
          .doc = "What to do with annotations of images that are not listed.",
          .fallback = std::string("error"),
          .choices = {"error", "drop"}},
         outside_param()},
    .recognizes = is_coco,
    .open = open_coco};
const Register<FormatRecord> registered_coco_format(kCoco);

}  // namespace
}  // namespace headrace
