// SPDX-License-Identifier: Apache-2.0
// CSV as specified in RFC 4180, with the file's own delimiter and line ends.
#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <utility>

#include "headrace/base/number_text.h"
#include "headrace/base/text.h"
#include "headrace/base/utf8.h"
#include "headrace/formats/folder/folder_listing.h"
#include "headrace/formats/manifest/manifest_lines.h"
#include "headrace/formats/manifest/manifest_table.h"
#include "headrace/sources/readable_text.h"

namespace headrace {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr size_t kMaxColumns = 4096;
// DataFrame.to_csv() writes its index first, without a name.
constexpr std::string_view kIndexOfPandas = "index";

// The end of the record that begins at `at`: its line feed, or `end` for the last one of the file.
// Null: it is not in the window.
const char* record_end(const char* at, const char* end, bool last, char delimiter) {
  const auto* feed = static_cast<const char*>(std::memchr(at, '\n', end - at));
  const char* stop = feed ? feed : end;
  if (!std::memchr(at, '"', stop - at)) return feed ? feed : last ? end : nullptr;
  enum { kStart, kPlain, kQuoted, kClosed } state = kStart;  // within a cell
  for (; at < end; ++at) {
    if (state == kQuoted) {
      if (*at == '"') state = kClosed;
    } else if (*at == '\n') {
      return at;
    } else if (*at == delimiter) {
      state = kStart;
    } else {
      state = *at == '"' && state != kPlain ? kQuoted : kPlain;
    }
  }
  return last ? end : nullptr;
}

// Splits one record, without its line end, into cells; quoted ones are unescaped in place. Returns
// the error, or nothing.
const char* split_record(char* at, char* end, char delimiter,
                         std::vector<std::string_view>& cells) {
  cells.clear();
  for (;;) {
    if (at < end && *at == '"') {
      char *out = at, *begin = at;
      for (++at;; ++at) {
        if (at == end) return "a quote that is not closed";
        if (*at == '"') {
          if (at + 1 == end || at[1] != '"') break;
          ++at;
        }
        *out++ = *at;
      }
      cells.emplace_back(begin, out - begin);
      ++at;
      if (at < end && *at != delimiter) return "text after a closing quote";
    } else {
      auto* stop = static_cast<char*>(std::memchr(at, delimiter, end - at));
      if (!stop) stop = end;
      cells.emplace_back(at, stop - at);
      at = stop;
    }
    if (cells.size() > kMaxColumns) return "more than 4,096 columns";
    if (at == end) return nullptr;
    ++at;
  }
}

// The most frequent delimiter of the first line, outside quotes. A comma if there is none.
char delimiter_of(std::string_view line) {
  constexpr std::string_view kDelimiters = ",;\t|";
  std::array<int64_t, kDelimiters.size()> counts{};
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') quoted = !quoted;
    const size_t which = kDelimiters.find(c);
    if (!quoted && which != kDelimiters.npos) ++counts[which];
  }
  return kDelimiters[std::max_element(counts.begin(), counts.end()) - counts.begin()];
}

class CsvReader {
 public:
  CsvReader(const File& file, const Progress& progress) : file_(file), window_(file, progress) {}

  ManifestTable read() {
    if (!begin() || !next())
      bad_manifest_line(file_, 1, "an empty file", "the first line must be a header");
    header();
    while (next()) record();
    return std::move(table_);
  }

 private:
  // Finds the delimiter. False: the file is empty.
  bool begin() {
    if (window_.at_end()) return false;
    window_.extend();
    std::string_view head(window_.begin(), window_.end() - window_.begin());
    if (head.starts_with(kByteOrderMark)) {
      window_.take(kByteOrderMark.size());
      head.remove_prefix(kByteOrderMark.size());
    }
    if (is_utf16(head)) {
      bad_manifest_line(file_, 1, "UTF-16", "save it as UTF-8");
    }
    delimiter_ = delimiter_of(head.substr(0, head.find('\n')));
    return true;
  }

