// SPDX-License-Identifier: Apache-2.0
// A text file that lists pictures and their labels, one per line: "cats/1.jpg 3" or
// "cats/1.jpg,cat".
#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/number_text.h"
#include "headrace/base/registry.h"
#include "headrace/base/text.h"
#include "headrace/formats/folder/folder_listing.h"
#include "headrace/formats/folder/record_files.h"
#include "headrace/formats/format.h"
#include "headrace/formats/list_file/line_mistake.h"
#include "headrace/formats/manifest/manifest_table.h"
#include "headrace/sources/classes.h"
#include "headrace/sources/fingerprint.h"
#include "headrace/sources/labeled_files.h"
#include "headrace/sources/name_list.h"
#include "headrace/sources/readable_text.h"
#include "headrace/storage/file.h"

namespace headrace {
namespace {

const ErrorCode kBadList{
    "HR0410", ErrorKind::kData, "invalid file list",
    "Each line of a list file contains a path and a label, separated as in the first line: by a "
    "comma (in .csv also a semicolon), a tab or spaces. Or every line contains only a path. Paths "
    "are relative to the list's folder. Empty lines, lines that begin with #, and a header are "
    "skipped. Labels are either all integers or all names."};

constexpr size_t kMaxBytes = size_t{1} << 30;
constexpr size_t kLongestPath = 4096;

[[noreturn]] void bad_line(const std::string& file, int64_t line, std::string what,
                           std::string hint = "a line is: path, separator, label") {
  throw Exception(Error{.code = &kBadList,
                        .what = "line " + std::to_string(line) + ": " + std::move(what),
                        .where = Where{.file = file},
                        .hint = std::move(hint)});
}

std::optional<int64_t> integer_in(std::string_view text) {
  return number_from<int64_t>(text.substr(text.starts_with('+') ? 1 : 0));
}

// "0.5": a number to predict, not a class.
bool is_fraction(std::string_view text) { return number_from<double>(text) && !integer_in(text); }

// The separator of path and label; determined from the first line, for all lines.
enum class Separator { kComma, kSemicolon, kTab, kBlank, kNone };

struct Line {
  std::string_view path, label;
};

std::string_view unquoted(std::string_view text) {
  const bool quoted = text.size() >= 2 && text.front() == '"' && text.back() == '"';
  return quoted ? text.substr(1, text.size() - 2) : text;
}

// Splits at the last separator, so that a path may contain it. None: the line has no separator.
std::optional<Line> split(std::string_view line, Separator separator) {
  if (separator == Separator::kNone) return Line{line, {}};
  const bool table = separator == Separator::kComma || separator == Separator::kSemicolon;
  const std::string_view marks = separator == Separator::kComma       ? ","
                                 : separator == Separator::kSemicolon ? ";"
                                 : separator == Separator::kTab       ? "\t"
                                                                      : " \t";
  if (table && line.starts_with('"')) {  // RFC 4180, without "" inside
    const size_t quote = line.find('"', 1);
    if (quote == std::string_view::npos) return {};
    const std::string_view rest = trimmed(line.substr(quote + 1));
    if (!rest.starts_with(marks)) return {};
    return Line{line.substr(1, quote - 1), unquoted(trimmed(rest.substr(1)))};
  }
  const size_t at = line.find_last_of(marks);
  if (at == std::string_view::npos) return {};
  return Line{trimmed(line.substr(0, at)), unquoted(trimmed(line.substr(at + 1)))};
}

Separator separator_of(std::string_view line, bool csv) {
  if (csv && line.find(',') != std::string_view::npos) return Separator::kComma;
  if (csv && line.find(';') != std::string_view::npos) return Separator::kSemicolon;
  if (line.find('\t') != std::string_view::npos) return Separator::kTab;
  if (const auto comma = split(line, Separator::kComma);
      comma && !comma->label.empty() && comma->label.find(' ') == std::string_view::npos) {
    return Separator::kComma;
  }
  // A path without a label may contain spaces: then the part after the last space ends like a
  // picture's name.
  if (const auto blank = split(line, Separator::kBlank); blank && !has_media_suffix(blank->label)) {
    return Separator::kBlank;
  }
  return Separator::kNone;
}

// A header as written by spreadsheets: "path,label".
bool names_columns(const Line& line) {
  if (line.path.find('.') != std::string_view::npos) return false;
  return std::ranges::find(kLabelHeadings, lower_case(line.label)) != kLabelHeadings.end() ||
         (is_heading_of_files(line.path) && !line.label.empty() && !integer_in(line.label));
}

// Whether only the second line's path has a media suffix, and the first line's label is not a
// number: then the first line is a header, regardless of its words.
bool is_other_than(const Line& first, const Line& second) {
  return has_media_suffix(second.path) && !has_media_suffix(first.path) && !integer_in(first.label);
}

// Iterates over the lines, without comments and blank lines.
class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {
    if (rest_.starts_with("\xEF\xBB\xBF")) rest_.remove_prefix(3);
  }
  bool next() {
    while (!rest_.empty()) {
      const size_t end = std::min(rest_.find('\n'), rest_.size());
      text = trimmed(rest_.substr(0, end));
      rest_.remove_prefix(std::min(end + 1, rest_.size()));
      ++number;
      if (!text.empty() && !text.starts_with('#')) return true;
    }
    return false;
  }
  std::string_view text;
  int64_t number = 0;

