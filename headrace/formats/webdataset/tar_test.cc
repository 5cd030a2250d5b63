// SPDX-License-Identifier: Apache-2.0
// Archives of GNU tar in all its formats, and hostile ones.
#include "headrace/formats/webdataset/tar.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "headrace/formats/webdataset/tar_test_files.h"
#include "headrace/storage/temporary_folder.h"

namespace headrace {
namespace {

struct Walk {
  std::vector<std::pair<std::string, std::string>> files;  // name, data
  std::vector<std::string> others;                         // names
  std::string error;
  int64_t offset = -1;
};

Walk walk(const std::string& archive) {
  const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(archive.data()),
                                       archive.size());
  TarInput memory(bytes);
  // Reading through a window must give the same result.
  TarInput window(
      [&](uint64_t offset, std::span<uint8_t> out) -> Result<void> {
        EXPECT_LE(offset + out.size(), archive.size());
        std::memcpy(out.data(), archive.data() + offset, out.size());
        return {};
      },
      archive.size());
  TarWalker walker(memory), other(window);
  Walk out;
  for (TarMember member, twin;;) {
    const Result<bool> more = walker.next(member), again = other.next(twin);
    EXPECT_EQ(bool(more), bool(again));
    if (!more) {
      out.error = std::string(more.error().code->id) + " " + more.error().what;
      out.offset = more.error().where.offset;
      return out;
    }
    EXPECT_EQ(*more, *again);
    if (!*more) return out;
    EXPECT_EQ(member.name, twin.name);
    EXPECT_EQ(member.data, twin.data);
    EXPECT_LE(member.data + member.bytes, member.end);
    EXPECT_LE(member.end, archive.size());
    if (member.kind == TarKind::kFile) {
      out.files.emplace_back(member.name, archive.substr(member.data, member.bytes));
    } else {
      out.others.emplace_back(member.name);
    }
  }
}

TEST(Tar, ChecksumsOverSignedBytesAreAccepted) {
  std::string header = tar_header("f\xc3\xbcr.txt", 0);  // two bytes count 256 less
  const auto set_checksum = [&](int sum) { std::snprintf(header.data() + 148, 8, "%06o", sum); };
  const int plain = std::stoi(header.substr(148, 6), nullptr, 8);
  for (const auto& [sum, fits] : {std::pair(plain, true), std::pair(plain - 512, true),
                                  std::pair(plain - 256, false), std::pair(plain + 1, false)}) {
    set_checksum(sum);
    EXPECT_EQ(walk(header + tar_end()).files.size(), fits ? 1u : 0u) << sum - plain;
  }
}

TEST(Tar, EveryFormatOfGnuTarGivesTheSameMembers) {
  if (std::system("tar --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "no tar";
  TemporaryFolder folder;
  std::vector<std::pair<std::string, std::string>> files = {
      {"a.txt", "short"}, {"b/empty.txt", ""}, {"b/block.bin", std::string(512, 'b')}};
  const std::string wide = std::string(80, 'w') + "/" + std::string(60, 'x') + ".jpg";
  const std::string longest = std::string(120, 'l') + "/" + std::string(140, 'm') + ".jpg";
  for (const std::string format : {"v7", "ustar", "oldgnu", "gnu", "pax"}) {
    std::vector<std::pair<std::string, std::string>> mine = files;
    if (format != "v7") mine.emplace_back(wide, "by prefix");
    if (format == "gnu" || format == "pax" || format == "oldgnu")
      mine.emplace_back(longest, "long");
    std::string names;
    for (const auto& [name, data] : mine) {
      folder.write(name, data);
      names += " " + name;
    }
    const std::string command = "cd " + folder.path() + " && tar --format=" + format +
                                " -cf out.tar" + names + " --no-recursion b 2>/dev/null";
    ASSERT_EQ(std::system(command.c_str()), 0) << format;
    std::ifstream file(folder / "out.tar", std::ios::binary);
    const Walk found = walk({std::istreambuf_iterator<char>(file), {}});
    EXPECT_EQ(found.error, "") << format;
    ASSERT_GE(found.files.size(), mine.size()) << format;
    EXPECT_TRUE(std::equal(mine.begin(), mine.end(), found.files.begin())) << format;
    EXPECT_EQ(found.others, std::vector<std::string>{"b/"}) << format;
  }
}

TEST(Tar, ExtendedHeadersGiveNameAndSize) {
  const std::string pax =
      pax_record("mtime", "1.5") + pax_record("path", "far/away.jpg") + pax_record("size", "7");
  std::string archive = tar_member("PaxHeaders/x", pax, 'x') + tar_header("short", 0) + "1234567";
  archive.resize((archive.size() + 511) / 512 * 512);
  const Walk found = walk(archive + tar_member("next", "n") + tar_end());
  using Files = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(found.files, (Files{{"far/away.jpg", "1234567"}, {"next", "n"}}));
}

TEST(Tar, TheEndMayBeMissing) {
  EXPECT_EQ(walk(tar_member("a", "1")).files.size(), 1u);
  EXPECT_EQ(walk(tar_member("a", "1")).error, "");
  EXPECT_EQ(walk(tar_header("a", 1) + "1").files.size(), 1u);  // and the last block's padding
  EXPECT_EQ(walk("").error, "");
}

TEST(Tar, FoldersLinksAndDevicesAreNotFiles) {
  std::string archive;
  for (const char type : {'1', '2', '3', '4', '5', '6'}) {
    archive += tar_header("n" + std::string(1, type), 100, type);  // an invalid size
  }
  archive += tar_member("old/", "", '\0') + tar_member("V", "data of a kind", 'V');
  const Walk found = walk(archive + tar_member("file", "x") + tar_end());
  EXPECT_EQ(found.error, "");
  EXPECT_EQ(found.others.size(), 8u);
  EXPECT_EQ(found.files.size(), 1u);
}

TEST(Tar, BinarySizesAreRead) {
  std::string header = tar_header("big", 0);
  std::memset(header.data() + 124, 0, 12);
  header[124] = char(0x80);
  header[135] = 3;
  set_tar_checksum(header);
  EXPECT_EQ(walk(header + "abc").files[0].second, "abc");
  for (const size_t byte : {125, 128, 129}) {  // beyond 2^63, or beyond the file
    std::string bad = header;
    bad[byte] = char(0x7F);
    set_tar_checksum(bad);
    const Walk found = walk(bad + "abc");
    EXPECT_EQ(found.error.substr(0, 6), "HR0464") << byte;
  }
  header[124] = char(0xFF);  // negative
  set_tar_checksum(header);
  EXPECT_EQ(walk(header + "abc").error, "HR0464 the size of a member is not a number");
}

TEST(Tar, NamesTheProblemAndItsOffset) {
  const std::string good = tar_member("a.jpg", "1");
  const auto error_of = [&](const std::string& rest) {
    const Walk found = walk(good + rest);
    EXPECT_EQ(found.files.size(), 1u);
    EXPECT_EQ(found.offset, 1024);
    return found.error;
  };
  EXPECT_EQ(error_of(std::string(512, 'x')),
            "HR0464 there is no valid header where one was expected: its checksum");
  EXPECT_EQ(error_of("half a header"), "HR0464 it ends in the middle of a header");
  EXPECT_EQ(error_of(tar_header("b.jpg", 1000) + "12"),
            "HR0464 the member \"b.jpg\" is truncated: it has 1000 bytes, but only 2 are left");
  EXPECT_EQ(error_of(tar_header("L", uint64_t{1} << 30, 'L')),
            "HR0464 a header of 1073741824 bytes; at most 1 MiB is supported");
  EXPECT_EQ(error_of(tar_member("x", "99 path=a\n", 'x')),
            "HR0464 an invalid extended header (PAX)");
  EXPECT_EQ(error_of(tar_member("x", pax_record("size", "9223372036854775808"), 'x')),
            "HR0464 the size of a member is not a number");
  EXPECT_EQ(error_of(tar_member("g", pax_record("path", "all"), 'g')),
            "HR0465 a global header sets \"path\" of all members after it");
  EXPECT_EQ(walk(good + tar_member("g", pax_record("comment", "c"), 'g') + good).files.size(), 2u);
  EXPECT_EQ(walk(good + tar_member("L", "name", 'L')).error,
            "HR0464 it ends after the header of a member");
}

TEST(Tar, SparseFilesAreRejected) {
  std::string header = tar_header("holes", 512, 'S');
  header[482] = 1;  // more map blocks follow
  set_tar_checksum(header);
  std::string map(512, '\0');
  const Walk old = walk(header + map + std::string(512, 'd') + tar_member("a", "1"));
  EXPECT_EQ(old.others, std::vector<std::string>{"holes"});
  EXPECT_EQ(old.files.size(), 1u);
  map[504] = 1;
  EXPECT_EQ(walk(header + map).error, "HR0464 it ends in the middle of the map of a sparse file");
  const std::string pax = pax_record("GNU.sparse.major", "1") + pax_record("GNU.sparse.name", "n");
  EXPECT_EQ(walk(tar_member("x", pax, 'x') + tar_member("GNUSparseFile.0/n", "1")).others,
            std::vector<std::string>{"n"});
}

TEST(Tar, TruncatedOrChangedAnywhereTerminates) {
  std::string archive;
  for (int i = 0; i < 8; ++i) {
    archive += tar_member("x", pax_record("path", "p" + std::to_string(i)), 'x');
    archive += tar_member("a", std::string(static_cast<size_t>(i) * 200, 'a'));
    archive += tar_member("././@LongLink", std::string(150, 'n'), 'L') + tar_member("n", "x");
  }
  const size_t all = walk(archive).files.size();
  EXPECT_EQ(all, 16u);
  for (size_t cut = 0; cut < archive.size(); cut += archive.size() / 64 / 7 + 1) {
    EXPECT_LE(walk(archive.substr(0, cut)).files.size(), all);
  }
  for (size_t at = 0; at < archive.size(); at += 37) {
    std::string bad = archive;
    bad[at] ^= char(1 << at % 8);
    (void)walk(bad);
    set_tar_checksum(bad = bad.substr(at / 512 * 512, 512));  // after the checksum, too
    (void)walk(archive.substr(0, at / 512 * 512) + bad + archive.substr(at / 512 * 512 + 512));
  }
}

Result<void> end_of(const std::string& archive) {
  TarInput input(
      std::span<const uint8_t>(reinterpret_cast<const uint8_t*>(archive.data()), archive.size()));
  TarWalker walker(input);
  for (TarMember member; *walker.next(member);) {
  }
  return walker.check_end();
}

TEST(Tar, BytesAfterTheEndAreRejected) {
  const std::string member = tar_header("a.jpg", 0), end(1024, '\0');
  EXPECT_TRUE(end_of(member));
  EXPECT_TRUE(end_of(member + end));
  EXPECT_TRUE(end_of(member + end + std::string(size_t{3} << 20, '\0')));
  for (const size_t zeros : {size_t{0}, size_t{9216}, size_t{2} << 20}) {
    const Result<void> joined = end_of(member + end + std::string(zeros, '\0') + member + end);
    ASSERT_FALSE(joined);
    EXPECT_EQ(joined.error().code->id, "HR0464");
    EXPECT_EQ(joined.error().where.offset, static_cast<int64_t>(1536 + zeros));
  }
  EXPECT_FALSE(end_of(member + end + "signature"));
}

}  // namespace
}  // namespace headrace