  // Reads the next non-blank record into cells_.
  bool next() {
    for (;;) {
      const char* stop = nullptr;
      while (!(stop = record_end(window_.begin(), window_.end(), window_.at_end(), delimiter_))) {
        if (!window_.extend()) bad_manifest_line(file_, next_line_, "a record of more than 64 MiB");
      }
      char* at = window_.begin();
      if (at == window_.end()) return false;
      const bool feed = stop < window_.end();
      size_t length = stop - at;
      line_ = next_line_;
      next_line_ += std::count(at, at + length, '\n') + 1;
      window_.take(length + feed);
      if (length > 0 && at[length - 1] == '\r') --length;
      if (length == 0) continue;
      if (std::memchr(at, 0, length))
        bad_manifest_line(file_, line_, "a NUL byte", "save it as UTF-8");
      if (const char* wrong = split_record(at, at + length, delimiter_, cells_)) {
        bad_manifest_line(file_, line_, wrong, "double the quotes inside quoted cells: \"\"");
      }
      return true;
    }
  }

  void header() {
    for (std::string_view name : cells_) {
      while (name.starts_with(' ')) name.remove_prefix(1);
      while (name.ends_with(' ')) name.remove_suffix(1);
      check_text(name);
      if (name.empty() && table_.columns.empty()) name = kIndexOfPandas;
      if (name.empty()) bad_manifest_line(file_, line_, "a column without a name");
      for (const ManifestColumn& column : table_.columns) {
        if (column.name == name) {
          bad_manifest_line(file_, line_, "two columns are named \"" + column.name + "\"");
        }
      }
      ManifestColumn column;
      column.name = name;
      table_.columns.push_back(std::move(column));
    }
  }

  void record() {
    if (cells_.size() != table_.columns.size()) {
      bad_manifest_line(file_, line_,
                        count_text(static_cast<int64_t>(cells_.size()), "cell") +
                            ", but the header has " +
                            with_commas(static_cast<int64_t>(table_.columns.size())),
                        "put cells that contain the delimiter in quotes");
    }
    const auto number = static_cast<int64_t>(table_.lines.size());
    for (size_t i = 0; i < cells_.size(); ++i) {
      check_text(cells_[i]);
      if (cells_[i].empty()) table_.columns[i].missing.push_back(number);
      table_.columns[i].values.add(cells_[i]);
    }
    table_.lines.push_back(line_);
  }

  void check_text(std::string_view text) const {
    if (is_utf8(bytes_from_text(text))) return;
    bad_manifest_line(file_, line_, "bytes that are not UTF-8", "save it as UTF-8");
  }

  const File& file_;
  RecordWindow window_;
  char delimiter_ = ',';
  int64_t line_ = 1, next_line_ = 1;
  std::vector<std::string_view> cells_;
  ManifestTable table_;
};

// Headings of text that describes an image, not a class.
constexpr std::array<std::string_view, 7> kTextHeadings = {
    "caption", "captions", "text", "sentence", "transcript", "prompt", "description"};

// The first line, without its end; the text continues after it.
std::string taken_line(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  std::string line(text.substr(0, end));
  text.remove_prefix(std::min(end + 1, text.size()));
  if (line.ends_with('\r')) line.pop_back();
  return line;
}

bool is_fraction(std::string_view text) {
  return text.find('.') != text.npos && number_from<double>(text);
}

bool is_number(std::string_view text) {
  return !text.empty() && (std::isdigit(static_cast<unsigned char>(text[0])) || text[0] == '-');
}

}  // namespace

ManifestTable read_csv(const File& file, const Progress& progress) {
  return CsvReader(file, progress).read();
}

bool is_utf16(std::string_view head) {
  return head.starts_with("\xFF\xFE") || head.starts_with("\xFE\xFF");
}

bool looks_like_csv_manifest(std::string_view head) {
  if (head.starts_with(kByteOrderMark)) head.remove_prefix(kByteOrderMark.size());
  std::string line = taken_line(head);
  const char delimiter = delimiter_of(line);
  std::vector<std::string_view> cells;
  if (split_record(line.data(), line.data() + line.size(), delimiter, cells)) return false;
  for (size_t i = 0; i < cells.size(); ++i) {
    const std::string_view cell = cells[i];
    if (cell.empty() && i == 0) continue;  // see kIndexOfPandas
    if (cell.empty() || is_number(cell) || has_media_suffix(cell) || cell[0] == '#') return false;
  }
  if (cells.size() != 2) return cells.size() > 2;
  const std::string heading = lower_case(cells[1]);
  if (std::ranges::find(kTextHeadings, heading) != kTextHeadings.end()) return true;
  std::string record = taken_line(head);
  if (split_record(record.data(), record.data() + record.size(), delimiter, cells)) return false;
  return cells.size() == 2 && (has_media_suffix(cells[1]) || is_fraction(cells[1]));
}

}  // namespace headrace
