// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/webdataset/wds_index.h"

#include <algorithm>
#include <set>

#include "headrace/base/number_text.h"
#include "headrace/base/text.h"
#include "headrace/formats/folder/folder_listing.h"
#include "headrace/formats/shards/shard_files.h"
#include "headrace/sources/readable_text.h"
#include "headrace/storage/file.h"

namespace headrace {
namespace {

const ErrorCode kUnfitIndex{
    "HR0459", ErrorKind::kConfig, "index belongs to another archive",
    "index= lists files that are not the indexes of these archives. Pass one index written by "
    "NVIDIA's wds2idx per archive, in the same order, created after the archive's last change. "
    "Without index=, the indexes next to the archives are used if they match; other archives are "
    "scanned once."};

constexpr uint64_t kReportEvery = uint64_t{4} << 20;
constexpr uint64_t kSamplesLookedAt = 64;

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (size_t at = 0;;) {
    while (at < line.size() && is_blank(line[at])) ++at;
    if (at == line.size()) return words;
    const size_t begin = at;
    while (at < line.size() && !is_blank(line[at])) ++at;
    words.push_back(line.substr(begin, at - begin));
  }
}

bool parse_number(std::string_view text, uint64_t& out) {
  out = number_from<uint64_t>(text).value_or(UINT64_MAX);
  return out <= INT64_MAX;
}

// The next line of a text.
std::string_view take_line(std::string_view& text) {
  const size_t length = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, length);
  text.remove_prefix(std::min(length + 1, text.size()));
  return line;
}

struct Component {
  std::string_view extension, name;
  uint64_t offset = 0, bytes = 0;
};

// An index compared with its archive. Each step returns the difference found.
class Comparison {
 public:
  using Why = std::optional<std::string>;
  Comparison(TarInput& tar, const TakeMember& take, const std::function<void(uint64_t)>& passed)
      : tar_(tar), take_(take), passed_(passed) {}

  Why run(std::string_view text) {
    const std::vector<std::string_view> first = words_of(take_line(text));
    uint64_t samples = 0;
    if (first.size() != 2 || (first[0] != "v1.1" && first[0] != "v1.2") ||
        !parse_number(first[1], samples)) {
      return "it does not begin with v1.1 or v1.2 and a number of samples";
    }
    named_ = first[0] == "v1.2";
    const uint64_t step = std::max<uint64_t>(1, samples / (kSamplesLookedAt / 2));
    for (uint64_t i = 0; i < samples; ++i) {
      if (text.empty()) return "it has fewer lines than samples";
      line_ = i + 1;
      if (Why why = parse(take_line(text))) return why;
      // Two consecutive entries, whose keys must differ.
      if (Why why = sample(i % step < 2 || i + 1 == samples)) return why;
    }
    if (!words_of(text).empty()) return "it has more lines than samples";
    return end();
  }

 private:
  std::string in_line(std::string_view what) const {
    return std::string(what) + " (sample " + with_commas(static_cast<int64_t>(line_)) + ")";
  }

  Why parse(std::string_view line) {
    const std::vector<std::string_view> words = words_of(line);
    const size_t each = named_ ? 4 : 3;
    if (words.empty() || words.size() % each != 0) return in_line("an invalid line");
    components_.clear();
    for (size_t i = 0; i < words.size(); i += each) {
      Component& component = components_.emplace_back();
      component.extension = words[i];
      if (!parse_number(words[i + 1], component.offset) ||
          !parse_number(words[i + 2], component.bytes)) {
        return in_line("an invalid line");
      }
      if (named_) component.name = words[i + 3];
    }
    return {};
  }

  Why sample(bool look) {
    if (!named_ && components_.size() == 1 && is_picture(components_[0].extension)) look = true;
    for (const Component& component : components_) {
      look |= extensions_.insert(component.extension).second;
    }
    key_.clear();
    for (const Component& component : components_) {
      const bool begins = &component == components_.data();
      if (component.offset % kTarBlock != 0) return in_line("an offset is not a multiple of 512");
      if (component.offset < end_ + kTarBlock) return in_line("a member begins inside another");
      if (component.offset > tar_.size() || component.bytes > tar_.size() - component.offset) {
        return in_line("a member lies outside of the archive");
      }
      const bool plain = component.offset == end_ + kTarBlock;  // exactly one header
      if (Why why =
              plain && !look ? trust_component(component, begins) : walk_to(component, begins)) {
        return why;
      }
      if (end_ >= reported_ + kReportEvery) passed_(reported_ = end_);
    }
    last_key_ = key_;
    return {};
  }

  static bool is_picture(std::string_view extension) {
    return has_picture_suffix("." + std::string(extension.substr(extension.rfind('.') + 1)));
  }

  Why trust_component(const Component& component, bool begins) {
    TarMember member{.name = component.name,
                     .begin = component.offset - kTarBlock,
                     .data = component.offset,
                     .bytes = component.bytes};
    const uint64_t padded = (component.bytes + kTarBlock - 1) / kTarBlock * kTarBlock;
    member.end = std::min(component.offset + padded, tar_.size());
    if (!named_) {
      end_ = member.end;
      take_(member, {.key = {}, .extension = component.extension}, begins);
      return {};
    }
    return take(member, component, begins);
  }

