// SPDX-License-Identifier: Apache-2.0
// Samples in tar archives, valid and damaged.
#include <gtest/gtest.h>
#include <zlib.h>

#include <chrono>
#include <cstring>
#include <filesystem>

#include "headrace/formats/format.h"
#include "headrace/formats/webdataset/tar_test_files.h"
#include "headrace/sources/source.h"
#include "headrace/storage/temporary_folder.h"

namespace headrace {
namespace {

using Members = std::vector<std::pair<std::string, std::string>>;

class WebDatasetTest : public testing::Test {
 protected:
  void SetUp() override { ::setenv("HEADRACE_CACHE", cache.path().c_str(), 1); }

  SourcePtr open_file(const std::string& name = "a.tar") { return open_source(data / name); }
  SourcePtr open(const Members& members, const std::map<std::string, ParamValue>& arguments = {}) {
    data.write("a.tar", tar_of(members));
    return open_source(data / "a.tar", arguments);
  }
  static std::string message_of(const std::function<void()>& call) {
    try {
      call();
    } catch (const Exception& exception) {
      return exception.what();
    }
    return "nothing";
  }
  // "image=abc label=3", or the error's first line.
  static std::string read(const Source& source, int64_t record) {
    RecordData out;
    source.read({&record, 1}, std::vector<bool>(source.schema().size(), true), {&out, 1});
    if (!out.result) {
      const std::string message = out.result.error().message();
      return message.substr(0, message.find('\n'));
    }
    std::string text;
    for (size_t i = 0; i < out.fields.size(); ++i) {
      const Field& field = source.schema()[i];
      const auto& bytes = out.fields[i].bytes;
      text += (i ? " " : "") + field.name + "=";
      const bool number = field.kind == FieldKind::kLabel || field.kind == FieldKind::kTensor;
      if (number && bytes.empty()) {
        text += std::to_string(out.fields[i].scalar);
      } else {
        text.append(bytes.begin(), bytes.end());
      }
    }
    return text;
  }

