// SPDX-License-Identifier: Apache-2.0
// Copies batches to a device: from any Python iterable, which the prefetcher's thread
// iterates.
#include "headrace/delivery/prefetcher.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "bindings/bindings.h"
#include "bindings/counters.h"
#include "bindings/loader_handle.h"
#include "headrace/base/clock.h"
#include "headrace/device/cuda/cuda_devices.h"
#include "headrace/device/simulated/simulated_device.h"
#include "headrace/executor/threads/thread_pool.h"
#include "headrace/loader/loader_feed.h"

namespace headrace::python {
namespace {

using Imported = nb::ndarray<nb::ro, nb::device::cpu>;

std::optional<DType> dtype_of(nb::dlpack::dtype dtype) {
  for (const char* name : {"uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64",
                           "float16", "bfloat16", "float32", "float64", "bool"}) {
    const DType known = *dtype_from_name(name);
    const std::string_view text = name;
    using Code = nb::dlpack::dtype_code;
    const Code code = text == "bool"            ? Code::Bool
                      : text == "bfloat16"      ? Code::Bfloat
                      : text.starts_with("ui")  ? Code::UInt
                      : text.starts_with("int") ? Code::Int
                                                : Code::Float;
    if (dtype.code == static_cast<uint8_t>(code) && dtype.bits == 8 * size_of(known) &&
        dtype.lanes == 1)
      return known;
  }
  return std::nullopt;
}

// Whether the elements are contiguous, in any order of axes.
bool is_dense(const Shape& shape, const std::vector<int64_t>& strides) {
  std::vector<size_t> axes(shape.size());
  std::iota(axes.begin(), axes.end(), size_t{0});
  std::erase_if(axes, [&](size_t axis) { return shape[axis] == 1; });
  std::sort(axes.begin(), axes.end(), [&](size_t a, size_t b) { return strides[a] < strides[b]; });
  int64_t step = 1;
  for (size_t axis : axes) {
    if (strides[axis] != step) return false;
    step *= shape[axis];
  }
  return true;
}

// Keeps the array alive through its exporter, whichever thread releases it.
HostTensor tensor_from(nb::handle object, bool pinned) {
  auto array = std::make_shared<Imported>();
  if (!nb::try_cast(object, *array)) {
    throw nb::type_error("it exports neither DLPack nor a buffer of the host's memory");
  }
  const std::optional<DType> dtype = dtype_of(array->dtype());
  if (!dtype) throw nb::type_error("its dtype is not supported");
  TensorView view{const_cast<void*>(array->data()), *dtype, {}, {}};
  for (size_t i = 0; i < array->ndim(); ++i) {
    view.shape.push_back(static_cast<int64_t>(array->shape(i)));
    view.strides.push_back(array->stride(i));
  }
  if (view.elements() == 0) {
    view.strides.clear();
  } else if (!is_dense(view.shape, view.strides)) {
    throw nb::type_error("its elements are not contiguous");
  }
  return {std::move(view), std::move(array), pinned};
}

// pull() -> None at the end, or (arrays, whether each is pinned, any other object).
class PythonFeed final : public BatchFeed {
 public:
  explicit PythonFeed(nb::object pull) : pull_(std::move(pull)) {}
  std::optional<HostBatch> next(const std::function<bool()>&) override {
    nb::gil_scoped_acquire gil;
    nb::object pulled = pull_.get()();
    if (pulled.is_none()) return std::nullopt;
    const nb::tuple parts = nb::cast<nb::tuple>(pulled);
    const nb::list arrays = nb::cast<nb::list>(parts[0]);
    const nb::list pinned = nb::cast<nb::list>(parts[1]);
    HostBatch batch;
    for (size_t i = 0; i < arrays.size(); ++i) {
      batch.tensors.push_back(tensor_from(arrays[i], nb::cast<bool>(pinned[i])));
    }
    batch.rest = std::make_shared<OwnedObject>(nb::object(parts[2]));
    return batch;
  }

