// SPDX-License-Identifier: Apache-2.0
// Shared by the files of the module: one function per concept, called by module.cc, and the types
// that several concepts use. The module contains no logic: checks and defaults are in the engine,
// conveniences in Python.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bindings/released_gil.h"
#include "headrace/base/parameters.h"
#include "headrace/base/tensor.h"
#include "headrace/delivery/device_ring.h"
#include "headrace/sampling/sampler.h"
#include "headrace/sources/source.h"

namespace headrace {
struct OpOrigin;         // ops/op.h
struct DeferredPicture;  // image/deferred_picture.h
}  // namespace headrace

namespace headrace::python {

namespace nb = nanobind;

using NamedValues = nb::typed<nb::dict, nb::str, nb::any>;

void bind_errors(nb::module_& module);
void bind_array(nb::module_& module);
void bind_registry(nb::module_& module);
void bind_plugin(nb::module_& module);
void bind_source(nb::module_& module);
void bind_decode(nb::module_& module);
void bind_video(nb::module_& module);
void bind_columns(nb::module_& module);
void bind_combined(nb::module_& module);
void bind_pack(nb::module_& module);
void bind_row_index(nb::module_& module);
void bind_lent_rows(nb::module_& module);
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

// Called when the interpreter exits: prevent further calls of Python's filesystem objects, and of
// the provider of credentials for remote storages, and wait for those in progress. REQUIRES: the
// GIL is not held.
void close_python_files();
void close_key_provider();

// Memory of the engine (or its own), as seen by Python; exported by DLPack and the buffer protocol.
// Every export holds the lease.
struct Array {
  TensorView view;
  // shared: the array and everything exported from it keep the memory alive.
  std::shared_ptr<void> lease;
  // On a device: the same lease, which knows the streams that wait for the copy.
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
  int64_t records;  // minimum number of a source's records: the largest index plus one
};

// An uninitialized dense array.
Array make_array(DType dtype, Shape shape);
// A dense array that the object exports by the buffer protocol (like NumPy's), borrowed: valid as
// long as the object. Throws nb::type_error if its dtype is not supported.
TensorView borrowed_view(nb::handle object);
// The same, copied into `copy`.
TensorView view_of_buffer(nb::handle object, Buffer& copy);

// Checks an index from Python into `size` items; `what` names them in the error. The engine trusts
// its callers, so every index is checked here. Throws nb::index_error.
int64_t checked_index(int64_t index, int64_t size, std::string_view what);

// The value of a field of a record that was read; pictures as stored.
nb::object value_of(const Field& field, const FieldData& data);

// The current values of a deferred image; nullopt if its decoder has repaired damage. Throws
// Exception if it cannot be decoded. REQUIRES: the GIL.
std::optional<Array> pixels_of(const DeferredPicture& picture, bool channels_last = false);

FieldKind kind_from_name(std::string_view kind);

// Text that need not be UTF-8 (file names are bytes), as by os.fsdecode and os.fsencode.
nb::str str_from_bytes(std::string_view bytes);
std::string bytes_from_str(nb::handle text);

// Python's (done, total) callable, or None, called without the GIL held; also handles signals.
Progress progress_from(nb::handle callable);

// Error -> instance of a class of headrace.errors. REQUIRES: the GIL.
nb::object exception_from_error(const Error& error);
// For functions called by Python itself, which must not throw: sets Python's current exception.
void set_python_error(const Error& error);
// The reverse, for exceptions of these classes with a declared code from Python code.
std::optional<Error> error_from_exception(const std::exception& failure);

// A declared parameter in the form of Python's tables.
nb::dict describe(const Param& param);
// The library that an operator was loaded from.
nb::dict describe(const OpOrigin& origin);
nb::object object_from_param(const ParamValue& value);
ParamValue param_from_object(nb::handle object);
std::map<std::string, ParamValue> params_from_dict(const nb::dict& arguments);

// Runs Python's signal handlers; throws what they raise. Takes the GIL for it. Called every 50 ms
// while waiting; does not return on a thread abandoned at interpreter exit.
void check_signals();

// An exception's message, without a traceback.
std::string first_line_of(const std::exception& failure);
// Python text as UTF-8; lone surrogates, which UTF-8 cannot encode, are escaped.
std::string bytes_from_text(nb::handle text);
// Rethrows Ctrl-C, which does not make a record bad. Only the main thread gets it.
void rethrow_keyboard_interrupt(const std::exception& failure);

// A Python object that C++ threads may release: takes the GIL for it, or leaks it once the
// interpreter has exited.
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

// Memory that a Python object exports, for as long as this lives. REQUIRES: the GIL, also in the
// destructor.
class ExportedBuffer {
 public:
  // flags: PyBUF_SIMPLE, or further requirements on the memory. Throws what Python raises.
  ExportedBuffer(nb::handle object, int flags) {
    if (PyObject_GetBuffer(object.ptr(), &buffer_, flags) != 0) nb::raise_python_error();
  }
  ExportedBuffer(const ExportedBuffer&) = delete;
  ExportedBuffer& operator=(const ExportedBuffer&) = delete;
  ~ExportedBuffer() { PyBuffer_Release(&buffer_); }

  const Py_buffer& buffer() const { return buffer_; }
  std::span<uint8_t> bytes() const {
    return {static_cast<uint8_t*>(buffer_.buf), size_t(buffer_.len)};
  }

 private:
  Py_buffer buffer_{};
};

}  // namespace headrace::python
