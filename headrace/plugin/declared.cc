// SPDX-License-Identifier: Apache-2.0
#include "headrace/plugin/declared.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <set>
#include <string_view>

#include "headrace/base/number_text.h"
#include "headrace/base/utf8.h"
#include "headrace/plugin/plugin_op.h"

namespace headrace {
namespace {

const ErrorCode kInvalid{
    "HR0572", ErrorKind::kConfig, "invalid plug-in",
    "The table that the plug-in returns breaks a rule of headrace/plugin.h: a name or function is "
    "missing, a name is taken or not an identifier, a default is outside its range, or a size is "
    "smaller than in the first version of the interface. None of its transforms was registered."};

// Of version 1; later ones append. Members up to here have to be there.
constexpr uint32_t kFirstPlugin = 48, kFirstTransform = 80, kFirstParam = 112;
static_assert(sizeof(headrace_plugin) >= kFirstPlugin);
static_assert(sizeof(headrace_transform) >= kFirstTransform);
static_assert(sizeof(headrace_param) >= kFirstParam);

constexpr uint32_t kKinds = 255, kImageDtypes = 31;
constexpr uint32_t kFlags = HEADRACE_VALUES | HEADRACE_MOVES | HEADRACE_RANDOM;
constexpr uint32_t kMostTransforms = 1000, kMostParams = 100, kMostChoices = 1000;
constexpr size_t kLongestName = 64;

// An entry of a list, as far as the library knows its members.
template <class List>
auto copy_of(const List& list, uint32_t i) {
  std::remove_cvref_t<decltype(*list.data)> out{};
  const auto* from = reinterpret_cast<const uint8_t*>(list.data) + size_t(i) * list.size;
  std::memcpy(&out, from, std::min<size_t>(sizeof out, list.size));
  return out;
}

class Declaring {
 public:
  Declaring(const std::string& path, std::string (*taken)(const std::string&))
      : path_(path), taken_(taken) {}

  std::unique_ptr<Plugin> plugin(const headrace_plugin& table, const std::string& fingerprint) {
    auto out = std::make_unique<Plugin>();
    if (table.struct_size < kFirstPlugin)
      refuse("its table has " + std::to_string(table.struct_size) + " bytes, and version 1 has " +
             std::to_string(kFirstPlugin));
    out->origin = {.plugin = text(table.name, "the plug-in's name"),
                   .version = text(table.version, "the plug-in's version"),
                   .path = path_,
                   .fingerprint = fingerprint};
    if (!is_name(out->origin.plugin, is_small, "-_"))
      refuse("the plug-in's name \"" + out->origin.plugin + "\" must consist of a-z, 0-9, - and _");
    out->help = table.help ? text(table.help, "the plug-in's help") : "";
    const headrace_transforms& list = table.transforms;
    check_list(list.data, list.count, list.size, kFirstTransform, kMostTransforms, "transforms");
    if (list.count == 0) refuse("it has no transform");
    for (uint32_t i = 0; i < list.count; ++i) {
      out->transforms.push_back(transform(copy_of(list, i), *out));
    }
    return out;
  }

 private:
  [[noreturn]] void refuse(const std::string& what, std::string hint = {}) const {
    const std::string where = subject_.empty() ? "" : "[" + subject_ + "] ";
    raise(kInvalid, path_ + ": " + where + what, std::move(hint));
  }

  static bool is_small(char c) { return c >= 'a' && c <= 'z'; }
  static bool is_large(char c) { return c >= 'A' && c <= 'Z'; }
  static bool is_small_or_score(char c) { return is_small(c) || c == '_'; }
  static bool is_name(std::string_view name, bool (*first)(char), std::string_view more) {
    const auto fits = [&](char c) {
      return is_small(c) || is_large(c) || (c >= '0' && c <= '9') ||
             more.find(c) != std::string_view::npos;
    };
    return !name.empty() && name.size() <= kLongestName && first(name.front()) &&
           std::ranges::all_of(name, fits);
  }

