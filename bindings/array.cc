// SPDX-License-Identifier: Apache-2.0
// Exports the engine's arrays: DLPack and the buffer protocol over leased memory.
//
// Note [Why the exporter is our own]: a framework drops the last view of a batch from any thread,
// often while holding no GIL, and the slot must then be returned at once. The deleter here drops a
// shared_ptr and touches nothing of Python, so it neither waits for the GIL nor needs an
// interpreter.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>

#include "bindings/bindings.h"
#include "bindings/dlpack.h"

namespace headrace::python {
namespace {

struct Correspondence {
  DType dtype;
  DLDataTypeCode code;
  const char* buffer_format;  // struct format characters; null if there is none
};

constexpr Correspondence kCorrespondence[] = {
    {DType::kUInt8, kDLUInt, "B"},    {DType::kInt8, kDLInt, "b"},
    {DType::kInt16, kDLInt, "h"},     {DType::kInt32, kDLInt, "i"},
    {DType::kInt64, kDLInt, "q"},     {DType::kUInt16, kDLUInt, "H"},
    {DType::kUInt32, kDLUInt, "I"},   {DType::kUInt64, kDLUInt, "Q"},
    {DType::kFloat16, kDLFloat, "e"}, {DType::kBFloat16, kDLBfloat, nullptr},
    {DType::kFloat32, kDLFloat, "f"}, {DType::kFloat64, kDLFloat, "d"},
    {DType::kBool, kDLBool, "?"},
};

const Correspondence& correspondence(DType dtype) {
  return kCorrespondence[static_cast<int>(dtype)];
}

std::vector<int64_t> strides_of(const TensorView& view) {
  if (!view.strides.empty()) return view.strides;
  std::vector<int64_t> strides(view.shape.size());
  int64_t step = 1;
  for (size_t i = strides.size(); i-- > 0; step *= view.shape[i]) strides[i] = step;
  return strides;
}

// Element by element, in row-major order.
void copy_dense(const TensorView& from, uint8_t* to) {
  const size_t size = size_of(from.dtype), rank = from.shape.size();
  const std::vector<int64_t> strides = strides_of(from);
  std::vector<int64_t> at(rank);
  for (int64_t n = from.elements(); n > 0; --n, to += size) {
    int64_t offset = 0;
    for (size_t i = 0; i < rank; ++i) offset += at[i] * strides[i];
    std::memcpy(to, static_cast<const uint8_t*>(from.data) + offset * int64_t(size), size);
    for (size_t i = rank; i-- > 0 && ++at[i] == from.shape[i];) at[i] = 0;
  }
}

// The data of a capsule: shape, strides and the lease.
template <class Managed>
struct Exported {
  std::vector<int64_t> shape, strides;
  std::shared_ptr<void> lease;  // shared: see Array
  Managed managed{};
};

bool is_on_cuda(const Array& array) {
  return array.device && array.device->device().backend() == "cuda";
}

DLDevice place_of(const Array& array) {
  if (!is_on_cuda(array)) return {kDLCPU, 0};
  return {kDLCUDA, array.device->device().index()};
}

// DLPack names streams 1 (the legacy default), 2 (the thread's default) or by their handle, as in
// CUDA; None is the legacy default, -1 no stream at all.
void let_stream_use(const Array& array, nb::handle stream) {
  const int64_t given = stream.is_none() ? 1 : nb::cast<int64_t>(stream);
  if (given >= 0) array.device->use_on(static_cast<uintptr_t>(given));
}

template <class Managed>
Managed* export_tensor(const Array& array) {
  auto* exported = new Exported<Managed>{array.view.shape, strides_of(array.view), array.lease, {}};
  Managed& managed = exported->managed;
  const DType dtype = array.view.dtype;
  managed.dl_tensor = {array.view.data,
                       place_of(array),
                       static_cast<int32_t>(exported->shape.size()),
                       {correspondence(dtype).code, static_cast<uint8_t>(8 * size_of(dtype)), 1},
                       exported->shape.data(),
                       exported->strides.data(),
                       0};
  managed.manager_ctx = exported;
  managed.deleter = [](Managed* self) {
    delete static_cast<Exported<Managed>*>(self->manager_ctx);
  };
  return &managed;
}

constexpr const char kOldName[] = "dltensor", kNewName[] = "dltensor_versioned";

// A consumer renames the capsule; one that is never consumed is freed here.
template <class Managed, const char* kName>
void free_capsule(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, kName)) return;
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, kName));
  managed->deleter(managed);
}

