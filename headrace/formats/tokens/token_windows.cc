// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "headrace/base/text.h"
#include "headrace/formats/tokens/tokens.h"
#include "headrace/sources/columns/array_elements.h"
#include "headrace/sources/fingerprint.h"
#include "headrace/sources/labeled_files.h"
#include "headrace/sources/readable_text.h"
#include "headrace/storage/paths.h"

namespace headrace {
namespace {

const ErrorCode kNoWindows{
    "HR1443", ErrorKind::kConfig, "token windows do not fit",
    "Windows are taken from the tokens of each file. At least one file must be long enough for one "
    "window plus one token for the targets. If the last window is padded, pad and ignore_index "
    "must fit into the delivered dtype."};

constexpr size_t kInputs = 0, kTargets = 1;

// The windows of one file.
struct Cut {
  int64_t whole = 0;     // number of full windows
  bool partial = false;  // whether a partial one follows
  int64_t covered = 0;   // tokens in any window, as input or target
};

class TokenWindows final : public Source {
 public:
  TokenWindows(std::shared_ptr<const TokenFiles> files, const WindowOptions& options,
               std::string title)
      : files_(std::move(files)), options_(options), title_(std::move(title)) {
    for (size_t i = 0; i < files_->size(); ++i) {
      cuts_.push_back(cut((*files_)[i].tokens));
      ends_.push_back(size() + cuts_.back().whole + (cuts_.back().partial ? 1 : 0));
    }
    // Hugging Face models shift labels themselves; the field names show which kind this is.
    const bool shifted = options_.shift != 0;
    const auto add = [&](const char* name) {
      schema_.push_back({.name = name,
                         .kind = FieldKind::kTensor,
                         .dtype = files_->to(),
                         .shape = {options_.window}});
    };
    add(shifted ? "tokens" : "input_ids");
    if (options_.shift >= 0) add(shifted ? "targets" : "labels");
    Fingerprint print;
    print.add(files_->fingerprint());
    for (const int64_t number :
         {options_.window, options_.stride, int64_t{options_.shift},
          static_cast<int64_t>(options_.last), options_.pad, options_.ignore_index}) {
      print.add(static_cast<uint64_t>(number));
    }
    print.add(name_of(files_->to()));
    fingerprint_ = print.value();
  }

  int64_t size() const override { return ends_.empty() ? 0 : ends_.back(); }
  const Schema& schema() const override { return schema_; }
  ReadStyle read_style() const override {
    return files_->is_async() ? ReadStyle::kLater : ReadStyle::kFiles;
  }
  uint64_t fingerprint() const override { return fingerprint_; }

  void read(std::span<const int64_t> indices, const std::vector<bool>& wanted,
            std::span<RecordData> out) const override {
    for (size_t i = 0; i < out.size(); ++i) {
      begin_record(indices[i], schema_.size(), 3, out[i]);
      if (Result<void> read = read_window(indices[i], wanted, out[i]); !read) {
        read.error().where.record = indices[i];
        out[i].result = std::move(read);
      }
    }
  }

  void pieces(int64_t index, const std::vector<bool>&, std::vector<FilePiece>& out) const override {
    if (!files_->is_async()) return;
    const Place place = place_of(index);
    out.push_back(files_->piece(place.file, place.begin, place.count));
  }

  std::string key(int64_t index) const override {
    const Place place = place_of(index);
    const std::string& path = (*files_)[place.file].path;
    return std::string(last_name(without_query(path))) + ":" + std::to_string(place.begin);
  }
  Where where(int64_t index) const override {
    const Place place = place_of(index);
    return {.file = (*files_)[place.file].path,
            .record = index,
            .offset = static_cast<int64_t>(files_->byte_of(place.file, place.begin))};
  }

  std::string description() const override {
    int64_t covered = 0;
    for (const Cut& cut : cuts_) covered += cut.covered;
    std::string out = title_ + " (" + count_text(size(), "window") + " of " +
                      with_commas(options_.window) + " from " + with_commas(files_->tokens()) +
                      " " + std::string(name_of(files_->dtype())) + " tokens";
    if (const int64_t rest = files_->tokens() - covered; rest > 0) {
      out += ", " + with_commas(rest) + " skipped";
    }
    return out + ")";
  }

  std::vector<std::string> cautions() const override {
    int64_t files = 0, tokens = 0;
    std::string first;
    for (size_t i = 0; i < cuts_.size(); ++i) {
      if (cuts_[i].covered > 0) continue;
      if (files++ == 0) first = (*files_)[i].path;
      tokens += (*files_)[i].tokens;
    }
    if (files == 0) return {};
    return {count_text(files, "file") + " of tokens shorter than a window skipped (" +
            count_text(tokens, "token") + "); the first is " + first};
  }

