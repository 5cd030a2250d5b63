// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/webdataset/wds_source.h"

#include <algorithm>
#include <optional>

#include "headrace/base/process_limits.h"
#include "headrace/base/utf8.h"
#include "headrace/formats/shards/extent_source.h"
#include "headrace/formats/webdataset/tar.h"
#include "headrace/formats/webdataset/wds_fields.h"
#include "headrace/formats/webdataset/wds_scan.h"
#include "headrace/sources/in_order.h"
#include "headrace/sources/readable_text.h"

namespace headrace {
namespace {

class WebDataset final : public ExtentSource {
 public:
  WebDataset(std::unique_ptr<FileSet> files, ContainerIndex index, WdsOptions options)
      : ExtentSource(std::move(files), std::move(index), schema_of(options.fields)),
        options_(std::move(options)) {
    for (const WdsField& field : options_.fields) {
      const bool own = field.how == WdsField::How::kArray || field.how == WdsField::How::kJson;
      own_.push_back(own ? buffers_++ : 0);
    }
  }

  std::vector<std::string> classes() const override { return options_.classes.names(); }
  std::string description() const override {
    std::string out = described("webdataset", options_.path);
    out.pop_back();
    if (options_.classes.size() > 0) {
      out += ", " + count_text(options_.classes.size(), "class", "classes");
    }
    for (const std::string& note : options_.notes) out += "; " + note;
    return out + ")";
  }

  std::string key(int64_t index) const override {
    const Extent extent = this->index().records[index];
    TarInput input(
        [&](uint64_t offset, std::span<uint8_t> out) -> Result<void> {
          return read_part(index, offset, out);
        },
        extent.bytes);
    TarWalker walker(input);
    TarMember member;
    for (int members = 0; members < 64; ++members) {
      const Result<bool> more = walker.next(member);
      if (!more || !*more) break;
      const std::optional<WdsName> name = wds_name(member.name);
      if (name && is_file(member)) return std::string(name->key);
    }
    return ExtentSource::key(index);
  }

  std::vector<int64_t> integer_column(std::string_view name) const override {
    for (const WdsField& field : options_.fields) {
      const bool integer =
          field.field.shape.empty() && field.field.dtype == DType::kInt64 &&
          (field.field.kind == FieldKind::kLabel || field.field.kind == FieldKind::kTensor);
      if (field.field.name == name && integer && field.how != WdsField::How::kArray) {
        return column_of(field);
      }
    }
    return {};
  }

 private:
  static Schema schema_of(const std::vector<WdsField>& fields) {
    Schema schema;
    for (const WdsField& field : fields) schema.push_back(field.field);
    return schema;
  }
  size_t buffers() const override { return buffers_; }

  Result<void> parse(int64_t, std::span<const uint8_t> bytes, const std::vector<bool>& wanted,
                     RecordData& out) const override {
    TarInput input(bytes);
    TarWalker walker(input);
    TarMember member;
    // For each field, the index in its list of the alternative that was found.
    constexpr size_t kNone = SIZE_MAX;
    std::vector<size_t> found(options_.fields.size(), kNone);
    std::string first_key;
    for (;;) {
      Result<bool> more = walker.next(member);
      if (!more) return std::move(more.error());
      if (!*more) break;
      const std::optional<WdsName> name = wds_name(member.name);
      if (!name || !is_file(member)) continue;
      if (first_key.empty()) first_key = name->key;
      for (size_t i = 0; i < options_.fields.size(); ++i) {
        const WdsField& field = options_.fields[i];
        if (!wanted[i]) continue;
        const size_t place = place_in(field, name->extension);
        if (place == kNone || place > found[i]) continue;
        Result<void> set;
        if (place == found[i]) {
          set = bad_sample("the sample has this component twice",
                           "consecutive members with the same name form one sample");
        } else {
          found[i] = place;
          set = set_field(i, member, bytes, out);
        }
        if (set) continue;
        set.error().where.member = std::string(member.name);
        set.error().where.offset = static_cast<int64_t>(member.begin);
        return set;
      }
    }
    for (size_t i = 0; i < options_.fields.size(); ++i) {
      if (!wanted[i] || found[i] != kNone) continue;
      if (Result<void> set = set_missing(i, first_key, out); !set) {
        set.error().where.member = first_key;
        return set;
      }
    }
    return {};
  }

  static size_t place_in(const WdsField& field, std::string_view extension) {
    for (size_t i = 0; i < field.extensions.size(); ++i) {
      if (extension_fits(field.extensions[i], extension)) return i;
    }
    return SIZE_MAX;
  }

