// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <functional>

#include "headrace/base/random.h"
#include "headrace/formats/format.h"
#include "headrace/sources/source.h"
#include "headrace/storage/temporary_folder.h"

namespace headrace {
namespace {

using Names = std::vector<std::string>;
using Labels = std::vector<int64_t>;

class ListFile : public testing::Test {
 protected:
  ListFile() {  // a list is rejected if none of its files exists
    for (const std::string name : {"a.jpg", "1.jpg", "0.png", "a, b.jpg", "my cat.jpg", "photo"}) {
      for (const std::string at : {"", "lists/", "elsewhere/"}) folder.write(at + name, "");
    }
  }
  SourcePtr open(std::string_view text, const std::string& name = "lists/train.txt",
                 const std::map<std::string, ParamValue>& arguments = {}) const {
    return open_source(folder.write(name, text), arguments);
  }
  Error refusal(std::string_view text, const std::string& name = "lists/train.txt",
                const std::map<std::string, ParamValue>& arguments = {}) const {
    try {
      open(text, name, arguments);
    } catch (const Exception& exception) {
      return exception.error();
    }
    ADD_FAILURE() << "no exception for " << text;
    return {};
  }
  Names keys(const Source& source) const {
    Names out;
    for (int64_t i = 0; i < source.size(); ++i) out.push_back(source.key(i));
    return out;
  }
  TemporaryFolder folder;
};

TEST_F(ListFile, PathsAreRelativeToTheListsFolder) {
  const SourcePtr source = open("a.jpg 3\nsub/b.jpg 5\n/abs/c.jpg -1\n../d.jpg +7");
  EXPECT_EQ(keys(*source), (Names{folder / "lists/a.jpg", folder / "lists/sub/b.jpg", "/abs/c.jpg",
                                  folder / "lists/../d.jpg"}));
  EXPECT_EQ(source->integer_column("label"), (Labels{3, 5, -1, 7}));
  EXPECT_TRUE(source->classes().empty());
}

TEST_F(ListFile, ReadsTheFiles) {
  folder.write("lists/a.jpg", "picture");
  const SourcePtr source = open("a.jpg 3\nnone.jpg 4\n");
  std::vector<RecordData> out(2);
  source->read(std::vector<int64_t>{0, 1}, {true, true}, out);
  EXPECT_EQ(std::string(out[0].fields[0].bytes.begin(), out[0].fields[0].bytes.end()), "picture");
  EXPECT_EQ(out[0].fields[1].scalar, 3);
  EXPECT_EQ(out[1].result.error().where.file, folder / "lists/none.jpg");
}

TEST_F(ListFile, CommentsBlankLinesAndWindowsLineEndsAreSkipped) {
  const SourcePtr source =
      open("\xEF\xBB\xBF# made by hand\r\n\r\n  a.jpg 1\r\n   \r\n# end\r\nb.jpg\t 2 \r\n");
  EXPECT_EQ(source->size(), 2);
  EXPECT_EQ(source->integer_column("label"), (Labels{1, 2}));
}

TEST_F(ListFile, NamesAreSortedIntoClasses) {
  const SourcePtr source = open("1.jpg,dog\n2.jpg,cat\n3.jpg,dog\n4.jpg,Ant\n", "l.csv");
  EXPECT_EQ(source->classes(), (Names{"Ant", "cat", "dog"}));
  EXPECT_EQ(source->integer_column("label"), (Labels{2, 1, 2, 0}));
  EXPECT_EQ(source->description(), "list " + (folder / "l.csv") + " (4 records, 3 classes)");
}

TEST_F(ListFile, AHeaderIsNeverARecord) {
  for (const std::string heading : {"image,breed", "image_name,tags", "Image,Id", "image,class_id",
                                    "Filename,Finding Labels", "x.y,breed", "path,label"}) {
    const SourcePtr source = open(heading + "\n0.png,cat\n1.png,dog\n2.png,cat\n", "t.csv");
    EXPECT_EQ(source->classes(), (Names{"cat", "dog"})) << heading;
    EXPECT_EQ(source->integer_column("label"), (Labels{0, 1, 0})) << heading;
  }
  EXPECT_EQ(open("file breed\n0.png cat\n")->size(), 1);
  EXPECT_EQ(open("file\n0.png\n1.png\n")->size(), 2);
  EXPECT_EQ(open("image name\tbreed\n0.png\tcat\n")->size(), 1);
}

TEST_F(ListFile, APathWithoutASuffixIsARecordOrAnError) {
  EXPECT_EQ(open("photo,3\n1.png,4\n", "t.csv")->integer_column("label"), (Labels{3, 4}));
  EXPECT_EQ(open("photo cat\nportrait dog\n")->size(), 2);
  const Error error = refusal("cats/photo,cat\ndogs/1.png,dog\n", "t.csv");
  EXPECT_EQ(error.what,
            "line 1: \"cats/photo,cat\" may be a header, or a record whose path has no suffix");
}

TEST_F(ListFile, SemicolonsSeparateInCsv) {
  const SourcePtr source = open("path;label\n0.png;cat\n\"a;b.png\";dog\n", "t.csv");
  EXPECT_EQ(keys(*source), (Names{folder / "0.png", folder / "a;b.png"}));
  EXPECT_EQ(source->classes(), (Names{"cat", "dog"}));
}

TEST_F(ListFile, Utf16IsRejectedWithAHint) {
  const std::string_view text(
      "\xFF\xFE"
      "a\0.\0p\0n\0g\0\n\0",
      14);
  for (const char* name : {"l.csv", "l.txt", "l.tsv"}) {
    const Error error = refusal(text, name);
    EXPECT_EQ(error.what, "line 1: UTF-16") << name;
    EXPECT_EQ(error.hint, "save it as UTF-8");
  }
}

TEST_F(ListFile, TheFirstLineDeterminesTheSeparator) {
  for (std::string_view text : {"my cat.jpg 1\nb,c.jpg 2\n", "my cat.jpg,1\nb,c.jpg,2\n",
                                "my cat.jpg\t1\nb,c.jpg\t2\n", "my cat.jpg, 1\nb,c.jpg , 2\n"}) {
    const SourcePtr source = open(text);
    EXPECT_EQ(keys(*source), (Names{folder / "lists/my cat.jpg", folder / "lists/b,c.jpg"}))
        << text;
    EXPECT_EQ(source->integer_column("label"), (Labels{1, 2}));
  }
}

TEST_F(ListFile, TablesMayHaveAHeaderAndQuotes) {
  const SourcePtr source = open("image,label\n\"a, b.jpg\",big cat\nc.jpg,\"dog\"\n", "table.csv");
  EXPECT_EQ(keys(*source), (Names{folder / "a, b.jpg", folder / "c.jpg"}));
  EXPECT_EQ(source->classes(), (Names{"big cat", "dog"}));
  const Error error =
      refusal("path,label,split\na.jpg,cat,train\n", "wide.csv", {{"format", std::string("list")}});
  EXPECT_NE(error.what.find("more than two columns"), std::string::npos);
}

TEST_F(ListFile, PathsAloneMakeRecordsWithoutLabels) {
  const SourcePtr source = open("a.jpg\nb c.jpg\n");
  EXPECT_EQ(source->schema().size(), 1u);
  EXPECT_EQ(source->key(1), folder / "lists/b c.jpg");
  EXPECT_EQ(open("b c.jpg\na.jpg\n")->size(), 2);
}

TEST_F(ListFile, GivenClassesDetermineTheNumbers) {
  const std::map<std::string, ParamValue> classes{{"classes", Names{"dog", "cat"}}};
  EXPECT_EQ(open("a.jpg cat\nb.jpg dog\n", "l.txt", classes)->integer_column("label"),
            (Labels{1, 0}));
  EXPECT_EQ(open("a.jpg 1\nb.jpg 0\n", "l.txt", classes)->classes(), (Names{"dog", "cat"}));
  const Error error = refusal("a.jpg cat\nb.jpg elk\nc.jpg bee\n", "l.txt", classes);
  EXPECT_EQ(error.code->id, "HR0406");
  EXPECT_NE(error.what.find("'bee' and 'elk'"), std::string::npos);
  EXPECT_EQ(refusal("a.jpg 2\n", "l.txt", classes).code->id, "HR0406");
}

TEST_F(ListFile, ErrorsNameTheLine) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"a.jpg 1\n\n# x\nb.jpg\n", "line 4: no label"},
      {"a.jpg,1\nb.jpg,\n", "line 2: no label"},
      {"a.jpg,1\n,2\n", "line 2: no path"},
      {"a.jpg 1\nb.jpg cat\n", "line 2: label \"cat\" is a name, but line 1 has \"1\""},
      {"a.jpg cat\nb.jpg 1\n", "line 2: label \"1\" is a number"},
      {"0\t3.0\ta.jpg\n1\t2.0\tb.jpg\n", "line 1: the label \"a.jpg\" looks like a file (image)"},
      {std::string(5000, '#') + "\na.jpg 1\nb" + std::string(1, '\0') + " 2\n",
       "line 3: a NUL byte"},
      {"a.jpg 1\n" + std::string(5000, 'x') + " 2\n", "line 2: a path of 5000 bytes"},
      {"# only a comment\n\n", "the list has no image"},
      {"", "the list has no image"},
  };
  for (const auto& [text, message] : cases) {
    const Error error = refusal(text);
    EXPECT_EQ(error.code->id, "HR0410") << text;
    EXPECT_EQ(error.code->kind, ErrorKind::kData);
    EXPECT_EQ(error.where.file, folder / "lists/train.txt");
    EXPECT_NE(error.what.find(message), std::string::npos) << error.what;
    EXPECT_FALSE(error.hint.empty());
  }
}

