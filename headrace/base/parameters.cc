// SPDX-License-Identifier: Apache-2.0
#include "headrace/base/parameters.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <optional>
#include <sstream>
#include <utility>

namespace headrace {
namespace {

const ErrorCode kUnknownParameter{
    "HR0101", ErrorKind::kConfig, "unknown parameter",
    "The argument has an undeclared name. Operators and formats accept exactly the parameters "
    "listed in their reference (`headrace operators NAME`); the message suggests the closest one."};

const ErrorCode kMissingParameter{
    "HR0102", ErrorKind::kConfig, "missing parameter",
    "A required parameter is missing. It has no default because no single value suits most uses."};

const ErrorCode kWrongType{
    "HR0103", ErrorKind::kConfig, "parameter has the wrong type",
    "The argument cannot be read as the parameter's type. Nothing is converted silently: True is "
    "not a number, 2.5 is not an integer, \"3\" is not a number."};

const ErrorCode kOutOfRange{
    "HR0104", ErrorKind::kConfig, "parameter out of range",
    "The argument has the right type, but its value, or the length of the list, is invalid here. "
    "The message states the rule and the value received."};

std::string show(double number) {
  std::ostringstream out;
  out << number;
  return out.str();
}

template <class T>
std::string show_list(const std::vector<T>& values) {
  std::string out;
  for (const T& value : values) out += (out.empty() ? "" : ", ") + text_of(ParamValue(value));
  return "[" + out + "]";
}

std::string_view name_of(ParamType type) {
  switch (type) {
    case ParamType::kBool:
      return "True or False";
    case ParamType::kInt:
      return "an integer";
    case ParamType::kFloat:
      return "a number";
    case ParamType::kString:
      return "a string";
    case ParamType::kDType:
      return "a dtype";
    case ParamType::kInts:
      return "an integer or a list of integers";
    case ParamType::kFloats:
      return "a number or a list of numbers";
    case ParamType::kTransforms:
      return "a list of transforms";
    case ParamType::kBranches:
      return "lists of transforms, each with a name";
    case ParamType::kStrings:
      return "a list of strings";
    case ParamType::kLists:
      return "a list of transforms, or of lists of them";
    case ParamType::kSource:
      return "a source, as returned by hr.open";
  }
  return "?";
}

// Checks one argument and converts it to the declared type.
class Check {
 public:
  Check(std::string_view owner, const Param& param) : owner_(owner), param_(param) {}

  ParamValue operator()(const ParamValue& given) const {
    const bool none_allowed = param_.or_none || (!param_.required && param_.fallback.index() == 0);
    if (std::holds_alternative<std::monostate>(given)) {
      if (!none_allowed) wrong_type(given);
      return given;
    }
    ParamValue value = converted(given);
    std::visit([this](const auto& v) { check_range(v); }, value);
    return value;
  }

 private:
  ParamValue converted(const ParamValue& given) const {
    switch (param_.type) {
      case ParamType::kBool:
        return as_is<bool>(given);
      case ParamType::kInt:
        return as_is<int64_t>(given);
      case ParamType::kString:
        return as_is<std::string>(given);
      case ParamType::kTransforms:
      case ParamType::kBranches:
        return as_is<std::vector<Branch>>(given);
      case ParamType::kLists:
        if (is_empty_list(given)) return std::vector<Branch>{};
        return as_is<std::vector<Branch>>(given);
      case ParamType::kFloat:
        return number(given);
      case ParamType::kDType:
        return dtype(given);
      case ParamType::kInts:
        if (const auto* one = std::get_if<int64_t>(&given)) return std::vector<int64_t>{*one};
        if (is_empty_list(given)) return std::vector<int64_t>{};
        return as_is<std::vector<int64_t>>(given);
      case ParamType::kFloats:
        if (!param_.choices.empty() && std::holds_alternative<std::string>(given)) return given;
        return numbers(given);
      case ParamType::kStrings:
        if (const auto* one = std::get_if<std::string>(&given); one && !param_.choices.empty()) {
          return std::vector<std::string>{*one};
        }
        if (is_empty_list(given)) return std::vector<std::string>{};
        return as_is<std::vector<std::string>>(given);
      case ParamType::kSource:
        return as_is<ParamObjectPtr>(given);
    }
    wrong_type(given);
  }

