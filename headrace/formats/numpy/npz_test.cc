// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "headrace/formats/arrays/array_test_files.h"
#include "headrace/formats/arrays/zip_directory.h"
#include "headrace/formats/format.h"
#include "headrace/storage/temporary_folder.h"

namespace headrace {
namespace {

const std::string kPictures = npy_of("|u1", "(3, 10, 10)", counting(150) + counting(150));
const std::string kLabels = npy_of("<i4", "(3,)", std::string("\7\0\0\0\5\0\0\0\6\0\0\0", 12));

class Npz : public testing::Test {
 protected:
  SourcePtr open(const std::string& content,
                 const std::map<std::string, ParamValue>& arguments = {}) {
    return open_source(folder_.write("a.npz", content), arguments);
  }
  Error refused(const std::string& content) {
    return error_of([&] { open(content); });
  }
  TemporaryFolder folder_;
};

TEST_F(Npz, ArraysAreFieldsInPlaceOrDecompressed) {
  for (const bool deflate : {false, true}) {
    for (const bool zip64 : {false, true}) {
      ZipWriter zip{.zip64 = zip64};
      zip.add("x.npy", kPictures, deflate);
      zip.add("labels.npy", kLabels, deflate);
      zip.add("readme.txt", "no array");
      const SourcePtr source = open(zip.finish("a comment"));
      ASSERT_EQ(source->schema().size(), 2u);
      EXPECT_EQ(source->read_style(), deflate ? ReadStyle::kMemory : ReadStyle::kFiles);
      EXPECT_EQ(source->schema()[0].name, "image");
      EXPECT_EQ(source->schema()[0].kind, FieldKind::kImage);
      EXPECT_EQ(bytes_of(*source, 2)[0], 50);
      EXPECT_EQ(source->integer_column("label"), (std::vector<int64_t>{7, 5, 6}));
    }
  }
}

TEST_F(Npz, FieldsAreChosenAndRenamed) {
  ZipWriter zip;
  zip.add("x_train.npy", kPictures);
  zip.add("y_train.npy", kLabels);
  zip.add("y_test.npy", npy_of("<i4", "(1,)", "1234"));
  const Error lengths = refused(zip.finish());
  EXPECT_EQ(lengths.code->id, "HR0420");
  EXPECT_NE(lengths.what.find("'y_test': it has 1 record, but 'x_train' has 3"), std::string::npos);
  const SourcePtr source =
      open(zip.finish(), {{"fields", std::vector<std::string>{"image=x_train", "label=y_train"}}});
  EXPECT_EQ(source->schema()[0].kind, FieldKind::kImage);
  EXPECT_EQ(source->schema()[1].kind, FieldKind::kLabel);
  const Error unknown = error_of(
      [&] { open(zip.finish(), {{"fields", std::vector<std::string>{"image=x_trian"}}}); });
  EXPECT_EQ(unknown.hint, "did you mean \"x_train\"?");
}

TEST_F(Npz, ErrorsNameTheMember) {
  ZipWriter objects;
  objects.add("y.npy", npy_of("|O", "(2,)", "\x80\x04pickled"), true);
  const Error error = refused(objects.finish());
  EXPECT_EQ(error.code->id, "HR0425");
  EXPECT_EQ(error.where.member, "y.npy");
  ZipWriter none;
  none.add("a.txt", "");
  EXPECT_EQ(refused(none.finish()).code->id, "HR0425");
}

TEST_F(Npz, HostileArchivesAreRejected) {
  const auto message = [&](const ZipWriter& zip) {
    const Error error = refused(zip.finish());
    EXPECT_EQ(error.code->id, "HR0426") << error.message();
    return error.where.member + ": " + error.what;
  };
  ZipWriter twice;
  twice.add("x.npy", kLabels);
  twice.add("x.npy", kLabels);
  EXPECT_EQ(message(twice), "x.npy: two members have this name");
  ZipWriter locked;
  locked.add("x.npy", kLabels, false, 1);
  EXPECT_EQ(message(locked), "x.npy: the member is encrypted");
  ZipWriter packed;
  packed.add("x.npy", kLabels, false, 0, 14);
  EXPECT_EQ(message(packed), "x.npy: the member is compressed with method 14");
  ZipWriter overlap;  // two directory entries for one member: makes a small file expand a lot
  overlap.add("x.npy", kLabels);
  std::string copy = overlap.directory;
  copy.replace(copy.find("x.npy"), 5, "y.npy");
  overlap.directory += copy;
  ++overlap.members;
  EXPECT_EQ(message(overlap), "y.npy: it overlaps 'x.npy'");
  ZipWriter sound;
  sound.add("x.npy", kLabels, true);
  std::string changed = sound.finish();
  changed[changed.find(sound.directory) + 16] ^= 1;
  EXPECT_EQ(refused(changed).what, "its checksum is wrong");
  // A member of 4 GiB in 20 bytes.
  std::string bomb = sound.finish();
  bomb.replace(bomb.find(sound.directory) + 24, 4, "\xff\xff\xff\x7f");
  EXPECT_EQ(refused(bomb).what,
            "it unpacks to 2147483647 bytes, but its header describes an array of 12");
}

// The checksum is wrong, which would be noticed once a member is unpacked.
TEST_F(Npz, MembersThatAreNotAsTheirHeaderSaysAreRefusedBeforeTheyAreUnpacked) {
  const auto message = [&](const std::string& content) {
    ZipWriter zip;
    zip.add("x.npy", content, true);
    std::string archive = zip.finish();
    archive[archive.find(zip.directory) + 16] ^= 1;
    const Error error = refused(archive);
    EXPECT_EQ(error.code->id, "HR0424") << error.message();
    EXPECT_EQ(error.where.member, "x.npy");
    return error.what;
  };
  const std::string bomb(size_t{8} << 20, '\0');
  const std::string more = npy_of("|u1", "(3,)", "abc" + bomb);
  EXPECT_EQ(message(more), "it unpacks to " + std::to_string(more.size()) +
                               " bytes, but its header describes an array of 3");
  const std::string terabytes = npy_of("<f8", "(1099511627776,)", bomb);
  EXPECT_NE(message(terabytes).find("8796093022208"), std::string::npos) << message(terabytes);
  EXPECT_NE(message(npy_of("<f8", "(4611686018427387904, 8)", bomb)).find("follow"),
            std::string::npos);
  EXPECT_FALSE(message("no array" + bomb).empty());
}

TEST_F(Npz, AFewBytesAfterAnArrayAreIgnoredAsByNumPy) {
  ZipWriter zip;
  zip.add("x.npy", npy_of("|u1", "(3,)", "abc and more"), true);
  EXPECT_EQ(open(zip.finish())->size(), 3);
}

TEST_F(Npz, AnyChangedBitOrLengthIsHarmless) {
  for (const bool zip64 : {false, true}) {
    ZipWriter zip{.zip64 = zip64};
    zip.add("x.npy", npy_of("<i2", "(3, 2)", counting(12)), true);
    zip.add("labels.npy", kLabels);
    const std::string sound = zip.finish();
    const auto use = [&](const std::string& content) {
      use_damaged(folder_.write("a.npz", content), "npz");
    };
    for_each_damage(sound, 0, use);
    for (size_t bit = 0; bit < (sound.size() - zip.out.size()) * 8; ++bit) {
      std::string changed = sound;
      const size_t at = zip.out.size() + bit / 8;
      changed[at] = static_cast<char>(changed[at] ^ (1 << bit % 8));
      use(changed);
    }
  }
}

}  // namespace
}  // namespace headrace
