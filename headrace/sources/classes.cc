// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/classes.h"

#include <algorithm>

#include "headrace/base/parameters.h"
#include "headrace/sources/readable_text.h"

namespace headrace {
namespace {

const ErrorCode kWrongClasses{
    "HR0406", ErrorKind::kConfig, "unexpected class names",
    "classes= fixes the names and indices of the classes, since a validation set needs those of "
    "its training set. It must name each class once, and every class that has records; classes "
    "without records are allowed."};

}  // namespace

ClassList::ClassList(std::vector<std::string> names) : names_(std::move(names)) {
  for (const std::string& name : names_) {
    numbers_.emplace(name, static_cast<int64_t>(numbers_.size()));
  }
}

ClassList ClassList::found(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return ClassList(std::move(names));
}

ClassList ClassList::given(std::vector<std::string> names) {
  if (names.empty()) {
    raise(kWrongClasses, "classes= is empty", "omit it to take the classes from the data");
  }
  ClassList list(std::move(names));
  for (size_t i = 0; i < list.names_.size(); ++i) {
    if (list.numbers_.size() == list.names_.size()) break;
    if (std::count(list.names_.begin(), list.names_.begin() + i, list.names_[i]) > 0) {
      raise(kWrongClasses, "classes= has '" + list.names_[i] + "' twice",
            "each name must have one number");
    }
  }
  return list;
}

std::optional<int64_t> ClassList::number(std::string_view name) const {
  const auto at = numbers_.find(name);
  return at == numbers_.end() ? std::nullopt : std::optional(at->second);
}

void ClassList::refuse_unknown(const std::vector<std::string>& unknown,
                               const std::string& where) const {
  if (unknown.empty()) return;
  raise(kWrongClasses,
        count_text(static_cast<int64_t>(unknown.size()), "class", "classes") + " " + where +
            (unknown.size() == 1 ? " is" : " are") + " not among the " +
            count_text(size(), "name") + " in classes=: " + quoted_list(unknown),
        "add them to classes=, or take them out of the data");
}

Param classes_param() {
  return {.name = "classes",
          .type = ParamType::kStrings,
          .doc =
              "The class names in the order of their indices, for example those of the training "
              "set. None: those found, sorted.",
          .decides = Affects::kFingerprint};
}

std::optional<ClassList> classes_argument(const Arguments& arguments) {
  if (arguments.is_none("classes")) return std::nullopt;
  return ClassList::given(arguments.texts("classes"));
}

}  // namespace headrace
