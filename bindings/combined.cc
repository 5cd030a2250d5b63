// SPDX-License-Identifier: Apache-2.0
// Sources made of sources: some records of one, or several together.
#include "headrace/sources/combined/combined.h"

#include <nanobind/ndarray.h>

#include <map>

#include "bindings/bindings.h"
#include "headrace/pipeline/image_plan.h"
#include "headrace/sources/field_kinds.h"
#include "headrace/sources/packed/packed.h"
#include "headrace/sources/subset.h"

namespace headrace::python {
namespace {

using Indices = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

std::vector<SourcePtr> sources_of(const std::vector<SourceHandle>& handles) {
  std::vector<SourcePtr> sources;
  for (const SourceHandle& handle : handles) sources.push_back(handle.source);
  return sources;
}

std::vector<SourceHandle> split_source(const SourceHandle& source,
                                       const std::vector<double>& fractions, uint64_t seed,
                                       const std::string& stratify_by) {
  std::vector<SourceHandle> parts;
  for (SourcePtr& part : split(source.source, fractions, seed, stratify_by)) {
    parts.push_back({std::move(part)});
  }
  return parts;
}

nb::list kfold_source(const SourceHandle& source, int folds, uint64_t seed,
                      const std::string& stratify_by) {
  nb::list out;
  for (Fold& fold : kfold(source.source, folds, seed, stratify_by)) {
    out.append(nb::make_tuple(SourceHandle{std::move(fold.train)},
                              SourceHandle{std::move(fold.validation)}));
  }
  return out;
}

SourceHandle join_sources(const SourceHandle& left, const SourceHandle& right, std::string on,
                          const nb::dict& rename, std::vector<std::string> kinds) {
  JoinOptions options{.on = std::move(on), .rename = {}, .kinds = std::move(kinds)};
  for (const auto& [from, to] : rename) {
    options.rename[nb::cast<std::string>(from)] = nb::cast<std::string>(to);
  }
  ReleasedGil no_gil;
  return {join(left.source, right.source, options)};
}

// As passed by headrace/sources/packed.py; none if documents are packed unchanged.
std::optional<SampleOptions> samples_from(const nb::object& given) {
  if (given.is_none()) return {};
  const nb::dict of = nb::borrow<nb::dict>(given);
  const auto sizes = nb::cast<Indices>(of["sizes"]);
  return SampleOptions{.tokens = {},
                       .mask = nb::cast<std::string>(of["mask"]),
                       .ignore_tokens = nb::cast<std::vector<int64_t>>(of["ignore_tokens"]),
                       .vocab_size = nb::cast<int64_t>(of["vocab_size"]),
                       .images = nb::cast<std::vector<std::string>>(of["images"]),
                       .sizes = {sizes.data(), sizes.data() + sizes.size()},
                       .placeholder = nb::cast<int64_t>(of["placeholder"]),
                       .expand = nb::cast<bool>(of["expand"]),
                       .drop_bad = nb::cast<bool>(of["drop_bad"]),
                       .rule = image_rule(nb::cast<std::vector<Spec>>(of["transforms"]),
                                          nb::cast<int64_t>(of["image_tokens"]),
                                          nb::cast<int64_t>(of["patches_per_token"]))};
}

nb::tuple packed_rows(const SourceHandle& source, std::string tokens, std::string labels,
                      std::vector<std::string> along, int64_t length, std::string_view method,
                      std::string_view too_long, int shift, DType to, int64_t pad,
                      int64_t ignore_index, uint64_t seed, const nb::object& samples,
                      nb::handle progress) {
  const std::map<std::string_view, PackMethod> methods{{"best-fit", PackMethod::kBestFit},
                                                       {"first-fit", PackMethod::kFirstFit},
                                                       {"sequential", PackMethod::kSequential},
                                                       {"split", PackMethod::kSplit}};
  const PackedRowOptions options{
      .pack = {.length = length,
               .method = methods.at(method),
               .too_long = too_long == "truncate" ? LongDocument::kTruncate
                           : too_long == "drop"   ? LongDocument::kDrop
                                                  : LongDocument::kSplit,
               .seed = seed},
      .refuse_long = too_long == "error",
      .tokens = std::move(tokens),
      .labels = std::move(labels),
      .along = std::move(along),
      .shift = shift,
      .to = to,
      .pad = pad,
      .ignore_index = ignore_index,
      .samples = samples_from(samples)};
  const Progress report = progress_from(progress);
  Packed made;
  {
    ReleasedGil no_gil;
    made = packed(source.source, options, report);
  }
  nb::dict lost;
  lost["documents truncated"] = made.truncated;
  lost["documents left out"] = made.left_out;
  lost["tokens left out"] = made.tokens_left_out;
  return nb::make_tuple(SourceHandle{std::move(made.source)}, lost);
}

}  // namespace

void bind_combined(nb::module_& module) {
  module.def(
      "subset",
      [](const SourceHandle& source, const Indices& indices) {
        return SourceHandle{
            subset(source.source, {indices.data(), indices.data() + indices.size()})};
      },
      nb::arg("source"), nb::arg("indices"),
      nb::sig("def subset(source: Source, indices: object) -> Source"), "indices: an int64 array.");
  module.def("split", &split_source, nb::arg("source"), nb::arg("fractions"), nb::arg("seed"),
             nb::arg("stratify_by"));
  module.def("kfold", &kfold_source, nb::arg("source"), nb::arg("folds"), nb::arg("seed"),
             nb::arg("stratify_by"),
             nb::sig("def kfold(source: Source, folds: int, seed: int, stratify_by: str) -> "
                     "list[tuple[Source, Source]]"));
  module.def(
      "concat",
      [](const std::vector<SourceHandle>& sources) {
        return SourceHandle{concat(sources_of(sources))};
      },
      nb::arg("sources"));
  module.def(
      "mix",
      [](const std::vector<SourceHandle>& sources, const std::vector<double>& weights, int64_t size,
         uint64_t seed) { return SourceHandle{mix(sources_of(sources), weights, size, seed)}; },
      nb::arg("sources"), nb::arg("weights"), nb::arg("size"), nb::arg("seed"));
  module.def(
      "packed", &packed_rows, nb::arg("source"), nb::arg("tokens"), nb::arg("labels"),
      nb::arg("along"), nb::arg("length"), nb::arg("method"), nb::arg("too_long"), nb::arg("shift"),
      nb::arg("to"), nb::arg("pad"), nb::arg("ignore_index"), nb::arg("seed"),
      nb::arg("samples").none(), nb::arg("progress").none(),
      nb::sig("def packed(source: Source, tokens: str, labels: str, along: "
              "collections.abc.Sequence[str], length: int, method: str, too_long: str, "
              "shift: int, to: DType, pad: int, ignore_index: int, seed: int, samples: "
              "dict[str, typing.Any] | None, progress: "
              "collections.abc.Callable[[int, int], object] | None) -> "
              "tuple[Source, dict[str, int]]"),
      "The rows, and counts of the documents and tokens that they do not contain. shift: -1 for no "
      "labels; labels: empty for the tokens themselves; samples: options for preparing documents, "
      "by the names of SampleOptions.");
  module.def("join", &join_sources, nb::arg("left"), nb::arg("right"), nb::arg("on"),
             nb::arg("rename"), nb::arg("kinds"),
             nb::sig("def join(left: Source, right: Source, on: str, rename: dict[str, str], "
                     "kinds: collections.abc.Sequence[str]) -> Source"));
  module.def(
      "with_kinds",
      [](const SourceHandle& source, const std::vector<std::string>& kinds) {
        return SourceHandle{with_kinds(source.source, kinds_from(kinds))};
      },
      nb::arg("source"), nb::arg("kinds"), "kinds: [\"seg=mask\"].");
  module.def(
      "with_row_group",
      [](const SourceHandle& source, const std::vector<std::string>& fields) {
        return SourceHandle{with_row_group(source.source, fields)};
      },
      nb::arg("source"), nb::arg("fields"));
  module.def(
      "with_evident_kinds",
      [](const SourceHandle& source, const std::vector<std::string>& kinds) {
        return SourceHandle{with_evident_kinds(source.source, kinds_from(kinds))};
      },
      nb::arg("source"), nb::arg("kinds"),
      "Including kinds derived from names. kinds: [\"seg=mask\"].");
  module.def(
      "evident_kind",
      [](std::string name, DType dtype, Shape shape) {
        const Field field{std::move(name), FieldKind::kTensor, dtype, std::move(shape), false};
        return name_of(evident_kind(field, {}));
      },
      nb::arg("name"), nb::arg("dtype"), nb::arg("shape"),
      "The default kind of a tensor with this name and shape.");
}

}  // namespace headrace::python