 private:
  OwnedObject pull_;
};

struct PrefetcherHandle : EngineHandle<Prefetcher> {
  // Its thread may wait for the GIL, or for a source that hangs.
  void close(const std::function<void()>& interrupted = {}) {
    if (!held) return;
    // shared: std::function must be copyable.
    auto closing = std::make_shared<std::shared_ptr<Prefetcher>>(std::move(held));
    if (forked_from_running_engine()) {
      new auto(std::move(closing));  // its thread does not exist in this process, and cannot be
                                     // joined
      return;
    }
    const auto work = [closing] {
      (*closing)->stop();  // callers waiting in next() return, and the last one frees it
      closing->reset();
    };
    const double patience = closing_patience();
    ReleasedGil no_gil;
    finish_within(patience, work, interrupted);
  }
  ~PrefetcherHandle() { close(); }
};

std::function<void(const std::string&)> warning_by(nb::object warn) {
  // shared: std::function must be copyable.
  auto callable = std::make_shared<OwnedObject>(std::move(warn));
  return [callable](const std::string& message) {
    nb::gil_scoped_acquire gil;
    callable->get()(message);
  };
}

void make_prefetcher(PrefetcherHandle* self, const DeviceHandle& device, int depth, double patience,
                     size_t staging_limit, nb::object warn) {
  PrefetchOptions options{depth, patience, staging_limit, warning_by(std::move(warn))};
  ReleasedGil no_gil;
  new (self) PrefetcherHandle{
      {std::make_shared<Prefetcher>(device.device, std::move(options)), "this prefetcher"}};
}

void start(PrefetcherHandle& self, nb::object pull) {
  auto feed = std::make_unique<PythonFeed>(std::move(pull));
  self.with([&](Prefetcher& prefetcher) { prefetcher.start(std::move(feed), check_signals); });
}

// Each prefetcher takes the same part of all batches.
void start_loader(const LoaderHandle& loader, const std::vector<PrefetcherHandle*>& prefetchers,
                  int max_ahead) {
  std::vector<std::shared_ptr<Prefetcher>> started;
  for (PrefetcherHandle* handle : prefetchers) started.push_back(handle->get());
  std::shared_ptr<Loader> shared = loader.get();
  ReleasedGil no_gil;
  const int parts = static_cast<int>(started.size());
  auto batches = std::make_shared<SharedBatches>(std::move(shared), parts, max_ahead);
  for (int part = 0; part < parts; ++part) {
    started[static_cast<size_t>(part)]->start(std::make_unique<LoaderFeed>(batches, part),
                                              check_signals);
  }
}

// True once the run has ended; a source that hangs is abandoned.
bool stop(PrefetcherHandle& self) {
  if (forked_from_running_engine()) return true;  // its thread belongs to the parent
  struct Late {};
  const double begin = now(), patience = closing_patience();
  const auto interrupted = [begin, patience] {
    check_signals();
    if (now() - begin > patience) throw Late{};
  };
  try {
    self.with([&](Prefetcher& prefetcher) { prefetcher.stop(interrupted); });
    return true;
  } catch (const Late&) {
    return false;
  }
}

nb::object array_from(DeviceTensor& tensor) {
  return nb::cast(Array{std::move(tensor.view), tensor.lease, tensor.lease});
}

nb::object next(PrefetcherHandle& self, const nb::callable& ended) {
  std::optional<DeviceBatch> batch =
      while_not_ended(ended, [&](const std::function<void()>& interrupted) {
        return self.with([&](Prefetcher& prefetcher) { return prefetcher.next(interrupted); });
      });
  if (!batch) return nb::none();
  nb::list arrays;
  for (DeviceTensor& tensor : batch->tensors) arrays.append(array_from(tensor));
  return nb::make_tuple(arrays, static_cast<OwnedObject*>(batch->rest.get())->get());
}

// All parts of the next batch; nothing at the end, or if it was interrupted.
std::optional<std::vector<DeviceBatch>> next_parts(
    const std::vector<std::shared_ptr<Prefetcher>>& held,
    const std::function<void()>& interrupted) {
  std::vector<Prefetcher*> prefetchers;
  for (const std::shared_ptr<Prefetcher>& one : held) prefetchers.push_back(one.get());
  return next_of_all(prefetchers, interrupted);
}

// (values by field, for each of them; the loader's state after receiving this batch)
nb::object next_of_loader(const std::vector<PrefetcherHandle*>& prefetchers,
                          const nb::callable& ended) {
  std::optional<std::vector<DeviceBatch>> batch =
      while_not_ended(ended, [&](const std::function<void()>& interrupted) {
        std::vector<std::shared_ptr<Prefetcher>> got;
        for (PrefetcherHandle* handle : prefetchers) got.push_back(handle->get());
        ReleasedGil no_gil;
        const std::vector<std::shared_ptr<Prefetcher>> kept = std::move(got);
        return next_parts(kept, interrupted);
      });
  if (!batch) return nb::none();
  nb::list parts;
  for (DeviceBatch& part : *batch) {
    nb::list values;
    auto tensor = part.tensors.begin();
    for (BatchField& field : static_cast<FedBatch*>(part.rest.get())->batch.fields) {
      values.append(field.is_list ? values_of(field) : array_from(*tensor++));
    }
    parts.append(values);
  }
  const auto* fed = static_cast<FedBatch*>(batch->front().rest.get());
  return nb::make_tuple(parts, dict_from_state(fed->state));
}

nb::dict stats(const PrefetcherHandle& self) {
  return dict_from_counters(prefetch_counters(),
                            self.with([](Prefetcher& prefetcher) { return prefetcher.stats(); }));
}

DeviceHandle simulated(uint64_t seed, size_t memory_limit, bool pins, int64_t fails_at) {
  auto device = std::make_shared<SimulatedDevice>(seed, SimulatedCosts{}, memory_limit, pins);
  if (fails_at > 0) device->fail_at(fails_at);
  return {std::move(device)};
}

}  // namespace

void bind_prefetcher(nb::module_& module) {
  using NoGil = nb::call_guard<ReleasedGil>;
  nb::class_<DeviceHandle>(module, "Device", "A device that batches are copied to.")
      .def_prop_ro("name", [](const DeviceHandle& self) { return self.device->name(); })
      .def_prop_ro("is_host",
                   [](const DeviceHandle& self) { return self.device->backend() == "cpu"; });
  module.def(
      "open_device", [](std::string_view name) { return DeviceHandle{open_device(name)}; },
      nb::arg("name"), NoGil(),
      "\"cpu\", \"cuda\", \"cuda:1\". Raises if there is no such device.");
  module.def(
      "cuda_devices",
      [] {
        const CudaDevices found = cuda_devices();
        return nb::make_tuple(found.count, found.why_none);
      },
      nb::sig("def cuda_devices() -> tuple[int, str]"),
      "The number of usable CUDA devices; if 0, the reason.");
  module.def(
      "simulated_device", &simulated, nb::arg("seed"), nb::arg("memory_limit") = 0,
      nb::arg("pins") = true, nb::arg("fails_at") = 0,
      "A simulated device that completes work as late and as out of order as allowed; for tests.");
  module.def(
      "prefetch_counters", [] { return describe_counters(prefetch_counters()); },
      nb::sig("def prefetch_counters() -> list[dict[str, typing.Any]]"),
      "What Prefetcher.stats() counts, in its order.");
  nb::class_<PrefetcherHandle>(module, "Prefetcher", "The engine's side of headrace.prefetch.")
      .def("__init__", &make_prefetcher, nb::arg("device"), nb::arg("depth"), nb::arg("patience"),
           nb::arg("staging_limit"), nb::arg("warn"))
      .def("start", &start, nb::arg("pull"),
           "pull() -> None at the end, or (arrays, whether each is pinned, any other object).")
      .def("stop", &stop)
      .def("next", &next, nb::arg("ended"),
           nb::sig("def next(self, ended: typing.Callable[[], bool]) -> tuple[list[Array], "
                   "typing.Any] | None"),
           "None at the end, and when ended() returns True.")
      .def(
          "ready",
          [](const PrefetcherHandle& self) {
            return self.with([](Prefetcher& prefetcher) { return prefetcher.ready(); });
          },
          "Number of batches that next() would return without waiting, counting the end and an "
          "error.")
      .def("stats", &stats, nb::sig("def stats(self) -> dict[str, typing.Any]"))
      .def("close", [](PrefetcherHandle& self) { self.close(check_signals); });
  module.def(
      "start_loader", &start_loader, nb::arg("loader"), nb::arg("prefetchers"),
      nb::arg("max_ahead"),
      "Divides the rows of the loader's batches over the prefetchers, which own the loader until "
      "all of them are stopped.");
  module.def(
      "next_of_loader", &next_of_loader, nb::arg("prefetchers"), nb::arg("ended"),
      nb::sig("def next_of_loader(prefetchers: list[Prefetcher], ended: "
              "typing.Callable[[], bool]) -> tuple[list[list[typing.Any]], dict[str, int]] | "
              "None"),
      "The parts of the next batch, of prefetchers that were started together. None at the "
      "end, and when ended() returns True.");
}

}  // namespace headrace::python