nb::object dlpack(const Array& self, nb::handle stream,
                  std::optional<std::pair<uint32_t, uint32_t>> max_version,
                  std::optional<std::pair<int, int>> device, std::optional<bool> copy) {
  const DLDevice place = place_of(self);
  if (place.device_type == kDLCPU && !stream.is_none())
    throw nb::buffer_error("host memory has no stream");
  if (device && *device != std::pair<int, int>(place.device_type, place.device_id))
    throw nb::buffer_error("it can be exported only on its own device; copy the tensor afterwards");
  Array array = self;
  if (is_on_cuda(self)) {
    if (copy.value_or(false)) throw nb::buffer_error("device memory is exported without a copy");
    let_stream_use(self, stream);
  } else if (self.device) {
    self.device->wait_on_host();
  }
  if (copy.value_or(false)) {
    array = make_array(self.view.dtype, self.view.shape);
    copy_dense(self.view, static_cast<uint8_t*>(array.view.data));
  }
  if (!max_version || max_version->first < 1) {
    return nb::steal(PyCapsule_New(export_tensor<DLManagedTensor>(array), kOldName,
                                   free_capsule<DLManagedTensor, kOldName>));
  }
  auto* managed = export_tensor<DLManagedTensorVersioned>(array);
  managed->version = {1, 0};
  managed->flags = copy.value_or(false) ? kDLFlagIsCopied : 0;
  return nb::steal(
      PyCapsule_New(managed, kNewName, free_capsule<DLManagedTensorVersioned, kNewName>));
}

// On the host: the array itself; on a device: a copy of its data, once it is complete.
Array on_host(const Array& self) {
  if (!self.device) return self;
  ReleasedGil no_gil;
  self.device->wait_on_host();
  Array out = make_array(self.view.dtype, self.view.shape);
  out.view.strides = self.view.strides;  // its elements are contiguous, in some order of axes
  const StreamPtr copies = self.device->device().make_stream();
  copies->copy(out.view.data, self.view.data, self.view.dense_bytes());
  copies->synchronize();
  return out;
}

// The axes in memory order, the outermost first: (B, H, W, C) for channels_last. If two have the
// same stride, the one with a single entry is further in.
Array in_memory_order(const Array& self) {
  if (self.view.strides.empty()) return self;
  const TensorView& from = self.view;
  std::vector<size_t> axes(from.shape.size());
  std::iota(axes.begin(), axes.end(), size_t{0});
  std::stable_sort(axes.begin(), axes.end(), [&](size_t a, size_t b) {
    return std::pair(from.strides[a], from.shape[a]) > std::pair(from.strides[b], from.shape[b]);
  });
  Array turned{{from.data, from.dtype, {}, {}}, self.lease, self.device};
  for (size_t axis : axes) {
    turned.view.shape.push_back(from.shape[axis]);
    turned.view.strides.push_back(from.strides[axis]);
  }
  return turned;
}

struct BufferShape {
  std::vector<Py_ssize_t> shape, strides;
};

int get_buffer(PyObject* object, Py_buffer* buffer, int flags) {
  const Array& array = *nb::inst_ptr<Array>(nb::handle(object));
  const TensorView& view = array.view;
  if (is_on_cuda(array)) {
    PyErr_SetString(PyExc_BufferError, "it is on a device; use DLPack");
    return -1;
  }
  try {
    if (array.device) array.device->wait_on_host();
  } catch (const Exception& exception) {  // called by Python directly
    set_python_error(exception.error());
    return -1;
  }
  const Correspondence& known = correspondence(view.dtype);
  if (!known.buffer_format) {
    PyErr_SetString(PyExc_BufferError, "the buffer protocol has no bfloat16; use DLPack");
    return -1;
  }
  auto* shape = new BufferShape;
  const Py_ssize_t item = static_cast<Py_ssize_t>(size_of(view.dtype));
  for (int64_t extent : view.shape) shape->shape.push_back(extent);
  for (int64_t stride : strides_of(view)) shape->strides.push_back(stride * item);
  if (!(flags & PyBUF_STRIDES) && !view.strides.empty()) {
    delete shape;
    PyErr_SetString(PyExc_BufferError, "the array is not dense");
    return -1;
  }
  *buffer = {};
  buffer->buf = view.data;
  buffer->obj = Py_NewRef(object);
  buffer->len = static_cast<Py_ssize_t>(view.dense_bytes());
  buffer->itemsize = item;
  buffer->ndim = static_cast<int>(view.shape.size());
  buffer->format = (flags & PyBUF_FORMAT) ? const_cast<char*>(known.buffer_format) : nullptr;
  buffer->shape = (flags & PyBUF_ND) ? shape->shape.data() : nullptr;
  buffer->strides = (flags & PyBUF_STRIDES) ? shape->strides.data() : nullptr;
  buffer->internal = shape;
  return 0;
}

