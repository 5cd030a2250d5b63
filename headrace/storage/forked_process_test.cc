// SPDX-License-Identifier: Apache-2.0
// A forked process reads on its own: threads, reads in progress and pending calls of its parent do
// not exist in it.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "headrace/storage/async_storage.h"
#include "headrace/storage/block_cache.h"
#include "headrace/storage/delayed_calls.h"
#include "headrace/storage/file.h"
#include "headrace/storage/memory_files.h"
#include "headrace/storage/temporary_folder.h"

namespace headrace {
namespace forked_process_test {

// Whether this holds in a forked process. One that hangs is ended.
bool holds_in_child(const std::function<bool()>& holds) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(120);
    ::_exit(holds() ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

class ForkedProcess : public testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "ThreadSanitizer lets no process start threads that was forked from several";
#endif
  }
};

TEST_F(ForkedProcess, MakesDelayedCallsOnAThreadOfItsOwn) {
  const auto is_called = [] {
    std::atomic<bool> called{false};
    call_later(0, [&] { called = true; });
    while (!called) std::this_thread::yield();
    return true;
  };
  ASSERT_TRUE(is_called());
  EXPECT_TRUE(holds_in_child(is_called));
  EXPECT_TRUE(is_called());
}

class Reads {
 public:
  static constexpr size_t kBytes = 100'000;

  Reads() {
    volume_.write("a", std::string(kBytes, 'a'));
    volume_.write("b", std::string(kBytes, 'b'));
  }
  // Reads a file that opens, but whose bytes never arrive.
  void begin_one_without_an_end() {
    const std::string path = volume_.write("never", std::string(kBytes, 'c'));
    const Result<File> file = File::open(path);
    ASSERT_TRUE(file);
    volume_.behave({.fault = [](const MemoryRequest& request) {
      return MemoryFault{.extra_seconds = request.path == "never" ? 1e6 : 0};
    }});
    const int64_t before = volume_.requests();
    std::vector<AsyncRead> reads(1);
    reads[0].piece = file->piece(0, kBytes);
    reads[0].done = [](AsyncRead) {};
    storage_of(path).submit(std::move(reads));
    while (volume_.requests() == before) std::this_thread::yield();
  }
  bool is_read(const std::string& name) const {
    const Result<File> file = File::open(volume_.root() + "/" + name);
    std::string bytes(kBytes, ' ');
    return file && file->read(0, {reinterpret_cast<uint8_t*>(bytes.data()), kBytes}) &&
           bytes == std::string(kBytes, name[0]);
  }

 private:
  MemoryVolume volume_{"forked"};
};

TEST_F(ForkedProcess, ReadsFromARemoteStorage) {
  Reads reads;
  reads.begin_one_without_an_end();
  ASSERT_TRUE(reads.is_read("a"));
  EXPECT_TRUE(holds_in_child([&] { return reads.is_read("a") && reads.is_read("b"); }));
}

TEST_F(ForkedProcess, ReadsThroughItsOwnDiskCache) {
  const TemporaryFolder folder;
  ::setenv("HEADRACE_CACHE", folder.path().c_str(), 1);
  constexpr uint64_t kLimit = uint64_t{64} << 20;
  BlockCache::UsePtr use = BlockCache::use(kLimit);
  Reads reads;
  reads.begin_one_without_an_end();  // a block is being fetched
  ASSERT_TRUE(reads.is_read("a"));
  BlockCache* const parents = BlockCache::in_use();
  ASSERT_NE(parents, nullptr);
  EXPECT_TRUE(holds_in_child([&] {
    BlockCache* const own = BlockCache::in_use();
    if (!own || own == parents || own->counts().limit != kLimit) return false;
    if (!reads.is_read("a") || !reads.is_read("b")) return false;
    own->settle();  // its blocks are stored by threads of its own
    if (!reads.is_read("b") || own->counts().hits == 0) return false;
    use.reset();
    return BlockCache::in_use() == nullptr;
  }));
  EXPECT_EQ(BlockCache::in_use(), parents);
  EXPECT_TRUE(reads.is_read("b"));
  ::unsetenv("HEADRACE_CACHE");
}

TEST_F(ForkedProcess, ReplacesADiskCacheThatIsNoLongerInUse) {
  const TemporaryFolder folder;
  ::setenv("HEADRACE_CACHE", folder.path().c_str(), 1);
  constexpr uint64_t kLimit = uint64_t{64} << 20;
  const BlockCache* const parents = BlockCache::use(kLimit).get();
  const Reads reads;
  EXPECT_TRUE(holds_in_child([&] {
    const BlockCache::UsePtr own = BlockCache::use(kLimit);
    return own.get() != parents && BlockCache::in_use() == own.get() && reads.is_read("a");
  }));
  ::unsetenv("HEADRACE_CACHE");
}

}  // namespace forked_process_test
}  // namespace headrace
