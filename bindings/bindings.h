// SPDX-License-Identifier: Apache-2.0
// Shared by the files of the module: one function per concept, called by module.cc, and the types
// that cross from one concept to another. The module holds no logic: checks and defaults are in the
// engine, conveniences in Python.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bindings/released_gil.h"
#include "headrace/base/parameters.h"
#include "headrace/base/tensor.h"
#include "headrace/delivery/device_ring.h"
#include "headrace/sampling/sampler.h"
#include "headrace/sources/source.h"

namespace headrace::python {

namespace nb = nanobind;

using NamedValues = nb::typed<nb::dict, nb::str, nb::any>;

void bind_errors(nb::module_& module);
void bind_array(nb::module_& module);
void bind_registry(nb::module_& module);
void bind_source(nb::module_& module);
void bind_decode(nb::module_& module);
void bind_video(nb::module_& module);
void bind_columns(nb::module_& module);
void bind_combined(nb::module_& module);
void bind_pack(nb::module_& module);
void bind_row_index(nb::module_& module);
void bind_rows_elsewhere(nb::module_& module);
void bind_python_source(nb::module_& module);
void bind_deferred_picture(nb::module_& module);
void bind_python_files(nb::module_& module);
void bind_python_function(nb::module_& module);
void bind_sampling(nb::module_& module);
void bind_loader(nb::module_& module);
void bind_prefetcher(nb::module_& module);
void bind_stored_batches(nb::module_& module);
void bind_interleaving(nb::module_& module);
void bind_tools(nb::module_& module);
void bind_gil_share(nb::module_& module);
void bind_block_cache(nb::module_& module);
void bind_memory_volume(nb::module_& module);
void bind_remote(nb::module_& module);

// Memory of the engine (or of its own), as Python sees it; exported by DLPack and the buffer
// protocol. Every export holds the lease.
struct Array {
  TensorView view;
  // shared: the array and everything exported from it keep the memory.
  std::shared_ptr<void> lease;
  // On a device: the same lease, as what says which streams wait for the copy there.
  std::shared_ptr<DeviceLease> device = {};
};

struct SourceHandle {
  SourcePtr source;
};

struct DeviceHandle {
  DevicePtr device;
};

struct SamplerHandle {
  SamplerPtr sampler;
  int64_t records;  // minimum of a source: one more than the largest index
};

// An uninitialized dense array.
Array make_array(DType dtype, Shape shape);
// A dense array that the object exports by the buffer protocol (as NumPy's do), borrowed: valid as
// long as the object. Throws nb::type_error for what has no dtype of ours.
TensorView borrowed_view(nb::handle object);
// The same, copied into `copy`.
TensorView view_of_buffer(nb::handle object, Buffer& copy);

// The index that Python gave, of `size` things called `what`. The engine believes its callers, so
// every index that crosses is checked here. Throws nb::index_error.
int64_t checked_index(int64_t index, int64_t size, std::string_view what);

// One field of a record that was read; pictures as they are stored.
nb::object value_of(const Field& field, const FieldData& data);

FieldKind kind_from_name(std::string_view kind);

// Text that need not be UTF-8 (names of files are bytes), as os.fsdecode and os.fsencode have it.
nb::str str_from_bytes(std::string_view bytes);
std::string bytes_from_str(nb::handle text);

// Python's (done, total) callable, or None, called without the GIL held; signals get through.
Progress progress_from(nb::handle callable);

// Error -> instance of a class of headrace.errors. REQUIRES: the GIL.
nb::object exception_from_error(const Error& error);
// For functions that Python calls by itself, which may not throw: its error is this one.
void set_python_error(const Error& error);
// The other way, for what Python code raised of these classes with a declared code.
std::optional<Error> error_from_exception(const std::exception& failure);

// A declared parameter as Python's tables have it.
nb::dict describe(const Param& param);
nb::object object_from_param(const ParamValue& value);
ParamValue param_from_object(nb::handle object);
std::map<std::string, ParamValue> params_from_dict(const nb::dict& arguments);

// Runs Python's signal handlers; throws what they raise. Takes the GIL for it. For waits, which
// call it every 50 ms; a thread that the interpreter's end leaves behind does not return.
void check_signals();

// An exception's message, without a traceback.
std::string first_line_of(const std::exception& failure);
// A text of Python as UTF-8; what UTF-8 has no form for (lone surrogates) is escaped.
std::string bytes_from_text(nb::handle text);
// Rethrows Ctrl-C, which is not a bad record. Only the main thread gets it.
void rethrow_keyboard_interrupt(const std::exception& failure);

// A Python object that C++ threads may drop: takes the GIL for it, or leaves it alone when the
// interpreter is gone.
class OwnedObject {
 public:
  explicit OwnedObject(nb::object object) : object_(object.release().ptr()) {}
  ~OwnedObject();
  OwnedObject(const OwnedObject&) = delete;
  OwnedObject& operator=(const OwnedObject&) = delete;
  nb::handle get() const { return object_; }

 private:
  PyObject* object_;
};

}  // namespace headrace::python
