// SPDX-License-Identifier: Apache-2.0
// Steps written in Python. The Python side (headrace/steps.py) maps arguments, results and
// exceptions; this file passes values, for many records per acquisition of the GIL.
#include "headrace/sources/python_function.h"

#include <cstring>
#include <optional>
#include <utility>

#include "bindings/bindings.h"
#include "bindings/python_step.h"
#include "headrace/image/deferred_picture.h"

namespace headrace::python {
namespace {

const ErrorCode kStepFailed{
    "HR0612", ErrorKind::kData, "Python transform failed",
    "A function in the list of transforms raised an exception for this record, or returned "
    "something that does not match its fields. The exception and its line are in the message. "
    "on_error= decides what happens to the record, as with any bad record."};

// A copy: the function may keep or modify it.
nb::object object_from_value(const PythonValue& value) {
  const auto* text = static_cast<const char*>(value.view.data);
  const size_t size = value.view.dense_bytes();
  if (value.is_text) return nb::str(text, size);
  if (value.is_bytes) return nb::bytes(text, size);
  Array array = make_array(value.view.dtype, value.view.shape);
  if (size) std::memcpy(array.view.data, value.view.data, size);
  return nb::cast(std::move(array));
}

// None for a damaged one: the executor handles it.
std::optional<Array> pixels_if_intact(const DeferredPicture& picture) try {
  return pixels_of(picture);
} catch (const Exception&) {
  return {};
}

PythonValue value_from_object(nb::handle object) {
  PythonValue value;
  if (nb::isinstance<DeferredPicture>(object)) {
    const auto& picture = nb::cast<const DeferredPicture&>(object);
    if (deferred_bytes > kMaxDeferredBytes) {
      if (std::optional<Array> made = pixels_if_intact(picture)) {
        return value_from_object(nb::cast(*std::move(made)));
      }
    }
    value.deferred = picture;
    const Recipe& recipe = value.deferred->recipe;
    const Size size = recipe.size();
    value.view = {nullptr, recipe.dtype(), {recipe.channels(), size.height, size.width}, {}};
    return value;
  }
  value.is_text = PyUnicode_Check(object.ptr());
  value.is_bytes = PyBytes_Check(object.ptr());
  if (value.is_text || value.is_bytes) {
    const nb::bytes bytes = value.is_text ? nb::borrow<nb::bytes>(object.attr("encode")())
                                          : nb::borrow<nb::bytes>(object);
    value.owned.resize(bytes.size());
    std::memcpy(value.owned.data(), bytes.c_str(), bytes.size());
    value.view = {value.owned.data(), DType::kUInt8, {static_cast<int64_t>(bytes.size())}, {}};
  } else {
    value.view = view_of_buffer(object, value.owned);
  }
  return value;
}

nb::tuple arguments_of(PythonCall& call) {
  nb::list values;
  for (const PythonValue& value : call.inputs) values.append(object_from_value(value));
  nb::list words;  // seed of the step's generator
  for (int i = 0; i < 4; ++i) words.append(call.draws.bits());
  return nb::make_tuple(values, words);
}

// (name, kind, format of boxes, shape, row group, how boxes are clamped): Taken
nb::list described(std::span<const Field> fields) {
  nb::list out;
  for (const Field& field : fields) {
    out.append(nb::make_tuple(field.name, name_of(field.kind), name_of(field.box_format),
                              nb::tuple(nb::cast(field.shape)), int{field.row_group},
                              name_of(field.clamping)));
  }
  return out;
}

}  // namespace

std::vector<std::string> PythonStep::chosen(const std::vector<Field>& seen) const {
  EngineGil gil;
  return nb::cast<std::vector<std::string>>(chosen_.get()(described(seen)));
}

void PythonStep::fail(PythonCall& call, std::string what) const {
  call.result = Error{.code = &kStepFailed, .what = "[" + name_ + "] " + std::move(what)};
}

// A dictionary of the returned fields, or the error as text.
void PythonStep::take_result(nb::handle result, PythonCall& call) const {
  if (PyUnicode_Check(result.ptr())) return fail(call, bytes_from_text(result));
  for (auto [name, value] : nb::borrow<nb::dict>(result)) {
    const std::string field = bytes_from_text(name);
    try {
      call.outputs.push_back(value_from_object(value));
      call.output_names.push_back(field);
    } catch (const std::exception& failure) {  // only this record's
      rethrow_keyboard_interrupt(failure);
      return fail(call, "\"" + field + "\": " + first_line_of(failure));
    }
  }
}

void PythonStep::call(std::span<PythonCall* const> calls) {
  EngineGil gil;
  try {
    nb::list asked;
    for (PythonCall* call : calls) asked.append(arguments_of(*call));
    // The first record's fields apply to all.
    const nb::list fields = described(calls.front()->fields);
    // Each value is copied before Python makes the next: the function may reuse its arrays.
    const nb::object results = run_.get()(asked, fields);
    size_t taken = 0;
    for (nb::handle result : results) take_result(result, *calls[taken++]);
  } catch (const std::exception& failure) {
    rethrow_keyboard_interrupt(failure);
    const std::optional<Error> known = error_from_exception(failure);  // not the records' fault
    for (PythonCall* call : calls) {
      if (known) {
        call->result = *known;
      } else {
        fail(*call, failure.what());
      }
    }
  }
}

void bind_python_function(nb::module_& module) {
  nb::enum_<PythonGeometry>(module, "PythonGeometry",
                            "Whether a transform moves things in an image, if known.")
      .value("unknown", PythonGeometry::kUnknown)
      .value("moves", PythonGeometry::kMoves)
      .value("alone", PythonGeometry::kAlone);
  nb::class_<PythonStep>(module, "PythonStep", "A function in the list of transforms.")
      .def(
          nb::init<std::string, std::vector<std::string>, std::vector<Field>,
                   std::vector<std::string>, PythonGeometry, std::string, nb::object, nb::object>(),
          nb::arg("name"), nb::arg("inputs"), nb::arg("returns"), nb::arg("guessed"),
          nb::arg("geometry"), nb::arg("remedy"), nb::arg("run"), nb::arg("chosen"),
          "run: called with a list of (values, words of randomness), one pair per record, and the "
          "fields; yields for each record a dictionary of the returned fields, or a message that "
          "says what went wrong. chosen: called with the visible fields; returns the names of "
          "those that the function takes. remedy: the hint for results that differ from the "
          "declaration. guessed: returned fields whose kind was inferred from the name. A field "
          "is (name, kind, format of boxes, shape, row group, whether boxes are clamped).");
}

}  // namespace headrace::python
