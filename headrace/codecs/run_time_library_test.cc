// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/run_time_library.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "headrace/base/library_folder.h"
#include "headrace/storage/temporary_folder.h"

namespace headrace {
namespace {

// The file of the zlib in this process; empty if it is part of another library.
std::string zlib_file() {
  Dl_info zlib{};
  const bool found = dladdr(reinterpret_cast<const void*>(&zlibVersion), &zlib) != 0;
  const std::string file = found && zlib.dli_fname ? zlib.dli_fname : "";
  return file.find("libz.") == std::string::npos ? "" : file;
}

TEST(RunTimeLibrary, OfAWheelIsFoundByAUniqueName) {
  if (zlib_file().empty()) GTEST_SKIP() << "there is no shared zlib to copy";
  const TemporaryFolder wheel;
  const std::filesystem::path file = wheel / "libheadrace-carried.so.1";
  std::filesystem::copy_file(zlib_file(), file);
  RunTimeLibrary library("libcarried.so.1", "libcarried1", wheel.path());
  ASSERT_TRUE(library.is_open());
  EXPECT_EQ(library.origin(), file.string());
  decltype(zlibVersion)* version = nullptr;
  library.find(version, "zlibVersion");
  ASSERT_NE(version, nullptr);
  EXPECT_STREQ(version(), zlibVersion());
}

TEST(RunTimeLibrary, OfAWheelIsNotReplacedByTheSystemsIfItCannotBeOpened) {
  TemporaryFolder wheel;
  for (const bool is_there : {false, true}) {
    if (is_there) wheel.write("libheadrace-c.so.6", "this is no library");
    RunTimeLibrary library("libc.so.6", "libc6", wheel.path());
    ASSERT_FALSE(library.is_open());
    EXPECT_NE(library.missing().what.find("libheadrace-c.so.6"), std::string::npos);
    EXPECT_NE(library.missing().hint.find("pip install"), std::string::npos);
    EXPECT_EQ(library.origin(), "");
  }
}

TEST(RunTimeLibrary, OfAWheelInAnUnknownFolderIsMissing) {
  const RunTimeLibrary library("libc.so.6", "libc6", std::filesystem::path());
  ASSERT_FALSE(library.is_open());
  EXPECT_NE(library.missing().what.find("unknown"), std::string::npos);
}

TEST(RunTimeLibrary, IsNotOpenedFromTheWheelsFolderOutsideAWheel) {
  ASSERT_FALSE(bundled_libraries());
  const std::filesystem::path file = library_folder() / "lib" / "libheadrace-c.so.6";
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file) << "this is no library";
  const RunTimeLibrary library("libc.so.6", "libc6");
  std::filesystem::remove(file);
  EXPECT_TRUE(library.is_open());
}

TEST(RunTimeLibrary, OfTheSystemIsFoundByItsName) {
  RunTimeLibrary library("libc.so.6", "libc6");
  EXPECT_TRUE(library.is_open());
  EXPECT_EQ(std::filesystem::path(library.origin()).filename(), "libc.so.6");
}

TEST(RunTimeLibrary, NamesItsPackageIfMissing) {
  RunTimeLibrary library("libheadrace_nowhere.so.1", "libnowhere1");
  ASSERT_FALSE(library.is_open());
  EXPECT_NE(library.missing().hint.find("apt-get install libnowhere1"), std::string::npos);
  EXPECT_NE(library.missing().what.find("libheadrace_nowhere.so.1"), std::string::npos);
}

}  // namespace
}  // namespace headrace