 private:
  std::string_view rest_;
};

// The first such line of a list.
struct BeginContext {
  Separator separator = Separator::kNone;  // separator of the records
  bool header = false;
  bool doubtful = false;  // the header may be a path
};

BeginContext beginning_of(const Lines& at_first, bool csv) {
  const std::string_view first = at_first.text;
  BeginContext found{separator_of(first, csv)};
  const std::optional<Line> line = split(first, found.separator);
  found.header = line && names_columns(*line);
  Lines lines = at_first;
  if (found.header || (line && has_media_suffix(line->path)) || !lines.next()) return found;
  const Separator below = separator_of(lines.text, csv);
  const std::optional<Line> header = split(first, below), record = split(lines.text, below);
  if (header && record && is_other_than(*header, *record))
    return {below, true, header->path.find('/') != std::string_view::npos};
  return found;
}

struct List {
  NameList paths, labels;
  std::vector<int64_t> lines;  // of each record, only until the labels are resolved
  bool labeled = false;
};

List parse(std::string_view text, const std::string& file, bool csv) {
  if (is_utf16(text)) bad_line(file, 1, "UTF-16", "save it as UTF-8");
  List list;
  std::optional<Separator> separator;
  for (Lines lines(text); lines.next();) {
    if (lines.text.find('\0') != std::string_view::npos) {
      bad_line(file, lines.number, "a NUL byte, so this is not a text file",
               "open it by its own format, or write the list as UTF-8");
    }
    if (!separator) {
      const BeginContext found = beginning_of(lines, csv);
      separator = found.separator;
      if (found.doubtful) {
        bad_line(file, lines.number,
                 "\"" + std::string(lines.text.substr(0, 80)) +
                     "\" may be a header, or a record whose path has no suffix",
                 "put # before a header, or add the suffix to the path");
      }
      if (found.header) continue;
    }
    const std::optional<Line> line = split(lines.text, *separator);
    if (!line || (*separator != Separator::kNone && line->label.empty())) {
      bad_line(file, lines.number, "no label in \"" + std::string(lines.text.substr(0, 80)) + "\"",
               "the first line has a label, so all lines need one, with the same separator");
    }
    const char mark = *separator == Separator::kSemicolon ? ';' : ',';
    const bool table = csv && (*separator == Separator::kComma || mark == ';');
    if (table && !lines.text.starts_with('"') && line->path.find(mark) != std::string_view::npos) {
      bad_line(file, lines.number, "more than two columns",
               "a header of three columns or more makes it a manifest; put a path that contains "
               "the separator in quotes");
    }
    if (has_media_suffix(line->label)) {
      bad_line(file, lines.number,
               "the label \"" + std::string(line->label.substr(0, 80)) + "\" looks like a file (" +
                   std::string(media_by_suffix(line->label).front()->noun) + ")",
               has_media_suffix(line->path) ? std::string(kPairsAdvice)
                                            : "the path comes first, then the label");
    }
    if (line->path.empty()) bad_line(file, lines.number, "no path before the label");
    if (line->path.size() >= kLongestPath) {
      bad_line(
          file, lines.number,
          "a path of " + std::to_string(line->path.size()) + " bytes; at most 4,095 are supported");
    }
    list.paths.add(line->path);
    list.labels.add(line->label);
    list.lines.push_back(lines.number);
  }
  if (list.paths.size() == 0) {
    throw Exception(Error{.code = &kBadList,
                          .what = "the list has no image",
                          .where = Where{.file = file},
                          .hint = "write one line per image: path, separator, label"});
  }
  list.labeled = *separator != Separator::kNone;
  return list;
}

struct Labels {
  std::vector<int64_t> numbers;
  ClassList classes;  // none: the numbers are the list's own
};

Labels labels_by_given_classes(const List& list, const std::string& file, ClassList classes) {
  Labels out;
  std::vector<std::string> unknown;
  for (int64_t i = 0; i < list.labels.size(); ++i) {
    std::optional<int64_t> number = classes.number(list.labels[i]);
    if (!number) number = integer_in(list.labels[i]);
    if (!number || *number < 0 || *number >= classes.size()) {
      unknown.emplace_back(list.labels[i]);
      number = 0;
    }
    out.numbers.push_back(*number);
  }
  classes.refuse_unknown(ClassList::found(std::move(unknown)).names(), "in " + file);
  out.classes = std::move(classes);
  return out;
}

Labels labels_of(const List& list, const std::string& file, std::optional<ClassList> given) {
  if (given) return labels_by_given_classes(list, file, std::move(*given));
  Labels out;
  const bool numbers = integer_in(list.labels[0]).has_value();
  std::vector<std::string> names;
  for (int64_t i = 0; i < list.labels.size(); ++i) {
    const std::optional<int64_t> number = integer_in(list.labels[i]);
    if (number.has_value() != numbers) {
      bad_line(file, list.lines[i],
               "label \"" + std::string(list.labels[i]) + "\" is " +
                   (number ? "a number" : "a name") + ", but line " +
                   std::to_string(list.lines[0]) + " has \"" + std::string(list.labels[0]) + "\"",
               "use numbers or names throughout, or fix the names with classes=");
    }
    if (number) {
      out.numbers.push_back(*number);
    } else if (names.empty() || names.back() != list.labels[i]) {
      names.emplace_back(list.labels[i]);
    }
  }
  if (numbers) return out;
  if (is_fraction(list.labels[0])) {
    bad_line(
        file, list.lines[0],
        "the label \"" + std::string(list.labels[0]) + "\" is a number with a fraction",
        "a header (path,age) in a .csv makes it a column of numbers; classes= makes it a name");
  }
  return labels_by_given_classes(list, file, ClassList::found(std::move(names)));
}

// The media type of the first path, by its name.
FieldKind kind_of(const NameList& paths) { return kind_by_suffix(paths[0]); }

class ListFileSource final : public LabeledFiles {
 public:
  ListFileSource(std::string file, std::string folder, std::string suffix, NameList paths,
                 std::optional<Labels> labels)
      : LabeledFiles(labels.has_value(), suffix.empty() ? kind_of(paths) : kind_by_suffix(suffix)),
        file_(std::move(file)),
        folder_(std::move(folder)),
        suffix_(std::move(suffix)),
        paths_(std::move(paths)) {
    if (labels) labels_ = std::move(*labels);
    paths_.shrink();
    Fingerprint print;
    print.add("list");
    for (const std::string& name : labels_.classes.names()) print.add(name);
    for (int64_t i = 0; i < paths_.size(); ++i) print.add(paths_[i]);
    for (int64_t label : labels_.numbers) print.add(static_cast<uint64_t>(label));
    fingerprint_ = print.value();
  }

