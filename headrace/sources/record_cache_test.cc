// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/record_cache.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <functional>
#include <numeric>
#include <optional>
#include <thread>

#include "headrace/base/error.h"
#include "headrace/sources/columns/columns.h"
#include "headrace/sources/combined/combined.h"
#include "headrace/sources/source_around.h"
#include "headrace/sources/subset.h"
#include "headrace/storage/temporary_folder.h"

namespace headrace {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

// A hundred files of 10,000 bytes, which count how often they are read.
class RecordCacheTest : public testing::Test {
 protected:
  class Counting final : public SourceAround {
   public:
    using SourceAround::SourceAround;
    void read(std::span<const int64_t> indices, const std::vector<bool>& wanted,
              std::span<RecordData> out) const override {
      reads += static_cast<int64_t>(out.size());
      inner()->read(indices, wanted, out);
    }
    // As of a source that was opened, so that other processes can recognize it.
    std::string identity() const override { return opened.empty() ? Source::identity() : opened; }
    mutable std::atomic<int64_t> reads{0};
    std::string opened;
  };

  void SetUp() override {
    std::vector<std::string> paths;
    std::vector<std::string> texts;
    for (int i = 0; i < 100; ++i) {
      const std::string name = "f" + std::to_string(i);
      data.write(name, std::string(10'000, char('0' + i % 40)));
      paths.push_back(data.path() + "/" + name);
      texts.push_back("text " + std::to_string(i));
    }
    counting = std::make_shared<Counting>(
        records({{"data", PathColumn{paths}, FieldKind::kBytes}, {"text", TextColumn{texts}}}));
  }
  static void check_all(const Source& source) {
    std::vector<int64_t> indices(source.size());
    std::iota(indices.begin(), indices.end(), 0);
    std::vector<RecordData> out(indices.size());
    source.read(indices, {true, true}, out);
    for (size_t i = 0; i < out.size(); ++i) {
      ASSERT_TRUE(out[i].result);
      EXPECT_EQ(out[i].index, int64_t(i));
      const auto& bytes = out[i].fields[0].bytes;
      EXPECT_EQ(std::string(bytes.begin(), bytes.end()), std::string(10'000, char('0' + i % 40)));
      const auto& text = out[i].fields[1].bytes;
      EXPECT_EQ(std::string(text.begin(), text.end()), "text " + std::to_string(i));
    }
  }
  TemporaryFolder data;
  std::shared_ptr<Counting> counting;  // shared: with the sources over it
};

TEST_F(RecordCacheTest, records_that_fit_are_read_once) {
  const WithRecordCache cached = with_record_cache(counting, {true, true}, {8 * kMiB});
  check_all(*cached.source);
  EXPECT_EQ(counting->reads, 100);
  check_all(*cached.source);
  check_all(*cached.source);
  EXPECT_EQ(counting->reads, 100);
  EXPECT_EQ(cached.cache->counts().hits, 200);
  EXPECT_EQ(cached.source->fingerprint(), counting->fingerprint());
}

TEST_F(RecordCacheTest, records_that_do_not_fit_are_reread_and_cached_ones_are_not_evicted) {
  // Each takes 10,432 bytes with its table and padding; half a megabyte holds some fifty.
  const WithRecordCache cached = with_record_cache(counting, {true, true}, {kMiB / 2});
  check_all(*cached.source);
  const int64_t kept = cached.cache->counts().records;
  EXPECT_GT(kept, 45);
  EXPECT_LT(kept, 52);
  EXPECT_LE(cached.cache->counts().bytes, kMiB / 2);
  for (int64_t epoch = 1; epoch <= 3; ++epoch) {
    check_all(*cached.source);
    EXPECT_EQ(counting->reads, 100 + epoch * (100 - kept));
    EXPECT_EQ(cached.cache->counts().hits, epoch * kept);
  }
}

TEST_F(RecordCacheTest, loaders_of_one_source_share_the_cache_and_views_use_it) {
  const WithRecordCache one = with_record_cache(counting, {true, true}, {4 * kMiB});
  const SourcePtr view = subset(counting, {5, 7});
  const WithRecordCache two = with_record_cache(view, {true, true}, {4 * kMiB});
  EXPECT_EQ(one.cache, two.cache);
  check_all(*one.source);
  std::vector<RecordData> out(1);
  const int64_t second = 1;
  two.source->read({&second, 1}, {true, true}, out);
  EXPECT_EQ(out[0].index, 1);
  EXPECT_EQ(out[0].fields[0].bytes[0], '7');
  EXPECT_EQ(counting->reads, 100);
  EXPECT_NE(with_record_cache(counting, {true, false}, {kMiB}).cache, one.cache);
}

TEST_F(RecordCacheTest, a_bad_record_is_not_cached) {
  std::filesystem::remove(data.path() + "/f3");
  const WithRecordCache cached = with_record_cache(counting, {true, true}, {8 * kMiB});
  for (int again = 0; again < 2; ++again) {
    std::vector<RecordData> out(1);
    const int64_t third = 3;
    cached.source->read({&third, 1}, {true, true}, out);
    EXPECT_FALSE(out[0].result);
  }
  EXPECT_EQ(counting->reads, 2);
}

TEST_F(RecordCacheTest, records_of_shared_files_are_not_kept) {
  // Two files of 50 records each, as of the videos of a robot.
  std::vector<uint32_t> which;
  for (uint32_t i = 0; i < 100; ++i) which.push_back(i / 50);
  const auto parts = [&] {
    return records(
        {{"data", PathColumn{.paths = {data.path() + "/f0", data.path() + "/f1"}, .which = which},
          FieldKind::kBytes},
         {"text", TextColumn{std::vector<std::string>(100, "text")}}});
  };
  const auto shared = std::make_shared<Counting>(parts());
  const WithRecordCache none = with_record_cache(shared, {true, true}, {8 * kMiB});
  EXPECT_EQ(none.source, shared);
  EXPECT_EQ(none.cache, nullptr);
  EXPECT_NE(none.refusal.find("share the files of 'data'"), std::string::npos) << none.refusal;
  EXPECT_EQ(with_record_cache(counting, {true, true}, {8 * kMiB}).refusal, "");
  EXPECT_NE(with_record_cache(shared, {false, true}, {8 * kMiB}).cache, nullptr);
  // Those of a combination that have their own files are kept, and the others not.
  const WithRecordCache some =
      with_record_cache(concat({shared, counting}), {true, true}, {8 * kMiB});
  EXPECT_NE(some.refusal, "");
  ASSERT_NE(some.cache, nullptr);
  std::vector<int64_t> indices;
  for (int64_t i = 0; i < 100; ++i) indices.insert(indices.end(), {i, 199 - i});
  std::vector<RecordData> out(indices.size());
  for (int epoch = 0; epoch < 2; ++epoch) {
    some.source->read(indices, {true, true}, out);
    for (size_t i = 0; i < out.size(); ++i) {
      ASSERT_TRUE(out[i].result);
      EXPECT_EQ(out[i].index, indices[i]);
      const int64_t file = indices[i] < 100 ? indices[i] / 50 : (indices[i] - 100) % 40;
      ASSERT_EQ(out[i].fields[0].bytes.size(), 10'000u);
      EXPECT_EQ(out[i].fields[0].bytes[9'999], '0' + file);
    }
  }
  EXPECT_EQ(counting->reads, 100);
  EXPECT_EQ(shared->reads, 200);
  EXPECT_EQ(some.cache->counts().records, 100);
}

TEST_F(RecordCacheTest, threads_may_read_the_cache_concurrently) {
  const WithRecordCache cached = with_record_cache(counting, {true, true}, {kMiB / 2});
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int epoch = 0; epoch < 5; ++epoch) check_all(*cached.source);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(cached.cache->counts().bytes, kMiB / 2);
}

TEST_F(RecordCacheTest, a_record_changes_with_each_of_its_files) {
  data.write("image", "1");
  data.write("mask", "1");
  const auto column = [&](const char* name) { return PathColumn{{data.path() + "/" + name}}; };
  const SourcePtr pairs = records(
      {{"a", column("image"), FieldKind::kBytes}, {"b", column("mask"), FieldKind::kBytes}});
  const FilesDigest image = digest_of_files(*pairs, 0, {true, false});
  const FilesDigest both = digest_of_files(*pairs, 0, {true, true});
  data.write("mask", "22");
  EXPECT_EQ(digest_of_files(*pairs, 0, {true, false}), image);
  EXPECT_NE(digest_of_files(*pairs, 0, {true, true}), both);
}

// Several processes.

constexpr RecordCacheOptions kOfNode{.bytes = 8 * kMiB, .scope = CacheScope::kNode, .ranks = 2};

// Two processes that take turns.
class RecordCacheOfNodeTest : public RecordCacheTest {
 protected:
  void SetUp() override {
    RecordCacheTest::SetUp();
    counting->opened = data.path();
    ASSERT_EQ(::pipe(to_child.data()), 0);
    ASSERT_EQ(::pipe(to_parent.data()), 0);
  }
  void TearDown() override {
    for (const int end : {to_child[0], to_child[1], to_parent[0], to_parent[1]}) ::close(end);
  }
  WithRecordCache cached(const RecordCacheOptions& options = kOfNode) {
    return with_record_cache(counting, {true, true}, options);
  }
  // A child that exits with 0 unless a check in it failed. It has the cache until hand_over().
  pid_t forked(const std::function<void()>& run) {
    const pid_t child = ::fork();
    if (child != 0) return child;
    run();
    ::_exit(HasFailure() ? 1 : 0);
  }
  static void pass(const std::array<int, 2>& pipe) { EXPECT_EQ(::write(pipe[1], "a", 1), 1); }
  static void await(const std::array<int, 2>& pipe) {
    char one = 0;
    EXPECT_EQ(::read(pipe[0], &one, 1), 1);
  }
  static int status_of(pid_t child) {
    int status = -1;
    ::waitpid(child, &status, 0);
    return status;
  }
  // Runs it in another process, which then keeps its cache until the test calls end().
  void other(const std::function<void(const WithRecordCache&)>& run,
             const RecordCacheOptions& options = kOfNode) {
    child = forked([&] {
      const WithRecordCache mine = cached(options);
      run(mine);
      pass(to_parent);
      await(to_child);
    });
    await(to_parent);
  }
  void end() {
    pass(to_child);
    EXPECT_EQ(status_of(child), 0);
  }
  std::array<int, 2> to_child{-1, -1}, to_parent{-1, -1};
  pid_t child = -1;
};

TEST_F(RecordCacheOfNodeTest, records_read_by_one_process_are_not_read_by_others) {
  other([&](const WithRecordCache& mine) { check_all(*mine.source); });
  const WithRecordCache here = cached();
  check_all(*here.source);
  EXPECT_EQ(counting->reads, 0);
  const RecordCache::Counts counts = here.cache->counts();
  EXPECT_EQ(counts.records, 100);
  EXPECT_EQ(counts.shared_hits, 100);
  EXPECT_LT(counts.bytes, 100 * 10'600u) << "the records once";
  EXPECT_EQ(here.cache->text(), "8 MiB, shared by the processes of this machine");
  end();
  check_all(*here.source);
  EXPECT_EQ(counting->reads, 0) << "it outlives the process that read them";
}

TEST_F(RecordCacheOfNodeTest, a_process_started_after_all_others_exited_has_an_empty_cache) {
  other([&](const WithRecordCache& mine) { check_all(*mine.source); });
  ::kill(child, SIGKILL);
  EXPECT_TRUE(WIFSIGNALED(status_of(child)));
  const WithRecordCache here = cached();
  EXPECT_EQ(here.cache->counts().records, 0);
  check_all(*here.source);
  EXPECT_EQ(counting->reads, 100);
}

TEST_F(RecordCacheOfNodeTest, a_process_killed_while_writing_leaves_no_partial_record) {
  const WithRecordCache here = cached();
  const pid_t dying = forked([&] {
    const struct rlimit none{0, 0}, middle{305'000, 305'000};  // in the middle of a record's bytes
    ::setrlimit(RLIMIT_CORE, &none);
    ::setrlimit(RLIMIT_FSIZE, &middle);
    ::signal(SIGXFSZ, SIG_DFL);  // ends the process in its write
    check_all(*cached().source);
  });
  const int status = status_of(dying);
  ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ) << status;
  const int64_t kept = here.cache->counts().records;
  EXPECT_GT(kept, 25);
  EXPECT_LT(kept, 30);
  EXPECT_FALSE(here.cache->has(kept, *counting, {true, true})) << "which it was writing";
  for (int epoch = 1; epoch <= 3; ++epoch) check_all(*here.source);
  EXPECT_EQ(counting->reads, 100 - kept + 2) << "only that record is read in each epoch";
  EXPECT_EQ(here.cache->counts().records, 99);
}

TEST_F(RecordCacheOfNodeTest, when_shared_memory_is_exhausted_records_are_read_with_a_warning) {
  const pid_t child_process = forked([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    const struct rlimit half{kMiB / 2, kMiB / 2};
    const WithRecordCache mine = cached();
    EXPECT_EQ(mine.cache->caution(), "");
    ::setrlimit(RLIMIT_FSIZE, &half);
    for (int epoch = 0; epoch < 2; ++epoch) check_all(*mine.source);
    const int64_t kept = mine.cache->counts().records;
    EXPECT_GT(kept, 40);
    EXPECT_LT(kept, 52);
    EXPECT_EQ(counting->reads, 200 - kept);
    EXPECT_NE(mine.cache->caution().find("no memory for more records"), std::string::npos);
    EXPECT_EQ(mine.cache->caution(), "") << "once";
  });
  EXPECT_EQ(status_of(child_process), 0);
}

TEST_F(RecordCacheOfNodeTest, a_file_modified_since_another_process_read_it_is_read_again) {
  other([&](const WithRecordCache& mine) { check_all(*mine.source); });
  data.write("f3", std::string(9'000, 'x'));
  const WithRecordCache here = cached();
  std::vector<RecordData> out(1);
  const int64_t third = 3;
  here.source->read({&third, 1}, {true, true}, out);
  EXPECT_EQ(out[0].fields[0].bytes.size(), 9'000u);
  EXPECT_EQ(here.cache->counts().shared_hits, 0);
  EXPECT_EQ(here.cache->forget_changed(*counting, {true, true}, 10), data.path() + "/f3");
  for (int again = 0; again < 2; ++again) here.source->read({&third, 1}, {true, true}, out);
  EXPECT_EQ(out[0].fields[0].bytes.size(), 9'000u);
  EXPECT_EQ(counting->reads, 2) << "it is cached as it is now";
  end();
}

TEST_F(RecordCacheOfNodeTest, concurrent_processes_and_threads_stay_within_one_limit) {
  constexpr size_t kLimit = 3 * kMiB / 4;
  const RecordCacheOptions options{.bytes = kLimit, .scope = CacheScope::kAuto, .ranks = 4};
  const WithRecordCache here = cached(options);
  std::vector<pid_t> children;
  for (int process = 0; process < 4; ++process) {
    children.push_back(forked([&] {
      const WithRecordCache mine = cached(options);
      std::vector<std::thread> threads;
      for (int i = 0; i < 3; ++i) {
        threads.emplace_back([&] {
          for (int epoch = 0; epoch < 5; ++epoch) check_all(*mine.source);
        });
      }
      for (std::thread& thread : threads) thread.join();
      EXPECT_LE(mine.cache->counts().bytes, kLimit);
    }));
  }
  for (const pid_t each : children) EXPECT_EQ(status_of(each), 0);
  EXPECT_EQ(here.cache->counts().records, 76) << "of 10,304 bytes, after the table: each once";
}

TEST_F(RecordCacheOfNodeTest, other_fields_limits_or_scopes_use_separate_caches) {
  other([&](const WithRecordCache& mine) { check_all(*mine.source); });
  RecordCacheOptions larger = kOfNode, alone = kOfNode;
  larger.bytes = 9 * kMiB;
  alone.scope = CacheScope::kProcess;
  EXPECT_EQ(cached(larger).cache->counts().records, 0);
  EXPECT_EQ(cached(alone).cache->counts().records, 0);
  EXPECT_EQ(with_record_cache(counting, {true, false}, kOfNode).cache->counts().records, 0);
  counting->opened += "/other";
  EXPECT_EQ(cached().cache->counts().records, 0);
  end();
}

// A source in an asynchronous storage.
class Later final : public SourceAround {
 public:
  using SourceAround::SourceAround;
  std::string identity() const override { return "later"; }
  ReadStyle read_style() const override { return ReadStyle::kLater; }
  void pieces(int64_t index, const std::vector<bool>&, std::vector<FilePiece>& out) const override {
    out.push_back({.path = "s3://bucket/" + std::to_string(index), .known = known});
  }
  std::optional<FileIdentity> known = FileIdentity{.inode = 7, .size = 10'000};
};

TEST_F(RecordCacheTest, remote_records_are_shared_if_their_object_versions_are_equal) {
  Later one(counting), other(counting);
  const std::vector<bool> wanted{true, true};
  EXPECT_EQ(digest_of_files(one, 3, wanted), digest_of_files(other, 3, wanted));
  EXPECT_NE(digest_of_files(one, 3, wanted), digest_of_files(one, 4, wanted));
  EXPECT_TRUE(digest_of_files(one, 3, wanted).is_known);
  other.known->inode = 8;  // of its ETag
  EXPECT_NE(digest_of_files(one, 3, wanted), digest_of_files(other, 3, wanted));
  other.known = std::nullopt;
  EXPECT_FALSE(digest_of_files(other, 3, wanted).is_known);
  const auto unknown = std::make_shared<Later>(counting);
  unknown->known = std::nullopt;
  const WithRecordCache cached =
      with_record_cache(unknown, wanted, {8 * kMiB, CacheScope::kAuto, 2});
  EXPECT_EQ(cached.cache->text(),
            "4 MiB, of this process alone: the version of its files is not known");
}

TEST_F(RecordCacheTest, a_source_that_cannot_be_shared_gets_this_ranks_part_of_the_bytes) {
  const RecordCacheOptions options{.bytes = 8 * kMiB, .scope = CacheScope::kAuto, .ranks = 4};
  const WithRecordCache cached = with_record_cache(counting, {true, true}, options);
  EXPECT_EQ(cached.cache->counts().limit, 2 * kMiB);
  EXPECT_EQ(cached.cache->text(),
            "2 MiB, of this process alone: other processes cannot recognize this source, only "
            "files and folders that were opened");
  try {
    with_record_cache(counting, {true, true}, kOfNode);
    FAIL() << "it cannot be shared";
  } catch (const Exception& error) {
    EXPECT_EQ(error.error().code->id, "HR0299");
  }
}

TEST(RecordCacheOptions, ranks_that_share_a_cache_count_equal_parts_of_it) {
  EXPECT_EQ((RecordCacheOptions{1001, CacheScope::kNode, 4}.part_of(1001)), 251u);
  EXPECT_EQ((RecordCacheOptions{1001, CacheScope::kAuto, 4}.part_of(1001)), 251u);
  EXPECT_EQ((RecordCacheOptions{1001, CacheScope::kProcess, 4}.part_of(1001)), 1001u);
  EXPECT_TRUE((RecordCacheOptions{1001, CacheScope::kNode, 1}.for_node()));
  EXPECT_FALSE((RecordCacheOptions{1001, CacheScope::kAuto, 1}.for_node()));
}

TEST_F(RecordCacheTest, a_cache_that_is_smaller_than_its_table_is_refused) {
  try {
    with_record_cache(counting, {true, true}, {500});
    FAIL() << "100 entries take 800 bytes";
  } catch (const Exception& error) {
    EXPECT_EQ(error.error().what,
              "a cache of 500 bytes has no room for a table of 100 records (896 bytes)");
  }
}

TEST_F(RecordCacheTest, sources_in_memory_are_not_cached) {
  static const int64_t values[] = {1, 2};
  const SourcePtr source = records({{"x", ArrayColumn{values, DType::kInt64, 2, {}, {}}}});
  EXPECT_EQ(with_record_cache(source, {true}, {kMiB}).source, source);
}

}  // namespace
}  // namespace headrace
