// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/folder/parts_of_records.h"

#include <algorithm>
#include <array>
#include <optional>
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

constexpr std::array<std::string_view, 8> kPictures = {"image", "images", "img",     "imgs",
                                                       "input", "inputs", "picture", "pictures"};
constexpr std::array<std::string_view, 16> kTargets = {
    "mask",        "masks",      "trimap",       "trimaps",      "matte",  "label",
    "labels",      "annotation", "annotations",  "gt",           "target", "targets",
    "groundtruth", "seg",        "segmentation", "segmentations"};

// Words of a name, in lower case: "PNGImages" is png, images; "leftImg8bit" left, img, bit.
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

// The words of a name that are not among those given; none where none of them is among them.
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
  std::string pictures, targets;
};

// Two folders of which one is named for pictures and one for targets (PNGImages, PedMasks), or one
// is named as the other and for targets (train, train_masks).
std::optional<Parts> parts_among(const std::vector<std::string>& folders) {
  for (const std::string& targets : folders) {
    const auto rest = words_without(kTargets, targets);
    if (!rest) continue;
    for (const std::string& folder : folders) {
      const bool pictures = folder != targets && words_without(kPictures, folder);
      if (pictures || (!rest->empty() && words_of(folder) == *rest)) return Parts{folder, targets};
    }
  }
  return {};
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

// The first JSON file of the folder, by name; empty where there is none.
std::string json_in(const std::string& folder) {
  constexpr size_t kSome = 64;
  std::string first;
  const auto entries = folder_entries(folder, kSome);
  if (!entries) return first;
  for (const FolderEntry& entry : *entries) {
    if (entry.is_folder || !has_suffix(entry.name, ".json")) continue;
    if (first.empty() || entry.name < first) first = entry.name;
  }
  return first.empty() ? first : joined(folder, first);
}

}  // namespace

std::string yolo_advice() {
  return "write YOLO's labels as COCO once, and open that: hr.coco(\"train.json\", "
         "images=\"images/train\", boxes=\"xyxy\"); docs/formats/coco.md has the program";
}

void refuse_parts_of_records(const std::string& root, const std::vector<std::string>& folders) {
  const std::optional<Parts> parts = parts_among(folders);
  if (!parts) return;
  const std::string first = joined(root, parts->pictures), second = joined(root, parts->targets);
  const std::string json = json_in(second);
  raise(kParts,
        "\"" + parts->pictures + "\" and \"" + parts->targets + "\" in " + root + " are no classes",
        !json.empty()
            ? "if its annotations are COCO's: hr.open(\"" + json + "\", images=\"" + first + "\")"
        : holds_texts(second)
            ? yolo_advice()
            : "hr.join(hr.open(\"" + first + "\"), hr.open(\"" + second +
                  "\"), rename={\"image\": \"mask\"}, kinds={\"mask\": \"mask\"})");
}

}  // namespace headrace
