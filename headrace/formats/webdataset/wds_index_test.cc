// SPDX-License-Identifier: Apache-2.0
// Indexes written by wds2idx are used only if they match their archive.
#include "headrace/formats/webdataset/wds_index.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "headrace/formats/format.h"
#include "headrace/formats/webdataset/tar_test_files.h"
#include "headrace/sources/source.h"
#include "headrace/storage/temporary_folder.h"

namespace headrace {
namespace {

struct Archive {
  std::string tar;
  std::string index, index_v1_1;
};

// Splits lines into samples where names begin again, like wds2idx.
Archive archive_of(const std::vector<std::pair<std::string, std::string>>& members) {
  Archive out;
  std::string last, with_names, without;
  int samples = 0;
  for (const auto& [name, data] : members) {
    out.tar += tar_header(name, data.size());
    const size_t dot = name.find('.', name.rfind('/') + 1);
    const bool begins = name.substr(0, dot) != last;
    last = name.substr(0, dot);
    samples += begins;
    const std::string place = name.substr(dot + 1) + " " + std::to_string(out.tar.size()) + " " +
                              std::to_string(data.size());
    with_names += (begins ? samples > 1 ? "\n" : "" : " ") + place + " " + name;
    without += (begins ? samples > 1 ? "\n" : "" : " ") + place;
    std::string padded = data;
    padded.resize((data.size() + 511) / 512 * 512);
    out.tar += padded;
  }
  out.tar += tar_end();
  out.index = "v1.2 " + std::to_string(samples) + "\n" + with_names + "\n";
  out.index_v1_1 = "v1.1 " + std::to_string(samples) + "\n" + without + "\n";
  return out;
}

Archive many(int samples) {
  std::vector<std::pair<std::string, std::string>> members;
  for (int i = 0; i < samples; ++i) {
    const std::string key = "a/" + std::to_string(i);
    members.emplace_back(key + ".jpg", std::string(static_cast<size_t>(i % 7) * 300, 'j'));
    members.emplace_back(key + ".cls", std::to_string(i));
  }
  return archive_of(members);
}

struct Taken {
  std::optional<std::string> why;
  std::vector<std::string> members;  // "+key|extension@begin:data+bytes"
};

Taken take(const std::string& tar, const std::string& index) {
  Taken out;
  TarInput input({reinterpret_cast<const uint8_t*>(tar.data()), tar.size()});
  const auto add = [&](const TarMember& member, const WdsName& name, bool begins) {
    EXPECT_LE(member.begin, member.data);
    EXPECT_LE(member.data, tar.size());
    EXPECT_LE(member.bytes, tar.size() - member.data);
    EXPECT_LE(member.end, tar.size());
    out.members.push_back((begins ? "+" : "") + std::string(name.key) + "|" +
                          std::string(name.extension) + "@" + std::to_string(member.begin) + ":" +
                          std::to_string(member.data) + "+" + std::to_string(member.bytes));
  };
  out.why = take_wds_index(input, index, add, [](uint64_t) {});
  return out;
}

std::string why(const std::string& tar, const std::string& index) {
  return take(tar, index).why.value_or("used");
}

TEST(WdsIndex, lists_the_members_of_the_archive) {
  const std::string tar = tar_member("a/1.jpg", "one") + tar_member("a/1.cls", "1") +
                          tar_member("a/", "", '5') + tar_member("l.jpg", "", '2') +
                          tar_member("a/2.jpg", "two") + tar_member("a/2.cls", "2") + tar_end();
  // Offsets by hand: a small member takes 1024 bytes, a folder or a link 512.
  const Taken taken = take(tar,
                           "v1.2 2\njpg 512 3 a/1.jpg cls 1536 1 a/1.cls\n"
                           "jpg 3584 3 a/2.jpg cls 4608 1 a/2.cls\n");
  EXPECT_EQ(taken.why.value_or("used"), "used");
  EXPECT_EQ(taken.members,
            (std::vector<std::string>{"+a/1|jpg@0:512+3", "a/1|cls@1024:1536+1", "|@2560:3072+0",
                                      "+a/2|jpg@3072:3584+3", "a/2|cls@4096:4608+1"}));
  const Taken old = take(tar, "v1.1 2\njpg 512 3 cls 1536 1\r\njpg 3584 3 cls 4608 1");
  EXPECT_EQ(old.why.value_or("used"), "used");
  EXPECT_EQ(old.members[3], "+|jpg@3072:3584+3");
}

TEST(WdsIndex, is_rejected_if_it_does_not_match_the_archive) {
  const Archive sound = many(3);
  EXPECT_EQ(why(sound.tar, sound.index), "used");
  EXPECT_EQ(why(sound.tar, sound.index_v1_1), "used");
  const std::string head = "it does not begin with v1.1 or v1.2 and a number of samples";
  for (const char* text : {"", "\n", "v1.2", "v1.0 3\n", "v1.3 3\n", "0\t512\n", "v1.2 -1\n",
                           "v1.2 99999999999999999999\n", "v1.2 9223372036854775808\n"}) {
    EXPECT_EQ(why(sound.tar, text), head) << text;
  }
  EXPECT_EQ(why(sound.tar, "v1.2 9223372036854775807\n"), "it has fewer lines than samples");
  EXPECT_EQ(why(sound.tar, "v1.2 0\n"), "it lacks a member of the archive");
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string index = sound.index;
    index.replace(index.find(from), from.size(), to);
    return why(sound.tar, index);
  };
  EXPECT_EQ(with("v1.2 3", "v1.2 2"), "it has more lines than samples");
  EXPECT_EQ(with("v1.2 3", "v1.2 4"), "it has fewer lines than samples");
  EXPECT_EQ(with("v1.2 3", "v1.1 3"), "an invalid line (sample 1)");
  EXPECT_EQ(with("jpg 512 0", "jpg 513 0"), "an offset is not a multiple of 512 (sample 1)");
  EXPECT_EQ(with("jpg 512 0", "jpg 9223372036854775296 0"),
            "a member lies outside of the archive (sample 1)");
  EXPECT_EQ(with("jpg 512 0", "jpg 512 9223372036854775807"),
            "a member lies outside of the archive (sample 1)");
  EXPECT_EQ(with("jpg 512 0", "jpg 512 -1"), "an invalid line (sample 1)");
  EXPECT_EQ(with("jpg 512 0", "jpg 0 0"), "a member begins inside another (sample 1)");
  EXPECT_EQ(with("jpg 512 0", "jpg 512 1"), "a member has a different size (sample 1)");
  EXPECT_EQ(with("jpg 512 0", "png 512 0"), "a member has a different name (sample 1)");
  EXPECT_EQ(with("a/0.jpg", "a/9.jpg"), "a member has a different name (sample 1)");
  EXPECT_EQ(with("jpg 512 0 a/0.jpg ", ""), "it lacks a member of the archive");
  // Samples that are split differently, also if names do not show it.
  for (std::string index : {sound.index, sound.index_v1_1}) {
    index.replace(index.find(" cls "), 1, "\n");
    index[5] = '4';
    EXPECT_EQ(why(sound.tar, index), "its samples differ from the archive's (sample 2)");
  }
}

TEST(WdsIndex, is_rejected_if_an_offset_has_no_header) {
  const std::string tar =
      tar_member("README", std::string(1024, 'r')) + tar_member("a.jpg", "1") + tar_end();
  EXPECT_EQ(why(tar, "v1.2 1\njpg 2048 1 a.jpg\n"), "used");
  EXPECT_EQ(why(tar, "v1.2 1\njpg 1024 1 a.jpg\n"), "a member's header is missing (sample 1)");
}

// A backslash escapes non-ASCII letters in GNU tar's list, but is literal in names.
TEST(WdsIndex, is_rejected_if_a_name_has_a_backslash) {
  const std::string tar = tar_member("a\\1.jpg", "1") + tar_end();
  EXPECT_EQ(why(tar, "v1.2 1\njpg 512 1 a\\1.jpg\n"), "a name with \"\\\" in it (sample 1)");
}

TEST(WdsIndex, is_rejected_for_another_archive) {
  const Archive sound = many(40), more = many(41);
  EXPECT_EQ(why(more.tar, sound.index), "it lacks a member of the archive");
  EXPECT_EQ(why(sound.tar, more.index), "a member lies outside of the archive (sample 41)");
  std::string longer = sound.tar;
  longer.replace(longer.size() - 1024, 512, 512, 'x');
  EXPECT_EQ(why(longer, sound.index), "the data after its last member is invalid");
  for (size_t cut = 0; cut < 64; ++cut) {
    const std::string part = sound.tar.substr(0, (sound.tar.size() - 1024) * cut / 64);
    EXPECT_NE(why(part, sound.index), "used") << cut;
  }
  // Non-ASCII letters, as listed by GNU tar.
  const std::string tar = tar_member("\xC3\xA9.jpg", "1") + tar_end();
  EXPECT_EQ(why(tar, "v1.2 1\njpg 512 1 \\303\\251.jpg\n"),
            "a member has a different name (sample 1)");
}

TEST(WdsIndex, hostile_text_gives_only_members_inside_the_archive) {
  const Archive sound = many(20);
  for (const std::string& index : {sound.index, sound.index_v1_1}) {
    for (size_t cut = 0; cut < 64; ++cut) {
      take(sound.tar, index.substr(0, index.size() * cut / 64));
    }
    for (size_t bit = 0; bit < index.size() * 8; ++bit) {
      std::string flipped = index;
      flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
      take(sound.tar, flipped);
    }
  }
}

class WdsIndexedTest : public testing::Test {
 protected:
  void SetUp() override { ::setenv("HEADRACE_CACHE", "", 1); }
  SourcePtr open(const std::string& name = "a.tar",
                 const std::map<std::string, ParamValue>& arguments = {}) {
    return open_source(data / name, arguments);
  }
  static std::string message_of(const std::function<void()>& call) {
    try {
      call();
    } catch (const Exception& exception) {
      return exception.what();
    }
    return "nothing";
  }
  TemporaryFolder data;
};

TEST_F(WdsIndexedTest, the_dataset_is_the_same_with_an_index) {
  const std::vector<std::vector<std::pair<std::string, std::string>>> archives = {
      {{"1.jpg", "a"}, {"1.cls", "4"}, {"2.jpg", "b"}, {"2.cls", "5"}, {"3.jpg", "c"}},
      {{"cat/1.jpg", "a"}, {"dog/2.jpg", "b"}, {"dog/3.jpg", ""}}};
  for (const auto& members : archives) {
    const Archive archive = archive_of(members);
    for (const char* missing : {"error", "skip"}) {
      const std::map<std::string, ParamValue> arguments = {{"missing", std::string(missing)}};
      std::filesystem::remove(data / "a.idx");
      data.write("a.tar", archive.tar);
      const auto plain = open("a.tar", arguments);
      for (const std::string& index : {archive.index, archive.index_v1_1}) {
        data.write("a.idx", index);
        const auto indexed = open("a.tar", arguments);
        EXPECT_EQ(indexed->fingerprint(), plain->fingerprint());
        EXPECT_EQ(indexed->description(), plain->description());
        EXPECT_EQ(indexed->classes(), plain->classes());
        EXPECT_EQ(indexed->integer_column("label"), plain->integer_column("label"));
        EXPECT_EQ(indexed->key(1), plain->key(1));
      }
    }
  }
}

TEST_F(WdsIndexedTest, with_an_index_a_damaged_header_affects_only_its_record) {
  Archive archive = many(1000);
  // A sample in the middle, which is not among those that are checked.
  const size_t header = archive.tar.find("a/510.jpg");
  archive.tar[header + 150] ^= 1;
  data.write("a.tar", archive.tar);
  EXPECT_EQ(open()->size(), 511);
  for (const char* name : {"a.idx", "a.tar.idx"}) {
    data.write(name, archive.index);
    const auto source = open();
    ASSERT_EQ(source->size(), 1000) << source->description();
    const std::vector<int64_t> labels = source->integer_column("label");
    EXPECT_EQ(labels[509], 509);
    EXPECT_EQ(labels[510], -1);
    EXPECT_EQ(labels[999], 999);
    RecordData out;
    const int64_t bad = 510;
    source->read({&bad, 1}, {true, true}, {&out, 1});
    ASSERT_FALSE(out.result);
    EXPECT_EQ(out.result.error().code->id, "HR0464");
    std::filesystem::remove(data / name);
  }
}

TEST_F(WdsIndexedTest, an_index_that_does_not_match_is_ignored_with_a_warning) {
  const Archive archive = many(3);
  data.write("a-0.tar", archive.tar);
  data.write("a-1.tar", archive.tar);
  data.write("a-0.idx", archive.index);
  data.write("a-1.idx", many(4).index);
  const auto source = open("a-{0..1}.tar");
  EXPECT_EQ(source->size(), 6);
  EXPECT_NE(source->description().find(
                "; 1 index file not used: a member lies outside of the archive (sample 4))"),
            std::string::npos)
      << source->description();
}

TEST_F(WdsIndexedTest, an_index_given_explicitly_must_match) {
  const Archive archive = many(3);
  data.write("a.tar", archive.tar);
  data.write("x/right.idx", archive.index);
  data.write("x/wrong.idx", many(4).index);
  const auto with = [&](const std::string& name) {
    return open("a.tar", {{"index", data / name}});
  };
  EXPECT_EQ(with("x/right.idx")->size(), 3);
  EXPECT_NE(message_of([&] { with("x/wrong.idx"); }).find("HR0459"), std::string::npos);
  EXPECT_NE(message_of([&] { with("x/*.idx"); }).find("index= names 2 files for 1 archive"),
            std::string::npos);
  EXPECT_NE(message_of([&] { with("x/none.idx"); }).find("none.idx"), std::string::npos);
}

TEST_F(WdsIndexedTest, a_cached_scan_is_redone_when_the_index_changes) {
  TemporaryFolder cache;
  ::setenv("HEADRACE_CACHE", cache.path().c_str(), 1);
  const Archive archive = many(1200);
  data.write("a.tar", archive.tar);
  std::filesystem::last_write_time(
      data / "a.tar", std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  data.write("a.idx", "v1.2 no\n");
  EXPECT_NE(open()->description().find("not used"), std::string::npos);
  EXPECT_NE(open()->description().find("not used"), std::string::npos);
  data.write("a.idx", archive.index);
  EXPECT_EQ(open()->description().find("not used"), std::string::npos);
}

}  // namespace
}  // namespace headrace