  int64_t size() const override { return paths_.size(); }
  std::vector<std::string> classes() const override { return labels_.classes.names(); }
  std::string root() const override { return folder_.empty() ? "." : folder_; }
  uint64_t fingerprint() const override { return fingerprint_; }
  std::string description() const override {
    std::string out = "list " + file_ + " (" + count_text(size(), "record");
    if (const int64_t count = labels_.classes.size(); count > 0) {
      out += ", " + count_text(count, "class", "classes");
    }
    if (!suffix_.empty()) out += ", files " + suffix_;
    return out + ")";
  }

 private:
  void path_of(int64_t index, std::string& out) const override {
    const std::string_view path = paths_[index];
    out.clear();
    if (!path.starts_with('/')) out = folder_;
    out += path;
    out += suffix_;
  }
  int64_t label_of(int64_t index) const override { return labels_.numbers[index]; }

  std::string file_;
  std::string folder_;  // base of the paths, with a final slash; empty: the current one
  std::string suffix_;  // to append to the paths
  NameList paths_;      // as written
  Labels labels_;
  uint64_t fingerprint_ = 0;
};

// A suffix used for lists, and a plausible first line.
bool is_list_file(const std::string& path) {
  if (!has_suffix(path, ".txt") && !has_suffix(path, ".csv") && !has_suffix(path, ".lst")) {
    return false;
  }
  std::array<uint8_t, 4096> first;
  const Result<size_t> count = read_prefix(path, first);
  if (!count) return false;
  const std::string_view text(reinterpret_cast<const char*>(first.data()), *count);
  if (is_utf16(text)) return true;  // opening it reports what to do
  if (text.find('\0') != std::string_view::npos) return false;
  if (has_suffix(path, ".csv") && looks_like_csv_manifest(text)) return false;
  Lines lines(text);
  if (!lines.next()) return true;  // only comments: opening it reports what is missing
  const BeginContext found = beginning_of(lines, has_suffix(path, ".csv"));
  return found.separator != Separator::kNone || found.header || has_media_suffix(lines.text);
}

// Throws if what was read as the first path contains more than a path, and is not a file.
void refuse_mistaken_lines(const List& list, const std::string& file, const std::string& folder) {
  const std::string_view first = list.paths[0];
  const auto misread = line_mistake(first, list.paths.size() > 1 ? list.paths[1] : "");
  if (!misread || is_file(joined(first.starts_with('/') ? "" : folder, first))) return;
  bad_line(file, list.lines[0], misread->what, misread->hint);
}

SourcePtr open_list_file(const std::string& path, const Arguments& arguments, const Progress&) {
  Buffer bytes;
  if (Result<void> read = read_file(path, bytes, {.max_bytes = kMaxBytes}); !read) {
    throw Exception(std::move(read.error()));
  }
  const std::string_view text = text_from_bytes(bytes.bytes());
  List list = parse(text, path, has_suffix(path, ".csv"));
  bytes.free();
  std::optional<ClassList> given = classes_argument(arguments);
  std::optional<Labels> labels;
  if (list.labeled) {
    labels = labels_of(list, path, std::move(given));
  } else if (given) {
    bad_line(path, list.lines[0], "there are no labels, but classes= is given",
             "add labels to the lines");
  }
  std::string folder = folder_of_paths(path, arguments);
  refuse_mistaken_lines(list, path, folder);
  const auto name_at = [&](int64_t i) { return std::string(list.paths[i]); };
  std::string suffix =
      *suffix_of_records({.name = path, .folder = folder}, list.paths.size(), name_at);
  return std::make_shared<ListFileSource>(path, std::move(folder), std::move(suffix),
                                          std::move(list.paths), std::move(labels));
}

const FormatRecord kListFile{
    .name = "list",
    .doc =
        "A text file (.txt, .csv, .lst) with one image per line: its path, relative to the list's "
        "folder, and its label, an integer or a name (class names are sorted), separated by a "
        "comma, a tab or spaces. Paths without a suffix get the suffix of the folder's files. "
        "Fields: image, label.",
    .example = "hr.open(\"train.txt\")",
    .params = {root_param(), classes_param()},
    .recognizes = is_list_file,
    .open = open_list_file};
const Register<FormatRecord> registered_list_file_format(kListFile);

}  // namespace
}  // namespace headrace