  // Checks the members up to the component, whose header must be among them.
  Why walk_to(const Component& component, bool begins) {
    TarWalker walker(tar_, end_);
    for (TarMember member;;) {
      const Result<bool> more = walker.next(member);
      if (!more || !*more || member.begin >= component.offset) {
        return in_line("a member's header is missing");
      }
      if (member.data == component.offset && member.kind == TarKind::kFile) {
        if (member.bytes != component.bytes) return in_line("a member has a different size");
        return take(member, component, begins);
      }
      if (Why why = pass(member)) return why;
    }
  }

  // A member that is not a component.
  Why pass(const TarMember& member) {
    const bool file = member.kind == TarKind::kFile || member.kind == TarKind::kSparse;
    if (file && wds_name(member.name)) {
      return "it lacks a member of the archive";
    }
    if (member.kind == TarKind::kLink) take_(member, {}, false);
    return {};
  }

  Why take(const TarMember& member, const Component& component, bool begins) {
    const std::optional<WdsName> name = wds_name(member.name);
    if (!name || name->extension != component.extension ||
        (named_ && member.name != component.name)) {
      return in_line("a member has a different name");
    }
    // GNU tar, which wds2idx calls, writes non-ASCII letters as octal digits.
    if (named_ && member.name.find('\\') != std::string_view::npos) {
      return in_line("a name with \"\\\" in it");
    }
    if (begins ? name->key == last_key_ : !key_.empty() && name->key != key_) {
      return in_line("its samples differ from the archive's");
    }
    if (key_.empty()) key_ = name->key;
    end_ = member.end;
    // In v1.1 only some keys are known, so none is used, except for samples of a single picture.
    const bool keyed = named_ || (components_.size() == 1 && is_picture(component.extension));
    take_(member, {.key = keyed ? name->key : std::string_view(), .extension = component.extension},
          begins);
    return {};
  }

  // After the last component there may be folders and the like, and the end of the archive.
  Why end() {
    TarWalker walker(tar_, end_);
    for (TarMember member;;) {
      const Result<bool> more = walker.next(member);
      if (!more) return "the data after its last member is invalid";
      if (!*more) break;
      if (Why why = pass(member)) return why;
    }
    if (!walker.check_end()) return "more bytes follow the end of the archive";
    return {};
  }

  TarInput& tar_;
  const TakeMember& take_;
  const std::function<void(uint64_t)>& passed_;
  bool named_ = false;  // v1.2
  uint64_t line_ = 0, end_ = 0, reported_ = 0;
  std::vector<Component> components_;
  std::set<std::string_view> extensions_;
  std::string key_, last_key_;  // of the samples checked so far
};

// "x.idx" and "x.tar.idx" for "x.tar", and "a.idx" for "a.b.tar", as named by wds2idx by default.
std::vector<std::string> index_names(const std::string& path,
                                     const std::vector<std::string_view>& suffixes) {
  std::vector<std::string> names;
  if (without_query(path).size() < path.size()) return names;  // its query is for this file alone
  size_t longest = 0;
  for (const std::string_view suffix : suffixes) {
    if (has_suffix(path, suffix)) longest = std::max(longest, suffix.size());
  }
  if (longest > 0) names.push_back(path.substr(0, path.size() - longest) + ".idx");
  names.push_back(path + ".idx");
  const size_t slash = path.rfind('/');
  const size_t dot = path.find('.', slash == std::string::npos ? 1 : slash + 2);
  if (dot != std::string::npos) names.push_back(path.substr(0, dot) + ".idx");
  return names;
}

}  // namespace

WdsIndexes indexes_of(const std::vector<std::string>& names, const std::vector<std::string>& paths,
                      const std::optional<std::string>& given,
                      const std::vector<std::string_view>& suffixes) {
  WdsIndexes out;
  if (given) {
    const std::vector<std::string> indexes = shard_files(*given, {".idx"});
    if (indexes.size() != paths.size()) {
      raise(kUnfitIndex,
            "index= names " + count_text(static_cast<int64_t>(indexes.size()), "file") + " for " +
                count_text(static_cast<int64_t>(paths.size()), "archive"),
            "pass one index per archive, in the same order");
    }
    out.named = true;
    for (size_t i = 0; i < paths.size(); ++i) out.paths[paths[i]] = indexes[i];
    return out;
  }
  for (size_t i = 0; i < paths.size(); ++i) {
    for (const std::string& name : index_names(names[i], suffixes)) {
      if (!is_file(name)) continue;
      out.paths[paths[i]] = name;
      break;
    }
  }
  return out;
}

std::string indexes_text(const WdsIndexes& indexes) {
  std::string out;
  for (const auto& [file, index] : indexes.paths) {
    const Result<FileIdentity> found = identity_of(index);
    const FileIdentity identity = found ? *found : FileIdentity();
    out += "\n" + index + " " + std::to_string(identity.size) + " " +
           std::to_string(identity.modified_ns);
  }
  return out;
}

Error unfit_index(const std::string& index, const std::string& file, const std::string& why) {
  return {.code = &kUnfitIndex,
          .what = "the index " + index + " does not belong to the file: " + why,
          .where = Where{.file = file},
          .hint = "recreate it, or omit index="};
}

std::optional<std::string> take_wds_index(TarInput& tar, std::string_view index,
                                          const TakeMember& take,
                                          const std::function<void(uint64_t)>& passed) {
  return Comparison(tar, take, passed).run(index);
}

}  // namespace headrace
