// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/pack/pack_input.h"

#include <algorithm>

#include "headrace/sources/classes.h"
#include "headrace/sources/fingerprint.h"
#include "headrace/sources/readable_text.h"
#include "headrace/storage/paths.h"

namespace headrace {
namespace {

const ErrorCode kDoNotFit{
    "HR0449", ErrorKind::kConfig, "sources cannot be packed together",
    "A pack has one set of fields and one list of classes. Sources packed together need fields "
    "with the same names, kinds, dtypes and shapes, and equal lists of classes (or sorted ones, "
    "which are merged). Pack them one by one, or open them with the same classes=."};

bool same_fields(const Schema& a, const Schema& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Field& x, const Field& y) {
    return x.name == y.name && x.kind == y.kind && x.dtype == y.dtype && x.shape == y.shape &&
           x.encoded == y.encoded && x.box_format == y.box_format && x.row_group == y.row_group;
  });
}

// Whether the path is obviously below the folder, without checking for "..".
bool is_lexically_below(std::string_view path, std::string_view folder) {
  if (!path.starts_with(folder)) return false;
  path.remove_prefix(folder.size());
  for (std::string_view step : {"//", "/./", "/../"}) {
    if (path.find(step) != std::string_view::npos) return false;
  }
  return !path.starts_with('/') && !path.starts_with("./") && !path.starts_with("../");
}

// Shortens `root` (which ends in '/') to the common parent with `path`.
void share_folder(std::string& root, std::string_view path) {
  const auto differs = std::mismatch(root.begin(), root.end(), path.begin(), path.end()).first;
  root.erase(differs, root.end());
  root.erase(root.rfind('/') == std::string::npos ? 0 : root.rfind('/') + 1);
}

}  // namespace

PackInput::PackInput(std::vector<SourcePtr> sources) : sources_(std::move(sources)) {
  if (sources_.empty()) raise(kDoNotFit, "there are no sources to pack", "hr.pack('train/', out)");
  begins_ = {0};
  for (const SourcePtr& source : sources_) {
    if (!same_fields(source->schema(), schema())) {
      raise(kDoNotFit,
            source->description() + " has different fields from " + sources_.front()->description(),
            "pack them one by one");
    }
    begins_.push_back(begins_.back() + source->size());
  }
  for (size_t i = 0; i < schema().size() && label_field_ < 0; ++i) {
    if (schema()[i].kind == FieldKind::kLabel) label_field_ = static_cast<int>(i);
  }
  join_classes();
  find_root();
}

void PackInput::join_classes() {
  classes_ = sources_.front()->classes();
  labels_.resize(sources_.size());
  const auto same = [&](const SourcePtr& source) { return source->classes() == classes_; };
  if (std::all_of(sources_.begin(), sources_.end(), same)) return;
  std::vector<std::string> names;
  for (const SourcePtr& source : sources_) {
    const std::vector<std::string> own = source->classes();
    if (own.empty() || !std::is_sorted(own.begin(), own.end())) {
      raise(kDoNotFit,
            source->description() + " and " + sources_.front()->description() +
                " have different class indices",
            "open them with the same classes=");
    }
    names.insert(names.end(), own.begin(), own.end());
  }
  const ClassList joined = ClassList::found(std::move(names));
  classes_ = joined.names();
  for (size_t i = 0; i < sources_.size(); ++i) {
    for (const std::string& name : sources_[i]->classes()) {
      labels_[i].push_back(*joined.number(name));
    }
  }
}

// Keys of files are relative to their common folder, so that unpacking restores the tree wherever
// it was. A source's own folder is always included: its records may all belong to one class.
void PackInput::find_root() {
  for (const SourcePtr& source : sources_) {
    if (source->root().empty()) return;
  }
  keys_are_paths_ = true;
  for (size_t i = 0; i < sources_.size(); ++i) {
    Folder& folder = folders_.emplace_back();
    folder.given = sources_[i]->root();
    if (!folder.given.ends_with('/')) folder.given += '/';
    folder.below = absolute_path(folder.given);
    if (i == 0) root_ = folder.below;
    share_folder(root_, folder.below);
    for (int64_t record = 0; record < sources_[i]->size(); ++record) {
      const std::string key = sources_[i]->key(record);
      if (!is_lexically_below(key, folder.given)) share_folder(root_, absolute_path(key));
    }
  }
  for (Folder& folder : folders_) folder.below.erase(0, root_.size());
}

uint64_t PackInput::fingerprint() const {
  Fingerprint print;
  print.add("pack");
  for (const SourcePtr& source : sources_) {
    print.add(source->fingerprint());
    print.add(static_cast<uint64_t>(source->size()));
  }
  return print.value();
}

bool PackInput::reads_in_python() const {
  return std::any_of(sources_.begin(), sources_.end(), [](const SourcePtr& source) {
    return source->read_style() == ReadStyle::kPython;
  });
}

size_t PackInput::source_of(int64_t index) const {
  return std::upper_bound(begins_.begin(), begins_.end(), index) - begins_.begin() - 1;
}

void PackInput::read(int64_t index, RecordData& out) const {
  const size_t number = source_of(index);
  const int64_t inside = index - begins_[number];
  const std::vector<bool> all(schema().size(), true);
  sources_[number]->read({&inside, 1}, all, {&out, 1});
  if (!out.result) {
    out.result.error().where.record = index;
    return;
  }
  const std::vector<int64_t>& labels = labels_[number];
  if (labels.empty() || label_field_ < 0) return;
  int64_t& label = out.fields[static_cast<size_t>(label_field_)].scalar;
  if (label >= 0 && label < static_cast<int64_t>(labels.size())) {
    label = labels[static_cast<size_t>(label)];
  }
}

std::string PackInput::key(int64_t index) const {
  const size_t number = source_of(index);
  const std::string key = sources_[number]->key(index - begins_[number]);
  if (!keys_are_paths_) {
    return sources_.size() > 1 ? std::to_string(number) + "/" + key : key;
  }
  const Folder& folder = folders_[number];
  if (is_lexically_below(key, folder.given)) return folder.below + key.substr(folder.given.size());
  return absolute_path(key).substr(root_.size());
}

}  // namespace headrace
