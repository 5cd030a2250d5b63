// SPDX-License-Identifier: Apache-2.0
// C++ errors -> the classes of headrace.errors, with code, where, note and hint as attributes.

#include <algorithm>

#include "bindings/bindings.h"
#include "headrace/base/error.h"
#include "headrace/base/registry.h"

namespace headrace::python {
namespace {

constexpr std::string_view kKindNames[] = {"config", "data", "resource", "storage", "unsupported"};

// Codes of the Python layers are declared in Python, next to the code that raises them, and are
// permanent, like all records.
void declare_code(const std::string& id, const std::string& kind, const std::string& title,
                  const std::string& explanation) {
  if (const ErrorCode* known = Registry<ErrorCode>::find(id)) {
    if (known->title == title) return;  // the module was imported a second time
    throw nb::value_error(("error code " + id + " is declared twice").c_str());
  }
  for (int i = 0; i < 5; ++i) {
    if (kKindNames[i] != kind) continue;
    const auto* text = new std::array{id, title, explanation};
    new ErrorCode((*text)[0], static_cast<ErrorKind>(i), (*text)[1], (*text)[2]);
    return;
  }
  throw nb::value_error("unknown kind of error");
}

nb::dict error_codes() {
  nb::dict codes;
  for (const ErrorCode* code : Registry<ErrorCode>::all()) {
    nb::dict entry;
    entry["kind"] = kKindNames[static_cast<int>(code->kind)];
    entry["title"] = code->title;
    entry["explanation"] = code->explanation;
    codes[nb::cast(code->id)] = entry;
  }
  return codes;
}

void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Exception& exception) {
    set_python_error(exception.error());
  }
}

}  // namespace

void rethrow_keyboard_interrupt(const std::exception& failure) {
  const auto* raised = dynamic_cast<const nb::python_error*>(&failure);
  if (raised && raised->matches(PyExc_KeyboardInterrupt)) throw;
}

std::string first_line_of(const std::exception& failure) {
  const auto* raised = dynamic_cast<const nb::python_error*>(&failure);
  if (!raised) return failure.what();
  return nb::cast<std::string>(nb::str(raised->type().attr("__name__"))) + ": " +
         bytes_from_text(nb::str(raised->value()));
}

std::string bytes_from_text(nb::handle text) {
  PyObject* encoded = PyUnicode_AsEncodedString(text.ptr(), "utf-8", "backslashreplace");
  if (!encoded) nb::raise_python_error();
  const nb::bytes bytes = nb::steal<nb::bytes>(encoded);
  return {bytes.c_str(), bytes.size()};
}

nb::str str_from_bytes(std::string_view bytes) {
  PyObject* text =
      PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "surrogateescape");
  if (!text) nb::raise_python_error();
  return nb::steal<nb::str>(text);
}

std::string bytes_from_str(nb::handle text) {
  PyObject* encoded = PyUnicode_AsEncodedString(text.ptr(), "utf-8", "surrogateescape");
  if (!encoded) nb::raise_python_error();
  const nb::bytes bytes = nb::steal<nb::bytes>(encoded);
  return {bytes.c_str(), bytes.size()};
}

nb::object exception_from_error(const Error& error) {
  const auto shown = [](std::string_view text) { return str_from_bytes(without_secrets(text)); };
  nb::dict where;
  where["file"] = shown(error.where.file);
  where["member"] = str_from_bytes(error.where.member);
  where["record"] = error.where.record;
  where["offset"] = error.where.offset;
  return nb::module_::import_("headrace.errors")
      .attr("from_engine")(kKindNames[static_cast<int>(error.code->kind)], error.code->id,
                           str_from_bytes(error.message()), shown(error.what), where,
                           str_from_bytes(error.where.text()), shown(error.note),
                           shown(error.hint));
}

void set_python_error(const Error& error) {
  const nb::object value = exception_from_error(error);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(value.ptr())), value.ptr());
}

std::optional<Error> error_from_exception(const std::exception& failure) {
  const auto* raised = dynamic_cast<const nb::python_error*>(&failure);
  if (!raised || !raised->matches(nb::module_::import_("headrace.errors").attr("Error"))) {
    return std::nullopt;
  }
  const nb::object error = nb::borrow(raised->value());
  const auto text = [&](const char* name) { return nb::cast<std::string>(error.attr(name)); };
  const ErrorCode* code = Registry<ErrorCode>::find(text("code"));
  if (!code) return std::nullopt;
  // Its message is "HR0833 title: what", then one line each for note and help.
  std::string what = nb::cast<std::string>(nb::str(error));
  const size_t prefix = code->id.size() + code->title.size() + 3;
  what = what.substr(std::min(prefix, what.size()));
  return Error{.code = code,
               .what = what.substr(0, what.find("\n  ")),
               .note = text("note"),
               .hint = text("hint")};
}

void bind_errors(nb::module_& module) {
  nb::register_exception_translator(translate);
  module.def("error_codes", &error_codes, nb::sig("def error_codes() -> dict[str, dict[str, str]]"),
             "All codes: id -> kind, title, explanation.");
  module.def("declare_code", &declare_code, nb::arg("id"), nb::arg("kind"), nb::arg("title"),
             nb::arg("explanation"), "Registers a code of the Python layers.");
}

}  // namespace headrace::python
