// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/webdataset/wds_scan.h"

#include <algorithm>
#include <array>

#include "headrace/base/text.h"

namespace headrace {
namespace {

constexpr uint64_t kReportEveryMembers = uint64_t{4} << 20;

class Scan {
 public:
  Scan(const File& file, const UnpackedFiles& files, const std::vector<WdsField>* needed,
       ContainerIndex& out)
      : file_(file), files_(files), needed_(needed), out_(out), tally_(out.tallies) {}

  // Why the index cannot be used; then nothing was scanned.
  std::optional<std::string> run(std::string_view index,
                                 const std::function<void(uint64_t)>& passed) {
    TarInput input = this->input();
    const auto take = [this](const TarMember& member, const WdsName& name, bool begins) {
      if (member.kind == TarKind::kLink) return tally_.count_link();
      take_component(member, name, begins);
    };
    std::optional<std::string> why = take_wds_index(input, index, take, passed);
    if (!why) finish();
    if (!why && !ends_with_zeros()) count_missing_end(out_.tallies);
    return why;
  }

  Result<void> run(const std::function<void(uint64_t)>& passed) {
    TarInput input = this->input();
    TarWalker walker(input);
    TarMember member;
    for (uint64_t reported = 0;;) {
      Result<bool> more = walker.next(member);
      if (!more) return damage(more.error(), member);
      if (!*more) break;
      if (member.begin >= reported + kReportEveryMembers) passed(reported = member.begin);
      add(member);
    }
    if (Result<void> end = walker.check_end(); !end) {
      end.error().where.file = file_.path();
      return end;
    }
    const Error* cut = files_.damage_of(file_.path());
    if (!cut && !walker.has_end()) count_missing_end(out_.tallies);
    const uint64_t begin = cut ? begin_of_damage(file_.size(), {}) : 0;
    finish();
    if (cut) add_cut(*cut, begin);
    return {};
  }

 private:
  TarInput input() const {
    return {[this](uint64_t offset, std::span<uint8_t> to) { return file_.read(offset, to); },
            file_.size()};
  }

  // Whether the archive's last block is zeros; for one whose members are given by an index.
  bool ends_with_zeros() const {
    std::array<uint8_t, kTarBlock> last{};
    const uint64_t bytes = std::min<uint64_t>(last.size(), file_.size());
    const bool read(file_.read(file_.size() - bytes, std::span(last).first(bytes)));
    return read && std::ranges::all_of(last, [](uint8_t byte) { return byte == 0; });
  }

  void add(const TarMember& member) {
    if (member.kind == TarKind::kLink) tally_.count_link();
    if (!is_file(member)) return;
    const std::optional<WdsName> name = wds_name(member.name);
    if (name) take_component(member, *name, !open_ || name->key != key_);
  }

  void take_component(const TarMember& member, const WdsName& name, bool begins) {
    if (begins) {
      finish();
      open_ = true;
      key_.assign(name.key);
      begin_ = member.begin;
      tally_.begin(key_);
      if (needed_) has_.assign(needed_->size(), false);
    }
    tally_.add(name.extension);
    end_ = member.end;
    for (size_t i = 0; needed_ && i < needed_->size(); ++i) {
      const WdsField& field = (*needed_)[i];
      if (field.how == WdsField::How::kFolder || field.takes(name.extension)) has_[i] = true;
    }
  }

  void finish() {
    if (!open_) return;
    open_ = false;
    tally_.end();
    const bool whole = !needed_ || std::find(has_.begin(), has_.end(), false) == has_.end();
    if (whole) out_.records.add(begin_, end_ - begin_);
  }

  // The rest is one bad record. A sample that it truncates is part of it: one whose own member is
  // damaged, or which lacks components that the previous sample has.
  uint64_t begin_of_damage(uint64_t offset, const std::optional<WdsName>& damaged) {
    const bool own = open_ && damaged && damaged->key == key_;
    if (!open_ || (!own && (out_.records.size() == 0 || tally_.is_like_the_last()))) return offset;
    open_ = false;
    return begin_;
  }

  Result<void> damage(Error& error, const TarMember& member) {
    if (error.code->kind == ErrorKind::kStorage || error.code->id == "HR0205") return error;
    const uint64_t offset =
        begin_of_damage(static_cast<uint64_t>(error.where.offset), wds_name(member.name));
    finish();
    if (const Error* cut = files_.damage_of(file_.path())) {
      add_cut(*cut, offset);
    } else {
      out_.add_damage(file_, offset, *error.code, std::move(error.what), std::move(error.hint));
    }
    return {};
  }

  // A compressed file that could not be decompressed completely.
  void add_cut(const Error& cut, uint64_t offset) {
    out_.add_damage(
        file_, offset, *cut.code,
        cut.what + " (at byte " + std::to_string(cut.where.offset) + " of the compressed file)",
        cut.hint);
  }

  const File& file_;
  const UnpackedFiles& files_;
  const std::vector<WdsField>* needed_;
  ContainerIndex& out_;
  WdsTally tally_;
  bool open_ = false;  // a sample
  std::string key_;
  uint64_t begin_ = 0, end_ = 0;
  std::vector<bool> has_;  // of needed_
};

}  // namespace

ScanFile scan_of_wds(const UnpackedFiles& files, const WdsIndexes& indexes,
                     const std::vector<WdsField>* needed) {
  return [&files, &indexes, needed](const File& file, ContainerIndex& out,
                                    const std::function<void(uint64_t)>& passed) -> Result<void> {
    const auto index = indexes.paths.find(file.path());
    std::optional<std::string> why;
    // The end of a truncated archive is found by scanning.
    if (index != indexes.paths.end() && !files.damage_of(file.path())) {
      Buffer text;
      Result<void> read = read_file(index->second, text);
      if (!read && indexes.named) return read;
      if (read) {
        const std::string_view view = text_from_bytes(text.bytes());
        why = Scan(file, files, needed, out).run(view, passed);
        if (!why) return {};
        if (indexes.named) return unfit_index(index->second, file.path(), *why);
      } else {
        why = "it cannot be read";
      }
      out = {};
    }
    if (why) count_unused_index(*why, out.tallies);
    return Scan(file, files, needed, out).run(passed);
  };
}

std::string components_text(const std::vector<WdsField>& fields) {
  std::string out;
  for (const WdsField& field : fields) {
    for (const std::string& extension : field.extensions) out += extension + ";";
    out += ",";
  }
  return out;
}

}  // namespace headrace
