// SPDX-License-Identifier: Apache-2.0
// Texts about an operator, for its docs and error messages.
#include <algorithm>
#include <variant>

#include "headrace/ops/op.h"

namespace headrace {
namespace {

std::string call(const std::string& name, const std::string& arguments) {
  return name + "(" + arguments + ")";
}

std::string text_of_arguments(const std::map<std::string, ParamValue>& arguments);

// "[RandomHorizontalFlip(p=1)]"
std::string text_of(const std::vector<Spec>& transforms) {
  std::string out;
  for (const Spec& spec : transforms) {
    out += (out.empty() ? "" : ", ") + call(spec.name, text_of_arguments(spec.arguments));
  }
  return "[" + out + "]";
}

// name=value; branches are arguments with their own names.
std::string text_of_argument(const std::string& name, const ParamValue& value) {
  if (const auto* dtype = std::get_if<DType>(&value)) {
    return name + "=\"" + std::string(name_of(*dtype)) + "\"";
  }
  const auto* branches = std::get_if<std::vector<Branch>>(&value);
  if (!branches) return name + "=" + headrace::text_of(value);
  const bool named = std::ranges::none_of(*branches, &std::string::empty, &Branch::name);
  std::string out;
  if (branches->size() > 1 && !named) {  // each entry is a list
    for (const Branch& branch : *branches) {
      const std::string list = text_of(branch.transforms);
      const bool alone = branch.transforms.size() == 1;
      out += (out.empty() ? "" : ", ") + (alone ? list.substr(1, list.size() - 2) : list);
    }
    return name + "=[" + out + "]";
  }
  for (const Branch& branch : *branches) {
    out += (out.empty() ? "" : ", ") + (branch.name.empty() ? name : branch.name) + "=" +
           text_of(branch.transforms);
  }
  return out;
}

std::string text_of_arguments(const std::map<std::string, ParamValue>& arguments) {
  std::string out;
  for (const auto& [name, value] : arguments) {
    out += (out.empty() ? "" : ", ") + text_of_argument(name, value);
  }
  return out;
}

}  // namespace

std::string example_text(const OpRecord& record) {
  std::string arguments;  // in declaration order
  for (const Param& param : record.params) {
    const auto given = record.example.find(std::string(param.name));
    if (given == record.example.end()) continue;
    arguments += (arguments.empty() ? "" : ", ") + text_of_argument(given->first, given->second);
  }
  return call(std::string(record.name), arguments);
}

std::string doc_text(const OpRecord& record) {
  std::string out(record.doc);
  if (!record.make || record.origin) return out;
  const std::unique_ptr<Op> op = record.make(Arguments(record.name, record.params, record.example));
  const FieldState boxes{"boxes", FieldKind::kBoxes, DType::kFloat32, {-1, 4}, {}};
  if (op->moves() && op->cannot_move(boxes).empty()) {
    out += "\n\nBoxes of a known format, keypoints and planes follow their images.";
  }
  return out;
}

}  // namespace headrace
