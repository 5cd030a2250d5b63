// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/combined/combined.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <numeric>
#include <set>

#include "headrace/sources/columns/columns.h"
#include "headrace/sources/source_around.h"
#include "headrace/sources/subset.h"
#include "headrace/storage/temporary_folder.h"

namespace headrace {
namespace {

using Indices = std::vector<int64_t>;

// Records whose `name` is first, first + 1, ...
SourcePtr numbered(int64_t size, int64_t first = 0, const std::string& name = "value") {
  auto values = std::make_shared<Indices>(size);
  std::iota(values->begin(), values->end(), first);
  return records({{name, ArrayColumn{values->data(), DType::kInt64, size, {}, values}}});
}

Indices values_of(const Source& source, const Indices& indices) {
  std::vector<RecordData> data(indices.size());
  source.read(indices, std::vector<bool>(source.schema().size(), true), data);
  Indices out;
  for (size_t i = 0; i < data.size(); ++i) {
    EXPECT_TRUE(data[i].result);
    EXPECT_EQ(data[i].index, indices[i]);
    out.push_back(data[i].fields[0].scalar);
  }
  return out;
}

Indices values_of(const Source& source) {
  Indices indices(source.size());
  std::iota(indices.begin(), indices.end(), 0);
  const Indices out = values_of(source, indices);
  EXPECT_EQ(source.integer_column(source.schema()[0].name), out);
  return out;
}

std::string failure(const std::function<void()>& call) {
  try {
    call();
  } catch (const Exception& exception) {
    return exception.what();
  }
  return "none";
}

TEST(Concat, has_the_records_of_each_in_order) {
  const SourcePtr all = concat({numbered(3), numbered(0), numbered(2, 10), numbered(1, 20)});
  EXPECT_EQ(values_of(*all), (Indices{0, 1, 2, 10, 11, 20}));
  EXPECT_EQ(values_of(*all, {5, 0, 3, 4, 2}), (Indices{20, 0, 10, 11, 2}));
  EXPECT_NE(all->fingerprint(), concat({numbered(3), numbered(2, 10)})->fingerprint());
}

TEST(Concat, accepts_fields_in_another_order_and_of_other_shapes) {
  static const float a[6] = {1, 2, 3, 4, 5, 6};
  static const int64_t n[3] = {7, 8, 9};
  const auto floats = [&](int64_t count, Shape shape) {
    return Column{"x", ArrayColumn{a, DType::kFloat32, count, std::move(shape), {}}};
  };
  const auto numbers = [&](int64_t count) {
    return Column{"n", ArrayColumn{n, DType::kInt64, count, {}, {}}};
  };
  const SourcePtr all =
      concat({records({floats(2, {3}), numbers(2)}), records({numbers(3), floats(3, {2})})});
  EXPECT_EQ(all->schema()[0].shape, (Shape{-1}));
  std::vector<RecordData> out(2);
  const int64_t order[] = {1, 4};
  all->read(order, {true, true}, out);
  EXPECT_EQ(out[0].fields[0].shape, (Shape{3}));
  EXPECT_EQ(out[1].fields[0].shape, (Shape{2}));
  EXPECT_EQ(reinterpret_cast<const float*>(out[1].fields[0].bytes.data())[0], 5);
  EXPECT_EQ(out[1].fields[1].scalar, 9);
}

TEST(Concat, refuses_sources_that_do_not_match) {
  EXPECT_NE(failure([] { concat({}); }).find("HR0496"), std::string::npos);
  const std::string message = failure([] { concat({numbered(1), numbered(1, 0, "other")}); });
  EXPECT_NE(message.find("source 1 has no field 'value', only 'other'"), std::string::npos)
      << message;
  const SourcePtr cats = records({{"label", TextColumn{{"cat"}}}});
  const SourcePtr dogs = records({{"label", TextColumn{{"dog"}}}});
  EXPECT_NE(failure([&] { concat({cats, dogs}); }).find("classes"), std::string::npos);
}

// A source whose records are their numbers, and that remembers what is about to be read of it.
class Watched final : public Source {
 public:
  Watched(int64_t size, std::string root) : size_(size), root_(std::move(root)) {}
  int64_t size() const override { return size_; }
  const Schema& schema() const override { return schema_; }
  ReadStyle read_style() const override { return ReadStyle::kFiles; }
  void read(std::span<const int64_t> indices, const std::vector<bool>&,
            std::span<RecordData> out) const override {
    static const ErrorCode kOdd{"HR0000", ErrorKind::kData, "an odd number", ""};
    for (size_t i = 0; i < out.size(); ++i) {
      out[i].index = indices[i];
      out[i].fields.assign(1, {});
      out[i].fields[0].scalar = indices[i];
      out[i].result = {};
      if (indices[i] % 2) {
        out[i].result = Error{.code = &kOdd, .what = "odd", .where = Where{.record = indices[i]}};
      }
    }
  }
  std::string key(int64_t index) const override { return root_ + "/" + std::to_string(index); }
  std::string root() const override { return root_; }
  std::vector<int64_t> block_ends() const override { return {size_ / 2, size_}; }
  void will_read(int64_t begin, int64_t end, const std::vector<bool>&) const override {
    asked.emplace_back(begin, end);
  }
  uint64_t fingerprint() const override { return 1; }
  std::string description() const override { return root_; }

