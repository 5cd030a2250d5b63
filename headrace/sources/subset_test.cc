// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/subset.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>

#include "headrace/sources/columns/columns.h"
#include "headrace/storage/temporary_folder.h"

namespace headrace {
namespace {

using Indices = std::vector<int64_t>;

// Record i has the value i and the given label.
SourcePtr numbered(int64_t size, const std::function<int64_t(int64_t)>& label) {
  auto values = std::make_shared<Indices>(size), labels = std::make_shared<Indices>(size);
  for (int64_t i = 0; i < size; ++i) (*values)[i] = i, (*labels)[i] = label(i);
  return records({{"value", ArrayColumn{values->data(), DType::kInt64, size, {}, values}},
                  {"label", ArrayColumn{labels->data(), DType::kInt64, size, {}, labels}}});
}
SourcePtr numbered(int64_t size) {
  return numbered(size, [](int64_t i) { return i % 10; });
}

Indices values_of(const Source& source) {
  Indices indices(source.size()), out;
  std::iota(indices.begin(), indices.end(), 0);
  std::vector<RecordData> data(indices.size());
  source.read(indices, {true, true}, data);
  for (size_t i = 0; i < data.size(); ++i) {
    EXPECT_EQ(data[i].index, int64_t(i));
    out.push_back(data[i].fields[0].scalar);
  }
  return out;
}

std::string code_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Exception& exception) {
    EXPECT_FALSE(exception.error().hint.empty());
    return std::string(exception.error().code->id);
  }
  return "none";
}

TEST(Subset, HasTheNamedRecordsInTheirOrder) {
  const SourcePtr all = numbered(1000);
  const SourcePtr some = subset(all, {7, 3, 999, 3});
  EXPECT_EQ(values_of(*some), (Indices{7, 3, 999, 3}));
  EXPECT_EQ(some->integer_column("label"), (Indices{7, 3, 9, 3}));
  EXPECT_EQ(some->key(2), "999");
  EXPECT_EQ(some->description(), "4 of records of value, label (1,000 records)");
  EXPECT_EQ(values_of(*subset(all, {})), Indices{});
}

TEST(Subset, OfManyRecordsReadsThemAll) {
  Indices indices;
  for (int64_t i = 0; i < 300; ++i) indices.push_back(i * 7 % 1000);
  EXPECT_EQ(values_of(*subset(numbered(1000), indices)), indices);
}

TEST(Subset, OfASubsetIndexesThatSubset) {
  const SourcePtr all = numbered(100);
  const SourcePtr even = subset(all, {0, 2, 4, 6, 8});
  const SourcePtr two = subset(even, {4, 1});
  EXPECT_EQ(values_of(*two), (Indices{8, 2}));
  EXPECT_EQ(two->fingerprint(), subset(all, {8, 2})->fingerprint());
}

TEST(Subset, RefusesIndicesOutside) {
  const SourcePtr all = numbered(10);
  EXPECT_EQ(code_of([&] { subset(all, {0, 10}); }), "HR0430");
  EXPECT_EQ(code_of([&] { subset(all, {-1}); }), "HR0430");
  EXPECT_EQ(code_of([&] { subset(subset(all, {1, 2}), {2}); }), "HR0430");
}

TEST(Subset, FingerprintMixesTheIndices) {
  const SourcePtr all = numbered(10);
  EXPECT_EQ(subset(all, {1, 2})->fingerprint(), subset(all, {1, 2})->fingerprint());
  EXPECT_NE(subset(all, {1, 2})->fingerprint(), subset(all, {2, 1})->fingerprint());
  EXPECT_NE(subset(all, {1, 2})->fingerprint(), subset(numbered(11), {1, 2})->fingerprint());
}

TEST(Subset, ErrorsNumberRecordsAsTheSubsetDoes) {
  TemporaryFolder folder;
  const SourcePtr files =
      records({{"image", PathColumn{{folder.write("a.jpg", "a"), folder / "gone.jpg"}}}});
  std::vector<RecordData> out(1);
  subset(files, {1})->read(Indices{0}, {true}, out);
  EXPECT_EQ(out[0].result.error().where.record, 0);
  EXPECT_EQ(out[0].result.error().where.file, folder / "gone.jpg");
}

