// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "headrace/formats/format.h"
#include "headrace/sources/source_test_reads.h"
#include "headrace/storage/temporary_folder.h"

namespace headrace {
namespace {

using Given = std::map<std::string, ParamValue>;
using Names = std::vector<std::string>;
using Integers = std::vector<int64_t>;

class Manifest : public testing::Test {
 protected:
  Manifest() {  // a manifest is rejected if none of its files exists
    for (const std::string name :
         {"a.jpg", "1.jpg", "a.png", "a.tif", "a.wav", "a.mp4", "x;1.jpg", "x/1"})
      folder.write("sets/" + name, "");
    folder.write("other/a.jpg", "");
  }
  SourcePtr open(std::string_view text, const Given& given = {},
                 const std::string& name = "sets/train.csv") const {
    return open_source(folder.write(name, text), given);
  }
  SourcePtr open_lines(std::string_view text, const Given& given = {}) const {
    return open(text, given, "sets/train.jsonl");
  }
  Error refusal(std::string_view text, const Given& given = {},
                const std::string& name = "sets/train.csv") const {
    Given named = given;
    named["format"] = std::string("manifest");
    return error_of([&] { open(text, named, name); });
  }
  Error refusal_of_lines(std::string_view text, const Given& given = {}) const {
    return refusal(text, given, "sets/train.jsonl");
  }
  static Names fields(const Source& source) {
    Names out;
    for (const Field& field : source.schema()) out.push_back(field.name);
    return out;
  }
  // Without its picture, which need not exist.
  static RecordData read(const Source& source, int64_t index) {
    std::vector<bool> wanted;
    for (const Field& field : source.schema()) wanted.push_back(!field.encoded);
    return read_record(source, index, wanted);
  }
  static std::string text(const Source& source, int64_t index, std::string_view name) {
    return text_of(field_of(source, read(source, index), name));
  }
  static float number(const Source& source, int64_t index, std::string_view name) {
    const std::vector<float> out = numbers_of<float>(field_of(source, read(source, index), name));
    EXPECT_EQ(out.size(), 1u);
    return out.empty() ? -1 : out[0];
  }
  TemporaryFolder folder;
};

TEST_F(Manifest, ColumnsBecomeFieldsByContent) {
  folder.write("sets/b.jpg", "picture");
  const SourcePtr source =
      open("path,label,age,score,note\na.jpg,dog,3,0.5,x\nb.jpg,cat,-4,1e2,\n");
  EXPECT_EQ(fields(*source), (Names{"image", "label", "age", "score", "note"}));
  EXPECT_EQ(source->classes(), (Names{"cat", "dog"}));
  EXPECT_EQ(source->integer_column("label"), (Integers{1, 0}));
  EXPECT_EQ(source->integer_column("age"), (Integers{3, -4}));
  EXPECT_EQ(number(*source, 0, "score"), 0.5F);
  EXPECT_EQ(number(*source, 1, "score"), 100.F);
  EXPECT_EQ(text(*source, 0, "note"), "x");
  EXPECT_EQ(text(*source, 1, "note"), "");
  EXPECT_EQ(source->key(1), folder / "sets/b.jpg");
  EXPECT_EQ(source->description(),
            "manifest " + (folder / "sets/train.csv") + " (2 records, 2 classes)");
  std::vector<RecordData> out(1);
  source->read(Integers{1}, std::vector<bool>(5, true), out);
  ASSERT_TRUE(out[0].result);
  EXPECT_EQ(std::string(out[0].fields[0].bytes.begin(), out[0].fields[0].bytes.end()), "picture");
}

TEST_F(Manifest, CsvFollowsRfc4180AndSpreadsheets) {
  const SourcePtr source = open(
      "\xEF\xBB\xBFpath;\"a \"\"b\"\"\";c\r\n\"x;1.jpg\";\"two\r\nlines\";\"\"\r\n\r\ny.jpg;5\" "
      "wide;\"q\"\"q\"");
  EXPECT_EQ(fields(*source), (Names{"image", "a_b", "c"}));
  EXPECT_EQ(source->key(0), folder / "sets/x;1.jpg");
  EXPECT_EQ(text(*source, 0, "a_b"), "two\r\nlines");
  EXPECT_EQ(text(*source, 0, "c"), "");
  EXPECT_EQ(text(*source, 1, "a_b"), "5\" wide");
  EXPECT_EQ(text(*source, 1, "c"), "q\"q");
}

TEST_F(Manifest, TheDelimiterIsFoundInTheHeader) {
  for (const char* text : {"p,x,y\na.jpg,1,2\n", "p;x;y\na.jpg;1;2", "p\tx\ty\r\na.jpg\t1\t2\r\n",
                           "p|x|y\na.jpg|1|2\n"}) {
    const SourcePtr source = open(text);
    EXPECT_EQ(source->integer_column("y"), (Integers{2})) << text;
  }
}

TEST_F(Manifest, JsonLinesKeepTheirTypes) {
  const SourcePtr source = open_lines(
      "{\"file\": \"a.png\", \"n\": 1, \"f\": 2, \"zip\": \"007\", \"ok\": true, \"box\": [1, "
      "2]}\n\n"
      "{\"n\": -9223372036854775808, \"file\": \"b.png\", \"f\": 0.25, \"zip\": \"8\", \"ok\": "
      "false, \"box\": []}");
  EXPECT_EQ(fields(*source), (Names{"image", "n", "f", "zip", "ok", "box"}));
  EXPECT_EQ(source->integer_column("n"), (Integers{1, INT64_MIN}));
  EXPECT_EQ(number(*source, 0, "f"), 2.F);
  EXPECT_EQ(text(*source, 0, "zip"), "007");
  EXPECT_EQ(source->integer_column("ok"), (Integers{1, 0}));
  EXPECT_EQ(text(*source, 0, "box"), "[1, 2]");
}

TEST_F(Manifest, NumbersWithLeadingZerosAreNames) {
  const SourcePtr source = open("path,zip,n\na.jpg,01234,0\nb.jpg,99999,-7\n");
  EXPECT_EQ(text(*source, 0, "zip"), "01234");
  EXPECT_EQ(source->integer_column("n"), (Integers{0, -7}));
}

TEST_F(Manifest, SeveralPathColumnsAreSeveralImages) {
  const SourcePtr source = open("img,mask_path,depth\na.jpg,a.png,a.tif\n");
  EXPECT_EQ(fields(*source), (Names{"image", "mask", "depth"}));
  EXPECT_EQ(source->schema()[1].kind, FieldKind::kMask);
  EXPECT_EQ(source->schema()[2].kind, FieldKind::kImage);
}

TEST_F(Manifest, ColumnsCanBeNamed) {
  const std::string text = "where,species,count,id\nx/1,owl,4,77\nx/2,owl,5,78\n";
  const SourcePtr source = open(text, {{"image", std::string("where")},
                                       {"label", std::string("species")},
                                       {"root", folder / "sets"}});
  EXPECT_EQ(fields(*source), (Names{"image", "label", "count", "id_"}));
  EXPECT_EQ(source->key(1), folder / "sets/x/2");
  EXPECT_EQ(source->root(), folder / "sets/");
  EXPECT_EQ(source->classes(), (Names{"owl"}));
  EXPECT_EQ(source->integer_column("id_"), (Integers{77, 78}));
}

TEST_F(Manifest, MissingValuesFollowThePolicy) {
  const std::string csv = "path,a,b\n1.jpg,,x\n2.jpg,5,\n";
  EXPECT_EQ(refusal(csv).what, "line 2, column \"a\": no value");
  const SourcePtr source = open(csv, {{"missing", std::string("fill")}});
  EXPECT_TRUE(std::isnan(number(*source, 0, "a")));
  EXPECT_EQ(number(*source, 1, "a"), 5.F);
  const std::string lines = "{\"p\": \"1.jpg\", \"a\": 1}\n{\"p\": \"2.jpg\", \"b\": \"t\"}\n";
  EXPECT_EQ(refusal_of_lines(lines).what, "line 2: the key \"b\", which line 1 lacks");
  EXPECT_EQ(refusal_of_lines("{\"p\": \"1.jpg\", \"a\": 1}\n{\"p\": \"2.jpg\"}").what,
            "line 2: no key \"a\", which line 1 has");
  EXPECT_EQ(refusal_of_lines("{\"p\": \"1.jpg\", \"a\": null}").what,
            "line 1, column \"a\": no value");
  const SourcePtr filled = open_lines(lines, {{"missing", std::string("fill")}});
  EXPECT_EQ(fields(*filled), (Names{"image", "a", "b"}));
  EXPECT_TRUE(std::isnan(number(*filled, 1, "a")));
  EXPECT_EQ(text(*filled, 0, "b"), "");
  EXPECT_EQ(text(*filled, 1, "b"), "t");
  EXPECT_EQ(refusal("path,label,x\na.jpg,,1\n", {{"missing", std::string("fill")}}).what,
            "line 2, column \"label\": no value");
}

TEST_F(Manifest, ErrorsAreReportedWithTheirLine) {
  EXPECT_EQ(refusal("").what, "line 1: an empty file");
  EXPECT_EQ(refusal("a,b,c\n").what, "line 1: no record after the header");
  EXPECT_EQ(refusal("a,b,c\n1,2,3\n\n4,5\n").what, "line 4: 2 cells, but the header has 3");
  EXPECT_EQ(refusal("a,b,c\n\"x\ny\",2,3\n4\n").what, "line 4: 1 cell, but the header has 3");
  EXPECT_EQ(refusal("a,b,c\n\"x,2,3\n").what, "line 2: a quote that is not closed");
  EXPECT_EQ(refusal("a,b,c\n\"x\"y,2,3\n").what, "line 2: text after a closing quote");
  EXPECT_EQ(refusal("a,b,a\n").what, "line 1: two columns are named \"a\"");
  EXPECT_EQ(refusal("a,,c\n").what, "line 1: a column without a name");
  EXPECT_EQ(refusal(std::string_view("a,b,c\n1,\0,3\n", 12)).what, "line 2: a NUL byte");
  EXPECT_EQ(refusal("a,b,c\n1,\xFF,3\n").what, "line 2: bytes that are not UTF-8");
  EXPECT_EQ(refusal("\xFF\xFE"
                    "a")
                .what,
            "line 1: UTF-16");
  EXPECT_EQ(refusal("a b,a_b,c\n1,2,3\n").what, "two columns would become the field 'a_b'");
  EXPECT_EQ(refusal_of_lines("{\"a\": 1}\n{\"a\": }\n").what,
            "line 2: a value was expected, not '}'");
  EXPECT_EQ(refusal_of_lines("{\"a\": 1}\n[1]\n").what, "line 2: an object was expected, not '['");
  EXPECT_EQ(refusal_of_lines("{\"a\": 1} {\"a\": 2}\n").what,
            "line 1: more text after the end: '{'");
  EXPECT_EQ(refusal_of_lines("{\"a\": 1, \"a\": 2}\n").what, "line 1: the key \"a\" twice");
  EXPECT_EQ(refusal_of_lines("{\"a\": 9223372036854775808}\n").what,
            "line 1, column \"a\": 9223372036854775808 does not fit into 64 bits");
  EXPECT_EQ(refusal_of_lines("{\"a\": 1}\n{\"a\": \"x\"}\n").code->id, "HR0438");
  EXPECT_EQ(refusal_of_lines("{\"a\": " + std::string(100000, '[') + "\n").what,
            "line 1: nested more than 128 levels deep");
}

TEST_F(Manifest, MissingColumnsAreRejected) {
  const std::string text = "path,class,x\na.jpg,owl,0.5\n";
  EXPECT_EQ(refusal(text, {{"image", std::string("paht")}}).hint, "did you mean \"path\"?");
  EXPECT_EQ(refusal(text, {{"label", std::string("nothing")}}).code->id, "HR0439");
  EXPECT_EQ(refusal(text, {{"fields", Names{"y"}}}).code->id, "HR0439");
  EXPECT_EQ(refusal(text, {{"label", std::string("x")}}).code->id, "HR0439");
  EXPECT_EQ(refusal(text, {{"classes", Names{"cat"}}}).code->id, "HR0406");
  EXPECT_EQ(fields(*open(text, {{"fields", Names{}}})), (Names{"image", "label"}));
}

TEST_F(Manifest, ClassesDetermineTheNumbers) {
  const SourcePtr source =
      open("path,class,x\na.jpg,owl,1\nb.jpg,2,1\n", {{"classes", Names{"fox", "owl", "elk"}}});
  EXPECT_EQ(source->integer_column("label"), (Integers{1, 2}));
}

TEST_F(Manifest, TheFingerprintDependsOnTheRecordsNotTheFolder) {
  const std::string text = "path,label,x\na.jpg,1,2\n";
  const uint64_t print = open(text)->fingerprint();
  EXPECT_EQ(open(text, {}, "other/t.csv")->fingerprint(), print);
  EXPECT_NE(open("path,label,x\na.jpg,1,3\n")->fingerprint(), print);
  EXPECT_NE(open("path,label,y\na.jpg,1,2\n")->fingerprint(), print);
}

TEST_F(Manifest, ListsAreLeftToTheListFormat) {
  for (const char* text : {"a.jpg,1\nb.jpg,2\n", "path,label\na.jpg,1\n", "# x,y,z\na.jpg,1\n"}) {
    EXPECT_TRUE(open(text)->description().starts_with("list ")) << text;
  }
  EXPECT_TRUE(open("path,label,x\na.jpg,1,2\n")->description().starts_with("manifest "));
}

TEST_F(Manifest, TruncationsAndFlippedBitsNeverCrash) {
  const std::string csv = "path,label,n,t\na.jpg,dog,1,\"x\"\"y\"\nb.jpg,cat,2.5,\"z\nz\"\n";
  const std::string json =
      "{\"p\": \"a.jpg\", \"n\": 1, \"t\": [\"x\"]}\n{\"p\": \"b.jpg\", \"n\": 2, \"t\": [null]}\n";
  for (const bool lines : {false, true}) {
    const std::string& text = lines ? json : csv;
    const auto look = [&](const std::string& damaged) {
      try {
        const SourcePtr source =
            open(damaged, {{"format", std::string("manifest")}}, lines ? "x.jsonl" : "x.csv");
        for (int64_t i = 0; i < source->size(); ++i) read(*source, i);
      } catch (const Exception&) {
      }
    };
    for (size_t part = 0; part < 64; ++part) look(text.substr(0, text.size() * part / 64));
    for (size_t i = 0; i < text.size() * 8; ++i) {
      std::string damaged = text;
      damaged[i / 8] ^= 1 << i % 8;
      look(damaged);
    }
  }
}

}  // namespace
}  // namespace headrace
