// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/folder/unread_files.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "headrace/base/error.h"
#include "headrace/base/registry.h"
#include "headrace/base/text.h"
#include "headrace/formats/folder/paired_folders.h"
#include "headrace/formats/folder/record_files.h"
#include "headrace/formats/folder/splits.h"
#include "headrace/formats/format.h"
#include "headrace/sources/readable_text.h"
#include "headrace/storage/file.h"
#include "headrace/storage/folder_entries.h"
#include "headrace/storage/paths.h"

namespace headrace {
namespace {

const ErrorCode kOneClass{
    "HR1401", ErrorKind::kConfig, "table next to a single folder",
    "The folder contains one folder of files and a table (CSV, JSON, .mat, a list), as is common "
    "for competitions and archives. Opened as class folders, it would have a single class, and the "
    "table would be ignored. Open the table, with root= for the folder of the files; or open the "
    "folder of the files directly, without the table. If a single class is intended, name it in "
    "classes=."};

constexpr size_t kHead = size_t{1} << 16;  // bytes of a file, to see what it contains
constexpr size_t kMaxLooks = 16;           // number of files to look at

std::string head_of(const std::string& path) {
  std::vector<uint8_t> first(kHead);
  const Result<size_t> count = read_prefix(path, first);
  return count ? std::string(first.begin(), first.begin() + std::ptrdiff_t(*count)) : std::string();
}

bool is_list(const std::string& path) {
  return has_suffix(path, ".txt") || has_suffix(path, ".lst");
}
bool is_json(const std::string& path) { return has_suffix(path, ".json"); }
bool is_lines(const std::string& path) {
  return has_suffix(path, ".jsonl") || has_suffix(path, ".ndjson");
}
bool is_csv(const std::string& path) {
  return has_suffix(path, ".csv") || has_suffix(path, ".tsv");
}

// The words of a text that have a media suffix; at most three.
std::vector<std::string> files_in(std::string_view text) {
  constexpr std::string_view kBetween = " \t\r\n,;|\"'";
  std::vector<std::string> out;
  while (!text.empty() && out.size() < 3) {
    const size_t end = std::min(text.find_first_of(kBetween), text.size());
    if (const std::string_view word = text.substr(0, end); has_media_suffix(word))
      out.emplace_back(word);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::vector<std::string> cells_of(std::string_view line) {
  constexpr std::string_view kDelimiters = ",;\t|";
  const auto* const most = std::ranges::max_element(
      kDelimiters, {}, [&](char c) { return std::ranges::count(line, c); });
  std::vector<std::string> out;
  for (size_t begin = 0; begin <= line.size();) {
    const size_t end = std::min(line.find(*most, begin), line.size());
    std::string_view cell = trimmed(line.substr(begin, end - begin));
    if (cell.size() > 1 && cell.starts_with('"') && cell.ends_with('"'))
      cell = cell.substr(1, cell.size() - 2);
    out.emplace_back(cell);
    begin = end + 1;
  }
  return out;
}

std::string field_of(const FolderListing& listing) { return std::string(listing.media->name); }

std::string call(const std::string& path, const std::string& rest = {}) {
  return "hr.open(\"" + path + "\"" + (rest.empty() ? "" : ", " + rest) + ")";
}

// The folders of the listing that contain files, and the root itself.
std::vector<std::string> folders_of_media(const std::string& root, const FolderListing& listing) {
  constexpr size_t kMax = 64;
  std::vector<std::string> out;
  for (int64_t i = 0; i < listing.paths.size() && out.size() < kMax; ++i) {
    if (i == 0 || listing.folders[i].count > 0) out.push_back(joined(root, listing.paths[i]));
  }
  return out;
}

// Code that reads a table whose files are in one of the folders.
std::string how_to_read(const std::string& table, const std::vector<std::string>& folders,
                        const FolderListing& listing) {
  const std::string records =
      "hr.records(" + field_of(listing) + "=[...], label=[...]) with what you read from it";
  const std::string text = head_of(table);
  if (is_json(table)) {
    const auto found = find_record_files(folders, files_in(text));
    const std::string& folder = found ? found->folder : folders.back();
    return text.find("\"annotations\"") == text.npos && text.find("\"images\"") == text.npos
               ? records
               : call(table, "images=\"" + folder + "\"");
  }
  if (!is_csv(table) && !is_lines(table) && !is_list(table)) {
    if (has_suffix(table, ".parquet") || has_suffix(table, ".arrow")) return call(table);
    return records;
  }
  std::string_view rest = text;
  const auto line = [&] {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view out = trimmed(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    return out;
  };
  const std::vector<std::string> columns = cells_of(line());
  std::vector<std::string> names = files_in(is_list(table) ? text : rest);
  if (names.empty() && is_csv(table)) names = cells_of(line());
  std::erase_if(names, [](const std::string& name) { return name.empty(); });
  const auto found = find_record_files(folders, names);
  const std::string own = parent_path(table);
  if (is_list(table)) {
    const bool first = !columns.empty() && has_media_suffix(trimmed(text).substr(
                                               0, trimmed(text).find_first_of(" \t\r\n,;")));
    if (!first) return records;
  }
  const std::string root = found && found->folder != own ? "root=\"" + found->folder + "\"" : "";
  return call(table, root) + (is_csv(table) ? " (columns " + quoted_list(columns, 6) + ")" : "");
}

// Tables that describe files: text and JSON only if they contain file names.
std::vector<std::string> tables_of(const std::string& root, const FolderListing& listing) {
  std::vector<std::string> out;
  size_t looks = 0;
  for (int64_t i = 0; i < listing.unread.tables.size(); ++i) {
    std::string path = joined(root, listing.unread.tables[i]);
    if (is_list(path) || is_json(path)) {
      if (++looks > kMaxLooks || files_in(head_of(path)).empty()) continue;
    }
    out.push_back(std::move(path));
  }
  // Among a competition's tables, the training table comes first.
  std::ranges::stable_sort(out, {}, [](const std::string& path) {
    const auto word = split_word(stem_of(path));
    return !word ? 1 : word->split == "train" ? 0 : 2;
  });
  return out;
}

std::string names_of(const std::string& root, const std::vector<std::string>& paths) {
  std::vector<std::string> names;
  for (const std::string& path : paths) names.push_back(path.substr(root.size() + 1));
  return quoted_list(names, 3);
}

// "0 0.5 0.5 0.1 0.1": a class and a box.
bool is_yolo(std::string_view text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  return std::ranges::count(trimmed(line), ' ') >= 4 &&
         line.find_first_not_of("0123456789.-+e \t\r") == line.npos;
}

// Code that reads the files that are named after records.
std::string how_to_read_per_record(const std::string& root, const FolderListing& listing) {
  const std::string& first = listing.unread.first_per_record;
  const std::string path = joined(root, first), folder = parent_path(path);
  const std::string field = field_of(listing);
  if (has_suffix(first, ".xml") && listing.media->kind == FieldKind::kImage)
    return voc_advice(folder, folder);
  if (has_suffix(first, ".txt") && is_yolo(head_of(path))) return yolo_advice(folder, folder);
  if (has_suffix(first, ".txt"))
    return "hr.records(" + field + "=[...], text=[...]) with their text";
  return "hr.records(" + field + "=[...], label=[...]) with what you read from them";
}

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

void refuse_class_beside_table(const std::string& root, const FolderListing& listing,
                               const std::string& only) {
  const std::vector<std::string> tables = tables_of(root, listing);
  if (tables.empty()) return;
  const std::vector<std::string> folders = folders_of_media(root, listing);
  raise(
      kOneClass,
      "\"" + only + "\" would be the only class of " + root + ", but " + names_of(root, tables) +
          " would not be read",
      how_to_read(tables.front(), folders, listing) + "; without it: " + call(joined(root, only)));
}

std::vector<std::string> warnings_of_unread(const std::string& root, const FolderListing& listing) {
  std::vector<std::string> out;
  const UnreadFiles& unread = listing.unread;
  if (const std::vector<std::string> tables = tables_of(root, listing); !tables.empty()) {
    out.push_back(names_of(root, tables) + " in " + root + (tables.size() > 1 ? " are" : " is") +
                  " not read with the folder: " +
                  how_to_read(tables.front(), folders_of_media(root, listing), listing));
  }
  if (unread.per_record > 0) {
    out.push_back(count_text(unread.per_record, "file") + " such as " + unread.first_per_record +
                  " in " + root + ", named as records are, " +
                  (unread.per_record > 1 ? "are" : "is") +
                  " not read: " + how_to_read_per_record(root, listing));
  }
  if (unread.masks > 0) {
    out.push_back(count_text(unread.masks, "image") + " such as " + unread.first_mask + " in " +
                  root + (unread.masks > 1 ? " are" : " is") +
                  " named after another image, as masks are, and counted as records: "
                  "hr.records(image=[...], mask=[...]) pairs them");
  }
  return out;
}

std::string advice_for_containers(const std::string& root) {
  std::vector<FolderEntry> entries = entries_in(root);
  std::ranges::sort(entries, {}, &FolderEntry::name);
  std::vector<std::string> paths, calls;
  for (const FolderEntry& entry : entries) {
    if (entry.name.starts_with('.')) continue;
    if (paths.size() == kMaxLooks) break;
    paths.push_back(joined(root, entry.name));
    if (is_list(paths.back()) && files_in(head_of(paths.back())).empty()) continue;
    const auto takes = [&](const FormatRecord* format) {
      return !format->general && format->recognizes(paths.back());
    };
    if (std::ranges::any_of(Registry<FormatRecord>::all(), takes))
      calls.push_back(call(paths.back()));
  }
  if (calls.empty()) return {};
  std::string out = "its files are containers: " + calls.front();
  for (size_t i = 1; i < calls.size() && i < 4; ++i) out += ", or " + calls[i];
  return out + (calls.size() > 1 ? "; hr.concat(...) makes one dataset of several" : "");
}

std::string advice_for_splits(const std::string& root, const std::string& place,
                              const FolderListing& listing, const std::vector<std::string>& folders,
                              const std::vector<std::string>& splits) {
  const auto train = std::ranges::find_if(splits, [](const std::string& name) {
    const auto word = split_word(name);
    return word && word->split == "train";
  });
  const std::string& split = train == splits.end() ? splits.front() : *train;
  const std::string at = joined(root, place);
  const auto wanted = split_word(split);
  for (const std::string& folder : folders) {
    if (!lower_case(folder).starts_with("annotation")) continue;
    constexpr size_t kSome = 256;
    auto entries = folder_entries(joined(at, folder), kSome);
    if (!entries) continue;
    std::ranges::sort(
        *entries, std::ranges::greater(),  // instances_ before captions_
        [](const FolderEntry& e) { return std::pair(e.name.starts_with("instances"), e.name); });
    for (const FolderEntry& entry : *entries) {
      const auto word = split_word(stem_of(entry.name));
      if (!is_json(entry.name) || !word || !wanted || word->split != wanted->split) continue;
      return "with their annotations: " +
             call(joined(joined(at, folder), entry.name), "images=\"" + joined(at, split) + "\"");
    }
  }
  const std::vector<std::string> tables = tables_of(root, listing);
  for (const std::string& table : tables) {
    const std::string folder = joined(at, split);
    return "with its table: " + how_to_read(table, folders_below(folder), listing);
  }
  return {};
}

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
