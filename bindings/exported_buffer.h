// SPDX-License-Identifier: Apache-2.0
// Memory that a Python object exports, for as long as this lives.
#pragma once

#include <span>

#include "bindings/bindings.h"

namespace headrace::python {

// REQUIRES: the GIL, also in the destructor.
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
