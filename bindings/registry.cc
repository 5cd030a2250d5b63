// SPDX-License-Identifier: Apache-2.0
// The engine's registries as plain dictionaries: everything that is generated comes from here.
#include "headrace/base/registry.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>

#include "bindings/bindings.h"
#include "bindings/python_step.h"
#include "headrace/codecs/run_time_library.h"
#include "headrace/fields/media.h"
#include "headrace/formats/format.h"
#include "headrace/ops/op.h"

namespace headrace::python {
namespace {

constexpr std::string_view kTypeNames[] = {"bool",     "int",     "float",  "string",
                                           "dtype",    "ints",    "floats", "transforms",
                                           "branches", "strings", "lists",  "source"};
constexpr std::string_view kScopeNames[] = {"record", "batch", "mixed_in"};

const ErrorCode kNoValue{
    "HR0105", ErrorKind::kConfig, "unsupported argument type",
    "Parameters are numbers, text, dtypes, lists of numbers or text, and transforms. Nested "
    "lists, dictionaries, other objects and integers beyond 64 bits are not supported."};

nb::list describe_all(const std::vector<Param>& params) {
  nb::list out;
  for (const Param& param : params) out.append(describe(param));
  return out;
}

nb::dict describe_operator(const OpRecord& op) {
  nb::dict entry;
  entry["name"] = op.name;
  entry["doc"] = doc_text(op);
  const OpPage& page = op.page;
  entry["page"] = nb::make_tuple(page.section, page.step, page.unseen, page.boxes);
  entry["params"] = describe_all(op.params);
  entry["oracle"] = op.oracle;
  entry["example"] = example_text(op);
  entry["scope"] = kScopeNames[static_cast<int>(op.scope)];
  entry["random"] = op.random;
  entry["structural"] = op.expand != nullptr;
  if (op.origin) entry["plugin"] = describe(*op.origin);
  return entry;
}

nb::dict operators_of(bool plugins) {
  nb::dict out;
  for (const OpRecord* op : Registry<OpRecord>::all()) {
    if ((op->origin != nullptr) == plugins) out[nb::cast(op->name)] = describe_operator(*op);
  }
  return out;
}

nb::dict operators() { return operators_of(false); }
nb::dict plugin_operators() { return operators_of(true); }

nb::dict formats() {
  nb::dict out;
  for (const FormatRecord* format : Registry<FormatRecord>::all()) {
    nb::dict entry;
    entry["name"] = format->name;
    entry["doc"] = format->doc;
    entry["example"] = format->example;
    entry["params"] = describe_all(format->params);
    entry["shards"] = format->shards;
    out[nb::cast(format->name)] = entry;
  }
  return out;
}

nb::dict describe_format(const MediaFormat& format) {
  nb::dict entry;
  entry["name"] = format.name;
  entry["doc"] = format.doc;
  if (!format.oracle.empty()) entry["oracle"] = format.oracle;
  entry["suffixes"] = format.suffixes;
  return entry;
}

nb::dict media() {
  nb::dict out;
  for (const MediaRecord* media : all_media()) {
    nb::dict entry, formats;
    for (const MediaFormat& format : media->formats())
      formats[nb::cast(format.name)] = describe_format(format);
    entry["noun"] = media->noun;
    entry["formats"] = formats;
    out[nb::cast(media->name)] = entry;
  }
  return out;
}

// For the library that a codec uses: its Debian package, why it is unavailable here ("" if it is
// available), and where it was loaded from.
nb::tuple codec_library(const std::string& name) {
  for (const MediaRecord* media : all_media()) {
    for (const MediaFormat& format : media->formats()) {
      if (format.name != name || !format.library) continue;
      const RunTimeLibrary& library = format.library();
      return nb::make_tuple(library.package(), library.is_open() ? "" : library.missing().what,
                            library.origin());
    }
  }
  return nb::make_tuple("", "", "");
}

void check_arguments(const std::string& name, const NamedValues& arguments) {
  const OpRecord* op = Registry<OpRecord>::find(name);
  if (!op) throw nb::key_error(name.c_str());
  Arguments(op->name, op->params, params_from_dict(arguments));
}

template <class T>
std::vector<T> numbers_from(nb::handle object) {
  std::vector<T> out;
  for (nb::handle item : nb::borrow<nb::sequence>(object)) out.push_back(nb::cast<T>(item));
  return out;
}

// A list: branches as (name, [Spec]) pairs, strings, otherwise numbers; one float makes all of them
// floats.
ParamValue param_from_list(nb::handle object) {
  if (nb::isinstance<nb::dict>(object) || !PySequence_Check(object.ptr())) throw nb::cast_error();
  bool floats = false;
  for (nb::handle item : nb::borrow<nb::sequence>(object)) {
    if (nb::isinstance<nb::tuple>(item)) {
      std::vector<Branch> branches;
      for (nb::handle pair : nb::borrow<nb::sequence>(object)) {
        auto [name, steps] = nb::cast<std::pair<std::string, std::vector<Spec>>>(pair);
        branches.push_back({name, steps});
      }
      return branches;
    }
    if (PyUnicode_Check(item.ptr())) return nb::cast<std::vector<std::string>>(object);
    floats |= !PyLong_Check(item.ptr());
  }
  if (floats) return numbers_from<double>(object);
  return numbers_from<int64_t>(object);
}

}  // namespace

nb::dict describe(const OpOrigin& origin) {
  nb::dict entry;
  entry["name"] = origin.plugin;
  entry["version"] = origin.version;
  entry["path"] = str_from_bytes(origin.path);
  entry["fingerprint"] = origin.fingerprint;
  return entry;
}

nb::dict describe(const Param& param) {
  nb::dict entry;
  entry["name"] = param.name;
  entry["type"] = kTypeNames[static_cast<int>(param.type)];
  entry["doc"] = param.doc;
  entry["default"] = object_from_param(param.fallback);
  entry["required"] = param.required;
  entry["minimum"] = param.minimum;
  entry["maximum"] = param.maximum;
  entry["choices"] = param.choices;
  entry["min_count"] = param.min_count;
  entry["max_count"] = param.max_count;
  entry["or_none"] = param.or_none;
  return entry;
}

nb::object object_from_param(const ParamValue& value) {
  return std::visit(
      []<class T>(const T& held) -> nb::object {
        if constexpr (std::is_same_v<T, std::monostate>) {
          return nb::none();
        } else if constexpr (std::is_same_v<T, DType>) {
          return nb::cast(name_of(held));
        } else if constexpr (std::is_same_v<T, std::vector<Branch>>) {
          nb::list out;
          for (const Branch& branch : held)
            out.append(nb::make_tuple(branch.name, branch.transforms));
          return out;
        } else if constexpr (std::is_same_v<T, ParamObjectPtr>) {
          return nb::cast(SourceHandle{source_from(held)});
        } else {
          return nb::cast(held);
        }
      },
      value);
}

ParamValue param_from_object(nb::handle object) {
  if (object.is_none()) return {};
  if (nb::isinstance<DType>(object)) return nb::cast<DType>(object);
  if (PyBool_Check(object.ptr())) return nb::cast<bool>(object);
  if (PyLong_Check(object.ptr())) return nb::cast<int64_t>(object);
  if (PyFloat_Check(object.ptr())) return nb::cast<double>(object);
  if (PyUnicode_Check(object.ptr())) return nb::cast<std::string>(object);
  if (nb::isinstance<SourceHandle>(object))
    return ParamObjectPtr(nb::cast<SourceHandle&>(object).source);
  return param_from_list(object);
}

std::map<std::string, ParamValue> params_from_dict(const nb::dict& arguments) {
  std::map<std::string, ParamValue> out;
  for (auto [key, value] : arguments) {
    const std::string name = nb::cast<std::string>(key);
    try {
      out[name] = param_from_object(value);
    } catch (const std::bad_cast&) {  // a nested list, or an integer that is too large
      if (PyLong_Check(value.ptr())) raise(kNoValue, name + " must be an integer of 64 bits");
      raise(kNoValue,
            name + " is given a " + nb::cast<std::string>(value.type().attr("__name__")) +
                " that contains a value unsupported in parameters",
            "numbers of 64 bits, text, or a list of either");
    }
  }
  return out;
}

void bind_registry(nb::module_& module) {
  nb::enum_<DType> dtype(module, "DType", "Element types, named as NumPy and torch name them.");
  for (int i = 0; i <= static_cast<int>(DType::kBool); ++i)
    dtype.value(name_of(static_cast<DType>(i)).data(), static_cast<DType>(i));
  nb::class_<Spec>(module, "Spec", "A transform as the user specified it, not yet checked.")
      .def(
          "__init__",
          [](Spec* self, std::string name, const NamedValues& arguments,
             std::vector<std::string> fields, std::shared_ptr<PythonStep> function) {
            new (self) Spec{std::move(name), params_from_dict(arguments), std::move(fields),
                            std::move(function)};
          },
          nb::arg("name"), nb::arg("arguments"), nb::arg("fields"),
          nb::arg("function").none() = nb::none())
      .def_ro("name", &Spec::name)
      .def_ro("fields", &Spec::fields);
  constexpr const char* kSignature = "-> dict[str, dict[str, typing.Any]]";
  auto signature = [&](const char* name) {
    return std::string("def ") + name + "() " + kSignature;
  };
  module.def("operators", &operators, nb::sig(signature("operators").c_str()),
             "The engine's operators by name, with their parameters.");
  module.def("plugin_operators", &plugin_operators, nb::sig(signature("plugin_operators").c_str()),
             "Those of loaded plug-ins, each with its plug-in's name, version, path and "
             "fingerprint.");
  module.def("formats", &formats, nb::sig(signature("formats").c_str()),
             "All formats of sources by name, with their parameters.");
  module.def("media", &media, nb::sig(signature("media").c_str()),
             "Kinds of files that are decoded, by name: the noun, and its formats by name.");
  module.def("registered_records", &registered_records,
             "Number of records in the registries, which grows when a plug-in is loaded.");
  module.def(
      "codec_library", &codec_library, nb::arg("name"),
      nb::sig("def codec_library(name: str) -> tuple[str, str, str]"),
      "The library that a codec loads on first use: its Debian package, why it cannot be loaded "
      "here, and its file; all empty if the codec needs none.");
  module.def("check_arguments", &check_arguments, nb::arg("name"), nb::arg("arguments"),
             "Raises what a loader would raise for these arguments of an operator.");
}

}  // namespace headrace::python
