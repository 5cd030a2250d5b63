// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/opening/opened_source.h"

#include <array>
#include <utility>

#include "headrace/base/number_text.h"
#include "headrace/formats/shards/shard_files.h"
#include "headrace/sources/fingerprint.h"
#include "headrace/sources/source_around.h"
#include "headrace/storage/file.h"
#include "headrace/storage/paths.h"

namespace headrace {
namespace {

std::string absolute_one(std::string path) {
  if (!is_relative_path(path)) return path;
  while (path.starts_with("./")) path.erase(0, path.find_first_not_of('/', 1));
  if (path.empty() || path == ".") return current_folder();
  const std::string folder = current_folder();
  return folder.ends_with('/') ? folder + path : folder + "/" + path;
}

// A value as text, such that different values have different texts.
struct ExactText {
  std::string operator()(std::monostate) const { return "-"; }
  std::string operator()(bool flag) const { return flag ? "true" : "false"; }
  std::string operator()(int64_t number) const { return std::to_string(number); }
  std::string operator()(double number) const { return shortest_text(number); }
  std::string operator()(DType dtype) const { return std::string(name_of(dtype)); }
  std::string operator()(const std::string& text) const {
    return std::to_string(text.size()) + ":" + text;
  }
  template <class T>
  std::string operator()(const std::vector<T>& list) const {
    std::string out = "[";
    for (const T& value : list) out += (*this)(value) + ",";
    return out + "]";
  }
  std::string operator()(const Branch&) const { return {}; }  // only for operators, not for sources
  std::string operator()(const ParamObjectPtr&) const { return {}; }
};

std::string exact_text(const ParamValue& value) {
  return std::visit(ExactText{}, static_cast<const ParamVariant&>(value));
}

std::string file_text(const std::string& path) {
  std::string out = ExactText{}(path);
  const Result<PathStatus> status = storage_of(path).look_at(path);
  if (!status) return out;  // reading the file reports it
  const FileIdentity& file = status->identity;
  for (const uint64_t number : {file.device, file.inode, file.size}) {
    out += " " + std::to_string(number);
  }
  return out + " " + std::to_string(file.modified_ns) + " " +
         std::to_string(status->status_changed_ns);
}

class OpenedSource final : public SourceAround {
 public:
  OpenedSource(SourcePtr source, uint64_t fingerprint, std::string identity)
      : SourceAround(std::move(source)),
        fingerprint_(fingerprint),
        identity_(std::move(identity)) {}

  uint64_t fingerprint() const override { return fingerprint_; }
  std::string identity() const override { return identity_; }

 private:
  const uint64_t fingerprint_;
  const std::string identity_;
};

}  // namespace

std::string absolute_form(const std::string& path) {
  if (!is_shard_pattern(path)) return absolute_one(path);
  std::string out;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('\n', begin), path.size());
    if (end > begin)
      out += (out.empty() ? "" : "\n") + absolute_one(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

std::map<std::string, ParamValue> with_absolute_paths(const FormatRecord& format,
                                                      std::map<std::string, ParamValue> given) {
  for (const Param& param : format.params) {
    const auto found = given.find(std::string(param.name));
    if (param.decides != Affects::kPlace || found == given.end()) continue;
    const auto* path = std::get_if<std::string>(&found->second);
    if (path && !path->empty()) found->second = absolute_form(*path);
  }
  return given;
}

SourcePtr opened_source(SourcePtr source, const FormatRecord& format, const std::string& path,
                        const Arguments& arguments, const std::vector<std::string>& kinds) {
  std::string identity = std::string(format.name);
  Fingerprint print;
  print.add(source->fingerprint());
  bool changed = false;
  const Arguments defaults(format.name, format.params, {});
  for (const Param& param : format.params) {
    const std::string value = exact_text(arguments.value(param.name));
    identity += "\n" + std::string(param.name) + "=" + value;
    if (param.decides != Affects::kRecords || value == exact_text(defaults.value(param.name))) {
      continue;
    }
    print.add(param.name);
    print.add(value);
    changed = true;
  }
  identity += "\nkinds=" + ExactText{}(kinds);
  if (is_async(path)) {  // querying every file again would be slow; reads compare the version
    identity += "\n" + ExactText{}(path);
  } else {
    for (const std::string& file : shard_files(path)) identity += "\n" + file_text(file);
  }
  identity += "\n" + std::to_string(source->fingerprint());
  const uint64_t fingerprint = changed ? print.value() : source->fingerprint();
  return std::make_shared<OpenedSource>(std::move(source), fingerprint, std::move(identity));
}

}  // namespace headrace