  mutable std::vector<std::pair<int64_t, int64_t>> asked;

 private:
  Schema schema_ = {{.name = "value", .dtype = DType::kInt64}};
  int64_t size_;
  std::string root_;
};

TEST(Concat, forwards_queries_to_its_sources) {
  const auto a = std::make_shared<Watched>(4, "a"), b = std::make_shared<Watched>(6, "b");
  const SourcePtr all = concat({a, numbered(0), b});
  EXPECT_EQ(all->read_style(), ReadStyle::kFiles);
  EXPECT_EQ(all->key(3), "a/3");
  EXPECT_EQ(all->key(4), "b/0");
  EXPECT_EQ(all->where(9).file, "b/5");
  EXPECT_EQ(all->where(9).record, 9);
  EXPECT_EQ(all->block_ends(), (Indices{2, 4, 7, 10}));
  all->will_read(1, 3, {true});
  all->will_read(2, 8, {true});
  using Ranges = std::vector<std::pair<int64_t, int64_t>>;
  EXPECT_EQ(a->asked, (Ranges{{1, 3}, {2, 4}}));
  EXPECT_EQ(b->asked, (Ranges{{0, 4}}));
  EXPECT_EQ(all->root(), ".");
  EXPECT_EQ(concat({a, std::make_shared<Watched>(1, "a")})->root(), "a");
  EXPECT_EQ(concat({numbered(1), a})->root(), "");
  EXPECT_TRUE(all->integer_column("value").empty());  // the first source gives none
  EXPECT_EQ(concat({a, b})->description(), "concat (10 records): a, b");
  EXPECT_EQ(concat({a, b, a, b, a})->description(), "concat (24 records): a, b, a and 2 more");
}

TEST(Concat, a_bad_record_has_its_number_among_all) {
  const SourcePtr all =
      concat({std::make_shared<Watched>(4, "a"), std::make_shared<Watched>(6, "b")});
  std::vector<RecordData> out(3);
  const int64_t order[] = {2, 7, 8};
  all->read(order, {true}, out);
  EXPECT_TRUE(out[0].result);
  ASSERT_FALSE(out[1].result);
  EXPECT_EQ(out[1].result.error().where.record, 7);
  EXPECT_TRUE(out[2].result);
  EXPECT_EQ(out[2].index, 8);
}

TEST(Concat, refuses_fields_that_are_not_of_one_form) {
  static const float floats[4] = {};
  static const int64_t integers[4] = {};
  const auto one = [](const void* data, DType dtype, Shape shape = {}) {
    return records({{"x", ArrayColumn{data, dtype, 1, std::move(shape), {}}}});
  };
  const SourcePtr first = one(floats, DType::kFloat32);
  EXPECT_NE(failure([&] {
              concat({first, one(integers, DType::kInt64)});
            }).find("'x' of source 1 is tensor int64, of source 0 tensor float32\n"),
            std::string::npos);
  EXPECT_NE(failure([&] {
              concat({first, one(floats, DType::kFloat32, {2})});
            }).find("of source 0 tensor float32, with other dimensions\n"),
            std::string::npos);
  const SourcePtr two = records({{"x", ArrayColumn{floats, DType::kFloat32, 1, {}, {}}},
                                 {"y", ArrayColumn{floats, DType::kFloat32, 1, {}, {}}}});
  EXPECT_NE(
      failure([&] { concat({first, two}); }).find("source 1 has 'x' and 'y', but source 0 has 'x'"),
      std::string::npos);
}

TEST(Concat, of_one_source_is_that_source) {
  const SourcePtr source = numbered(3);
  EXPECT_EQ(concat({source}), source);
}

// How often each value of `source` comes.
std::map<int64_t, int64_t> counts_in(const Indices& values) {
  std::map<int64_t, int64_t> counts;
  for (const int64_t value : values) ++counts[value];
  return counts;
}

TEST(Mix, every_record_is_delivered_and_proportions_are_exact) {
  const SourcePtr mixed = mix({numbered(10), numbered(1000, 100)}, {1, 4});
  const Indices values = values_of(*mixed);
  ASSERT_EQ(values.size(), 1250u);
  const auto counts = counts_in(values);
  EXPECT_EQ(counts.size(), 1010u);
  for (const auto& [value, count] : counts) EXPECT_EQ(count, value < 100 ? 25 : 1) << value;
}

TEST(Mix, every_interval_has_the_right_proportions) {
  const Indices values = values_of(*mix({numbered(300), numbered(700, 1000)}, {3, 7}));
  int64_t small = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    small += values[i] < 1000;
    EXPECT_NEAR(double(small), 0.3 * double(i + 1), 1.0) << i;
  }
}

TEST(Mix, an_exhausted_source_starts_over_and_the_rest_is_drawn_by_seed) {
  const auto small_ones = [](uint64_t seed) {
    Indices out;
    for (const int64_t value :
         values_of(*mix({numbered(7), numbered(83, 1000)}, {1, 5}, 120, seed)))
      if (value < 1000) out.push_back(value);
    return out;
  };
  const Indices one = small_ones(1);
  ASSERT_EQ(one.size(), 20u);  // two times all seven, then six of them
  EXPECT_EQ(std::set<int64_t>(one.begin(), one.begin() + 7).size(), 7u);
  EXPECT_EQ(std::set<int64_t>(one.begin() + 7, one.begin() + 14).size(), 7u);
  EXPECT_EQ(std::set<int64_t>(one.begin() + 14, one.end()).size(), 6u);
  EXPECT_EQ(one, small_ones(1));
  EXPECT_NE(one, small_ones(2));
}

TEST(Mix, positions_are_right_for_many_sources_and_odd_weights) {
  std::vector<SourcePtr> sources;
  std::vector<double> weights;
  for (int64_t i = 0; i < 9; ++i) {
    sources.push_back(numbered(3 + i * i, 1000 * i));
    weights.push_back(0.37 + double(i % 4));
  }
  const SourcePtr mixed = mix(sources, weights, 1009, 5);
  const Indices values = values_of(*mixed);  // also compares the column with the records
  EXPECT_EQ(values.size(), 1009u);
  std::map<int64_t, int64_t> of_source;
  for (const int64_t value : values) ++of_source[value / 1000];
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (int64_t i = 0; i < 9; ++i) {
    EXPECT_NEAR(double(of_source[i]), weights[i] / sum * 1009, 1.0) << i;
  }
}

TEST(Mix, refuses_impossible_arguments) {
  for (const auto& weights : std::vector<std::vector<double>>{{1}, {1, 0}, {1, -1}, {1, NAN}}) {
    EXPECT_NE(failure([&] { mix({numbered(1), numbered(1)}, weights); }).find("HR0497"),
              std::string::npos);
  }
  EXPECT_NE(failure([&] { mix({numbered(1), numbered(0)}, {1, 1}); }).find("no records"),
            std::string::npos);
  EXPECT_NE(failure([&] { mix({numbered(1), numbered(1)}, {1, 1}, 1); }).find("HR0497"),
            std::string::npos);
}

class JoinTest : public testing::Test {
 protected:
  // Files with these names in a folder, as a column.
  SourcePtr files(const std::string& folder, const std::string& field,
                  const std::vector<std::string>& names) {
    std::vector<std::string> paths;
    for (const std::string& name : names) {
      data.write(folder + "/" + name, folder + " " + name);
      paths.push_back(data.path() + "/" + folder + "/" + name);
    }
    return records({{field, PathColumn{paths}, FieldKind::kBytes}});
  }
  static std::string text(const FieldData& field) {
    return {field.bytes.begin(), field.bytes.end()};
  }
  TemporaryFolder data;
};

TEST_F(JoinTest, pairs_records_by_name) {
  const SourcePtr joined = join(files("img", "image", {"a.jpg", "b.jpg", "c.jpg"}),
                                files("snd", "audio", {"c.wav", "x.wav", "a.wav"}));
  ASSERT_EQ(joined->size(), 2);
  EXPECT_EQ(joined->schema()[1].name, "audio");
  EXPECT_NE(joined->description().find("1 of the left source without a match; 1 of the right"),
            std::string::npos);
  std::vector<RecordData> out(2);
  const int64_t order[] = {1, 0};
  for (int again = 0; again < 2; ++again) {  // memory is used again
    joined->read(order, {true, true}, out);
    EXPECT_EQ(text(out[0].fields[0]) + text(out[0].fields[1]), "img c.jpgsnd c.wav");
    EXPECT_EQ(text(out[1].fields[0]) + text(out[1].fields[1]), "img a.jpgsnd a.wav");
  }
  joined->read(order, {true, false}, out);
  EXPECT_EQ(text(out[0].fields[0]), "img c.jpg");
  EXPECT_TRUE(out[0].fields[1].bytes.empty());
}

TEST_F(JoinTest, a_bad_record_of_either_side_is_a_bad_record_of_the_join) {
  const SourcePtr joined =
      join(files("img", "image", {"a.jpg", "b.jpg"}), files("snd", "audio", {"a.wav", "b.wav"}));
  std::filesystem::remove(data.path() + "/snd/b.wav");
  std::vector<RecordData> out(2);
  const int64_t order[] = {0, 1};
  joined->read(order, {true, true}, out);
  EXPECT_TRUE(out[0].result);
  ASSERT_FALSE(out[1].result);
  EXPECT_EQ(out[1].result.error().where.record, 1);
  EXPECT_TRUE(out[1].result.error().where.file.ends_with("snd/b.wav"));
}

TEST(Join, pairs_records_by_a_column) {
  static const int64_t ids[] = {3, 1, 3}, keys[] = {1, 2, 3}, sizes[] = {10, 20, 30};
  const SourcePtr left = records({{"id_", ArrayColumn{ids, DType::kInt64, 3, {}, {}}}});
  const SourcePtr right = records({{"id_", ArrayColumn{keys, DType::kInt64, 3, {}, {}}},
                                   {"size", ArrayColumn{sizes, DType::kInt64, 3, {}, {}}}});
  const SourcePtr joined = join(left, right, {.on = "id_"});
  EXPECT_EQ(joined->integer_column("size"), (Indices{30, 10, 30}));
  EXPECT_EQ(joined->schema().size(), 2u);
}

TEST(Join, refuses_impossible_arguments) {
  const SourcePtr source = numbered(2);
  EXPECT_NE(failure([&] { join(source, source); }).find("rename={\"value\""), std::string::npos);
  EXPECT_NE(failure([&] { join(source, numbered(2, 0, "b"), {.on = "b"}); }).find("left source"),
            std::string::npos);
  EXPECT_NE(
      failure([&] { join(source, source, {.rename = {{"none", "x"}}}); }).find("no field 'none'"),
      std::string::npos);
  static const int64_t twice[] = {4, 4};
  const SourcePtr same = records({{"value", ArrayColumn{twice, DType::kInt64, 2, {}, {}}}});
  EXPECT_NE(failure([&] { join(source, same, {.on = "value"}); }).find("'4' appears twice"),
            std::string::npos);
  EXPECT_NE(failure([&] {
              join(source, numbered(2, 50), {.on = "value"});
            }).find("no record of the left"),
            std::string::npos);
}

// Whose records share the files of their fields.
class Sharing final : public SourceAround {
 public:
  using SourceAround::SourceAround;
  bool shares_files(size_t) const override { return true; }
};

TEST(SharedFiles, of_a_combination_are_those_of_its_sources) {
  const auto sharing = std::make_shared<const Sharing>(numbered(6));
  EXPECT_TRUE(subset(sharing, {0, 3})->shares_files(0));
  EXPECT_TRUE(concat({numbered(2), sharing})->shares_files(0));
  EXPECT_FALSE(concat({numbered(2), numbered(3)})->shares_files(0));
  const auto both = join(numbered(6, 0, "left"), sharing, {.on = "position"});
  EXPECT_FALSE(both->shares_files(0));
  EXPECT_TRUE(both->shares_files(1));
}

TEST(KFold, every_record_is_validated_once_and_trained_on_otherwise) {
  const SourcePtr all = numbered(103);
  Indices validated;
  for (const Fold& fold : kfold(all, 5, 3)) {
    const Indices held = values_of(*fold.validation), train = values_of(*fold.train);
    EXPECT_TRUE(held.size() == 20 || held.size() == 21);
    std::set<int64_t> together(held.begin(), held.end());
    together.insert(train.begin(), train.end());
    EXPECT_EQ(together.size(), 103u);
    EXPECT_EQ(held.size() + train.size(), 103u);
    validated.insert(validated.end(), held.begin(), held.end());
  }
  std::sort(validated.begin(), validated.end());
  EXPECT_EQ(validated, values_of(*all));
  EXPECT_NE(failure([&] { kfold(all, 1, 0); }).find("HR0431"), std::string::npos);
  EXPECT_NE(failure([&] { kfold(all, 104, 0); }).find("HR0431"), std::string::npos);
}

}  // namespace
}  // namespace headrace
