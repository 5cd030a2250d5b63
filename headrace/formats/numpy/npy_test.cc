// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <numeric>

#include "headrace/formats/arrays/array_test_files.h"
#include "headrace/formats/format.h"
#include "headrace/formats/numpy/npy_array.h"
#include "headrace/storage/temporary_folder.h"

namespace headrace {
namespace {

class Npy : public testing::Test {
 protected:
  SourcePtr open(const std::string& content,
                 const std::map<std::string, ParamValue>& arguments = {}) {
    return open_source(folder_.write("a.npy", content), arguments);
  }
  Error refused(const std::string& content) {
    return error_of([&] { open(content); });
  }
  TemporaryFolder folder_;
};

TEST_F(Npy, ImagesAreAnImageField) {
  const SourcePtr source = open(npy_of("|u1", "(5, 10, 10)", counting(250) + counting(250)));
  ASSERT_EQ(source->schema().size(), 1u);
  EXPECT_EQ(source->schema()[0].name, "image");
  EXPECT_EQ(source->schema()[0].kind, FieldKind::kImage);
  EXPECT_EQ(source->schema()[0].shape, (Shape{1, 10, 10}));
  EXPECT_EQ(source->size(), 5);
  EXPECT_EQ(source->read_style(), ReadStyle::kFiles);
  EXPECT_EQ(bytes_of(*source, 2)[0], 200);
  EXPECT_EQ(source->description(), "npy " + (folder_ / "a.npy") + " (5 records)");
}

TEST_F(Npy, ChannelsLastIsConvertedToChannelsFirst) {
  const std::string content = npy_of("|u1", "(2, 5, 4, 3)", counting(120));
  const SourcePtr source = open(content);
  EXPECT_EQ(source->schema()[0].shape, (Shape{3, 5, 4}));
  EXPECT_EQ(bytes_of(*source, 1)[0], 60);
  EXPECT_EQ(bytes_of(*source, 1)[1], 63);
  EXPECT_EQ(bytes_of(*source, 1)[20], 61);
  EXPECT_EQ(open(npy_of("|u1", "(2, 3, 5, 4)", counting(120)))->schema()[0].shape,
            (Shape{3, 5, 4}));
  EXPECT_EQ(open(npy_of("|u1", "(2, 3, 5, 4)", counting(120)), {{"channels", std::string("last")}})
                ->schema()[0]
                .shape,
            (Shape{4, 3, 5}));
  // Five channels are not a picture.
  EXPECT_EQ(open(npy_of("|u1", "(2, 5, 6, 2)", counting(120)), {{"channels", std::string("first")}})
                ->schema()[0]
                .name,
            "data");
}

TEST_F(Npy, OtherArraysAreData) {
  const SourcePtr source = open(npy_of("<f4", "(3, 2)", counting(24)));
  EXPECT_EQ(source->schema()[0].name, "data");
  EXPECT_EQ(source->schema()[0].dtype, DType::kFloat32);
  EXPECT_EQ(source->schema()[0].shape, (Shape{2}));
  EXPECT_EQ(bytes_of(*source, 1), (Bytes{8, 9, 10, 11, 12, 13, 14, 15}));
  EXPECT_EQ(open(npy_of("<f2", "(3, 2)", counting(12)))->schema()[0].dtype, DType::kFloat16);
  EXPECT_EQ(open(npy_of("|b1", "(3, 2)", counting(6)))->schema()[0].dtype, DType::kBool);
}

TEST_F(Npy, TheFieldIsNamedByTheFileOrTheCaller) {
  EXPECT_EQ(open(npy_of("<i4", "(2,)", counting(8)), {{"field", std::string("label")}})
                ->integer_column("label"),
            (std::vector<int64_t>{0x03020100, 0x07060504}));
  const SourcePtr labels = open_source(folder_.write("y.npy", npy_of(">i2", "(2,)", counting(4))));
  EXPECT_EQ(labels->integer_column("label"), (std::vector<int64_t>{0x0001, 0x0203}));
}

TEST_F(Npy, EveryVersionOfTheHeaderIsRead) {
  const std::string dictionary = "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 2), }";
  for (const int major : {1, 2, 3}) {
    EXPECT_EQ(bytes_of(*open(npy(dictionary, counting(8), major)), 1), (Bytes{4, 5, 6, 7}));
  }
  // As written by Python 2, in a different order, and by other programs.
  for (const char* text : {"{'descr': '<i2', 'fortran_order': False, 'shape': (2L, 2L), }",
                           "{\"shape\":(2,2),\"fortran_order\":False,\"descr\":\"<i2\"}",
                           "{'shape': (2, 2), 'descr': '=i2', 'fortran_order': False}"}) {
    EXPECT_EQ(bytes_of(*open(npy(text, counting(8))), 1), (Bytes{4, 5, 6, 7})) << text;
  }
}

TEST_F(Npy, FortranOrderIsConvertedToCOrder) {
  // [[0, 2, 4], [1, 3, 5]] in memory order 0 1 2 3 4 5.
  EXPECT_EQ(bytes_of(*open(npy_of("|i1", "(2, 3)", counting(6), "True")), 1), (Bytes{1, 3, 5}));
  EXPECT_EQ(bytes_of(*open(npy_of("<i2", "(2, 1, 2)", counting(8), "True")), 1),
            (Bytes{2, 3, 6, 7}));
  EXPECT_EQ(bytes_of(*open(npy_of(">i2", "(2, 2)", counting(8), "True")), 0), (Bytes{1, 0, 5, 4}));
  EXPECT_EQ(bytes_of(*open(npy_of("|i1", "(3,)", counting(3), "True")), 2), (Bytes{2}));
  // 100 x 3 x 2: more than one block of records; element (i, j, k) is i + 100 j + 300 k.
  std::string data(600, 0);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<char>(i % 251);
  const SourcePtr source = open(npy_of("|i1", "(100, 3, 2)", data, "True"));
  for (const int64_t i : {0, 63, 64, 99}) {
    Bytes wanted;
    for (int64_t j = 0; j < 3; ++j) {
      for (int64_t k = 0; k < 2; ++k) wanted.push_back(uint8_t((i + 100 * j + 300 * k) % 251));
    }
    EXPECT_EQ(bytes_of(*source, i), wanted) << i;
  }
}

TEST_F(Npy, MembersOfAStructureAreFields) {
  const std::string content =
      npy("{'descr': [('label', '|u1'), ('', '|V1'), ('box', '>i2', (2,)), ('name', '<U2'), (('a "
          "title', 'p'), '<f4')], 'fortran_order': False, 'shape': (2,), }",
          std::string("\x07_\0\1\0\2\xe9\0\0\0\0\0\0\0abcd"
                      "\x08_\0\3\0\4x\0\0\0\x03\xf6\1\0efgh",
                      36));
  const SourcePtr source = open(content);
  ASSERT_EQ(source->schema().size(), 4u);
  EXPECT_EQ(source->integer_column("label"), (std::vector<int64_t>{7, 8}));
  EXPECT_EQ(source->schema()[1].name, "box");
  EXPECT_EQ(bytes_of(*source, 1, 1), (Bytes{3, 0, 4, 0}));
  EXPECT_EQ(source->schema()[2].kind, FieldKind::kText);
  EXPECT_EQ(bytes_of(*source, 0, 2), (Bytes{0xc3, 0xa9}));                   // e with an accent
  EXPECT_EQ(bytes_of(*source, 1, 2), (Bytes{'x', 0xf0, 0x9f, 0x98, 0x83}));  // and a smiling face
  EXPECT_EQ(bytes_of(*source, 1, 3), (Bytes{'e', 'f', 'g', 'h'}));
  const SourcePtr some = open(content, {{"fields", std::vector<std::string>{"b=box", "label"}}});
  ASSERT_EQ(some->schema().size(), 2u);
  EXPECT_EQ(some->schema()[0].name, "b");
  EXPECT_EQ(some->schema()[1].kind, FieldKind::kLabel);
}

TEST_F(Npy, StringsAreTextAndNamesOfClasses) {
  const SourcePtr source = open(npy_of("|S3", "(3,)", std::string("catanta\0\0", 9)));
  EXPECT_EQ(source->schema()[0].name, "text");
  EXPECT_EQ(bytes_of(*source, 2), (Bytes{'a'}));
  const SourcePtr labels =
      open_source(folder_.write("labels.npy", npy_of("|S3", "(3,)", std::string("catantcat", 9))));
  EXPECT_EQ(labels->classes(), (std::vector<std::string>{"ant", "cat"}));
}

TEST_F(Npy, UnsupportedDtypesAreRejectedWithAHint) {
  const Error objects = refused(npy_of("|O", "(2,)", "\x80\x04pickled"));
  EXPECT_EQ(objects.code->id, "HR0425");
  EXPECT_EQ(objects.code->kind, ErrorKind::kUnsupported);
  EXPECT_NE(objects.what.find("Python objects"), std::string::npos);
  EXPECT_NE(objects.hint.find("allow_pickle=False"), std::string::npos);
  EXPECT_EQ(objects.where.file, folder_ / "a.npy");
  EXPECT_NE(refused(npy_of("<c8", "(2,)", counting(16))).what.find("complex"), std::string::npos);
  EXPECT_NE(refused(npy_of("<M8[ns]", "(2,)", counting(16))).what.find("dates"), std::string::npos);
  EXPECT_NE(refused(npy_of("|V2", "(2,)", counting(4))).hint.find("safetensors"),
            std::string::npos);
  EXPECT_EQ(refused(npy_of("<f16", "(2,)", counting(32))).code->id, "HR0425");
  EXPECT_EQ(refused(npy_of("<i4", "()", counting(4))).code->id, "HR0425");
  EXPECT_EQ(refused(npy_of("|S0", "(1000000000000,)", "")).code->id, "HR0425");
  EXPECT_EQ(refused(npy("{'descr': [('a', [('b', '<i4')])], 'fortran_order': False, 'shape': (1,)}",
                        counting(4)))
                .code->id,
            "HR0425");
  EXPECT_EQ(refused(npy_of("|u1", "(1000000000000, 0)", "")).code->id, "HR0420");
}

TEST_F(Npy, DamageIsNamed) {
  const auto has = [&](const std::string& content, const std::string& part) {
    const Error error = refused(content);
    EXPECT_EQ(error.code->id, "HR0424") << part;
    EXPECT_NE(error.what.find(part), std::string::npos) << error.what;
  };
  has(npy_of("<i4", "(3, 2)", counting(23)), "its shape (3, 2) takes 24 bytes, but 23 follow");
  has(npy_of("<i4", "(-3,)", ""), "its shape (-3,) takes more");
  has(npy_of("<i8", "(9223372036854775807, 9223372036854775807)", ""), "takes more");
  has(npy_of("<i8", "(0, 9223372036854775807, 4)", ""), "takes more");
  has(npy_of("<i8", "(99999999999999999999,)", ""), "not a dictionary");
  has(npy_of("nonsense", "(1,)", ""), "not a NumPy type");
  has(npy_of("<i4x", "(1,)", "1234"), "not a NumPy type");
  has(npy_of("", "(1,)", ""), "not a NumPy type");
  has(npy_of("<i4", "(1,)", "1234", "Maybe"), "not a dictionary");
  has(npy_of("<i4", "[1]", "1234"), "not a dictionary");
  has(npy_of("<i4", "(1,), 'shape': (2,)", counting(8)), "key 'shape' twice");
  has(npy_of("<i4", "(1,), 'run': 'x'", "1234"), "key 'run' in its header");
  has(npy("{'descr': '<i4', 'shape': (1,)}", "1234"), "lacks one of");
  has(npy("{'descr': '<i4', 'shape': (1,)", "1234"), "not a dictionary");
  has(npy("__import__('os').system('true')", "1234"), "not a dictionary");
  has(npy("{'descr': [], 'fortran_order': False, 'shape': (1,)}", ""), "structured type");
  has("\x93NUMPY\x04" + counting(10), "version 4.0");
  has(std::string("\x93NUMPY\x01\x00\xff\xff", 10), "a header of 65535 bytes in a file of 10");
  has(std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff", 12), "a header of 4294967295 bytes");
  has("\x93NUMPY", "version 0.0");
}

TEST_F(Npy, SeveralFilesAreOneSource) {
  folder_.write("x-0.npy", npy_of("<f4", "(2, 3)", counting(24)));
  folder_.write("x-1.npy", npy_of("<f4", "(1, 3)", counting(12)));
  const SourcePtr source = open_source(folder_ / "x-*.npy");
  EXPECT_EQ(source->size(), 3);
  EXPECT_EQ(bytes_of(*source, 2)[0], 0);
  EXPECT_EQ(bytes_of(*source, 1)[0], 12);
  folder_.write("x-2.npy", npy_of("<f4", "(1, 4)", counting(16)));
  const Error error = error_of([&] { open_source(folder_ / "x-*.npy"); });
  EXPECT_EQ(error.code->id, "HR0424");
  EXPECT_EQ(error.where.file, folder_ / "x-2.npy");
}

TEST_F(Npy, AFolderMayContainFields) {
  folder_.write("d/images.npy", npy_of("|u1", "(3, 9, 10, 3)", std::string(810, 'x')));
  folder_.write("d/labels.npy", npy_of("<i8", "(3,)", std::string(24, '\0')));
  folder_.write("d/bounding-box.npy", npy_of("<f4", "(3, 4)", counting(48)));
  folder_.write("d/notes.txt", "");
  for (const std::string& path : {folder_ / "d", folder_ / "d/"}) {
    const SourcePtr source = open_source(path);
    ASSERT_EQ(source->schema().size(), 3u);
    EXPECT_EQ(source->schema()[0].name, "bounding_box");
    EXPECT_EQ(source->schema()[1].name, "image");
    EXPECT_EQ(source->schema()[1].shape, (Shape{3, 9, 10}));
    EXPECT_EQ(source->schema()[2].name, "label");
    EXPECT_EQ(source->schema()[2].kind, FieldKind::kLabel);
    EXPECT_EQ(source->description(), "npy " + (folder_ / "d") + " (3 records)");
  }
  folder_.write("d/labels.npy", npy_of("<i8", "(2,)", std::string(16, '\0')));
  const Error error =
      error_of([&] { open_source(folder_ / "d", {{"each_file", std::string("field")}}); });
  EXPECT_EQ(error.code->id, "HR0420");
  EXPECT_NE(error.what.find("'labels': it has 2 records, but 'bounding-box' has 3"),
            std::string::npos)
      << error.what;
}

TEST_F(Npy, AFolderMayContainRecords) {
  folder_.write("d/b.npy", npy_of("|u1", "(5, 7, 3)", counting(105)));
  folder_.write("d/a.npy", npy_of("|u1", "(6, 8, 3)", counting(144), "True"));
  const SourcePtr source = open_source(folder_ / "d");
  EXPECT_EQ(source->size(), 2);
  EXPECT_EQ(source->schema()[0].kind, FieldKind::kImage);
  EXPECT_EQ(source->schema()[0].shape, (Shape{3, -1, -1}));
  EXPECT_EQ(source->key(0), folder_ / "d/a.npy");
  EXPECT_EQ(source->root(), folder_ / "d/");
  const RecordData a = read_record(*source, 0), b = read_record(*source, 1);
  EXPECT_EQ(a.fields[0].shape, (Shape{3, 6, 8}));
  EXPECT_EQ(a.fields[0].bytes[0], 0);
  EXPECT_EQ(a.fields[0].bytes[1], 6);    // (0, 1, 0) in Fortran order
  EXPECT_EQ(a.fields[0].bytes[8], 1);    // (1, 0, 0)
  EXPECT_EQ(a.fields[0].bytes[48], 48);  // (0, 0, 1)
  EXPECT_EQ(b.fields[0].bytes[1], 3);
  EXPECT_EQ(b.fields[0].bytes[35], 1);
  EXPECT_NE(source->description().find("one record per file (2 records)"), std::string::npos);
}

TEST_F(Npy, ClassFoldersGiveLabels) {
  folder_.write("d/dog/1.npy", npy_of("<f4", "(2,)", counting(8)));
  folder_.write("d/cat/1.npy", npy_of(">f4", "(3,)", counting(12)));
  folder_.write("d/cat/2.npy", npy_of("<f4", "(2,)", counting(8)));
  const SourcePtr source = open_source(folder_ / "d");
  EXPECT_EQ(source->classes(), (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(source->integer_column("label"), (std::vector<int64_t>{0, 0, 1}));
  EXPECT_EQ(source->schema()[0].shape, (Shape{-1}));
  EXPECT_EQ(bytes_of(*source, 0), (Bytes{3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8}));
  EXPECT_EQ(read_record(*source, 2).fields[1].scalar, 1);
  const Error error =
      error_of([&] { open_source(folder_ / "d", {{"classes", std::vector<std::string>{"cat"}}}); });
  EXPECT_EQ(error.code->id, "HR0406");
}

TEST_F(Npy, AFileThatChangesBecomesABadRecord) {
  folder_.write("d/1.npy", npy_of("<f4", "(2,)", counting(8)));
  folder_.write("d/2.npy", npy_of("<f4", "(2,)", counting(8)));
  folder_.write("d/3.npy", npy_of("<f4", "(2,)", counting(8)));
  const SourcePtr source = open_source(folder_ / "d");
  folder_.write("d/1.npy", npy_of("<f8", "(2,)", counting(16)));
  folder_.write("d/2.npy", npy_of("<f4", "(2,)", counting(7)));
  const RecordData other = read_record(*source, 0), cut = read_record(*source, 1);
  ASSERT_FALSE(other.result);
  EXPECT_EQ(other.result.error().what,
            "it contains float64 (2,), but the first files float32 (2,)");
  EXPECT_EQ(other.result.error().where.record, 0);
  EXPECT_EQ(cut.result.error().code->id, "HR0424");
  EXPECT_EQ(bytes_of(*source, 2).size(), 8u);
}

TEST_F(Npy, AnyChangedBitOrLengthIsHarmless) {
  const std::string sound =
      npy("{'descr': [('label', '|u1'), ('box', '>i2', (2,)), ('name', '<U2')], 'fortran_order': "
          "True, 'shape': (20,), }",
          std::string(260, 'x'));
  for_each_damage(sound, 200, [&](const std::string& content) {
    use_damaged(folder_.write("a.npy", content), "npy");
  });
}

}  // namespace
}  // namespace headrace
