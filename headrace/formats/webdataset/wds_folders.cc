// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "headrace/formats/folder/splits.h"
#include "headrace/formats/webdataset/wds_source.h"

namespace headrace {
namespace {

std::string_view first_part(std::string_view path) { return path.substr(0, path.find('/')); }

}  // namespace

std::optional<int64_t> WdsFolders::label_of(std::string_view key, const ClassList& list) const {
  if (!key.starts_with(above)) return {};
  key.remove_prefix(above.size());
  if (key.find('/') == std::string_view::npos) return {};
  return list.number(first_part(key));
}

std::optional<WdsFolders> class_folders(const std::map<std::string, int64_t>& folders,
                                        const ClassList* given) {
  WdsFolders out;
  for (;;) {
    std::set<std::string_view> names;
    for (const auto& [folder, count] : folders) {
      if (folder.size() < out.above.size()) return {};  // pictures next to the class folders
      const std::string_view name = first_part(std::string_view(folder).substr(out.above.size()));
      if (name.empty()) return {};
      names.insert(name);
    }
    if (names.empty()) return {};
    const std::ptrdiff_t known =
        !given ? 0 : std::count_if(names.begin(), names.end(), [&](std::string_view name) {
          return given->number(name).has_value();
        });
    if (names.size() > 1 || known == std::ptrdiff_t(names.size())) {
      const auto splits = std::count_if(names.begin(), names.end(), is_split_name);
      const bool meant = known == std::ptrdiff_t(names.size());
      if (!meant && (splits > 1 || splits == std::ptrdiff_t(names.size()))) return {};
      out.classes.assign(names.begin(), names.end());
      return out;
    }
    out.above += std::string(*names.begin()) + "/";
  }
}

}  // namespace headrace