  Result<void> set_field(size_t i, const TarMember& member, std::span<const uint8_t> bytes,
                         RecordData& out) const {
    const WdsField& field = options_.fields[i];
    const std::span<const uint8_t> data = bytes.subspan(member.data, member.bytes);
    FieldData& value = out.fields[i];
    if (member.kind == TarKind::kSparse) return sparse_member();
    switch (field.how) {
      case WdsField::How::kInteger: {
        Result<int64_t> number = wds_integer(data, options_.classes);
        if (!number) return std::move(number.error());
        value.scalar = *number;
        return {};
      }
      case WdsField::How::kArray:
        return wds_array(data, field.field, out.owned[own_[i]], value);
      case WdsField::How::kJson: {
        bool found = false;
        Result<void> set = wds_json(data, field, out.owned[own_[i]], value, found);
        if (!set || found) return set;
        return missing(i, "\"" + json_text(field) + "\" is not in it", out);
      }
      case WdsField::How::kFolder:
      case WdsField::How::kBytes:
        break;
    }
    if (field.field.kind == FieldKind::kText && !is_utf8(data)) {
      return bad_sample("the text is not UTF-8", "store it as UTF-8");
    }
    value.bytes = data;
    return {};
  }

  static std::string json_text(const WdsField& field) {
    std::string out;
    for (const std::string& name : field.json_path) out += (out.empty() ? "" : ".") + name;
    return out;
  }

  // A field without a member.
  Result<void> set_missing(size_t i, const std::string& key, RecordData& out) const {
    const WdsField& field = options_.fields[i];
    if (field.how == WdsField::How::kFolder) {
      const std::optional<int64_t> label = options_.folders.label_of(key, options_.classes);
      if (!label) return bad_sample("its folder is not a class", "list all classes in classes=");
      out.fields[i].scalar = *label;
      return {};
    }
    std::string names;
    for (const std::string& extension : field.extensions) {
      names += (names.empty() ? "" : " or ") + extension;
    }
    return missing(i, "the sample has no component " + names, out);
  }

  Result<void> missing(size_t i, std::string what, RecordData& out) const {
    const WdsField& field = options_.fields[i];
    if (options_.missing == WdsMissing::kEmpty &&
        set_empty(field, out.owned[own_[i]], out.fields[i])) {
      return {};
    }
    return bad_sample(std::move(what),
                      "missing=\"skip\" skips such samples; fields= selects the components that "
                      "are required");
  }

  // -1 for records without a value, and bad ones.
  std::vector<int64_t> column_of(const WdsField& field) const {
    constexpr int64_t kChunk = 4096;
    std::vector<int64_t> out;
    out.reserve(static_cast<size_t>(size()));
    const int64_t chunks = (size() + kChunk - 1) / kChunk;
    if (chunks == 0) return out;
    const auto values_of = [&](int64_t chunk) {
      std::vector<int64_t> values;
      std::unique_ptr<TarInput> input;
      size_t file = SIZE_MAX;
      for (int64_t i = chunk * kChunk; i < std::min(size(), (chunk + 1) * kChunk); ++i) {
        const Extent extent = index().records[i];
        if (extent.file != file) {
          file = extent.file;
          input = std::make_unique<TarInput>(input_of(file));
        }
        const Result<std::optional<int64_t>> value = value_of(field, extent, *input);
        if (!value && value.error().code->kind == ErrorKind::kStorage) {
          throw Exception(value.error());
        }
        const bool good = value && !index().is_damaged(i);
        values.push_back(good ? value->value_or(-1) : -1);
      }
      return values;
    };
    each_in_order(0, chunks, allowed_cores().count(), values_of, [&](std::vector<int64_t> values) {
      out.insert(out.end(), values.begin(), values.end());
    });
    return out;
  }

  TarInput input_of(size_t file) const {
    return {[this, file](uint64_t offset, std::span<uint8_t> out) {
              return files().read(file, offset, out);
            },
            files().identity(file).size};
  }

  // None if the sample has no value, or a bad one. Errors: those of the input.
  Result<std::optional<int64_t>> value_of(const WdsField& field, const Extent& extent,
                                          TarInput& input) const {
    std::optional<int64_t> out;
    Result<void> read;
    Result<void> walked =
        each_member(input, extent, [&](const TarMember& member, const WdsName& name) {
          if (field.how == WdsField::How::kFolder) {
            out = options_.folders.label_of(name.key, options_.classes);
            return false;
          }
          if (!field.takes(name.extension)) return true;
          if (member.bytes > TarInput::kMax || member.kind == TarKind::kSparse) return false;
          auto data = input.at(member.data, static_cast<size_t>(member.bytes));
          if (data) {
            out = value_in(field, *data);
          } else {
            read = std::move(data.error());
          }
          return false;
        });
    if (!walked) return std::move(walked.error());
    if (!read) return std::move(read.error());
    return out;
  }

  std::optional<int64_t> value_in(const WdsField& field, std::span<const uint8_t> data) const {
    if (field.how == WdsField::How::kInteger) {
      const Result<int64_t> number = wds_integer(data, options_.classes);
      return number ? std::optional(*number) : std::nullopt;
    }
    Buffer unused;
    FieldData value;
    bool found = false;
    if (!wds_json(data, field, unused, value, found) || !found) return {};
    return value.scalar;
  }

  WdsOptions options_;
  std::vector<size_t> own_;  // index of each field's own buffer
  size_t buffers_ = 1;
};

}  // namespace

SourcePtr webdataset_source(std::unique_ptr<FileSet> files, ContainerIndex index,
                            WdsOptions options) {
  return std::make_shared<WebDataset>(std::move(files), std::move(index), std::move(options));
}

}  // namespace headrace
