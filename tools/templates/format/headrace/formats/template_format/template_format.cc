// SPDX-License-Identifier: Apache-2.0
// A file whose every byte is a label.
#include "headrace/base/registry.h"
#include "headrace/formats/format.h"
#include "headrace/sources/fingerprint.h"
#include "headrace/storage/file.h"

namespace headrace {
namespace {

class TemplateSource final : public Source {
 public:
  TemplateSource(std::string path, Buffer bytes)
      : path_(std::move(path)), bytes_(std::move(bytes)) {
    schema_.push_back({.name = "label", .kind = FieldKind::kLabel, .dtype = DType::kInt64});
  }
  int64_t size() const override { return static_cast<int64_t>(bytes_.size()); }
  const Schema& schema() const override { return schema_; }
  ReadStyle read_style() const override { return ReadStyle::kMemory; }
  void read(std::span<const int64_t> indices, const std::vector<bool>&,
            std::span<RecordData> out) const override {
    for (size_t i = 0; i < indices.size(); ++i) {
      out[i].index = indices[i];
      out[i].result = {};
      out[i].fields.resize(1);
      out[i].fields[0] = {.bytes = {}, .shape = {}, .scalar = bytes_.data()[indices[i]]};
    }
  }
  std::string key(int64_t index) const override { return path_ + "#" + std::to_string(index); }
  uint64_t fingerprint() const override {
    Fingerprint records;
    records.add({reinterpret_cast<const char*>(bytes_.data()), bytes_.size()});
    return records.value();
  }
  std::string description() const override { return "template " + path_; }

 private:
  const std::string path_;
  const Buffer bytes_;
  Schema schema_;
};

const FormatRecord kTemplateFormat{
    .name = "template_format",
    .doc = "A file whose bytes are labels.",
    .example = "hr.open(\"labels.hrtemplate\")",
    .params = {},
    .recognizes = [](const std::string& path) { return path.ends_with(".hrtemplate"); },
    .open = [](const std::string& path, const Arguments&, const Progress&) -> SourcePtr {
      Buffer bytes;
      if (Result<void> read = read_file(path, bytes); !read) {
        throw Exception(std::move(read.error()));
      }
      return std::make_shared<TemplateSource>(path, std::move(bytes));
    }};
const Register<FormatRecord> registered_template_format(kTemplateFormat);

}  // namespace
}  // namespace headrace