TEST(Split, EveryRecordIsInOnePart) {
  for (int64_t size : {0, 1, 7, 100, 1001}) {
    const auto parts = split_indices(*numbered(size), {0.7, 0.2, 0.1}, 5);
    ASSERT_EQ(parts.size(), 3u);
    Indices all;
    for (const Indices& part : parts) {
      EXPECT_TRUE(std::is_sorted(part.begin(), part.end()));
      all.insert(all.end(), part.begin(), part.end());
    }
    std::sort(all.begin(), all.end());
    Indices expected(size);
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_EQ(all, expected);
  }
}

TEST(Split, SizesAreTheFractions) {
  const auto sizes = [](int64_t size, const std::vector<double>& fractions) {
    std::vector<size_t> out;
    for (const Indices& part : split_indices(*numbered(size), fractions, 1)) {
      out.push_back(part.size());
    }
    return out;
  };
  using Sizes = std::vector<size_t>;
  EXPECT_EQ(sizes(1000, {0.9, 0.1}), (Sizes{900, 100}));
  EXPECT_EQ(sizes(30, {0.1, 0.2, 0.7}), (Sizes{3, 6, 21}));
  EXPECT_EQ(sizes(10, {1.0 / 3, 1.0 / 3, 1.0 / 3}), (Sizes{4, 3, 3}));
  EXPECT_EQ(sizes(1000, {0.25, 0.25}), (Sizes{250, 250}));  // half is left out
  EXPECT_EQ(sizes(5, {1.0}), (Sizes{5}));
}

TEST(Split, DependsOnTheSeedAlone) {
  const SourcePtr source = numbered(1000);
  EXPECT_EQ(split_indices(*source, {0.5, 0.5}, 3), split_indices(*source, {0.5, 0.5}, 3));
  EXPECT_NE(split_indices(*source, {0.5, 0.5}, 3), split_indices(*source, {0.5, 0.5}, 4));
}

TEST(Split, ByLabelKeepsProportionsAndSizes) {
  // 1,000 labels of ten records: rounding label by label would leave the second part empty.
  const SourcePtr source = numbered(10000, [](int64_t i) { return i % 1000; });
  const Indices labels = source->integer_column("label");
  for (const std::vector<double>& fractions :
       {std::vector<double>{0.96, 0.04}, {0.5, 0.5}, {0.8, 0.1, 0.1}, {0.3, 0.3}}) {
    const auto parts = split_indices(*source, fractions, 9, "label");
    for (size_t p = 0; p < parts.size(); ++p) {
      EXPECT_EQ(parts[p].size(), size_t(std::lround(fractions[p] * 10000)));
      std::map<int64_t, int> counts;
      for (int64_t index : parts[p]) ++counts[labels[index]];
      for (int64_t label = 0; label < 1000; ++label) {
        EXPECT_NEAR(counts[label], fractions[p] * 10, 2.0) << "part " << p;
      }
    }
  }
}

TEST(Split, PartsAreSources) {
  const SourcePtr source = numbered(100);
  const auto parts = split(source, {0.75, 0.25}, 1, "label");
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0]->size(), 75);
  EXPECT_EQ(values_of(*parts[1]), split_indices(*source, {0.75, 0.25}, 1, "label")[1]);
}

TEST(Split, RefusesImpossibleArguments) {
  const SourcePtr source = numbered(10);
  const auto code = [&](const std::vector<double>& fractions, std::string_view field = {}) {
    return code_of([&] { split(source, fractions, 0, field); });
  };
  EXPECT_EQ(code({}), "HR0431");
  EXPECT_EQ(code({0.9, 0.2}), "HR0431");
  EXPECT_EQ(code({0.9, 0.0}), "HR0431");
  EXPECT_EQ(code({-0.5}), "HR0431");
  EXPECT_EQ(code({std::nan("")}), "HR0431");
  EXPECT_EQ(code({0.5}, "none"), "HR0431");
  EXPECT_EQ(code({0.1, 0.2, 0.7}), "none");
}

}  // namespace
}  // namespace headrace