  // An empty list has no element type: the Python side may have assumed any.
  static bool is_empty_list(const ParamValue& given) {
    const auto* integers = std::get_if<std::vector<int64_t>>(&given);
    const auto* numbers = std::get_if<std::vector<double>>(&given);
    const auto* texts = std::get_if<std::vector<std::string>>(&given);
    return (integers && integers->empty()) || (numbers && numbers->empty()) ||
           (texts && texts->empty());
  }

  template <class T>
  ParamValue as_is(const ParamValue& given) const {
    if (!std::holds_alternative<T>(given)) wrong_type(given);
    return given;
  }

  ParamValue number(const ParamValue& given) const {
    if (const auto* integer = std::get_if<int64_t>(&given)) return static_cast<double>(*integer);
    return as_is<double>(given);
  }

  ParamValue numbers(const ParamValue& given) const {
    if (const auto* integers = std::get_if<std::vector<int64_t>>(&given)) {
      return std::vector<double>(integers->begin(), integers->end());
    }
    if (is_empty_list(given)) return std::vector<double>{};
    if (std::holds_alternative<std::vector<double>>(given)) return given;
    return std::vector<double>{std::get<double>(number(given))};
  }

  ParamValue dtype(const ParamValue& given) const {
    const auto* name = std::get_if<std::string>(&given);
    if (!name) return as_is<DType>(given);
    std::string_view plain = *name;
    if (plain.starts_with("torch.")) plain.remove_prefix(6);
    if (std::optional<DType> found = dtype_from_name(plain)) return *found;
    std::vector<std::string_view> names;
    for (int i = 0; i <= static_cast<int>(DType::kBool); ++i) {
      names.push_back(headrace::name_of(static_cast<DType>(i)));
    }
    const std::string_view near = nearest_name(plain, names);
    const bool by_field = name->starts_with('{');
    raise(kOutOfRange, subject() + " must name a dtype (got \"" + *name + "\")",
          by_field ? "one dtype, for images: ToDtype(\"float32\", scale=True); masks have theirs "
                     "with fields=\"mask\", and int64 by images, masks = batch.segmentation()"
          : near.empty() ? "float32, float16, bfloat16, uint8, ..."
                         : "did you mean \"" + std::string(near) + "\"?");
  }

  void check_range(int64_t value) const { check_range(static_cast<double>(value)); }
  void check_range(double value) const {
    if (!std::isfinite(value)) out_of_range("must be finite", show(value));
    const bool low = value<param_.minimum, high = value> param_.maximum;
    if (!low && !high) return;
    const bool bounded_below = std::isfinite(param_.minimum);
    const bool bounded_above = std::isfinite(param_.maximum);
    out_of_range(bounded_below && bounded_above
                     ? "must be from " + show(param_.minimum) + " to " + show(param_.maximum)
                 : low ? "must be at least " + show(param_.minimum)
                       : "must be at most " + show(param_.maximum),
                 show(value));
  }

  template <class T>
    requires std::is_same_v<T, int64_t> || std::is_same_v<T, double>
  void check_range(const std::vector<T>& values) const {
    check_count(values.size(), text_of(ParamValue(values)));
    for (T value : values) check_range(value);
  }

  void check_range(const std::vector<Branch>& branches) const {
    const bool nested = param_.type == ParamType::kTransforms;
    const size_t count = !nested            ? branches.size()
                         : branches.empty() ? 0
                                            : branches.front().transforms.size();
    check_count(count, std::to_string(count));
  }

  void check_range(const std::string& value) const {
    if (param_.choices.empty() || std::ranges::count(param_.choices, value)) return;
    std::string all;
    for (std::string_view choice : param_.choices) {
      all += (all.empty() ? "\"" : ", \"") + std::string(choice) + "\"";
    }
    const std::string_view near = nearest_name(value, param_.choices);
    raise(kOutOfRange,
          subject() + " must be " + (param_.choices.size() > 1 ? "one of " : "") + all +
              " (got \"" + value + "\")",
          near.empty() ? "" : "did you mean \"" + std::string(near) + "\"?");
  }

