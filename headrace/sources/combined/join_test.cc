// SPDX-License-Identifier: Apache-2.0
// Joins of joins, and what a join announces of its sides.
#include <gtest/gtest.h>

#include <chrono>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "headrace/sources/columns/columns.h"
#include "headrace/sources/combined/combined.h"
#include "headrace/sources/record_cache.h"
#include "headrace/sources/source_around.h"
#include "headrace/sources/source_test_reads.h"
#include "headrace/sources/subset.h"
#include "headrace/storage/memory_files.h"
#include "headrace/storage/read_deadline.h"
#include "headrace/storage/temporary_folder.h"

namespace headrace {
namespace join_test {
namespace {

using Indices = std::vector<int64_t>;

constexpr int64_t kRecords = 40;

// Different lengths, so that reused memory is also allocated again.
std::string content_of(const std::string& field, int64_t record) {
  return field + " " + std::to_string(record) + std::string(size_t(record * 7 % 13) * 50, '.');
}

class NestedJoin : public testing::Test {
 protected:
  // A file of one field per record.
  SourcePtr local(const std::string& field) {
    return files(field, [&](const std::string& name, const std::string& content) {
      return folder_.write(name, content);
    });
  }
  SourcePtr remote(const std::string& field) {
    return files(field, [&](const std::string& name, const std::string& content) {
      return volume_.write(name, std::string_view(content));
    });
  }
  template <class Write>
  static SourcePtr files(const std::string& field, const Write& write) {
    PathColumn column;
    for (int64_t i = 0; i < kRecords; ++i) {
      column.paths.push_back(write(field + std::to_string(i), content_of(field, i)));
    }
    return records({{field, std::move(column), FieldKind::kBytes}});
  }

  static SourcePtr paired(const SourcePtr& left, const SourcePtr& right) {
    return join(left, right, {.on = "position"});
  }
  // Three joins of the same four sides, in every nesting.
  std::vector<SourcePtr> nestings() {
    const SourcePtr a = remote("a"), b = local("b"), c = remote("c"), d = local("d");
    return {paired(paired(paired(a, b), c), d), paired(a, paired(b, paired(c, d))),
            paired(paired(a, b), paired(c, d)), paired(a, paired(paired(b, c), d))};
  }

  static void expect(const Source& source, const Indices& indices, const std::vector<bool>& wanted,
                     std::span<const RecordData> out) {
    for (size_t i = 0; i < out.size(); ++i) {
      ASSERT_TRUE(out[i].result) << out[i].result.error().message();
      EXPECT_EQ(out[i].index, indices[i]);
      for (size_t field = 0; field < source.schema().size(); ++field) {
        const std::string content = content_of(source.schema()[field].name, indices[i]);
        EXPECT_EQ(text_of(out[i].fields[field]), wanted[field] ? content : "");
      }
    }
  }

