// SPDX-License-Identifier: Apache-2.0
// Samplers: the engine's, by their factories.

#include "bindings/bindings.h"
#include "headrace/sampling/asked.h"
#include "headrace/sampling/buckets.h"
#include "headrace/sampling/budget.h"
#include "headrace/sampling/sampler.h"

namespace headrace::python {
namespace {

const ErrorCode kSamplerFailed{
    "HR0727", ErrorKind::kConfig, "a sampler in Python failed",
    "An order that a sampler in Python decides is asked for before each epoch. The sampler raised "
    "the exception that is in the message."};

// The callable takes (seed, epoch) and returns record indices. Any thread may ask it.
SamplerHandle asked_in_python(nb::object ask, int64_t positions, std::vector<int64_t> batch_sizes,
                              uint64_t fingerprint, std::string description) {
  // shared: std::function wants to be copied.
  auto callable = std::make_shared<OwnedObject>(std::move(ask));
  const auto indices = [callable](uint64_t seed, uint64_t epoch) {
    stay_away_at_exit();
    nb::gil_scoped_acquire gil;
    try {
      return nb::cast<std::vector<int64_t>>(callable->get()(seed, epoch));
    } catch (const std::exception& failure) {
      rethrow_keyboard_interrupt(failure);
      if (std::optional<Error> known = error_from_exception(failure)) {
        throw Exception(*std::move(known));
      }
      raise(kSamplerFailed, first_line_of(failure));
    }
  };
  return {asked({.ask = indices,
                 .positions = positions,
                 .batch_sizes = std::move(batch_sizes),
                 .fingerprint = fingerprint,
                 .description = std::move(description)})};
}

}  // namespace

void bind_sampling(nb::module_& module) {
  nb::class_<SamplerHandle>(module, "Sampler", "(seed, epoch, position) -> record index.")
      .def("__len__", [](const SamplerHandle& self) { return self.sampler->size(); })
      .def(
          "index",
          [](const SamplerHandle& self, uint64_t seed, uint64_t epoch, int64_t position) {
            return self.sampler->index(seed, epoch, position);
          },
          nb::arg("seed"), nb::arg("epoch"), nb::arg("position"))
      .def_prop_ro("description",
                   [](const SamplerHandle& self) { return self.sampler->description(); });
  nb::module_ made = module;
  made.def(
      "sequential", [](int64_t records) { return SamplerHandle{sequential(records)}; },
      nb::arg("records"));
  made.def(
      "shuffled", [](int64_t records) { return SamplerHandle{shuffled(records)}; },
      nb::arg("records"));
  made.def(
      "shuffled_blocks",
      [](std::vector<int64_t> block_ends, int64_t window) {
        if (window < 1) throw nb::value_error("window must be positive");
        return SamplerHandle{shuffled_blocks(std::move(block_ends), window)};
      },
      nb::arg("block_ends"), nb::arg("window"));
  made.def(
      "from_indices",
      [](std::vector<int64_t> indices, bool shuffle) {
        return SamplerHandle{from_indices(std::move(indices), shuffle)};
      },
      nb::arg("indices"), nb::arg("shuffle"));
  made.def(
      "weighted",
      [](const std::vector<double>& weights, int64_t draws) {
        return SamplerHandle{weighted(weights, draws)};
      },
      nb::arg("weights"), nb::arg("draws"));
  made.def(
      "buckets",
      [](std::vector<int64_t> lengths, int64_t batch, int64_t pool) {
        if (batch < 1 || pool < 1) throw nb::value_error("batch and pool must be positive");
        return SamplerHandle{buckets(std::move(lengths), batch, pool)};
      },
      nb::arg("lengths"), nb::arg("batch"), nb::arg("pool"));
  made.def(
      "within_budget",
      [](std::vector<int64_t> lengths, int64_t budget, int64_t most_buckets, int64_t parts) {
        if (budget < 1 || most_buckets < 1) throw nb::value_error("budget must be positive");
        return SamplerHandle{within_budget(std::move(lengths), budget, most_buckets, parts)};
      },
      nb::arg("lengths"), nb::arg("budget"), nb::arg("most_buckets"), nb::arg("parts"));
  made.def(
      "asked", &asked_in_python, nb::arg("ask"), nb::arg("positions"), nb::arg("batch_sizes"),
      nb::arg("fingerprint"), nb::arg("description"),
      "An order that ask(seed, epoch) gives as a list of record indices, one epoch at a time.");
  made.def(
      "balanced",
      [](const std::vector<int64_t>& labels, int64_t draws) {
        return SamplerHandle{balanced(labels, draws)};
      },
      nb::arg("labels"), nb::arg("draws"));
}

}  // namespace headrace::python
