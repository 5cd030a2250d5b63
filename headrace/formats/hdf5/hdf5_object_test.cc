// SPDX-License-Identifier: Apache-2.0
// Object headers written by hand: section IV.A of the format's specification.
#include "headrace/formats/hdf5/hdf5_object.h"

#include <gtest/gtest.h>

#include "headrace/formats/hdf5/hdf5_test_structures.h"

namespace headrace::hdf5_test {
namespace hdf5_object_test {

using Type = Hdf5MessageType;

constexpr uint64_t kObject = 200, kPart = 1000, kType = 2000;

std::string old_message(Type type, const std::string& body, uint8_t flags = 0) {
  return u16(static_cast<uint16_t>(type)) + u16(body.size()) + u8(flags) + zeros(3) + body;
}
std::string young_message(Type type, const std::string& body, uint8_t flags = 0) {
  return u8(static_cast<uint8_t>(type)) + u16(body.size()) + u8(flags) + body;
}
std::string old_header(const std::string& messages) {
  return u8(1) + u8(0) + u16(1) + u32(1) + u32(messages.size()) + zeros(4) + messages;
}
// The length has two bytes; `flags` may require more before it.
std::string young_header(const std::string& messages, uint8_t flags = 0) {
  return "OHDR" + u8(2) + u8(flags | 1) + zeros((flags & 0x20 ? 16 : 0) + (flags & 0x10 ? 4 : 0)) +
         u16(messages.size()) + messages;
}
std::string continued_at(uint64_t address, uint64_t bytes) { return u64(address) + u64(bytes); }

// "type:body" of each message, or the error.
std::string messages(TestFile& made) {
  const Hdf5File file = made.open();
  std::string out;
  const std::string why = refusal([&] {
    const Hdf5Object object = Hdf5Object::read(file, kObject);
    EXPECT_EQ(object.address(), kObject);
    for (const Hdf5Message& message : object.messages()) {
      out += (out.empty() ? "" : " ") + std::to_string(static_cast<int>(message.type)) + ":" +
             text_of(message.bytes);
    }
  });
  return why.empty() ? out : why;
}
std::string messages_of(const std::string& header, bool checked = false) {
  TestFile file;
  file.put(kObject, checked ? with_checksum(header) : header);
  return messages(file);
}

TEST(Hdf5Object, messages_of_old_and_new_headers_are_read) {
  const std::string old = old_message(Type::kDatatype, "datatype") +
                          old_message(Type::kNil, zeros(8)) +
                          old_message(Type::kLayout, "layout..");
  EXPECT_EQ(messages_of(old_header(old)), "3:datatype 8:layout..");
  const std::string young =
      young_message(Type::kDatatype, "type") + young_message(Type::kLayout, "layout");
  EXPECT_EQ(messages_of(young_header(young), true), "3:type 8:layout");
  EXPECT_EQ(messages_of(young_header(young, 0x30), true), "3:type 8:layout");
  // Messages may also have a creation order number.
  EXPECT_EQ(messages_of(young_header(u8(3) + u16(4) + u8(0) + u16(0) + "type", 0x04), true),
            "3:type");
}

TEST(Hdf5Object, headers_may_be_continued_elsewhere) {
  TestFile old;
  old.put(kObject, old_header(old_message(Type::kDatatype, "datatype") +
                              old_message(Type::kContinuation, continued_at(kPart, 16))));
  old.put(kPart, old_message(Type::kLayout, "layout.."));
  EXPECT_EQ(messages(old), "3:datatype 8:layout..");
  TestFile young;
  const std::string part = "OCHK" + young_message(Type::kLayout, "layout");
  young.put_checked(kObject, young_header(young_message(Type::kContinuation,
                                                        continued_at(kPart, part.size() + 4))));
  young.put_checked(kPart, part);
  EXPECT_EQ(messages(young), "8:layout");
  young.put(kPart, "OCHX");
  EXPECT_EQ(messages(young), "HR0489: a part of an object header does not begin with OCHK");
}

TEST(Hdf5Object, continuations_are_checked) {
  const auto with = [](uint64_t address, uint64_t bytes) {
    return messages_of(old_header(old_message(Type::kContinuation, continued_at(address, bytes))));
  };
  const std::string nowhere = "HR0489: a continuation of an object header without an address";
  EXPECT_EQ(with(UINT64_MAX, 16), nowhere);
  EXPECT_EQ(messages_of(old_header(old_message(Type::kContinuation, u64(kPart)))), nowhere);
  EXPECT_EQ(
      messages_of(young_header(young_message(Type::kContinuation, continued_at(kPart, 7))), true),
      nowhere);
  EXPECT_EQ(with(kPart, uint64_t{64} << 20), "HR0489: an object header of more than 64 MiB");
  // A continuation that points to the message itself.
  EXPECT_EQ(with(kObject + 16, 24), "HR0489: an object header that refers to itself");
}

TEST(Hdf5Object, a_header_of_more_than_a_thousand_parts_is_rejected) {
  TestFile file;
  constexpr uint64_t kParts = 1025, kBytes = 24;
  file.put(kObject, old_header(old_message(Type::kContinuation, continued_at(kPart, kBytes))));
  for (uint64_t i = 0; i < kParts; ++i) {
    file.put(kPart + i * kBytes,
             old_message(Type::kContinuation, continued_at(kPart + (i + 1) * kBytes, kBytes)));
  }
  EXPECT_EQ(messages(file), "HR0489: an object header of more than 1,024 parts");
}

TEST(Hdf5Object, headers_are_checked) {
  EXPECT_EQ(messages_of(u8(3) + zeros(15)), "HR0489: an object header of version 3");
  EXPECT_EQ(messages_of("OHDR" + u8(3) + zeros(15)), "HR0489: an object header of version 3");
  EXPECT_EQ(messages_of("OHDR" + u8(2) + u8(3) + u64(uint64_t{1} << 40)),
            "HR0489: an object header longer than the file");
  EXPECT_EQ(messages_of(old_header(u16(3) + u16(9) + zeros(4) + "datatype")),
            "HR0489: a message of 9 bytes does not fit into its object header");
  EXPECT_EQ(messages_of(young_header(young_message(Type::kDatatype, "type"))),
            "HR0489: an object header of 20 bytes is not inside the file of 216 bytes");
  const std::string unknown = u16(0x19) + u16(8);
  EXPECT_EQ(messages_of(old_header(unknown + u8(0) + zeros(3) + "whatever")), "25:whatever");
  EXPECT_EQ(messages_of(old_header(unknown + u8(0x80) + zeros(3) + "whatever")),
            "HR0490: an object with a message of the unknown type 25");
}

class SharedMessage : public testing::Test {
 protected:
  SharedMessage() { file.put(kType, old_header(old_message(Type::kDatatype, "the type"))); }
  // An object with a shared type.
  std::string shared(const std::string& where) {
    file.put(kObject, old_header(old_message(Type::kDatatype, where, 2)));
    return messages(file);
  }
  TestFile file;
};

TEST_F(SharedMessage, is_stored_in_another_object) {
  EXPECT_EQ(shared(u8(1) + u8(0) + zeros(6) + u64(kType)), "3:the type");
  EXPECT_EQ(shared(u8(2) + u8(0) + u64(kType)), "3:the type");
  EXPECT_EQ(shared(u8(3) + u8(2) + u64(kType)), "3:the type");
  // Messages that no dataset needs are not fetched.
  file.put(kObject, old_header(old_message(Type::kLink, "a link..", 2)));
  EXPECT_EQ(messages(file), "6:a link..");
}

// 40,000 messages stored in one object of 60 KB once took 2.4 GB.
TEST_F(SharedMessage, is_read_once_per_object) {
  const std::string large = old_message(Type::kDatatype, zeros(60'000));
  file.put(kType, old_header(large));
  const std::string one = old_message(Type::kDatatype, u8(3) + u8(2) + u64(kType) + zeros(6), 2);
  std::string many;
  constexpr int kCount = 40'000;
  for (int i = 0; i < kCount; ++i) many += one;
  const uint64_t at = kType + (uint64_t{1} << 17);
  file.put(at, old_header(many));
  Hdf5File opened = file.open();
  OpenBudget budget("file.h5", 0);
  opened.charge_to(&budget);
  const Hdf5Object object = Hdf5Object::read(opened, at);
  EXPECT_EQ(object.messages().size(), size_t{kCount});
  EXPECT_EQ(object.messages().back().bytes.size(), 60'000u);
  EXPECT_EQ(object.messages().front().bytes.data(), object.messages().back().bytes.data());
  EXPECT_TRUE(budget.affords(OpenBudget::kBytes - many.size() - large.size() - 1000));
}

TEST_F(SharedMessage, is_rejected_if_missing) {
  EXPECT_EQ(shared(u8(4) + u8(0) + u64(kType)), "HR0489: a shared message of an unknown version");
  EXPECT_EQ(shared(u8(3) + u8(1) + u64(kType)), "HR0490: messages in a table that objects share");
  const std::string nowhere = "HR0489: a shared message without an address";
  EXPECT_EQ(shared(u8(3) + u8(2) + u64(UINT64_MAX)), nowhere);
  EXPECT_EQ(shared(u8(3) + u8(2) + u64(kObject)), nowhere);
  EXPECT_EQ(shared(u8(3) + u8(2) + u32(kType)), nowhere);
  const std::string elsewhere = "HR0489: a shared message that is not at its address";
  file.put(kType, old_header(old_message(Type::kDataspace, "a space.")));
  EXPECT_EQ(shared(u8(3) + u8(2) + u64(kType)), elsewhere);
  file.put(kType, old_header(old_message(Type::kDatatype, u8(3) + u8(2) + u64(kObject), 2)));
  EXPECT_EQ(shared(u8(3) + u8(2) + u64(kType)), elsewhere);
}

}  // namespace hdf5_object_test
}  // namespace headrace::hdf5_test
