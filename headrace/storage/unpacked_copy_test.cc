// SPDX-License-Identifier: Apache-2.0
// Plain copies of files that were compressed with zlib or zstd.
#include "headrace/storage/unpacked_copy.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <zlib.h>

#include <array>
#include <filesystem>
#include <thread>
#include <vector>

#include "headrace/storage/file.h"
#include "headrace/storage/temporary_folder.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;

// `printf 'hello hello ...' | zstd --check` (zstd 1.5.4), 59 bytes of text.
constexpr std::array<uint8_t, 25> kHelloZstd = {
    0x28, 0xb5, 0x2f, 0xfd, 0x04, 0x58, 0x65, 0x00, 0x00, 0x30, 0x68, 0x65, 0x6c,
    0x6c, 0x6f, 0x20, 0x01, 0x00, 0xca, 0x59, 0x8a, 0x14, 0x0b, 0x0f, 0x88};
const std::string kHello = "hello hello hello hello hello hello hello hello hello hello";

std::string hello_zstd() { return {kHelloZstd.begin(), kHelloZstd.end()}; }

std::string deflated(const std::string& plain, int window_bits) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, plain.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(plain.data()));
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}
std::string gzipped(const std::string& plain) { return deflated(plain, 31); }
std::string zlibbed(const std::string& plain) { return deflated(plain, 15); }

// Bytes that pack, but not too well.
std::string text_of(size_t bytes) {
  std::string out;
  uint32_t state = 1;
  while (out.size() < bytes) {
    state = state * 1664525 + 1013904223;
    out.append(1 + (state >> 28), static_cast<char>(state >> 16));
  }
  out.resize(bytes);
  return out;
}

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class UnpackedCopyTest : public testing::Test {
 protected:
  Result<UnpackedCopy> copy(const std::string& name, Packing packing,
                            const UnpackLimits& limits = {}) {
    return unpacked_copy(data / name, packing, cache, {}, limits);
  }
  std::vector<std::string> entries() const {
    std::vector<std::string> out;
    for (const auto& entry : fs::directory_iterator(folder.path())) {
      out.push_back(entry.path().filename());
    }
    return out;
  }
  TemporaryFolder data, folder;
  CacheDirectory cache{folder.path()};
};

TEST_F(UnpackedCopyTest, holds_the_decompressed_data) {
  for (const size_t bytes : {0, 1, 1000, 3'000'000, 9'000'001}) {
    const std::string plain = text_of(bytes);
    data.write("a.gz", gzipped(plain));
    data.write("a.zz", zlibbed(plain));
    for (const auto& [name, packing] :
         {std::pair("a.gz", Packing::kGzip), std::pair("a.zz", Packing::kZlib)}) {
      const Result<UnpackedCopy> made = copy(name, packing);
      ASSERT_TRUE(made) << made.error().message();
      EXPECT_FALSE(made->damage) << made->damage->message();
      EXPECT_TRUE(content_of(made->path) == plain) << name << " of " << bytes;
    }
  }
  data.write("a.zst", hello_zstd());
  EXPECT_EQ(content_of(copy("a.zst", Packing::kZstd)->path), kHello);
}

