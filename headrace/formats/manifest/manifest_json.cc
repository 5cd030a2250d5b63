// SPDX-License-Identifier: Apache-2.0
// JSON lines: one object per line, all with the same keys.
#include <cstring>
#include <unordered_map>

#include "headrace/base/json_reader.h"
#include "headrace/formats/manifest/manifest_lines.h"
#include "headrace/formats/manifest/manifest_table.h"
#include "headrace/sources/readable_text.h"

namespace headrace {
namespace {

constexpr size_t kMaxKeys = 4096;

class JsonLinesReader {
 public:
  JsonLinesReader(const File& file, bool allow_missing, const Progress& progress)
      : file_(file), allow_missing_(allow_missing), window_(file, progress) {}

  ManifestTable read() {
    while (next_line()) record();
    if (table_.lines.empty()) bad_manifest_line(file_, 1, "no record", "write one object per line");
    return std::move(table_);
  }

 private:
  // Reads the next non-blank line into text_.
  bool next_line() {
    for (;;) {
      const char* feed = nullptr;
      size_t seen = 0;
      while (!(feed = find_feed(seen)) && !window_.at_end()) {
        seen = window_.end() - window_.begin();
        if (!window_.extend()) bad_manifest_line(file_, line_ + 1, "a line of more than 64 MiB");
      }
      const char* at = window_.begin();
      if (at == window_.end()) return false;
      offset_ = window_.offset();
      text_ = {at, size_t((feed ? feed : window_.end()) - at)};
      window_.take(text_.size() + (feed != nullptr));
      if (++line_ == 1 && text_.starts_with("\xEF\xBB\xBF")) {
        text_.remove_prefix(3);
        offset_ += 3;
      }
      if (text_.find_first_not_of(" \t\r") != text_.npos) return true;
    }
  }

  const char* find_feed(size_t from) {
    const char *at = window_.begin() + from, *end = window_.end();
    return at < end ? static_cast<const char*>(std::memchr(at, '\n', end - at)) : nullptr;
  }

  void record() {
    number_ = static_cast<int64_t>(table_.lines.size());
    table_.lines.push_back(line_);
    size_t expected = 0;
    json_.reset(text_, offset_);
    for (json_.begin_object(); json_.next_key(); ++expected) {
      value(column_of(json_.key(), expected));
    }
    json_.end();
    if (!json_.ok()) {
      Error error = json_.error(kBadManifest, file_.path());
      bad_manifest_line(file_, line_, error.what,
                        "each line must contain one object, as json.dumps writes it");
    }
    for (ManifestColumn& column : table_.columns) {
      if (column.values.size() > number_) continue;
      if (!allow_missing_) {
        bad_manifest_line(file_, line_,
                          "no key \"" + column.name + "\", which line " +
                              std::to_string(table_.lines[0]) + " has",
                          "pass missing=\"fill\" to allow this");
      }
      absent(column);
    }
  }

  // Usually the keys are in the same order as in the first line.
  ManifestColumn& column_of(std::string_view key, size_t expected) {
    size_t at = expected;
    if (at >= table_.columns.size() || table_.columns[at].name != key) {
      const auto found = places_.find(std::string(key));
      at = found == places_.end() ? add_column(key) : found->second;
    }
    ManifestColumn& column = table_.columns[at];
    if (column.values.size() > number_) {
      bad_manifest_line(file_, line_, "the key \"" + column.name + "\" twice");
    }
    return column;
  }

  size_t add_column(std::string_view key) {
    if (number_ > 0 && !allow_missing_) {
      bad_manifest_line(file_, line_,
                        "the key \"" + std::string(key) + "\", which line " +
                            std::to_string(table_.lines[0]) + " lacks",
                        "pass missing=\"fill\" to allow this");
    }
    if (table_.columns.size() == kMaxKeys) {
      bad_manifest_line(file_, line_, "more than 4,096 keys");
    }
    ManifestColumn column;
    column.name = key;
    column.typed = true;
    for (int64_t i = 0; i < number_; ++i) {
      column.missing.push_back(i);
      column.values.add({});
    }
    table_.columns.push_back(std::move(column));
    places_.emplace(key, table_.columns.size() - 1);
    return table_.columns.size() - 1;
  }

  void absent(ManifestColumn& column) {
    column.missing.push_back(number_);
    column.values.add({});
  }

  void value(ManifestColumn& column) {
    const uint64_t begin = json_.offset();
    switch (json_.type()) {
      case JsonReader::Type::kString:
        column.has_text = true;
        column.values.add(json_.string());
        return;
      case JsonReader::Type::kNull:
        json_.null();
        return absent(column);
      case JsonReader::Type::kBool:
        column.has_bool = true;
        column.values.add(json_.boolean() ? "1" : "0");
        return;
      case JsonReader::Type::kNumber:
        json_.number();
        column.has_number = true;
        break;
      default:  // lists and objects stay JSON
        json_.skip();
        column.has_text = true;
    }
    if (!json_.ok()) return;
    column.values.add(text_.substr(begin - offset_, json_.offset() - begin));
  }

  const File& file_;
  const bool allow_missing_;
  RecordWindow window_;
  JsonReader json_{std::string_view{}};
  std::string_view text_;  // of the line
  uint64_t offset_ = 0;    // offset of the line
  int64_t line_ = 0, number_ = 0;
  ManifestTable table_;
  std::unordered_map<std::string, size_t> places_;
};

}  // namespace

ManifestTable read_json_lines(const File& file, bool allow_missing, const Progress& progress) {
  return JsonLinesReader(file, allow_missing, progress).read();
}

}  // namespace headrace