  void check_range(const std::vector<std::string>& values) const {
    check_count(values.size(), text_of(ParamValue(values)));
    for (const std::string& value : values) check_range(value);
  }
  void check_range(std::monostate) const {}
  void check_range(bool) const {}
  void check_range(DType) const {}
  void check_range(const ParamObjectPtr&) const {}

  void check_count(size_t count, const std::string& got) const {
    const size_t low = static_cast<size_t>(param_.min_count);
    const size_t high = static_cast<size_t>(param_.max_count);
    if (count >= low && count <= high) return;
    const auto values = [](size_t n) {
      return std::to_string(n) + (n == 1 ? " value" : " values");
    };
    out_of_range(
        count < low ? "must have at least " + values(low) : "must have at most " + values(high),
        got);
  }

  std::string subject() const {
    return "[" + std::string(owner_) + "] " + std::string(param_.name);
  }
  [[noreturn]] void wrong_type(const ParamValue& given) const {
    const bool or_one = param_.type == ParamType::kStrings && !param_.choices.empty();
    raise(kWrongType, subject() + " must be " + (or_one ? "a string or " : "") +
                          std::string(name_of(param_.type)) + " (got " + text_of(given) + ")");
  }
  [[noreturn]] void out_of_range(const std::string& rule, const std::string& got) const {
    raise(kOutOfRange, subject() + " " + rule + " (got " + got + ")");
  }

