// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/image/jpeg/decode/arrays.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>

#include "headrace/base/pages.h"
#include "headrace/codecs/image/jpeg/jpeg_test_images.h"
#include "jerror.h"

namespace headrace::jpeg_test {
namespace {

// A decompressor that returns libjpeg's error codes.
class Library {
 public:
  Library() {
    cinfo_.err = jpeg_std_error(&errors_.base);
    errors_.base.error_exit = [](j_common_ptr common) {
      std::longjmp(reinterpret_cast<LibraryErrors*>(common->err)->jump, 1);
    };
    jpeg_create_decompress(&cinfo_);
  }
  ~Library() { jpeg_destroy_decompress(&cinfo_); }
  j_common_ptr common() { return reinterpret_cast<j_common_ptr>(&cinfo_); }
  void allow(long bytes) { cinfo_.mem->max_memory_to_use = bytes; }
  // 0 if the call succeeds.
  template <class Call>
  [[gnu::noinline]] int error_of(const Call& call) {
    if (setjmp(errors_.jump)) return errors_.base.msg_code;
    call();
    return 0;
  }

 private:
  jpeg_decompress_struct cinfo_{};
  LibraryErrors errors_{};
};

TEST(JpegArrays, AreZeroedAlignedAndSeparate) {
  Library library;
  JpegArrays arrays;
  const jvirt_barray_ptr a = arrays.request(library.common(), 7, 5, 2);
  const jvirt_barray_ptr b = arrays.request(library.common(), 3, 4, 1);
  ASSERT_EQ(library.error_of([&] { arrays.realize(library.common()); }), 0);
  for (JDIMENSION row = 0; row + 2 <= 5; ++row) {
    const JBLOCKARRAY rows = JpegArrays::access(library.common(), a, row, 2);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(rows[0]) % 32, 0u);
    EXPECT_EQ(rows[0] + 7, rows[1]);
    for (int i = 0; i < 7 * DCTSIZE2; ++i) EXPECT_EQ((&rows[1][0][0])[i], 0);
    std::memset(rows[1], 1, 7 * sizeof(JBLOCK));
  }
  for (JDIMENSION row = 0; row < 4; ++row) {
    const JBLOCKARRAY rows = JpegArrays::access(library.common(), b, row, 1);
    for (int i = 0; i < 3 * DCTSIZE2; ++i) EXPECT_EQ((&rows[0][0][0])[i], 0);
  }
}

TEST(JpegArrays, RowsOutOfRangeRaiseALibraryError) {
  Library library;
  JpegArrays arrays;
  const jvirt_barray_ptr array = arrays.request(library.common(), 7, 5, 2);
  const auto access = [&](JDIMENSION first, JDIMENSION count) {
    return library.error_of([&] { JpegArrays::access(library.common(), array, first, count); });
  };
  EXPECT_EQ(access(0, 1), JERR_BAD_VIRTUAL_ACCESS);  // not allocated yet
  ASSERT_EQ(library.error_of([&] { arrays.realize(library.common()); }), 0);
  EXPECT_EQ(access(3, 2), 0);
  EXPECT_EQ(access(4, 2), JERR_BAD_VIRTUAL_ACCESS);
  EXPECT_EQ(access(0, 3), JERR_BAD_VIRTUAL_ACCESS);
  EXPECT_EQ(access(~0u, 2), JERR_BAD_VIRTUAL_ACCESS);
}

TEST(JpegArrays, AllocateNoMoreThanAllowed) {
  Library library;
  JpegArrays arrays;
  const size_t before = mapped_bytes();
  arrays.request(library.common(), 1000, 1000, 1);
  library.allow(1 << 20);
  EXPECT_EQ(library.error_of([&] { arrays.realize(library.common()); }), JERR_NO_BACKING_STORE);
  EXPECT_EQ(mapped_bytes(), before);
  library.allow(1000 * (1000 * long{sizeof(JBLOCK)} + long{sizeof(JBLOCKROW)}));
  EXPECT_EQ(library.error_of([&] { arrays.realize(library.common()); }), 0);
  arrays.release();
  EXPECT_EQ(mapped_bytes(), before);
}

TEST(JpegArrays, AreFreedEvenIfAnImageFails) {
  Bytes jpeg = encode({.width = 900, .height = 700, .progressive = true});
  const size_t before = mapped_bytes();
  for (const size_t length : {jpeg.size(), jpeg.size() / 2, size_t{700}, size_t{300}}) {
    Decoder decoder;
    (void)decoder.whole(Bytes(jpeg.begin(), jpeg.begin() + static_cast<ptrdiff_t>(length)));
    EXPECT_EQ(mapped_bytes(), before);
    (void)decoder.coefficients(jpeg);
    EXPECT_EQ(mapped_bytes(), before);
  }
}

}  // namespace
}  // namespace headrace::jpeg_test
