// SPDX-License-Identifier: Apache-2.0
// Pickles written by hand, opcode by opcode, as torch.save writes them; whole files of torch.save
// are read in tests/test_torch_files.py.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "headrace/formats/arrays/array_test_files.h"
#include "headrace/formats/format.h"
#include "headrace/formats/torch_file/torch_pickle.h"
#include "headrace/storage/temporary_folder.h"

namespace headrace {
namespace {

std::string text_op(const std::string& text) {
  return "\x8c" + std::string(1, char(text.size())) + text;
}

// A float32 tensor: sizes and strides are opcodes.
std::string tensor_op(const std::string& sizes, const std::string& strides, char offset = 0) {
  return "ctorch._utils\n_rebuild_tensor_v2\n((" + text_op("storage") + "ctorch\nFloatStorage\n" +
         text_op("0") + text_op("cpu") + "K\x08tQK" + std::string(1, offset) + sizes + strides +
         "\x89NtR";
}

const std::string kProtocolTwo = "\x80\x02";
const std::string kTwoByThree = "K\x02K\x03\x86", kDense = "K\x03K\x01\x86";

std::string dictionary_of(const std::string& values) { return kProtocolTwo + "}(" + values + "u."; }

Result<TorchContents> read_of(const std::string& pickle) {
  return read_torch_pickle({reinterpret_cast<const uint8_t*>(pickle.data()), pickle.size()},
                           "a.pt");
}

TEST(TorchPickle, ADictionaryOfTensorsIsRead) {
  const Result<TorchContents> read = read_of(
      dictionary_of(text_op("x") + tensor_op(kTwoByThree, kDense, 2) + text_op("n") + "K\x05"));
  ASSERT_TRUE(read) << read.error().what;
  ASSERT_EQ(read->tensors.size(), 1u);
  EXPECT_EQ(read->tensors[0].name, "x");
  EXPECT_EQ(read->tensors[0].storage, "0");
  EXPECT_EQ(read->tensors[0].offset, 2);
  EXPECT_EQ(read->tensors[0].sizes, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(read->tensors[0].strides, (std::vector<int64_t>{3, 1}));
  EXPECT_EQ(read->others, (std::vector<std::string>{"n"}));
}

TEST(TorchPickle, AnyOtherNameIsRejectedImmediately) {
  for (const char* name : {"cos\nsystem\n", "cbuiltins\neval\n", "ctorch\nload\n", "c\n\n"}) {
    const Result<TorchContents> read = read_of(kProtocolTwo + name + text_op("true") + "\x85R.");
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code->id, "HR1404");
  }
  const std::string by_stack = kProtocolTwo + text_op("posix") + text_op("system") + "\x93.";
  EXPECT_EQ(read_of(by_stack).error().code->id, "HR1404");
  EXPECT_NE(read_of(by_stack).error().what.find("posix.system"), std::string::npos);
}

// A 1,000-byte name that is memoized once and used a million times must not be copied each time.
TEST(TorchPickle, RepeatedReferencesStayShort) {
  std::string pickle = kProtocolTwo + "X" + std::string("\xff\xff\x00\x00", 4) +
                       std::string(0xffff, 'n') + "q\x01" + "0}(";
  for (int i = 0; i < 1000; ++i) pickle += "h\x01N";
  EXPECT_FALSE(read_of(pickle + "u."));
  std::string sizes = "(";
  for (int i = 0; i < 65; ++i) sizes += "K\x01";
  sizes += "t";
  EXPECT_FALSE(read_of(dictionary_of(text_op("x") + tensor_op(sizes, sizes))));
}

TEST(TorchFile, ReadsStoragesInPlace) {
  TemporaryFolder folder;
  ZipWriter archive;
  archive.add("a/data.pkl", dictionary_of(text_op("x") + tensor_op(kTwoByThree, kDense, 1)));
  std::string storage;
  for (float value = 0; value < 8; ++value) {
    storage.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  archive.add("a/data/0", storage);
  const SourcePtr source = open_source(folder.write("a.pt", archive.finish()));
  ASSERT_EQ(source->size(), 2);
  RecordData record;
  const int64_t second = 1;
  source->read({&second, 1}, {true}, {&record, 1});
  ASSERT_TRUE(record.result);
  ASSERT_EQ(record.fields[0].bytes.size(), 3 * sizeof(float));
  EXPECT_EQ(std::memcmp(record.fields[0].bytes.data(), storage.data() + 4 * sizeof(float), 12), 0);
}

TEST(TorchFile, ATensorBeyondItsStorageIsAnError) {
  TemporaryFolder folder;
  ZipWriter archive;
  archive.add("a/data.pkl", dictionary_of(text_op("x") + tensor_op(kTwoByThree, kDense, 3)));
  archive.add("a/data/0", std::string(32, '\0'));
  const std::string path = folder.write("a.pt", archive.finish());
  EXPECT_EQ(error_of([&] { open_source(path); }).code->id, "HR0424");
}

}  // namespace
}  // namespace headrace
