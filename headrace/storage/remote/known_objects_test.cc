// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/remote/known_objects.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>

namespace headrace {
namespace {

TEST(KnownObjects, ObjectsMissingFromASlowListingAreRequestedAfterSomeSeconds) {
  KnownObjects known;
  (void)known.look("s3://b/f");  // with the options that are set
  const double listed = now();
  ASSERT_TRUE(known.saw_listing("s3://b/f", {{.name = "a", .size = 3}}, listed - 100));
  const auto kind_of = [&](const char* path, double time) {
    const auto look = known.look(path, time);
    return look ? std::optional(look->status.kind) : std::nullopt;
  };
  EXPECT_EQ(kind_of("s3://b/f/a", listed + 1), PathKind::kFile);
  EXPECT_EQ(kind_of("s3://b/f/b", listed + 1), PathKind::kNothing);
  EXPECT_EQ(kind_of("s3://b/f/b/c", listed + 1), PathKind::kNothing);
  EXPECT_EQ(kind_of("s3://b/f/a", listed + 50), PathKind::kFile);
  EXPECT_EQ(kind_of("s3://b/f/b", listed + 50), std::nullopt);
  EXPECT_EQ(kind_of("s3://b/f/b/c", listed + 50), std::nullopt);
  EXPECT_EQ(kind_of("s3://b/f/a", listed + 200), std::nullopt);
}

TEST(KnownObjects, AnswersToRequestsFromBeforeAConfigurationAreNotStored) {
  KnownObjects known;
  const PathStatus file{.kind = PathKind::kFile, .identity = identity_of_version("old", 3)};
  const KnownObjects::Generation asked = KnownObjects::generation();
  known.saw("s3://b/a", {.status = file}, asked);
  EXPECT_TRUE(known.look("s3://b/a"));
  set_remote_options(*remote_options());
  EXPECT_FALSE(known.look("s3://b/a"));
  known.saw("s3://b/a", {.status = file}, asked);
  known.saw_head("s3://b/c", file.identity, std::make_shared<const std::string>("abc"), asked);
  ASSERT_TRUE(known.saw_listing("s3://b/f", {{.name = "a", .size = 3}}, now(), asked));
  known.saw_first_page("s3://b/g", {.entries = {{.name = "a", .size = 3}}, .next = "b"}, asked);
  for (const char* path : {"s3://b/a", "s3://b/c", "s3://b/f/a"}) {
    EXPECT_FALSE(known.look(path)) << path;
  }
  EXPECT_FALSE(known.listing("s3://b/f"));
  EXPECT_FALSE(known.first_page("s3://b/g"));
  known.saw("s3://b/a", {.status = file});
  EXPECT_TRUE(known.look("s3://b/a"));
}

TEST(KnownObjects, OnlyTheNewestFileEndsAreKept) {
  KnownObjects known;
  (void)known.look("s3://b/f");
  const auto end = std::make_shared<const std::string>(size_t{1} << 20, 'x');
  constexpr size_t kObjects = 100;
  const auto path_of = [](size_t number) { return "s3://b/" + std::to_string(number); };
  for (size_t i = 0; i < kObjects; ++i) {
    known.saw(path_of(i), {.status = {.kind = PathKind::kFile}, .head = end, .tail = end});
  }
  uint64_t held = 0;
  for (size_t i = 0; i < kObjects; ++i) {
    const auto look = known.look(path_of(i));
    ASSERT_TRUE(look);
    EXPECT_EQ(look->status.kind, PathKind::kFile);
    EXPECT_EQ(look->head == nullptr, look->tail == nullptr);
    if (look->head) held += look->head->size() + look->tail->size();
  }
  EXPECT_GT(held, KnownObjects::kMaxHeld / 2);
  EXPECT_LE(held, KnownObjects::kMaxHeld);
  EXPECT_TRUE(known.look(path_of(kObjects - 1))->tail);
}

}  // namespace
}  // namespace headrace