 private:
  struct Place {
    size_t file;
    int64_t begin, count;  // the tokens of the window that exist
  };

  int64_t span() const { return options_.window + std::max(options_.shift, 0); }

  Cut cut(int64_t tokens) const {
    const int64_t stride = options_.stride, shift = std::max(options_.shift, 0);
    Cut out;
    int64_t end = 0;  // after the last whole window
    if (tokens >= span()) {
      out.whole = (tokens - span()) / stride + 1;
      end = (out.whole - 1) * stride + span();
      out.covered = stride <= options_.window ? end : out.whole * span();
    }
    if (options_.last == LastWindow::kDrop || end >= tokens) return out;
    if (options_.last == LastWindow::kOverlap) {
      out.partial = out.whole > 0;
      if (out.partial) out.covered += tokens - std::max(end, tokens - span());
      return out;
    }
    const int64_t next = out.whole * stride;  // position of a token to predict
    out.partial = next + shift < tokens;
    if (out.partial) out.covered += tokens - std::max(end, next);
    return out;
  }

  Place place_of(int64_t index) const {
    const auto found = std::ranges::upper_bound(ends_, index);
    const auto file = static_cast<size_t>(found - ends_.begin());
    const int64_t number = file == 0 ? index : index - ends_[file - 1];
    const int64_t tokens = (*files_)[file].tokens;
    int64_t begin = number * options_.stride;
    if (number == cuts_[file].whole && options_.last == LastWindow::kOverlap)
      begin = tokens - span();
    return {file, begin, std::min(span(), tokens - begin)};
  }

  Result<void> read_window(int64_t index, const std::vector<bool>& wanted, RecordData& out) const {
    const Place place = place_of(index);
    const size_t item = files_->item_bytes();
    Buffer& values = out.owned[0];
    values.resize(static_cast<size_t>(span()) * item);
    if (Result<void> read =
            files_->read(place.file, place.begin, place.count, out.owned[1], values.data());
        !read) {
      return read;
    }
    const auto window = static_cast<size_t>(options_.window) * item;
    const uint8_t* targets = values.data() + static_cast<size_t>(span()) * item - window;
    if (place.count < span()) {
      fill_integers(values.data() + static_cast<size_t>(place.count) * item, files_->to(),
                    span() - place.count, options_.pad);
      targets = padded_targets(place, values, out.owned[2]);
    }
    if (wanted[kInputs]) out.fields[kInputs].bytes = {values.data(), window};
    if (schema_.size() > kTargets && wanted[kTargets])
      out.fields[kTargets].bytes = {targets, window};
    return {};
  }

  const uint8_t* padded_targets(const Place& place, const Buffer& values, Buffer& out) const {
    const size_t item = files_->item_bytes();
    const int64_t shift = std::max(options_.shift, 0), known = place.count - shift;
    out.resize(static_cast<size_t>(options_.window) * item);
    std::copy_n(values.data() + static_cast<size_t>(shift) * item,
                static_cast<size_t>(known) * item, out.data());
    fill_integers(out.data() + static_cast<size_t>(known) * item, files_->to(),
                  options_.window - known, options_.ignore_index);
    return out.data();
  }

  std::shared_ptr<const TokenFiles> files_;  // shared: as it was made
  const WindowOptions options_;
  const std::string title_;
  Schema schema_;
  std::vector<Cut> cuts_;
  std::vector<int64_t> ends_;  // numbers of the windows after those of each file
  uint64_t fingerprint_ = 0;
};

void check_fits(std::string_view name, int64_t value, DType dtype) {
  const IntegerRange range = range_of_integers(dtype);
  if (value >= range.lowest && value <= range.highest) return;
  raise(kNoWindows,
        std::string(name) + "=" + std::to_string(value) + " does not fit into " +
            std::string(name_of(dtype)),
        "to=\"int64\"");
}

}  // namespace

SourcePtr token_windows(std::shared_ptr<const TokenFiles> files, const WindowOptions& options,
                        std::string title) {
  if (options.last == LastWindow::kPad) {
    check_fits("pad", options.pad, files->to());
    if (options.shift >= 0) check_fits("ignore_index", options.ignore_index, files->to());
  }
  const int64_t tokens = files->tokens();
  auto windows = std::make_shared<TokenWindows>(std::move(files), options, std::move(title));
  if (windows->size() > 0) return windows;
  raise(kNoWindows,
        "no file has a window of " + with_commas(options.window) +
            (options.shift > 0 ? " tokens and a target for its last token" : " tokens") + " (" +
            count_text(tokens, "token") + " in all)",
        "use a smaller window=, or last=\"pad\"");
}

}  // namespace headrace
