// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/folder/annotation_names.h"

#include <algorithm>
#include <array>
#include <string>

#include "headrace/base/text.h"

namespace headrace {
namespace {

constexpr std::array<std::string_view, 17> kTableSuffixes = {
    ".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".parquet", ".feather", ".arrow", ".xlsx",
    ".xls", ".mat", ".pkl",   ".pickle", ".db",   ".sqlite",  ".txt",     ".lst"};
constexpr std::array<std::string_view, 6> kPerRecord = {".txt", ".xml", ".json",
                                                        ".mat", ".pts", ".npy"};
// Documents that come with datasets, and tables about other records.
constexpr std::array<std::string_view, 8> kDocuments = {
    "readme",       "license",      "licence", "copying", "sample_submission",
    "requirements", "dataset_info", "citation"};
constexpr std::array<std::string_view, 9> kMaskEndings = {
    "_mask",   "-mask",         "_seg",         "_gt",   "_label",
    "_labels", "_segmentation", "_groundtruth", "_matte"};

std::string_view stem(std::string_view name) { return name.substr(0, name.rfind('.')); }

// The number of the first picture named `stem` plus a suffix; -1 if there is none.
int64_t picture_of(std::string_view stem, int64_t count, const SortedNames& pictures) {
  const std::string begin = std::string(stem) + ".";
  int64_t low = 0, high = count;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    pictures(middle) < begin ? low = middle + 1 : high = middle;
  }
  const bool found = low < count && pictures(low).starts_with(begin) &&
                     pictures(low).find('.', begin.size()) == std::string_view::npos;
  return found ? low : -1;
}

// "1" for "1_mask"; empty if the stem has no such suffix.
std::string_view without_mask_ending(std::string_view stem) {
  for (const std::string_view ending : kMaskEndings) {
    if (has_suffix(stem, ending)) return stem.substr(0, stem.size() - ending.size());
  }
  return {};
}

}  // namespace

bool may_be_annotations(std::string_view name) {
  const std::string lower = lower_case(name);
  if (std::ranges::any_of(kDocuments,
                          [&](std::string_view word) { return lower.starts_with(word); }))
    return false;
  return has_one_suffix(name, kTableSuffixes) || has_one_suffix(name, kPerRecord);
}

void add_unread(std::string_view folder, std::string_view name, int64_t count,
                const SortedNames& pictures, UnreadFiles& out) {
  if (has_one_suffix(name, kPerRecord) && picture_of(stem(name), count, pictures) >= 0) {
    if (++out.per_record == 1) out.first_per_record = joined(folder, name);
  } else if (has_one_suffix(name, kTableSuffixes) && out.tables.size() < out.kMaxTables) {
    out.tables.add(joined(folder, name));
  }
}

void count_masks(std::string_view folder, int64_t count, const SortedNames& pictures,
                 UnreadFiles& out) {
  for (int64_t i = 0; i < count; ++i) {
    const std::string_view name = pictures(i), of = without_mask_ending(stem(name));
    const bool twice = i > 0 && name.ends_with(".png") && stem(name) == stem(pictures(i - 1));
    if (!twice && (of.empty() || picture_of(of, count, pictures) < 0)) continue;
    if (++out.masks == 1) out.first_mask = joined(folder, name);
  }
}

}  // namespace headrace