  std::string text(const char* given, const std::string& what) const {
    if (!given) refuse(what + " is NULL");
    const size_t length = strnlen(given, 1 << 16);
    const std::string out(given, length);
    if (length == 0) refuse(what + " is empty");
    if (length == 1 << 16) refuse(what + " has more than 65536 bytes, or no terminating NUL");
    if (!is_utf8({reinterpret_cast<const uint8_t*>(given), length})) refuse(what + " is not UTF-8");
    return out;
  }

  void check_list(const void* data, uint32_t count, uint32_t size, uint32_t first, uint32_t most,
                  const std::string& what) const {
    if (count == 0) return;
    if (!data)
      refuse("its list of " + what + " is NULL, with " + std::to_string(count) + " entries");
    if (count > most)
      refuse("it lists " + std::to_string(count) + " " + what + ", and " + std::to_string(most) +
             " is the limit");
    if (size < first || size % alignof(void*) != 0)
      refuse("an entry of its list of " + what + " has " + std::to_string(size) +
                 " bytes, and version 1 has " + std::to_string(first),
             "HEADRACE_LIST(array) fills in count and size");
  }

  // A pointer into some loaded library.
  template <class Function>
  void check_function(Function* function, const std::string& name) const {
    Dl_info info{};
    if (!function) refuse(name + " is NULL");
    if (!dladdr(reinterpret_cast<const void*>(function), &info))
      refuse(name + " does not point to a function");
  }

  std::unique_ptr<PluginTransform> transform(const headrace_transform& table,
                                             const Plugin& plugin) {
    subject_.clear();
    auto out = std::make_unique<PluginTransform>();
    out->plugin = &plugin;
    out->table = table;
    const std::string& name = out->texts.emplace_back(text(table.name, "a transform's name"));
    if (!is_name(name, is_large, "_") || name == "True" || name == "False" || name == "None")
      refuse("the transform \"" + name +
             "\" must be named like a class: a capital, then letters, digits and _");
    if (!names_.insert(name).second) refuse("it has two transforms called \"" + name + "\"");
    if (const std::string where = taken_(name); !where.empty())
      refuse("its transform \"" + name + "\" has the same name as one that is " + where,
             "give it another name, for example with the plug-in's name as a prefix");
    subject_ = name;
    check_flags(table);
    check_function(table.run, "run");
    if (table.shape) check_function(table.shape, "shape");
    if (table.create) check_function(table.create, "create");
    if (table.destroy) check_function(table.destroy, "destroy");
    const headrace_params& list = table.params;
    check_list(list.data, list.count, list.size, kFirstParam, kMostParams, "parameters");
    if (list.count > 0 && !table.create) refuse("it has parameters, and create is NULL");
    OpRecord& record = out->record;
    record.name = name;
    record.doc = doc_of(table, plugin, *out);
    record.random = (table.flags & HEADRACE_RANDOM) != 0;
    record.origin = &plugin.origin;
    params_.clear();
    for (uint32_t i = 0; i < list.count; ++i) {
      record.params.push_back(param(copy_of(list, i), *out));
      subject_ = name;
    }
    const PluginTransform* const transform = out.get();
    record.make = [transform](const Arguments& arguments) -> std::unique_ptr<Op> {
      return make_plugin_op(*transform, arguments);
    };
    return out;
  }

  void check_flags(const headrace_transform& table) const {
    const bool values = table.flags & HEADRACE_VALUES, moves = table.flags & HEADRACE_MOVES;
    if (values == moves)
      refuse(
          "flags must have exactly one of HEADRACE_VALUES (objects in an image stay in place) and "
          "HEADRACE_MOVES (they move)");
    const char* const newer = "it was built for a later version of Headrace";
    if (table.flags & ~kFlags) refuse("flags has unknown bits", newer);
    if (table.kinds & ~kKinds) refuse("kinds has unknown bits", newer);
    if (table.image_dtypes & ~kImageDtypes) refuse("image_dtypes has unknown bits", newer);
    if (table.kinds == 0) refuse("kinds is 0: it would not act on any field");
    if (moves && !(table.kinds & HEADRACE_IMAGE))
      refuse("flags has HEADRACE_MOVES, but kinds lacks HEADRACE_IMAGE");
  }