void release_buffer(PyObject*, Py_buffer* buffer) {
  delete static_cast<BufferShape*>(buffer->internal);
}

PyType_Slot array_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
                             {Py_bf_releasebuffer, reinterpret_cast<void*>(release_buffer)},
                             {0, nullptr}};

std::optional<DType> dtype_of_buffer(const Py_buffer& buffer) {
  std::string_view format = buffer.format ? buffer.format : "B";
  if (!format.empty() && (format[0] == '@' || format[0] == '=' || format[0] == '<'))
    format.remove_prefix(1);
  if (format == "l" || format == "L") {  // C's long, which NumPy uses for int64
    const bool wide = buffer.itemsize == 8;
    format = format == "l" ? (wide ? "q" : "i") : (wide ? "Q" : "I");
  }
  for (const Correspondence& entry : kCorrespondence) {
    if (entry.buffer_format && format == entry.buffer_format &&
        size_of(entry.dtype) == static_cast<size_t>(buffer.itemsize))
      return entry.dtype;
  }
  return std::nullopt;
}

}  // namespace

Array make_array(DType dtype, Shape shape) {
  auto memory = std::make_shared<Buffer>(size_t(element_count(shape)) * size_of(dtype));
  void* data = memory->data();
  return {{data, dtype, std::move(shape), {}}, std::move(memory)};
}

TensorView borrowed_view(nb::handle object) {
  const ExportedBuffer exported(object, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT);
  const Py_buffer& buffer = exported.buffer();
  const std::optional<DType> dtype = dtype_of_buffer(buffer);
  if (!dtype) throw nb::type_error("arrays of this dtype are not supported");
  return {buffer.buf, *dtype, Shape(buffer.shape, buffer.shape + buffer.ndim), {}};
}

TensorView view_of_buffer(nb::handle object, Buffer& copy) {
  TensorView view = borrowed_view(object);
  copy.resize(view.dense_bytes());
  if (copy.size()) std::memcpy(copy.data(), view.data, copy.size());
  view.data = copy.data();
  return view;
}

void bind_array(nb::module_& module) {
  nb::class_<Array>(
      module, "Array", nb::type_slots(array_slots),
      "An array in the engine's memory. `numpy.asarray(a)`, `numpy.from_dlpack(a)` and "
      "`torch.from_dlpack(a)` share that memory; it is released with the last of them.")
      .def_prop_ro(
          "shape",
          [](const Array& self) {
            nb::list shape;
            for (int64_t extent : self.view.shape) shape.append(extent);
            return nb::tuple(shape);
          },
          nb::sig("def shape(self) -> tuple[int, ...]"))
      .def_prop_ro("dtype", [](const Array& self) { return name_of(self.view.dtype); })
      .def_prop_ro("nbytes", [](const Array& self) { return self.view.dense_bytes(); })
      .def_prop_ro("data_ptr",
                   [](const Array& self) { return reinterpret_cast<uintptr_t>(self.view.data); })
      .def(
          "bits",
          [](const Array& self) {
            Array out = self;
            if (out.view.dtype == DType::kBFloat16) out.view.dtype = DType::kUInt16;
            return out;
          },
          "The same memory with bfloat16 as the uint16 of its bits, for NumPy.")
      .def("on_host", &on_host, "This array, or a copy in host memory if it is on a device.")
      .def("in_memory_order", &in_memory_order,
           "The same memory with its axes in memory order: (B, H, W, C) for channels_last. For "
           "frameworks without strides.")
      .def("__dlpack__", &dlpack, nb::kw_only(), nb::arg("stream") = nb::none(),
           nb::arg("max_version") = nb::none(), nb::arg("dl_device") = nb::none(),
           nb::arg("copy") = nb::none(),
           nb::sig("def __dlpack__(self, *, stream: object | None = None, max_version: tuple[int, "
                   "int] | None = None, dl_device: tuple[int, int] | None = None, copy: bool | "
                   "None = None) -> object"))
      .def("__dlpack_device__",
           [](const Array& self) {
             const DLDevice place = place_of(self);
             return std::pair<int, int>(place.device_type, place.device_id);
           })
      .def_prop_ro(
          "device",
          [](const Array& self) { return self.device ? self.device->device().name() : "cpu"; },
          "\"cpu\", or as torch names it, \"cuda:0\".")
      .def_prop_ro(
          "is_on_host",
          [](const Array& self) {
            return !self.device || self.device->device().backend() == "cpu";
          },
          "Whether its device is \"cpu\"; faster than comparing `device`.");
}

}  // namespace headrace::python