  TemporaryFolder data, cache;
};

TEST_F(WebDatasetTest, consecutive_members_with_one_key_are_a_record) {
  const auto source = open({{"a/1.cls", "3\n"},
                            {"a/1.jpg", "J1"},
                            {"a/2.JPG", "J2"},
                            {"a/2.cls", " -4 "},
                            {".hidden.jpg", "no"},
                            {"noextension", "no"},
                            {"a/1.jpg", "again"},
                            {"a/1.cls", "5"}});
  ASSERT_EQ(source->size(), 3);
  EXPECT_EQ(read(*source, 0), "image=J1 label=3");
  EXPECT_EQ(read(*source, 1), "image=J2 label=-4");
  EXPECT_EQ(read(*source, 2), "image=again label=5");
  EXPECT_EQ(source->key(0), "a/1");
  EXPECT_EQ(source->key(1), "a/2");
  EXPECT_EQ(source->integer_column("label"), (std::vector<int64_t>{3, -4, 5}));
  EXPECT_TRUE(source->integer_column("image").empty());
}

TEST_F(WebDatasetTest, an_extension_is_everything_after_the_first_dot) {
  const auto source = open({{"x.y/1.seg.png", "S"}, {"x.y/1.left.jpg", "L"}, {"x.y/1.jpg", "J"}});
  ASSERT_EQ(source->size(), 1);
  EXPECT_EQ(source->key(0), "x.y/1");
  EXPECT_EQ(read(*source, 0), "image=J left=L seg=S");
  EXPECT_EQ(source->schema()[2].kind, FieldKind::kMask);
  EXPECT_EQ(source->schema()[1].kind, FieldKind::kImage);
}

TEST_F(WebDatasetTest, image_types_that_never_occur_together_are_one_field) {
  EXPECT_EQ(read(*open({{"1.jpg", "J"}, {"2.png", "P"}, {"3.jpeg", "E"}}), 1), "image=P");
  EXPECT_EQ(read(*open({{"1.jpg", "J"}, {"1.png", "P"}, {"2.jpg", "K"}, {"2.png", "Q"}}), 1),
            "image=K png=Q");
}

TEST_F(WebDatasetTest, an_archive_without_its_end_is_reported) {
  const Members members = {{"1.jpg", "1"}, {"2.jpg", "2"}, {"3.jpg", std::string(100, '3')}};
  const std::string whole = tar_of(members), note = "1 archive without an end";
  const auto description = [&](size_t bytes) {
    data.write("cut.tar", whole.substr(0, bytes));
    return open_source(data / "cut.tar")->description();
  };
  EXPECT_EQ(description(whole.size()).find(note), std::string::npos);
  EXPECT_EQ(description(whole.size() - 512).find(note), std::string::npos);  // one block of zeros
  EXPECT_NE(description(6 * 512).find("(3 records; " + note), std::string::npos);
  EXPECT_NE(description(4 * 512).find("(2 records; " + note), std::string::npos);
  EXPECT_NE(description(5 * 512 + 100).find("(3 records; " + note), std::string::npos);
  EXPECT_NE(description(5 * 512 + 99).find("1 damaged place"), std::string::npos);
}

TEST_F(WebDatasetTest, samples_may_have_more_components_than_fields) {
  Members members;
  for (int i = 0; i < 3000; ++i) members.push_back({"1.a" + std::to_string(i), "x"});
  members.push_back({"2.jpg", "J"});
  EXPECT_EQ(open(members, {{"fields", std::vector<std::string>{"jpg"}}})->size(), 2);
  EXPECT_EQ(read(*open(members, {{"fields", std::vector<std::string>{"a2999"}}}), 0), "a2999=x");
}

TEST_F(WebDatasetTest, rare_components_are_not_fields) {
  const auto source =
      open({{"1.jpg", "1"}, {"2.jpg", "2"}, {"2.txt", "t"}, {"3.jpg", "3"}, {"3.pyd", "p"}});
  ASSERT_EQ(source->schema().size(), 1u);
  EXPECT_EQ(source->description(),
            "webdataset " + (data / "a.tar") +
                " (3 records; not fields: pyd (pickles; 1 of 3), txt (1 of 3))");
}

TEST_F(WebDatasetTest, fields_may_be_named) {
  const Members members = {{"1.jpg", "J"}, {"1.cls", "1"}, {"1.txt", "t"},
                           {"2.png", "P"}, {"2.cls", "2"}, {"2.txt", "u"}};
  const auto with = [&](const std::vector<std::string>& fields) {
    return open(members, {{"fields", fields}});
  };
  EXPECT_EQ(read(*with({"caption=txt", "mask=jpg;png"}), 1), "caption=u mask=P");
  EXPECT_EQ(with({"mask=jpg;png"})->schema()[0].kind, FieldKind::kMask);
  EXPECT_EQ(read(*with({"png;jpg", "cls"}), 0), "image=J label=1");
  EXPECT_NE(message_of([&] { with({"jpgg"}); }).find("HR0467"), std::string::npos);
  EXPECT_NE(message_of([&] { with({"jpgg"}); }).find("'cls', 'jpg', 'png' and 'txt'"),
            std::string::npos)
      << message_of([&] { with({"jpgg"}); });
  EXPECT_NE(message_of([&] { with({"a=pkl"}); }).find("can run arbitrary code"), std::string::npos);
  EXPECT_NE(message_of([&] { with({"1a=jpg"}); }).find("HR0467"), std::string::npos);
  EXPECT_NE(message_of([&] { with({"key=jpg"}); }).find("HR0467"), std::string::npos);
  EXPECT_NE(message_of([&] { with({"a=jpg", "a=cls"}); }).find("twice"), std::string::npos);
}

TEST_F(WebDatasetTest, a_component_that_is_missing_follows_the_policy) {
  const Members members = {{"1.jpg", "1"}, {"1.cls", "1"}, {"1.txt", "t"},
                           {"2.jpg", "2"}, {"3.cls", "3"}, {"3.txt", "u"},
                           {"4.jpg", "4"}, {"4.cls", "4"}, {"4.txt", "v"}};
  const auto error = open(members);
  EXPECT_EQ(read(*error, 1), "HR0466 invalid sample: the sample has no component cls");
  EXPECT_EQ(read(*error, 2), "HR0466 invalid sample: the sample has no component jpg");
  EXPECT_EQ(error->integer_column("label"), (std::vector<int64_t>{1, -1, 3, 4}));
  const auto skip = open(members, {{"missing", std::string("skip")}});
  ASSERT_EQ(skip->size(), 2);
  EXPECT_EQ(read(*skip, 1), "image=4 label=4 text=v");
  EXPECT_NE(skip->description().find("2 samples without all components skipped"),
            std::string::npos);
  EXPECT_NE(skip->fingerprint(), error->fingerprint());
  const auto empty = open(members, {{"missing", std::string("empty")}});
  EXPECT_EQ(read(*empty, 1), "image=2 label=-1 text=");
  EXPECT_EQ(read(*empty, 2), "HR0466 invalid sample: the sample has no component jpg");
}

TEST_F(WebDatasetTest, values_are_parsed_by_their_extension) {
  const auto source = open({{"1.cls", "x"},
                            {"1.txt", "a\xFF"},
                            {"2.cls", "9"},
                            {"2.cls", "9"},
                            {"2.txt", "t"},
                            {"3.cls", "99999999999999999999"},
                            {"3.txt", "t"}},
                           {{"fields", std::vector<std::string>{"cls", "txt"}}});
  EXPECT_EQ(read(*source, 0), "HR0466 invalid sample: \"x\" is not an integer");
  EXPECT_EQ(read(*source, 1), "HR0466 invalid sample: the sample has this component twice");
  EXPECT_EQ(read(*source, 2), "HR0466 invalid sample: \"99999999999999999999\" is not an integer");
  const auto text = open({{"1.txt", "a\xFF"}});
  EXPECT_EQ(read(*text, 0), "HR0466 invalid sample: the text is not UTF-8");
  const std::map<std::string, ParamValue> classes = {
      {"classes", std::vector<std::string>{"cat", "dog"}}};
  const auto named =
      open({{"1.cls", "dog\n"}, {"2.cls", "0"}, {"3.cls", "2"}, {"4.cls", "eel"}}, classes);
  EXPECT_EQ(named->integer_column("label"), (std::vector<int64_t>{1, 0, -1, -1}));
  EXPECT_EQ(read(*named, 2), "HR0466 invalid sample: class \"2\" of 2");
  EXPECT_EQ(named->classes(), (std::vector<std::string>{"cat", "dog"}));
}

TEST_F(WebDatasetTest, json_gives_values) {
  const auto source =
      open({{"1.json", R"({"w": 3, "meta": {"year": 1999, "who": "\u00e9"}, "q": 0.5})"},
            {"2.json", R"({"w": 4.5, "meta": {}})"},
            {"3.json", "{" + std::string(100'000, '[')}},
           {{"json_fields", std::vector<std::string>{"w:int64", "year=meta.year:int64",
                                                     "who=meta.who:text", "q:float64"}}});
  ASSERT_EQ(source->schema().size(), 5u);
  const std::string half("\0\0\0\0\0\0\xE0\x3F", 8);
  EXPECT_EQ(read(*source, 0),
            R"(json={"w": 3, "meta": {"year": 1999, "who": "\u00e9"}, "q": 0.5} w=3 year=1999 )"
            "who=\u00e9 q=" +
                half);
  EXPECT_NE(read(*source, 1).find("HR0466"), std::string::npos);
  EXPECT_NE(read(*source, 2).find("HR0466"), std::string::npos);
  EXPECT_EQ(source->integer_column("year"), (std::vector<int64_t>{1999, -1, -1}));
  EXPECT_NE(message_of([&] {
              open({{"1.json", "{}"}}, {{"json_fields", std::vector<std::string>{"w:integer"}}});
            }).find("HR0467"),
            std::string::npos);
}

std::string npy(const std::string& descr, const std::string& shape, bool fortran,
                const std::string& values) {
  std::string header = "{'descr': '" + descr +
                       "', 'fortran_order': " + (fortran ? "True" : "False") + ", 'shape': (" +
                       shape + "), }";
  while ((header.size() + 11) % 64 != 0) header += ' ';
  header += '\n';
  std::string out = "\x93NUMPY";
  out += std::string("\x01\x00", 2);
  out += char(header.size() & 0xFF);
  out += char(header.size() >> 8);
  return out + header + values;
}

TEST_F(WebDatasetTest, npy_is_an_array) {
  const auto source = open({{"1.npy", npy("|u1", "2, 3", false, "abcdef")},
                            {"2.npy", npy("|u1", "3, 2", true, "abcdef")},
                            {"3.npy", npy("|u1", "2, 4", false, "abcdef")},
                            {"4.npy", npy("<f4", "2, 1", false, "12345678")},
                            {"5.npy", npy("|O", "1,", false, "123")}});
  EXPECT_EQ(source->schema()[0].kind, FieldKind::kTensor);
  EXPECT_EQ(source->schema()[0].shape, (Shape{-1, -1}));
  EXPECT_EQ(read(*source, 0), "npy=abcdef");
  EXPECT_EQ(read(*source, 1), "npy=adbecf");
  for (const int64_t bad : {2, 3, 4}) {
    EXPECT_EQ(read(*source, bad).substr(0, 6), "HR0466") << read(*source, bad);
  }
  const auto big = open({{"1.npy", npy(">i2", "2,", false, "abcd")}});
  EXPECT_EQ(read(*big, 0), "npy=badc");
}

TEST_F(WebDatasetTest, folders_of_images_become_classes) {
  const Members members = {
      {"set/dog/1.jpg", "d1"}, {"set/dog/x/2.png", "d2"}, {"set/cat/1.jpg", "c1"}};
  const auto source = open(members);
  EXPECT_EQ(source->classes(), (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(read(*source, 0), "image=d1 label=1");
  EXPECT_EQ(read(*source, 2), "image=c1 label=0");
  EXPECT_EQ(source->integer_column("label"), (std::vector<int64_t>{1, 1, 0}));
  const auto given = open(members, {{"classes", std::vector<std::string>{"dog", "eel", "cat"}}});
  EXPECT_EQ(given->integer_column("label"), (std::vector<int64_t>{0, 0, 2}));
  EXPECT_NE(message_of([&] {
              open(members, {{"classes", std::vector<std::string>{"dog"}}});
            }).find("HR0406"),
            std::string::npos);
  const auto one = open({{"dog/1.jpg", ""}}, {{"classes", std::vector<std::string>{"cat", "dog"}}});
  EXPECT_EQ(one->integer_column("label"), std::vector<int64_t>{1});
  EXPECT_NE(message_of([&] {
              open({{"1.jpg", ""}}, {{"classes", std::vector<std::string>{"cat"}}});
            }).find("classes= is given, but there is no label"),
            std::string::npos);
  EXPECT_EQ(open({{"train/a/1.jpg", ""}, {"val/a/1.jpg", ""}})->schema().size(), 1u);
  EXPECT_EQ(open({{"only/1.jpg", ""}, {"only/2.jpg", ""}})->schema().size(), 1u);
}

TEST_F(WebDatasetTest, compressed_shards_give_the_same_records) {
  const std::string plain =
      tar_of({{"1.jpg", "one"}, {"1.cls", "1"}, {"2.jpg", "two"}, {"2.cls", "2"}});
  data.write("a-0.tar", plain);
  const gzFile file = gzopen((data / "a-1.tar").c_str(), "wb");
  gzwrite(file, plain.data(), unsigned(plain.size()));
  gzclose(file);
  const auto source = open_file("a-{0..1}.tar");
  ASSERT_EQ(source->size(), 4);
  EXPECT_EQ(read(*source, 1), "image=two label=2");
  EXPECT_EQ(read(*source, 3), "image=two label=2");
  EXPECT_EQ(source->integer_column("label"), (std::vector<int64_t>{1, 2, 1, 2}));
  // When truncated, it keeps what it has, and the error contains the file's name, not its copy's.
  const auto size = std::filesystem::file_size(data / "a-1.tar");
  std::filesystem::resize_file(data / "a-1.tar", size - 20);
  const auto cut = open_file("a-{0..1}.tar");
  ASSERT_GE(cut->size(), 3);
  RecordData out;
  const int64_t last = cut->size() - 1;
  cut->read({&last, 1}, {true, true}, {&out, 1});
  ASSERT_FALSE(out.result);
  EXPECT_EQ(out.result.error().code->id, "HR0211");
  EXPECT_EQ(out.result.error().where.file, data / "a-1.tar");
  EXPECT_EQ(read(*cut, 1), "image=two label=2");
}

TEST_F(WebDatasetTest, a_truncated_archive_loses_only_its_end) {
  Members members;
  for (int i = 0; i < 40; ++i) {
    members.emplace_back(std::to_string(i) + ".cls", std::to_string(i));
    members.emplace_back(std::to_string(i) + ".jpg", std::string(size_t(i) * 37, 'j'));
  }
  const std::string whole = tar_of(members);
  for (size_t cut = 1; cut < 64; ++cut) {
    data.write("a.tar", whole.substr(0, whole.size() * cut / 64));
    SourcePtr source;
    try {
      source = open_file();
    } catch (const Exception& exception) {
      EXPECT_EQ(exception.error().code->id, "HR0464");
      EXPECT_EQ(cut, 1u);
      continue;
    }
    const int64_t count = source->size();
    for (int64_t i = 0; i + 1 < count; ++i) {
      if (source->schema().size() < 2) break;
      EXPECT_EQ(read(*source, i),
                "image=" + members[size_t(i) * 2 + 1].second + " label=" + std::to_string(i));
    }
  }
}

TEST_F(WebDatasetTest, names_that_refer_outside_the_archive_are_not_followed) {
  const auto source = open({{"../../etc/x.jpg", "1"}, {"/etc/y.jpg", "2"}, {"a/../z.jpg", "3"}});
  ASSERT_EQ(source->size(), 3);
  EXPECT_EQ(source->key(0), "../../etc/x");
  EXPECT_EQ(source->key(1), "/etc/y");
}

TEST_F(WebDatasetTest, explains_why_it_is_empty) {
  data.write("a.tar", tar_member("link.jpg", "", '2') + tar_end());
  EXPECT_NE(message_of([&] { open_file(); }).find("HR0468"), std::string::npos);
  data.write("b.tar.xz",
             "\xFD"
             "7zXZ");
  EXPECT_NE(message_of([&] { open_file("b.tar.xz"); }).find("HR0469"), std::string::npos);
  data.write("a.tar", std::string(2000, 'x'));
  EXPECT_NE(message_of([&] { open_file(); }).find("HR0464"), std::string::npos);
}

}  // namespace
}  // namespace headrace