  std::string_view doc_of(const headrace_transform& table, const Plugin& plugin,
                          PluginTransform& out) const {
    std::string doc = text(table.help, "its help");
    const auto moving = [&](std::string_view what, uint32_t kind) {
      return (table.kinds & kind) == 0 ? std::string() : std::string(what) + ", ";
    };
    if (table.flags & HEADRACE_MOVES) {
      std::string along = moving("masks", HEADRACE_MASK) + moving("boxes", HEADRACE_BOXES) +
                          moving("keypoints", HEADRACE_KEYPOINTS) +
                          moving("planes", HEADRACE_MASKS);
      if (!along.empty()) along.resize(along.size() - 2);
      doc += along.empty()
                 ? "\n\nIt moves images only: records with boxes, masks or keypoints are rejected."
                 : "\n\nIt moves images, and with them " + along + ".";
    }
    doc += "\n\nFrom the plug-in " + plugin.origin.plugin + " " + plugin.origin.version + ".";
    return out.texts.emplace_back(std::move(doc));
  }

  Param param(const headrace_param& given, PluginTransform& out) {
    const std::string& name = out.texts.emplace_back(text(given.name, "a parameter's name"));
    static constexpr std::array<std::string_view, 34> kTaken = {
        "and",   "as",     "assert", "async",  "await",  "break",    "class", "continue", "def",
        "del",   "elif",   "else",   "except", "fields", "finally",  "for",   "from",     "global",
        "if",    "import", "in",     "is",     "lambda", "nonlocal", "not",   "or",       "pass",
        "raise", "return", "self",   "try",    "while",  "with",     "yield"};
    if (!is_name(name, is_small_or_score, "_"))
      refuse("the parameter \"" + name +
             "\" must be named like an argument: lowercase letters, digits and _");
    if (std::ranges::count(kTaken, name))
      refuse("a parameter cannot be called \"" + name + "\", which is reserved");
    if (!params_.insert(name).second) refuse("it has two parameters called \"" + name + "\"");
    subject_ += "(" + name + ")";
    if (given.flags & ~uint32_t{HEADRACE_PARAM_REQUIRED})
      refuse("flags has unknown bits", "it was built for a later version of Headrace");
    Param param{.name = name,
                .type = ParamType::kBool,
                .doc = out.texts.emplace_back(text(given.help, "its help"))};
    param.required = (given.flags & HEADRACE_PARAM_REQUIRED) != 0;
    set_range(given, param);
    set_choices(given, param, out);
    set_type(given, param);
    return param;
  }

  void set_range(const headrace_param& given, Param& param) const {
    if (std::isnan(given.minimum) || std::isnan(given.maximum) || given.minimum > given.maximum)
      refuse("its range is " + shortest_text(given.minimum) + " to " +
             shortest_text(given.maximum));
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

  void set_choices(const headrace_param& given, Param& param, PluginTransform& out) const {
    if (given.choice_count == 0) return;
    if (given.type != HEADRACE_PARAM_TEXT) refuse("it has choices, but its type is not text");
    if (!given.choices || given.choice_count > kMostChoices)
      refuse("its list of choices is invalid");
    for (uint32_t i = 0; i < given.choice_count; ++i) {
      param.choices.push_back(out.texts.emplace_back(text(given.choices[i], "a choice")));
    }
  }

  void set_type(const headrace_param& given, Param& param) const {
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

  const std::string path_;
  std::string (*const taken_)(const std::string&);
  std::string subject_;  // the transform, and its parameter
  std::set<std::string> names_, params_;
};

}  // namespace

std::string text_of(const OpOrigin& origin) {
  return "plug-in " + origin.plugin + " (" + origin.path + ")";
}

std::unique_ptr<Plugin> declared(const headrace_plugin& table, const std::string& path,
                                 const std::string& fingerprint,
                                 std::string (*taken)(const std::string& name)) {
  return Declaring(path, taken).plugin(table, fingerprint);
}

}  // namespace headrace
