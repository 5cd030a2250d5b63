// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/source_around.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>

namespace headrace {
namespace {

// Answers everything in a way that no default does.
class Telling final : public Source {
 public:
  int64_t size() const override { return 7; }
  const Schema& schema() const override { return schema_; }
  ReadStyle read_style() const override { return ReadStyle::kPython; }
  void read(std::span<const int64_t> indices, const std::vector<bool>&,
            std::span<RecordData> out) const override {
    out[0].index = 100 + indices[0];
  }
  std::string key(int64_t index) const override { return "key " + std::to_string(index); }
  Where where(int64_t index) const override { return {.file = "file", .offset = 10 * index}; }
  std::string root() const override { return "root/"; }
  std::vector<int64_t> integer_column(std::string_view field) const override {
    return {static_cast<int64_t>(field.size())};
  }
  std::vector<std::string> cautions() const override { return {"beware"}; }
  std::vector<std::string> classes() const override { return {"a", "b"}; }
  const uint8_t* dense_values(size_t field) const override { return values_ + field; }
  bool shares_files(size_t field) const override { return field == 2; }
  std::string separate_file(int64_t index, size_t field) const override {
    return std::to_string(index) + " " + std::to_string(field);
  }
  std::vector<int64_t> block_ends() const override { return {2, 7}; }
  void will_read(int64_t begin, int64_t end, const std::vector<bool>& wanted) const override {
    told_ = {begin, end};
    told_wanted_ = wanted;
  }
  uint64_t fingerprint() const override { return 0x5eed; }
  std::string description() const override { return "telling"; }

  mutable std::pair<int64_t, int64_t> told_;
  mutable std::vector<bool> told_wanted_;
  Schema schema_ = {{.name = "one"}};
  uint8_t values_[4] = {};
};

class Plain final : public SourceAround {
 public:
  using SourceAround::SourceAround;
};

TEST(SourceAround, forwards_to_the_inner_source) {
  const auto inner = std::make_shared<const Telling>();
  const Plain around(inner);
  const Source& source = around;
  EXPECT_EQ(source.size(), 7);
  EXPECT_EQ(&source.schema(), &inner->schema_);
  EXPECT_EQ(source.read_style(), ReadStyle::kPython);
  RecordData data;
  const int64_t third = 3;
  source.read({&third, 1}, {true}, {&data, 1});
  EXPECT_EQ(data.index, 103);
  EXPECT_EQ(source.key(4), "key 4");
  EXPECT_EQ(source.where(4).offset, 40);
  EXPECT_EQ(source.root(), "root/");
  EXPECT_EQ(source.integer_column("label"), std::vector<int64_t>{5});
  EXPECT_EQ(source.cautions(), std::vector<std::string>{"beware"});
  EXPECT_EQ(source.classes(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(source.dense_values(2), inner->values_ + 2);
  EXPECT_TRUE(source.shares_files(2));
  EXPECT_FALSE(source.shares_files(1));
  EXPECT_EQ(source.separate_file(5, 2), "5 2");
  EXPECT_EQ(source.block_ends(), (std::vector<int64_t>{2, 7}));
  source.will_read(1, 6, {true});
  EXPECT_EQ(inner->told_, (std::pair<int64_t, int64_t>{1, 6}));
  EXPECT_EQ(inner->told_wanted_, (std::vector<bool>{true}));
  EXPECT_EQ(source.fingerprint(), 0x5eedu);
  EXPECT_NE(source.identity(), inner->identity());
  EXPECT_EQ(source.description(), "telling");
}

// The names of the functions that a header declares with `mark`, by the text around it.
std::set<std::string> functions_in(const std::filesystem::path& header, const std::regex& mark) {
  std::ifstream file(header);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::set<std::string> names;
  for (std::sregex_iterator at(text.begin(), text.end(), mark), end; at != end; ++at) {
    names.insert((*at)[1]);
  }
  return names;
}

// A virtual function with a body of its own can be forgotten without the compiler's notice.
TEST(SourceAround, forwards_every_function_of_a_source) {
  const std::filesystem::path folder = std::filesystem::path(__FILE__).parent_path();
  if (!std::filesystem::exists(folder / "source.h")) GTEST_SKIP() << "no sources at " << folder;
  std::set<std::string> all =
      functions_in(folder / "source.h", std::regex(R"(virtual [^~(;]*?(\w+)\()"));
  const std::set<std::string> forwarded =
      functions_in(folder / "source_around.h", std::regex(R"((\w+)\([^{;]*\) const override \{)"));
  EXPECT_GE(all.size(), 14u);
  EXPECT_EQ(all.erase("identity"), 1u) << "which only a subclass that changes no value hands on";
  EXPECT_EQ(all, forwarded);
}

}  // namespace
}  // namespace headrace
