// SPDX-License-Identifier: Apache-2.0
// A source whose records come from a Python object. The Python side
// (python/headrace/sources/objects.py) maps the object's values to fields; this file passes them,
// for many records per acquisition of the GIL.

#include <dlfcn.h>
#include <nanobind/stl/tuple.h>

#include <cstring>
#include <optional>

#include "bindings/bindings.h"
#include "bindings/stored_files.h"
#include "headrace/formats/python/python_formats.h"
#include "headrace/sources/record_groups.h"
#include "headrace/storage/read_deadline.h"

namespace headrace::python {
namespace {

const ErrorCode kRecordFailed{
    "HR0611", ErrorKind::kData, "Python source failed",
    "The Python object that provides the records raised an exception for this record, or returned "
    "a value that does not match the field. The exception is in the message. on_error= decides "
    "what happens to the record, as with any bad record."};

// A function of the interpreter that is not in its limited API; null if this version does not have
// it.
template <class Function>
Function* of_interpreter(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

// Whether this thread holds the GIL, even while the interpreter exits.
bool holds_gil() {
  static auto* const is_held = of_interpreter<int()>("PyGILState_Check");
  static auto* const state = [] {
    auto* const before_3_13 = of_interpreter<PyThreadState*()>("_PyThreadState_UncheckedGet");
    return before_3_13 ? before_3_13
                       : of_interpreter<PyThreadState*()>("PyThreadState_GetUnchecked");
  }();
  // PyGILState_Check alone would also return 1 once the interpreter has ended.
  return state && state() != nullptr && is_held && is_held() != 0;
}

// A value as python/headrace/sources/objects.py prepares it: int, str, bytes, or an array of the
// field's dtype.
void take_value(nb::handle value, FieldData& field, RecordData& record) {
  if (value.is_none()) return;
  if (PyLong_Check(value.ptr())) {
    int beyond = 0;
    field.scalar = PyLong_AsLongLongAndOverflow(value.ptr(), &beyond);
    if (beyond != 0) throw std::overflow_error("an integer beyond 64 bits");
    return;
  }
  Buffer& memory = record.owned.emplace_back();
  if (PyUnicode_Check(value.ptr()) || PyBytes_Check(value.ptr())) {
    const nb::bytes bytes = PyUnicode_Check(value.ptr())
                                ? nb::borrow<nb::bytes>(value.attr("encode")())
                                : nb::borrow<nb::bytes>(value);
    memory.resize(bytes.size());
    std::memcpy(memory.data(), bytes.c_str(), bytes.size());
    field.bytes = memory.bytes();
    return;
  }
  const TensorView view = view_of_buffer(value, memory);
  field.bytes = memory.bytes();
  field.shape = view.shape;
}

class PythonSource final : public Source {
 public:
  PythonSource(nb::object object, int64_t size, Schema schema, std::vector<std::string> classes,
               uint64_t fingerprint, std::string description)
      : object_(std::move(object)),
        size_(size),
        schema_(std::move(schema)),
        classes_(std::move(classes)),
        fingerprint_(fingerprint),
        description_(std::move(description)) {}

  int64_t size() const override { return size_; }
  const Schema& schema() const override { return schema_; }
  ReadStyle read_style() const override { return ReadStyle::kPython; }
  std::vector<std::string> classes() const override { return classes_; }
  uint64_t fingerprint() const override { return fingerprint_; }
  std::string description() const override { return description_; }

  std::string key(int64_t index) const override {
    EngineGil gil;
    return nb::cast<std::string>(object_.get().attr("key")(index));
  }

  std::vector<int64_t> integer_column(std::string_view field) const override {
    EngineGil gil;
    return nb::cast<std::vector<int64_t>>(
        object_.get().attr("integer_column")(nb::str(field.data(), field.size())));
  }

  void read(std::span<const int64_t> indices, const std::vector<bool>& wanted,
            std::span<RecordData> out) const override {
    EngineGil gil;
    for (size_t i = 0; i < out.size(); ++i) {
      out[i].index = indices[i];
      out[i].fields.assign(schema_.size(), {});
      out[i].owned.clear();
      out[i].owned.reserve(schema_.size());
      out[i].result = {};
    }
    try {
      nb::list asked;
      for (int64_t index : indices) asked.append(index);
      // Each value is copied before Python makes the next: it may reuse its arrays.
      const nb::object records = nb::iter(object_.get().attr("read")(asked, wanted));
      const double seconds = ReadDeadline::seconds_of_thread();
      for (size_t taken = 0;; ++taken) {
        // Each of several records has a deadline of its own, since it may itself read from a far
        // storage: one for all of them would fail the last ones.
        std::optional<ReadDeadline> deadline;
        if (out.size() > 1) deadline.emplace(seconds);
        const nb::object record = nb::steal(PyIter_Next(records.ptr()));
        if (!record.is_valid()) break;
        take_record(record, out[taken]);
      }
      if (PyErr_Occurred()) nb::raise_python_error();
    } catch (const std::exception& failure) {
      rethrow_keyboard_interrupt(failure);
      for (RecordData& record : out) fail(record, failure.what());
    }
  }

 private:
  // A list of values by field, or the error as text. A value that cannot be converted is the
  // record's own error: others of the same call are valid.
  void take_record(nb::handle values, RecordData& out) const {
    if (PyUnicode_Check(values.ptr())) return fail(out, bytes_from_text(values));
    for (size_t i = 0; i < schema_.size(); ++i) {
      try {
        take_value(values[i], out.fields[i], out);
      } catch (const std::exception& failure) {
        rethrow_keyboard_interrupt(failure);
        return fail(out, schema_[i].name + ": " + first_line_of(failure));
      }
    }
  }

  void fail(RecordData& record, std::string what) const {
    Error error{.code = &kRecordFailed, .what = std::move(what)};
    error.where.file = description_;
    error.where.record = record.index;
    record.result = std::move(error);
  }

  const OwnedObject object_;
  const int64_t size_;
  const Schema schema_;
  const std::vector<std::string> classes_;
  const uint64_t fingerprint_;
  const std::string description_;
};

// A group of records that Python decodes, from bytes that the engine has read.
Result<SourcePtr> decoded_group(const OwnedObject& decode, int64_t group, std::vector<Buffer> bytes,
                                const std::string& description) {
  EngineGil gil;
  try {
    nb::list arrays;
    for (Buffer& each : bytes) arrays.append(array_from_bytes(std::move(each)));
    return nb::cast<SourceHandle>(decode.get()(group, arrays)).source;
  } catch (const std::exception& failure) {
    rethrow_keyboard_interrupt(failure);
    if (std::optional<Error> error = error_from_exception(failure)) return std::move(*error);
    return Error{.code = &kRecordFailed,
                 .what = first_line_of(failure),
                 .where = Where{.file = description}};
  }
}

using Group = std::tuple<int64_t, std::vector<StoredRange>, uint64_t>;

SourceHandle source_of_python_groups(const StoredFiles& files, const std::vector<Group>& groups,
                                     uint64_t memory, const std::vector<Field>& schema,
                                     std::vector<std::string> classes, uint64_t fingerprint,
                                     std::string description, nb::object decode,
                                     nb::object integer_column) {
  // shared: std::function copies what it holds.
  const auto decoder = std::make_shared<OwnedObject>(std::move(decode));
  const auto column = std::make_shared<OwnedObject>(std::move(integer_column));
  RecordGroups out{.files = files.set,
                   .memory = memory,
                   .schema = schema,
                   .classes = std::move(classes),
                   .fingerprint = fingerprint,
                   .description = std::move(description)};
  for (const auto& [end, ranges, decoded_bytes] : groups) {
    out.groups.push_back(
        {.end = end, .ranges = files.checked(ranges), .decoded_bytes = decoded_bytes});
  }
  out.decode = [decoder, description = out.description](int64_t group, std::vector<Buffer> bytes) {
    return decoded_group(*decoder, group, std::move(bytes), description);
  };
  out.integer_column = [column](std::string_view field) {
    EngineGil gil;
    return nb::cast<std::vector<int64_t>>(column->get()(nb::str(field.data(), field.size())));
  };
  return {source_of_groups(std::move(out))};
}

Field make_field(std::string name, std::string_view kind, DType dtype, Shape shape, bool encoded) {
  return {std::move(name), kind_from_name(kind), dtype, std::move(shape), encoded};
}

// Formats read by a Python library: (format, files, arguments) -> the engine's source.
void set_opener(nb::object function) {
  // shared: std::function copies what it holds.
  auto shared = std::make_shared<OwnedObject>(std::move(function));
  set_python_opener([shared](const std::string& format, const std::vector<std::string>& files,
                             const std::map<std::string, ParamValue>& arguments) {
    nb::gil_scoped_acquire gil;
    nb::list paths;
    for (const std::string& file : files) paths.append(str_from_bytes(file));
    nb::dict given;
    for (const auto& [name, value] : arguments) given[name.c_str()] = object_from_param(value);
    return nb::cast<SourceHandle>(shared->get()(format, paths, given)).source;
  });
}

}  // namespace

FieldKind kind_from_name(std::string_view kind) {
  if (const KindRecord* known = find_kind(kind)) return known->kind;
  throw nb::value_error("no such kind of field");
}

OwnedObject::~OwnedObject() {
  if (holds_gil()) {
    Py_DECREF(object_);  // also while the interpreter exits, on its own thread
  } else if (Py_IsInitialized()) {
    nb::gil_scoped_acquire gil;
    Py_DECREF(object_);
  }
}

void bind_python_source(nb::module_& module) {
  module.def(
      "make_field",
      [](std::string name, const std::string& kind, DType dtype, Shape shape, bool encoded) {
        return make_field(std::move(name), kind, dtype, std::move(shape), encoded);
      },
      nb::arg("name"), nb::arg("kind"), nb::arg("dtype"), nb::arg("shape"), nb::arg("encoded"));
  module.def(
      "python_source",
      [](nb::object object, int64_t size, const std::vector<Field>& schema,
         std::vector<std::string> classes, uint64_t fingerprint, std::string description) {
        return SourceHandle{std::make_shared<PythonSource>(std::move(object), size, schema,
                                                           std::move(classes), fingerprint,
                                                           std::move(description))};
      },
      nb::arg("object"), nb::arg("size"), nb::arg("schema"), nb::arg("classes"),
      nb::arg("fingerprint"), nb::arg("description"),
      "A source over an object with read(indices, wanted), key(index) and integer_column(field). "
      "The result of read() is iterated over; each record is used before the next is requested.");
  bind_stored_files(module);
  module.def(
      "source_of_groups", &source_of_python_groups, nb::arg("files"), nb::arg("groups"),
      nb::arg("memory"), nb::arg("schema"), nb::arg("classes"), nb::arg("fingerprint"),
      nb::arg("description"), nb::arg("decode"), nb::arg("integer_column"),
      nb::sig("def source_of_groups(files: StoredFiles, groups: Sequence[tuple[int, "
              "Sequence[tuple[int, int, int]], int]], memory: int, schema: Sequence[Field], "
              "classes: Sequence[str], fingerprint: int, description: str, decode: "
              "typing.Callable[[int, list[Array]], Source], integer_column: "
              "typing.Callable[[str], list[int]]) -> Source"),
      "A source of records that are decoded in groups: for each (the number of the record after "
      "its last, ranges of the files, bytes when decoded). decode(group, bytes of the ranges) "
      "returns its source. memory: bytes for decoded groups.");
  module.def("set_python_opener", &set_opener, nb::arg("function"),
             "Sets the function that opens formats read by a Python library: (format, files, "
             "arguments).");
}

}  // namespace headrace::python
