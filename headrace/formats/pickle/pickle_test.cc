// SPDX-License-Identifier: Apache-2.0
// Beginnings of files written by Python's pickle, torch.save and joblib.
#include <gtest/gtest.h>

#include "headrace/formats/arrays/array_test_files.h"
#include "headrace/formats/format.h"
#include "headrace/storage/temporary_folder.h"

namespace headrace {
namespace {

Error refused(const std::string& path) {
  return error_of([&] { open_source(path); });
}

TEST(Pickle, PicklesAreRejectedWithAHint) {
  TemporaryFolder folder;
  const std::string dictionary("\x80\x04\x95\x1a\0\0\0\0\0\0\0}\x94.", 15);
  const Error plain = refused(folder.write("data.bin", dictionary));
  EXPECT_EQ(plain.code->id, "HR0429");
  EXPECT_EQ(plain.code->kind, ErrorKind::kUnsupported);
  EXPECT_EQ(plain.what, "this is a pickle, and loading it could run arbitrary code");
  EXPECT_NE(plain.hint.find("np.savez"), std::string::npos);
  EXPECT_EQ(refused(folder.write("a.pkl", "(dp0\n.")).code->id, "HR0429");  // protocol 0
  EXPECT_EQ(refused(folder.write("a.pkl.gz", gzipped(dictionary))).code->id, "HR0429");
  EXPECT_EQ(refused(folder.write("b.bin", "\x80\x03}q.")).code->id, "HR0429");
  EXPECT_NE(refused(folder.write("m.joblib", "x")).hint.find("joblib"), std::string::npos);
}

TEST(Pickle, OldTorchFilesAreRecognizedByContent) {
  TemporaryFolder folder;
  const std::string old("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", 15);
  const Error error = refused(folder.write("old", old));
  EXPECT_EQ(error.code->id, "HR0429");
  EXPECT_NE(error.hint.find("weights_only=True"), std::string::npos);
  EXPECT_EQ(refused(folder.write("x.pth", "")).hint, error.hint);
}

TEST(Pickle, PythonCifarIsRecognized) {
  TemporaryFolder folder;
  const std::string batch("\x80\x02}q\x01(U\x04.", 9);
  folder.write("cifar-10-batches-py/batches.meta", batch);
  folder.write("cifar-10-batches-py/data_batch_1", batch);
  const Error error = refused(folder / "cifar-10-batches-py");
  EXPECT_EQ(error.code->id, "HR0429");
  EXPECT_NE(error.hint.find("binary version"), std::string::npos);
  EXPECT_EQ(refused(folder / "cifar-10-batches-py/data_batch_1").hint, error.hint);
}

TEST(Pickle, OtherFilesAreNotPickles) {
  TemporaryFolder folder;
  // A TFRecord of 640 bytes begins with the length.
  const std::string frame("\x80\x02\0\0\0\0\0\0....", 12);
  EXPECT_EQ(refused(folder.write("records", frame)).code->id, "HR0401");
}

}  // namespace
}  // namespace headrace