  std::string_view owner_;
  const Param& param_;
};

}  // namespace

ParamValue::ParamValue() = default;
ParamValue::ParamValue(std::monostate) {}
ParamValue::ParamValue(bool value) : ParamVariant(value) {}
ParamValue::ParamValue(int64_t value) : ParamVariant(value) {}
ParamValue::ParamValue(double value) : ParamVariant(value) {}
ParamValue::ParamValue(std::string value) : ParamVariant(std::move(value)) {}
ParamValue::ParamValue(DType value) : ParamVariant(value) {}
ParamValue::ParamValue(std::vector<int64_t> value) : ParamVariant(std::move(value)) {}
ParamValue::ParamValue(std::vector<double> value) : ParamVariant(std::move(value)) {}
ParamValue::ParamValue(std::vector<Branch> value) : ParamVariant(std::move(value)) {}
ParamValue::ParamValue(std::vector<std::string> value) : ParamVariant(std::move(value)) {}
ParamValue::ParamValue(ParamObjectPtr value) : ParamVariant(std::move(value)) {}
// Not defaulted: if copying a string or a list throws, libstdc++'s copy constructor destroys a
// value of no type, which crashes, because none of these types could leave a variant without a
// value.
ParamValue::ParamValue(const ParamValue& other) : ParamVariant() { ParamVariant::operator=(other); }
ParamValue::ParamValue(ParamValue&& other) noexcept = default;
ParamValue& ParamValue::operator=(const ParamValue& other) = default;
ParamValue& ParamValue::operator=(ParamValue&& other) noexcept = default;
ParamValue::~ParamValue() = default;

std::string text_of(const ParamValue& value) {
  struct Visitor {
    std::string operator()(std::monostate) const { return "None"; }
    std::string operator()(bool flag) const { return flag ? "True" : "False"; }
    std::string operator()(int64_t number) const { return std::to_string(number); }
    std::string operator()(double number) const { return show(number); }
    std::string operator()(const std::string& text) const { return "\"" + text + "\""; }
    std::string operator()(DType dtype) const { return std::string(name_of(dtype)); }
    std::string operator()(const std::vector<int64_t>& list) const { return show_list(list); }
    std::string operator()(const std::vector<double>& list) const { return show_list(list); }
    std::string operator()(const std::vector<std::string>& list) const { return show_list(list); }
    std::string operator()(const ParamObjectPtr& object) const {
      return std::string(object->noun());
    }
    std::string operator()(const std::vector<Branch>& list) const {
      size_t count = 0;
      for (const Branch& branch : list) count += branch.transforms.size();
      return std::to_string(count) + (count == 1 ? " transform" : " transforms");
    }
  };
  return std::visit(Visitor{}, value);
}

Arguments::Arguments(std::string_view owner, const std::vector<Param>& params,
                     const std::map<std::string, ParamValue>& given) {
  std::vector<std::string_view> names;
  for (const Param& param : params) names.push_back(param.name);
  for (const auto& [name, value] : given) {
    if (std::ranges::count(names, name)) continue;
    const std::string_view near = nearest_name(name, names);
    std::string all;
    for (std::string_view known : names) all += (all.empty() ? "" : ", ") + std::string(known);
    raise(kUnknownParameter, "[" + std::string(owner) + "] has no parameter \"" + name + "\"",
          !near.empty()  ? "did you mean \"" + std::string(near) + "\"?"
          : !all.empty() ? "its parameters are " + all
                         : "it takes none");
  }
  for (const Param& param : params) {
    const auto found = given.find(std::string(param.name));
    if (found == given.end() && param.required) {
      raise(kMissingParameter, "[" + std::string(owner) + "] needs " + std::string(param.name) +
                                   ": " + std::string(param.doc));
    }
    const ParamValue& value = found == given.end() ? param.fallback : found->second;
    values_.emplace(param.name, Check(owner, param)(value));
  }
}

const ParamValue& Arguments::value(std::string_view name) const {
  return values_.find(name)->second;
}

bool Arguments::is_none(std::string_view name) const { return value(name).index() == 0; }
bool Arguments::is_text(std::string_view name) const {
  return std::holds_alternative<std::string>(value(name));
}
bool Arguments::flag(std::string_view name) const { return std::get<bool>(value(name)); }
int64_t Arguments::integer(std::string_view name) const { return std::get<int64_t>(value(name)); }
double Arguments::number(std::string_view name) const { return std::get<double>(value(name)); }
const std::string& Arguments::text(std::string_view name) const {
  return std::get<std::string>(value(name));
}
DType Arguments::dtype(std::string_view name) const { return std::get<DType>(value(name)); }
const std::vector<int64_t>& Arguments::integers(std::string_view name) const {
  return std::get<std::vector<int64_t>>(value(name));
}
const std::vector<double>& Arguments::numbers(std::string_view name) const {
  return std::get<std::vector<double>>(value(name));
}
const std::vector<Branch>& Arguments::branches(std::string_view name) const {
  return std::get<std::vector<Branch>>(value(name));
}

const std::vector<std::string>& Arguments::texts(std::string_view name) const {
  return std::get<std::vector<std::string>>(value(name));
}

const ParamObjectPtr& Arguments::object(std::string_view name) const {
  static const ParamObjectPtr kNone;
  return is_none(name) ? kNone : std::get<ParamObjectPtr>(value(name));
}

std::string_view nearest_name(std::string_view name,
                              const std::vector<std::string_view>& candidates) {
  const auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  // Damerau's distance on lower case: insertions, deletions, substitutions, swaps of neighbors.
  const auto distance = [&](std::string_view a, std::string_view b) {
    std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
    for (size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
    for (size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
    for (size_t i = 1; i <= a.size(); ++i) {
      for (size_t j = 1; j <= b.size(); ++j) {
        const bool same = lower(a[i - 1]) == lower(b[j - 1]);
        d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + !same});
        if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
            lower(a[i - 2]) == lower(b[j - 1])) {
          d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
        }
      }
    }
    return d[a.size()][b.size()];
  };
  // "img" for "image": a common abbreviation.
  const auto abbreviates = [&](std::string_view candidate) {
    if (name.size() < 3 || candidate.empty() || lower(name[0]) != lower(candidate[0])) return false;
    size_t at = 0;
    for (const char c : candidate) at += at < name.size() && lower(c) == lower(name[at]);
    return at == name.size();
  };
  if (name.size() > 100) return {};  // not a plausible typo
  std::string_view best;
  size_t best_distance = std::max<size_t>(2, name.size() / 3) + 1;
  for (std::string_view candidate : candidates) {
    const size_t d = abbreviates(candidate) ? std::min<size_t>(1, distance(name, candidate))
                                            : distance(name, candidate);
    // A name of two letters is not "near" everything.
    if (d < best_distance && d < std::max(name.size(), candidate.size())) {
      best = candidate;
      best_distance = d;
    }
  }
  return best;
}

}  // namespace headrace
