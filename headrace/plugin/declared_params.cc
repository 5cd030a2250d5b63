// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>

#include "headrace/base/number_text.h"
#include "headrace/plugin/declaration_check.h"

namespace headrace {
namespace {

constexpr uint32_t kFirstParam = 112;  // bytes in version 1
static_assert(sizeof(headrace_param) >= kFirstParam);
constexpr uint32_t kMaxParams = 100, kMaxChoices = 1000;

}  // namespace

std::vector<Param> DeclarationCheck::params(const headrace_params& list,
                                            std::deque<std::string>& texts) {
  check_list(list.data, list.count, list.size, kFirstParam, kMaxParams, "parameters");
  std::vector<Param> out;
  for (uint32_t i = 0; i < list.count; ++i) {
    const std::string before = subject_;
    const headrace_param given = copy_of(list, i);
    const std::string name = text(given.name, "a parameter's name");
    for (const Param& other : out) {
      if (other.name == name) refuse("it has two parameters called \"" + name + "\"");
    }
    out.push_back(param(given, texts));
    subject_ = before;
  }
  return out;
}

Param DeclarationCheck::param(const headrace_param& given, std::deque<std::string>& texts) {
  const std::string& name = texts.emplace_back(text(given.name, "a parameter's name"));
  static constexpr std::array<std::string_view, 34> kTaken = {
      "and",   "as",     "assert", "async",  "await",  "break",    "class", "continue", "def",
      "del",   "elif",   "else",   "except", "fields", "finally",  "for",   "from",     "global",
      "if",    "import", "in",     "is",     "lambda", "nonlocal", "not",   "or",       "pass",
      "raise", "return", "self",   "try",    "while",  "with",     "yield"};
  if (!is_argument_name(name))
    refuse("the parameter \"" + name +
           "\" must be named like an argument: lowercase letters, digits and _");
  if (std::ranges::count(kTaken, name))
    refuse("a parameter cannot be called \"" + name + "\", which is reserved");
  subject_ += "(" + name + ")";
  check_flags(given.flags, HEADRACE_PARAM_REQUIRED);
  Param param{.name = name,
              .type = ParamType::kBool,
              .doc = texts.emplace_back(text(given.help, "its help"))};
  param.required = (given.flags & HEADRACE_PARAM_REQUIRED) != 0;
  set_range(given, param);
  set_choices(given, param, texts);
  set_type(given, param);
  return param;
}

void DeclarationCheck::set_range(const headrace_param& given, Param& param) const {
  if (std::isnan(given.minimum) || std::isnan(given.maximum) || given.minimum > given.maximum)
    refuse("its range is " + shortest_text(given.minimum) + " to " + shortest_text(given.maximum));
  if (given.minimum != 0 || given.maximum != 0) {
    param.minimum = given.minimum;
    param.maximum = given.maximum;
  }
  const bool list = given.type == HEADRACE_PARAM_INTS || given.type == HEADRACE_PARAM_FLOATS;
  if (given.max_count > 0 && given.min_count > given.max_count)
    refuse("its list has " + std::to_string(given.min_count) + " to " +
           std::to_string(given.max_count) + " entries");
  if (list && given.min_count > 0) param.min_count = int(std::min(given.min_count, 1u << 20));
  if (list && given.max_count > 0) param.max_count = int(std::min(given.max_count, 1u << 20));
}

void DeclarationCheck::set_choices(const headrace_param& given, Param& param,
                                   std::deque<std::string>& texts) const {
  if (given.choice_count == 0) return;
  if (given.type != HEADRACE_PARAM_TEXT) refuse("it has choices, but its type is not text");
  if (!given.choices || given.choice_count > kMaxChoices) refuse("its list of choices is invalid");
  for (uint32_t i = 0; i < given.choice_count; ++i) {
    param.choices.push_back(texts.emplace_back(text(given.choices[i], "a choice")));
  }
}

void DeclarationCheck::set_type(const headrace_param& given, Param& param) const {
  const headrace_value& value = given.fallback;
  const auto inside = [&](double number) {
    if (!param.required && !(number >= param.minimum && number <= param.maximum))
      refuse("its default " + shortest_text(number) + " is outside its range");
  };
  const auto counted = [&](const void* data) {
    if (param.required) return;
    if (value.count > 0 && !data) refuse("its default list is NULL");
    if (int64_t(value.count) < param.min_count || int64_t(value.count) > param.max_count)
      refuse("its default has " + std::to_string(value.count) + " entries");
  };
  switch (given.type) {
    case HEADRACE_PARAM_BOOL:
      param.type = ParamType::kBool;
      param.fallback = value.integer != 0;
      return;
    case HEADRACE_PARAM_INT:
      param.type = ParamType::kInt;
      param.fallback = value.integer;
      return inside(double(value.integer));
    case HEADRACE_PARAM_FLOAT:
      param.type = ParamType::kFloat;
      param.fallback = value.number;
      return inside(value.number);
    case HEADRACE_PARAM_TEXT:
      param.type = ParamType::kString;
      if (param.required) return;
      param.fallback = value.text ? std::string(value.text) : std::string();
      if (!value.text) refuse("its default is NULL");
      if (!param.choices.empty() &&
          !std::ranges::count(param.choices, std::string_view(value.text)))
        refuse("its default \"" + std::string(value.text) + "\" is not one of its choices");
      return;
    case HEADRACE_PARAM_INTS:
      param.type = ParamType::kInts;
      counted(value.integers);
      if (param.required) return;
      param.fallback = std::vector<int64_t>(value.integers, value.integers + value.count);
      for (uint32_t i = 0; i < value.count; ++i) inside(double(value.integers[i]));
      return;
    case HEADRACE_PARAM_FLOATS:
      param.type = ParamType::kFloats;
      counted(value.numbers);
      if (param.required) return;
      param.fallback = std::vector<double>(value.numbers, value.numbers + value.count);
      for (uint32_t i = 0; i < value.count; ++i) inside(value.numbers[i]);
      return;
    default:
      refuse("its type is " + std::to_string(given.type),
             "use HEADRACE_PARAM_BOOL, INT, FLOAT, TEXT, INTS or FLOATS");
  }
}

}  // namespace headrace
