// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/folder/paired_folders.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "headrace/base/error.h"
#include "headrace/base/text.h"
#include "headrace/formats/folder/record_files.h"
#include "headrace/sources/readable_text.h"
#include "headrace/storage/file.h"
#include "headrace/storage/folder_entries.h"
#include "headrace/storage/paths.h"

namespace headrace {
namespace {

const ErrorCode kParts{
    "HR0419", ErrorKind::kConfig, "images and annotations in separate folders",
    "One folder contains images and another one their annotations (masks, labels), judging by "
    "their names, so they are parts of the same records, not classes. Join them: "
    "hr.join(hr.open(\"images\"), hr.open(\"masks\"), rename={\"image\": \"mask\"}, "
    "kinds={\"mask\": \"mask\"}). Convert YOLO text files and VOC .xml to COCO once: "
    "hr.coco_from_yolo, hr.coco_from_voc. If the folders really are classes, name them in "
    "classes=."};

constexpr std::array<std::string_view, 8> kPictures = {"image", "images", "img",     "imgs",
                                                       "input", "inputs", "picture", "pictures"};
constexpr std::array<std::string_view, 16> kTargets = {
    "mask",        "masks",      "trimap",       "trimaps",      "matte",  "label",
    "labels",      "annotation", "annotations",  "gt",           "target", "targets",
    "groundtruth", "seg",        "segmentation", "segmentations"};

// Words of a name, in lower case: "PNGImages" gives png, images; "leftImg8bit" gives left, img,
// bit.
std::vector<std::string> words_of(std::string_view name) {
  const auto upper = [](char c) { return c >= 'A' && c <= 'Z'; };
  const auto lower = [](char c) { return c >= 'a' && c <= 'z'; };
  std::vector<std::string> out;
  bool inside = false;
  for (size_t i = 0; i < name.size(); ++i) {
    const bool letter = upper(name[i]) || lower(name[i]);
    const bool begins = upper(name[i]) && i > 0 &&
                        (lower(name[i - 1]) || (i + 1 < name.size() && lower(name[i + 1])));
    if (letter && (!inside || begins)) out.emplace_back();
    if (letter) out.back() += lower_case(name[i]);
    inside = letter;
  }
  return out;
}

// The words of a name without the given ones; none if it contains none of the given ones.
template <size_t N>
std::optional<std::vector<std::string>> words_without(const std::array<std::string_view, N>& given,
                                                      const std::string& name) {
  std::vector<std::string> words = words_of(name);
  const auto erased = std::erase_if(words, [&](const std::string& word) {
    return std::ranges::find(given, word) != given.end();
  });
  if (erased == 0) return {};
  return words;
}

struct Parts {
  std::string pictures;
  std::vector<std::string> targets;
};

// The first file of the folder with one of the suffixes, files before folders and both by name; its
// path below the folder, at most `depth` folders deep. Empty if there is none.
std::string first_file(const std::string& folder, std::span<const std::string_view> suffixes,
                       int depth = 2) {
  constexpr size_t kSome = 64;
  auto entries = folder_entries(folder, kSome);
  if (!entries) return {};
  std::ranges::sort(*entries, {},
                    [](const FolderEntry& e) { return std::pair(e.is_folder, e.name); });
  for (const FolderEntry& entry : *entries) {
    if (entry.name.starts_with('.')) continue;
    if (!entry.is_folder && has_one_suffix(entry.name, suffixes)) return entry.name;
    if (!entry.is_folder || depth == 0) continue;
    const std::string found = first_file(joined(folder, entry.name), suffixes, depth - 1);
    if (!found.empty()) return joined(entry.name, found);
  }
  return {};
}

constexpr std::array<std::string_view, 1> kJson = {".json"}, kTexts = {".txt"}, kXml = {".xml"};
constexpr std::array<std::string_view, 6> kImages = {".png",  ".jpg", ".jpeg",
                                                     ".webp", ".tif", ".bmp"};

// A folder named for pictures and one for targets (PNGImages, PedMasks), or one with the same name
// plus a word for targets (train, train_masks).
std::optional<Parts> find_paired_folders(const std::string& root,
                                         const std::vector<std::string>& folders) {
  Parts out;
  for (const std::string& targets : folders) {
    const auto rest = words_without(kTargets, targets);
    if (!rest) continue;
    for (const std::string& folder : folders) {
      const bool pictures = folder != targets && words_without(kPictures, folder);
      if (!pictures && (rest->empty() || words_of(folder) != *rest)) continue;
      if (first_file(joined(root, folder), kImages).empty()) continue;  // ImageSets
      if (out.pictures.empty()) out.pictures = folder;
      out.targets.push_back(targets);
      break;
    }
  }
  if (out.pictures.empty()) return {};
  return out;
}

// The call that pairs the pictures of two folders by name: for the first split that both have, or
// for the whole folders.
std::string call_of_pairs(std::string pictures, std::string masks) {
  std::string first = first_file(masks, kImages);
  if (const size_t slash = first.find('/'); slash != std::string::npos) {
    const std::string below = first.substr(0, slash);
    first.erase(0, slash + 1);
    masks = joined(masks, below);
    if (is_folder(joined(pictures, below))) pictures = joined(pictures, below);
  }
  const std::vector<std::string> places{pictures}, stems{first.substr(0, first.rfind('.'))};
  if (!find_record_files(places, stems)) {
    return "hr.records(image=[...], mask=[...]) with the paths of both in the same order, because "
           "\"" +
           joined(masks, first) + "\" is named differently from its image";
  }
  return "hr.join(hr.open(\"" + pictures + "\"), hr.open(\"" + masks +
         "\"), rename={\"image\": \"mask\"}, kinds={\"mask\": \"mask\"})";
}

// The call that reads boxes from a folder of annotations; empty if it has no known ones.
std::string call_of_boxes(const std::string& pictures, const std::string& targets) {
  if (const std::string json = first_file(targets, kJson, 0); !json.empty()) {
    return "if its annotations are COCO's: hr.open(\"" + joined(targets, json) + "\", images=\"" +
           pictures + "\")";
  }
  if (!first_file(targets, kXml).empty()) return voc_advice(pictures, targets);
  const bool masks = !first_file(targets, kImages).empty();  // text files are then lists
  return masks || first_file(targets, kTexts).empty() ? "" : yolo_advice(pictures, targets);
}

}  // namespace

std::string yolo_advice(std::string pictures, std::string labels) {
  const auto has_split = [&](std::string_view name) {
    return is_folder(joined(labels, name)) && is_folder(joined(pictures, name));
  };
  constexpr std::array<std::string_view, 3> kSplits = {"train", "train2017", "val"};
  if (const auto split = std::ranges::find_if(kSplits, has_split); split != kSplits.end()) {
    pictures = joined(pictures, *split);
    labels = joined(labels, *split);
  }
  return "write YOLO's labels as COCO once: hr.coco(hr.coco_from_yolo(\"" + pictures + "\", \"" +
         labels + "\", \"train.json\"), images=\"" + pictures +
         "\"); also pass names= from data.yaml";
}

std::string voc_advice(const std::string& pictures, const std::string& annotations) {
  const std::string train = joined(parent_path(annotations), "ImageSets/Main/train.txt");
  const std::string ids = is_file(train) ? ", ids=\"" + train + "\"" : "";
  return "write VOC's .xml as COCO once: hr.coco(hr.coco_from_voc(\"" + pictures + "\", \"" +
         annotations + "\", \"train.json\"" + ids + "), images=\"" + pictures + "\")";
}

void refuse_paired_folders(const std::string& root, const std::vector<std::string>& folders) {
  const std::optional<Parts> parts = find_paired_folders(root, folders);
  if (!parts) return;
  const std::string pictures = joined(root, parts->pictures);
  std::string boxes, masks;
  for (const std::string& name : parts->targets) {
    const std::string targets = joined(root, name);
    if (boxes.empty()) boxes = call_of_boxes(pictures, targets);
    if (masks.empty() && !first_file(targets, kImages).empty())
      masks = call_of_pairs(pictures, targets);
  }
  std::vector<std::string> names{parts->pictures};
  names.insert(names.end(), parts->targets.begin(), parts->targets.end());
  raise(kParts, quoted_list(names) + " in " + root + " are not classes",
        boxes.empty()   ? masks.empty() ? "hr.records(image=[...], label=[...])" : masks
        : masks.empty() ? boxes
                        : "for masks " + masks + "; for boxes " + boxes);
}

}  // namespace headrace