TEST_F(UnpackedCopyTest, holds_all_streams_of_a_file) {
  std::string packed, plain;
  for (size_t i = 0; i < 400; ++i) {  // some of them end where a block of reading does
    const std::string part = text_of(i * 37 % 20'000);
    plain += part;
    packed += gzipped(part);
  }
  data.write("a.gz", packed + std::string(10'000, '\0'));
  const Result<UnpackedCopy> made = copy("a.gz", Packing::kGzip);
  EXPECT_FALSE(made->damage) << made->damage->message();
  EXPECT_TRUE(content_of(made->path) == plain);
  // A frame that is skipped stands between (RFC 8878, 3.1.2).
  data.write("a.zst",
             hello_zstd() + std::string("\x53\x2A\x4D\x18\x02\0\0\0xy", 10) + hello_zstd());
  EXPECT_EQ(content_of(copy("a.zst", Packing::kZstd)->path), kHello + kHello);
}

TEST_F(UnpackedCopyTest, is_made_once) {
  data.write("a.gz", gzipped(text_of(100'000)));
  const std::string path = copy("a.gz", Packing::kGzip)->path;
  struct stat before{}, after{};
  ::stat(path.c_str(), &before);
  EXPECT_EQ(copy("a.gz", Packing::kGzip)->path, path);
  ::stat(path.c_str(), &after);
  EXPECT_EQ(before.st_ino, after.st_ino);
  EXPECT_EQ(entries().size(), 2u);  // the copy, and what is known of it
}

TEST_F(UnpackedCopyTest, is_recreated_when_the_file_changes) {
  data.write("a.gz", gzipped("one"));
  const auto time = fs::last_write_time(data / "a.gz");
  EXPECT_EQ(content_of(copy("a.gz", Packing::kGzip)->path), "one");
  std::ofstream(data / "a.gz", std::ios::binary | std::ios::in) << gzipped("two");
  fs::last_write_time(data / "a.gz", time);  // within a tick of the clock
  EXPECT_EQ(content_of(copy("a.gz", Packing::kGzip)->path), "two");
}

// In place, and with the old time of modification. Again until the clock of the status has ticked.
void write_keeping_times(const std::string& path, const std::string& bytes) {
  const auto time = fs::last_write_time(path);
  const int64_t before = status_changed_ns(path);
  while (status_changed_ns(path) == before) {
    std::ofstream(path, std::ios::binary | std::ios::in) << bytes;
    fs::last_write_time(path, time);
  }
}

TEST_F(UnpackedCopyTest, is_recreated_when_it_was_modified) {
  data.write("a.gz", gzipped("what was packed"));
  const std::string path = copy("a.gz", Packing::kGzip)->path;
  write_keeping_times(path, "what was forged");
  EXPECT_EQ(content_of(copy("a.gz", Packing::kGzip)->path), "what was packed");
}

ino_t inode_of(const std::string& path) {
  struct stat status{};
  EXPECT_EQ(::stat(path.c_str(), &status), 0);
  return status.st_ino;
}

TEST_F(UnpackedCopyTest, is_reused_after_its_folder_was_restored_from_a_backup) {
  data.write("a.gz", gzipped(text_of(5'000'000)));  // more than one block of hashing
  const std::string path = copy("a.gz", Packing::kGzip)->path;
  fs::copy_file(path, path + ".restored");
  fs::rename(path + ".restored", path);
  const ino_t restored = inode_of(path);
  const std::string about = content_of(path + ".about");
  ASSERT_TRUE(copy("a.gz", Packing::kGzip));
  EXPECT_EQ(inode_of(path), restored);
  EXPECT_NE(content_of(path + ".about"), about);  // so that it is not read again every time
  ASSERT_TRUE(copy("a.gz", Packing::kGzip));
  EXPECT_EQ(inode_of(path), restored);
}

TEST_F(UnpackedCopyTest, restored_with_one_wrong_bit_is_recreated) {
  const std::string plain = text_of(5'000'000);
  data.write("a.gz", gzipped(plain));
  for (const size_t at : {size_t{0}, size_t{2'500'000}, plain.size() - 1}) {
    const std::string path = copy("a.gz", Packing::kGzip)->path;
    std::string wrong = plain;
    wrong[at] ^= 1;
    fs::remove(path);
    std::ofstream(path, std::ios::binary) << wrong;
    EXPECT_TRUE(content_of(copy("a.gz", Packing::kGzip)->path) == plain) << at;
  }
}

TEST_F(UnpackedCopyTest, is_recreated_when_the_middle_of_the_file_is_written_in_place) {
  // Ends as they were, stored without compression, so that only the time of the status tells.
  std::string plain = text_of(40'000);
  const auto stored = [&] {
    std::string out("\x28\xB5\x2F\xFD\xA0", 5);  // Zstandard, content size in four bytes
    for (int i = 0; i < 4; ++i) out += static_cast<char>(plain.size() >> (8 * i));
    const size_t header = plain.size() << 3 | 1;  // one last block, raw
    for (int i = 0; i < 3; ++i) out += static_cast<char>(header >> (8 * i));
    return out + plain;
  };
  data.write("a.zst", stored());
  EXPECT_TRUE(content_of(copy("a.zst", Packing::kZstd)->path) == plain);
  plain[20'000] ^= 1;
  write_keeping_times(data / "a.zst", stored());
  EXPECT_TRUE(content_of(copy("a.zst", Packing::kZstd)->path) == plain);
  EXPECT_EQ(entries().size(), 2u);  // in the place of the old one
}

TEST_F(UnpackedCopyTest, truncated_or_with_invalid_metadata_is_recreated) {
  const std::string plain = text_of(50'000);
  data.write("a.gz", gzipped(plain));
  const std::string path = copy("a.gz", Packing::kGzip)->path;
  const std::string about = content_of(path + ".about");
  fs::resize_file(path, 100);
  EXPECT_TRUE(content_of(copy("a.gz", Packing::kGzip)->path) == plain);
  for (size_t at = 0; at < about.size(); at += 13) {
    fs::resize_file(path, 100);
    std::string bad = about;
    bad[at] ^= 0x20;
    std::ofstream(path + ".about", std::ios::binary) << bad;
    EXPECT_TRUE(content_of(copy("a.gz", Packing::kGzip)->path) == plain) << at;
    fs::resize_file(path, 100);
    std::ofstream(path + ".about", std::ios::binary) << about.substr(0, at);
    EXPECT_TRUE(content_of(copy("a.gz", Packing::kGzip)->path) == plain) << at;
  }
}

TEST_F(UnpackedCopyTest, of_a_truncated_file_holds_the_data_before_the_truncation) {
  const std::string plain = text_of(200'000);
  for (const bool gzip : {true, false}) {
    const std::string packed = gzip ? gzipped(plain) : zlibbed(plain);
    for (size_t cut = 1; cut < 64; ++cut) {
      data.write("a", packed.substr(0, packed.size() * cut / 64));
      for (int time = 0; time < 2; ++time) {  // made, and found
        const auto made = copy("a", gzip ? Packing::kGzip : Packing::kZlib);
        ASSERT_TRUE(made);
        const std::string content = content_of(made->path);
        EXPECT_TRUE(content == plain.substr(0, content.size()));
        EXPECT_GT(content.size() + 20'000, plain.size() * cut / 64);
        ASSERT_TRUE(made->damage);
        EXPECT_EQ(made->damage->code->id, "HR0211");
        EXPECT_EQ(made->damage->what, "it ends in the middle of the data");
        EXPECT_EQ(made->damage->where.file, data / "a");
        EXPECT_EQ(made->damage->where.offset, int64_t(packed.size() * cut / 64));
      }
    }
  }
}

TEST_F(UnpackedCopyTest, of_a_changed_file_is_damaged_or_the_same) {
  const std::string plain = text_of(30'000), packed = gzipped(plain);
  int damaged = 0;
  for (size_t at = 0; at < packed.size(); at += packed.size() / 100 + 1) {
    std::string bad = packed;
    bad[at] ^= char(1 << (at % 8));
    data.write("a.gz", bad);
    const auto made = copy("a.gz", Packing::kGzip);
    ASSERT_TRUE(made) << made.error().message();
    damaged += made->damage.has_value();
    if (!made->damage) {
      EXPECT_TRUE(content_of(made->path) == plain) << at;
    }
  }
  EXPECT_GT(damaged, 80);
  std::string bad = hello_zstd();
  bad.back() ^= 1;
  data.write("a.zst", bad);
  EXPECT_EQ(
      copy("a.zst", Packing::kZstd)->damage->message(),
      "HR0211 damaged compressed file: zstd says: Restored data doesn't match checksum\n  where: " +
          (data / "a.zst") + ", byte 0\n  help: copy or download the file again");
}

// The library compares them only as long as blocks are not empty.
TEST_F(UnpackedCopyTest, a_frame_has_the_size_that_it_declares) {
  data.write("a.zst", std::string("\x28\xB5\x2F\xFD\x20\x03\0\0\0\x01\0\0", 12));
  EXPECT_NE(
      copy("a.zst", Packing::kZstd)->damage->message().find("a zstd frame of 0 bytes declares 3"),
      std::string::npos);
}

TEST_F(UnpackedCopyTest, reports_trailing_bytes) {
  const std::string packed = gzipped("one");
  data.write("a.gz", packed + "garbage");
  const auto made = copy("a.gz", Packing::kGzip);
  EXPECT_EQ(content_of(made->path), "one");
  ASSERT_TRUE(made->damage);
  EXPECT_EQ(made->damage->what, "other bytes follow the compressed data");
  EXPECT_EQ(made->damage->where.offset, int64_t(packed.size()));
}

TEST_F(UnpackedCopyTest, of_a_decompression_bomb_is_refused) {
  data.write("a.gz", gzipped(std::string(8'000'000, '\0')));
  UnpackLimits limits;
  limits.always = 1'000'000;
  const auto made = copy("a.gz", Packing::kGzip, limits);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code->id, "HR0212");
  EXPECT_TRUE(entries().empty());
  limits.always = 10'000'000;
  EXPECT_TRUE(copy("a.gz", Packing::kGzip, limits));
  limits.max_bytes = 1000;
  data.write("b.gz", gzipped(std::string(8'000'000, '\0')));
  EXPECT_EQ(copy("b.gz", Packing::kGzip, limits).error().code->id, "HR0212");
}

TEST_F(UnpackedCopyTest, needs_a_window_of_a_usual_size) {
  // A frame of 2^31 bytes of window (RFC 8878, 3.1.1.1.2).
  data.write("a.zst", std::string("\x28\xB5\x2F\xFD\0\xA8\x01\0\0", 9));
  const auto made = copy("a.zst", Packing::kZstd);
  ASSERT_TRUE(made && made->damage);
  EXPECT_EQ(made->damage->code->id, "HR0213");
  EXPECT_EQ(made->damage->what, "its window is larger than 128 MiB");
}

TEST_F(UnpackedCopyTest, needs_a_cache_folder_with_room) {
  data.write("a.gz", gzipped("one"));
  const CacheDirectory none(""), unwritable("/proc/x");
  const auto nowhere = unpacked_copy(data / "a.gz", Packing::kGzip, none);
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(
      nowhere.error().message(),
      "HR0209 no directory to decompress into: it is compressed with gzip, and there is no cache "
      "folder to decompress it into\n  where: " +
          (data / "a.gz") +
          "\n  help: set HEADRACE_CACHE to a folder on a disk with enough space, or decompress it "
          "yourself");
  const auto odd = unpacked_copy(data / "a.gz", Packing::kGzip, unwritable);
  ASSERT_FALSE(odd);
  EXPECT_EQ(odd.error().code->id, "HR0210");
  EXPECT_NE(odd.error().message().find("/proc/x"), std::string::npos);
  EXPECT_NE(odd.error().message().find("HEADRACE_CACHE"), std::string::npos);
  UnpackLimits limits;
  limits.leave_free = uint64_t{1} << 60;
  const auto full = copy("a.gz", Packing::kGzip, limits);
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code->id, "HR0210");
  EXPECT_NE(full.error().what.find("free"), std::string::npos) << full.error().what;
  EXPECT_NE(full.error().hint.find("delete " + cache.path_of("unpacked-*")), std::string::npos);
  EXPECT_TRUE(entries().empty());
}

TEST_F(UnpackedCopyTest, is_made_once_for_concurrent_requests) {
  const std::string plain = text_of(3'000'000);
  data.write("a.gz", gzipped(plain));
  std::vector<std::jthread> threads;
  std::array<ino_t, 4> inodes{};
  for (ino_t& inode : inodes) {
    threads.emplace_back([&] {
      const auto made = copy("a.gz", Packing::kGzip);
      ASSERT_TRUE(made);
      struct stat status{};
      ::stat(made->path.c_str(), &status);
      inode = status.st_ino;
    });
  }
  threads.clear();
  for (const ino_t inode : inodes) EXPECT_EQ(inode, inodes[0]);
  EXPECT_EQ(entries().size(), 2u);
}

TEST_F(UnpackedCopyTest, can_be_canceled) {
  data.write("a.gz", gzipped(text_of(100'000)));
  struct Enough {};
  EXPECT_THROW(
      (void)unpacked_copy(data / "a.gz", Packing::kGzip, cache, [](uint64_t) { throw Enough(); }),
      Enough);
  EXPECT_TRUE(entries().empty());
}

TEST(PackingOf, IsRecognizedByTheFirstBytes) {
  const auto of = [](const std::string& text) {
    return packing_of({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  };
  EXPECT_EQ(of(gzipped("x")), Packing::kGzip);
  EXPECT_EQ(of(zlibbed("x")), Packing::kZlib);
  EXPECT_EQ(of(hello_zstd()), Packing::kZstd);
  EXPECT_EQ(of(std::string("\x5F\x2A\x4D\x18", 4)), Packing::kZstd);
  for (const char* plain : {"", "\x1F\x8B", "hello", "\x89PNG", "PK\x03\x04", "BZh91AY"}) {
    EXPECT_EQ(of(plain), Packing::kNone);
  }
}

}  // namespace
}  // namespace headrace