  MemoryVolume volume_{"joined"};
  TemporaryFolder folder_;
};

TEST_F(NestedJoin, delivers_every_field_of_its_record_in_reused_memory) {
  for (const SourcePtr& source : nestings()) {
    std::vector<RecordData> out(8);
    for (int64_t round = 0; round < 20; ++round) {
      Indices indices;
      for (size_t i = 0; i < out.size(); ++i) {
        indices.push_back((round * 11 + int64_t(i) * 3) % kRecords);
      }
      // All fields, and in every other round some of them.
      std::vector<bool> wanted(4, true);
      for (size_t field = 0; round % 2 && field < 4; ++field) wanted[field] = round >> field & 1;
      source->read(indices, wanted, out);
      expect(*source, indices, wanted, out);
    }
  }
}

TEST_F(NestedJoin, takes_a_record_from_memory_that_another_nesting_has_used) {
  const std::vector<SourcePtr> sources = nestings();
  std::vector<RecordData> out(3);
  const std::vector<bool> wanted(4, true);
  for (int64_t round = 0; round < 20; ++round) {
    const Indices indices{round, round + 9, round + 20};
    const Source& source = *sources[size_t(round * 3) % sources.size()];
    source.read(indices, wanted, out);
    expect(source, indices, wanted, out);
  }
}

TEST_F(NestedJoin, is_read_through_a_record_cache) {
  for (const SourcePtr& source : nestings()) {
    const std::vector<bool> wanted(4, true);
    const auto cached = with_record_cache(source, wanted, {.bytes = size_t{16} << 20});
    std::vector<RecordData> out(4);
    for (int epoch = 0; epoch < 2; ++epoch) {
      for (int64_t begin = 0; begin < kRecords; begin += 4) {
        const Indices indices{begin + 3, begin, begin + 2, begin + 1};
        cached.source->read(indices, wanted, out);
        expect(*source, indices, wanted, out);
      }
    }
    EXPECT_EQ(cached.cache->counts().hits, kRecords);
  }
}

// Each read takes longer than its deadline leaves.
class Late final : public SourceAround {
 public:
  using SourceAround::SourceAround;
  ReadStyle read_style() const override { return ReadStyle::kFiles; }
  void read(std::span<const int64_t> indices, const std::vector<bool>& wanted,
            std::span<RecordData> out) const override {
    for (size_t i = 0; i < out.size(); ++i) {
      EXPECT_FALSE(ReadWait::is_over()) << "record " << indices[i];
      while (!ReadWait::is_over()) std::this_thread::yield();
    }
    inner()->read(indices, wanted, out);
  }
};

TEST_F(NestedJoin, each_record_read_by_one_call_has_a_deadline_of_its_own) {
  const SourcePtr late = std::make_shared<Late>(local("late"));
  for (const SourcePtr& source :
       {paired(late, local("a")), paired(local("a"), late), concat({late, late}),
        paired(local("b"), paired(local("a"), late))}) {
    const ReadDeadline deadline(0.002);
    const Indices indices{1, 2, 3, 4};
    std::vector<RecordData> out(4);
    source->read(indices, std::vector<bool>(source->schema().size(), true), out);
  }
}

TEST(ReadDeadlines, begin_when_a_record_is_first_waited_for) {
  const ReadDeadline deadline(0.002);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(ReadWait::is_over());
  while (!ReadWait::is_over()) std::this_thread::yield();
  EXPECT_EQ(ReadWait::error("a", -1).code->id, "HR0228");
}

// Records that are their numbers. Remembers what is announced and read, and for which fields its
// reader accepts open files.
class Watched final : public SourceAround {
 public:
  Watched(SourcePtr inner, ReadStyle style, Indices ends)
      : SourceAround(std::move(inner)), style_(style), ends_(std::move(ends)) {}
  ReadStyle read_style() const override { return style_; }
  Indices block_ends() const override { return ends_; }
  void will_read(int64_t begin, int64_t end, const std::vector<bool>& wanted) const override {
    announced.emplace_back(begin, end);
    announced_fields = wanted;
  }
  void read(std::span<const int64_t> indices, const std::vector<bool>& wanted,
            std::span<RecordData> out) const override {
    reads += indices.size();
    by_range.assign(schema().size(), false);
    if (out[0].by_range) by_range = *out[0].by_range;
    inner()->read(indices, wanted, out);
  }
  void pieces(int64_t, const std::vector<bool>&, std::vector<FilePiece>& out) const override {
    out.push_back({.path = schema()[0].name});
  }
  bool prepare_pieces(int64_t, const std::vector<bool>&, bool) const override { return false; }

  using Ranges = std::vector<std::pair<int64_t, int64_t>>;
  mutable Ranges announced;
  mutable std::vector<bool> announced_fields, by_range;
  mutable size_t reads = 0;