TEST_F(ListFile, BinaryFilesAndPlainTextAreNotRecognizedAsLists) {
  EXPECT_EQ(refusal(std::string("\0\1\2\3 1", 6), "a.txt").code->id, "HR0401");
  EXPECT_EQ(refusal("Hello\n", "a.txt").code->id, "HR0401");
}

// Any bytes give records, or an error with a line number; sanitizers check memory access.
TEST_F(ListFile, MutatedListsAreReadOrRejected) {
  const std::string good = "# list\nimage,label\n\"a, b.jpg\",cat\nc.jpg,\"dog\"\n\nd.jpg,ant\n";
  const std::string_view marks = std::string_view("\0\n\r\t ,\"#x.\xFF", 11);
  const std::map<std::string, ParamValue> far = {{"root", std::string("memory://none")}};
  Draws draws(1, 2, 3, 4);
  for (int i = 0; i < 3000; ++i) {
    std::string bad = good;
    if (draws.coin(0.3)) bad.resize(draws.below(int64_t(bad.size()) + 1));
    for (int64_t n = draws.below(6); n > 0 && !bad.empty(); --n) {
      const int64_t at = draws.below(int64_t(bad.size()));
      bad[at] = marks[draws.below(int64_t(marks.size()))];
    }
    try {
      const SourcePtr source = open(bad, draws.coin(0.5) ? "l.csv" : "l.txt", far);
      EXPECT_GT(source->size(), 0);
      for (int64_t r = 0; r < source->size(); ++r) EXPECT_FALSE(source->key(r).empty());
    } catch (const Exception& exception) {
      const std::string_view id = exception.error().code->id;
      // HR0437: three columns, the first without a name, are a manifest.
      EXPECT_TRUE(id == "HR0410" || id == "HR0401" || id == "HR0437") << exception.what();
    }
  }
}

TEST_F(ListFile, FingerprintDependsOnPathsLabelsAndClasses) {
  const uint64_t one = open("a.jpg cat\nb.jpg dog\n")->fingerprint();
  EXPECT_EQ(open("# c\na.jpg,cat\nb.jpg,dog", "elsewhere/list.csv")->fingerprint(), one);
  EXPECT_NE(open("a.jpg cat\nc.jpg dog\n")->fingerprint(), one);
  EXPECT_NE(open("a.jpg dog\nb.jpg cat\n")->fingerprint(), one);
  EXPECT_NE(open("b.jpg dog\na.jpg cat\n")->fingerprint(), one);
}

}  // namespace
}  // namespace headrace
