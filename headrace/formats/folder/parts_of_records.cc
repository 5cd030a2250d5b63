// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/folder/parts_of_records.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "headrace/base/error.h"
#include "headrace/base/text.h"
#include "headrace/storage/folder_entries.h"

namespace headrace {
namespace {

const ErrorCode kParts{
    "HR0419", ErrorKind::kConfig, "folders of pictures and of what belongs to them",
    "One folder is named for pictures (images) and one for what belongs to each of them (masks, "
    "labels), so they are parts of the same records and no classes. Join them: "
    "hr.join(hr.open(\"images\"), hr.open(\"masks\"), rename={\"image\": \"mask\"}, "
    "kinds={\"mask\": \"mask\"}). Text files of YOLO are written as COCO once. Folders that really "
    "are classes are named in classes=."};

constexpr std::array<std::string_view, 9> kPictures = {
    "image", "images", "img", "imgs", "jpegimages", "input", "inputs", "picture", "pictures"};
constexpr std::array<std::string_view, 14> kTargets = {
    "mask",         "masks",        "label",   "labels",      "annotation", "annotations",
    "gt",           "target",       "targets", "groundtruth", "seg",        "segmentationclass",
    "segmentation", "segmentations"};

template <size_t N>
const std::string* one_of(const std::array<std::string_view, N>& names,
                          const std::vector<std::string>& folders) {
  const auto found = std::ranges::find_if(folders, [&](const std::string& folder) {
    return std::ranges::find(names, lower_case(folder)) != names.end();
  });
  return found == folders.end() ? nullptr : &*found;
}

// Whether text files lie in the folder, or in the first folder of it.
bool holds_texts(const std::string& folder, int depth = 0) {
  constexpr size_t kSome = 64;
  const auto entries = folder_entries(folder, kSome);
  if (!entries) return false;
  for (const FolderEntry& entry : *entries) {
    if (!entry.is_folder && has_suffix(entry.name, ".txt")) return true;
    if (entry.is_folder && depth < 2) return holds_texts(joined(folder, entry.name), depth + 1);
  }
  return false;
}

}  // namespace

std::string annotations_in(const std::string& root, const std::vector<std::string>& folders) {
  constexpr size_t kSome = 64;
  for (const std::string& folder : folders) {
    const auto entries = folder_entries(joined(root, folder), kSome);
    if (!entries) continue;
    for (const FolderEntry& entry : *entries) {
      if (!entry.is_folder && has_suffix(entry.name, ".json"))
        return joined(joined(root, folder), entry.name);
    }
  }
  return {};
}

std::string yolo_advice() {
  return "write YOLO's labels as COCO once, and open that: hr.coco(\"train.json\", "
         "images=\"images/train\", boxes=\"xyxy\"); docs/formats/coco.md has the program";
}

void refuse_parts_of_records(const std::string& root, const std::vector<std::string>& folders) {
  const std::string* const pictures = one_of(kPictures, folders);
  const std::string* const targets = one_of(kTargets, folders);
  if (!pictures || !targets) return;
  const std::string first = joined(root, *pictures), second = joined(root, *targets);
  raise(kParts, "\"" + *pictures + "\" and \"" + *targets + "\" in " + root + " are no classes",
        holds_texts(second) ? yolo_advice()
                            : "hr.join(hr.open(\"" + first + "\"), hr.open(\"" + second +
                                  "\"), rename={\"image\": \"mask\"}, kinds={\"mask\": \"mask\"})");
}

}  // namespace headrace