 private:
  const ReadStyle style_;
  const Indices ends_;
};
using WatchedPtr = std::shared_ptr<Watched>;

// Integers of two fields, NAME and NAME2; those of NAME are `values`.
SourcePtr integers(const std::string& name, const Indices& values) {
  const auto kept = std::make_shared<Indices>(values);
  const auto count = static_cast<int64_t>(values.size());
  return records({{name, ArrayColumn{kept->data(), DType::kInt64, count, {}, kept}},
                  {name + "2", ArrayColumn{kept->data(), DType::kInt64, count, {}, kept}}});
}

WatchedPtr watched(const std::string& name, const Indices& values, ReadStyle style, Indices ends) {
  return std::make_shared<Watched>(integers(name, values), style, std::move(ends));
}

Indices counting(int64_t count) {
  Indices out(static_cast<size_t>(count));
  std::iota(out.begin(), out.end(), 0);
  return out;
}

TEST(Announced, a_join_announces_the_sides_whose_fields_are_wanted) {
  const WatchedPtr left = watched("a", counting(20), ReadStyle::kFiles, {10, 20}),
                   right = watched("b", counting(20), ReadStyle::kFiles, {20});
  const SourcePtr joined = join(left, right, {.on = "position"});
  using Ranges = Watched::Ranges;
  joined->will_read(2, 8, {false, false, true, false});
  EXPECT_EQ(left->announced, Ranges{});
  EXPECT_EQ(right->announced, (Ranges{{2, 8}}));
  EXPECT_EQ(right->announced_fields, (std::vector<bool>{true, false}));
  joined->will_read(10, 20, {false, true, false, false});
  EXPECT_EQ(left->announced, (Ranges{{10, 20}}));
  EXPECT_EQ(left->announced_fields, (std::vector<bool>{false, true}));
  EXPECT_EQ(right->announced.size(), 1u);
}

TEST(Announced, a_side_without_wanted_fields_is_not_read) {
  const WatchedPtr left = watched("a", counting(20), ReadStyle::kLater, {20}),
                   right = watched("b", counting(20), ReadStyle::kLater, {20});
  const SourcePtr joined = join(left, right, {.on = "position"});
  for (const bool of_left : {true, false}) {
    const std::vector<bool> wanted{of_left, false, !of_left, false};
    std::vector<FilePiece> pieces;
    joined->pieces(3, wanted, pieces);
    ASSERT_EQ(pieces.size(), 1u);
    EXPECT_EQ(pieces[0].path, of_left ? "a" : "b");
    const RecordData record = read_record(*joined, 3, wanted);
    EXPECT_EQ(record.fields[of_left ? 0 : 2].scalar, 3);
    EXPECT_EQ(left->reads, 1u);
    EXPECT_EQ(right->reads, of_left ? 0u : 1u);
  }
  EXPECT_FALSE(joined->prepare_pieces(3, {true, false, false, false}, false));
  EXPECT_TRUE(joined->prepare_pieces(3, {false, false, false, false}, false));
}

TEST(Announced, a_join_has_the_blocks_of_the_side_that_is_farther_away) {
  const auto joined = [](ReadStyle of_left, ReadStyle of_right) {
    return join(watched("a", counting(20), of_left, {10, 20}),
                watched("b", counting(20), of_right, {4, 12, 20}), {.on = "position"});
  };
  EXPECT_EQ(joined(ReadStyle::kFiles, ReadStyle::kFiles)->block_ends(), (Indices{10, 20}));
  EXPECT_EQ(joined(ReadStyle::kFiles, ReadStyle::kLater)->block_ends(), (Indices{4, 12, 20}));
  EXPECT_EQ(joined(ReadStyle::kLater, ReadStyle::kMemory)->block_ends(), (Indices{10, 20}));
}

TEST(Announced, a_join_by_values_announces_the_matches) {
  // Record i of the left source matches record 6 - i of the right one, and its record 2 none.
  const WatchedPtr left = watched("number", {8, 7, 99, 5, 4, 3, 2}, ReadStyle::kFiles, {3, 7});
  const auto keys = std::make_shared<Indices>(Indices{2, 3, 4, 5, 6, 7, 8});
  const auto right = std::make_shared<Watched>(
      records({{"number", ArrayColumn{keys->data(), DType::kInt64, 7, {}, keys}},
               {"other", ArrayColumn{keys->data(), DType::kInt64, 7, {}, keys}}}),
      ReadStyle::kFiles, Indices{7});
  const SourcePtr joined = join(left, right, {.on = "number"});
  ASSERT_EQ(joined->size(), 6);
  EXPECT_EQ(joined->block_ends(), (Indices{2, 6}));
  joined->will_read(0, 5, {true, true, true});
  EXPECT_EQ(left->announced, (Watched::Ranges{{0, 2}, {3, 6}}));
  EXPECT_EQ(right->announced, (Watched::Ranges{{1, 4}, {5, 7}}));
  EXPECT_EQ(right->announced_fields, (std::vector<bool>{false, true}));
}

TEST(Announced, a_subset_keeps_the_blocks_of_its_source) {
  const WatchedPtr source = watched("a", counting(100), ReadStyle::kLater, {30, 60, 100});
  Indices even;
  for (int64_t i = 0; i < 100; i += 2) even.push_back(i);
  EXPECT_EQ(subset(source, even)->block_ends(), (Indices{15, 30, 50}));
  EXPECT_EQ(subset(source, {})->block_ends(), Indices{});
  // 100 records that jump between three blocks have none.
  Indices jumping;
  for (int64_t i = 0; i < 100; ++i) jumping.push_back(i * 37 % 100);
  EXPECT_EQ(subset(source, jumping)->block_ends(), Indices{100});
}

TEST(Announced, a_subset_announces_runs_of_neighbors) {
  const WatchedPtr source = watched("a", counting(100), ReadStyle::kLater, {100});
  const SourcePtr some = subset(source, {3, 4, 5, 9, 8, 8, 20, 22, 24, 26});
  some->will_read(0, 6, {true, false});
  EXPECT_EQ(source->announced, (Watched::Ranges{{3, 6}, {8, 10}}));
  EXPECT_EQ(source->announced_fields, (std::vector<bool>{true, false}));
  some->will_read(6, 10, {true, false});  // scattered
  EXPECT_EQ(source->announced.size(), 2u);
  some->will_read(9, 10, {true, false});  // a record that is a block alone
  EXPECT_EQ(source->announced.back(), (std::pair<int64_t, int64_t>{26, 27}));
}

TEST(JoinByRange, tells_each_side_which_of_its_fields_may_be_open_files) {
  const WatchedPtr a = watched("a", counting(9), ReadStyle::kFiles, {9}),
                   b = watched("b", counting(9), ReadStyle::kFiles, {9}),
                   c = watched("c", counting(9), ReadStyle::kFiles, {9});
  const SourcePtr inner = join(b, c, {.on = "position"});
  const SourcePtr joined = join(a, inner, {.on = "position"});
  const std::vector<bool> by_range{false, true, true, false, false, true}, wanted(6, true);
  RecordData record;
  record.by_range = &by_range;
  const int64_t third = 3;
  joined->read({&third, 1}, wanted, {&record, 1});
  EXPECT_EQ(std::vector<bool>(a->by_range.begin(), a->by_range.begin() + 2),
            (std::vector<bool>{false, true}));
  EXPECT_EQ(std::vector<bool>(b->by_range.begin(), b->by_range.begin() + 2),
            (std::vector<bool>{true, false}));
  EXPECT_EQ(c->by_range, (std::vector<bool>{false, true}));
  EXPECT_EQ(record.by_range, &by_range);
  for (const RecordData& part : record.parts) EXPECT_EQ(part.by_range, nullptr);
}

}  // namespace
}  // namespace join_test
}  // namespace headrace
