// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/run_time_library.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>
#include <string>

#include "headrace/base/own_folder.h"

namespace headrace {
namespace {

// The file of the zlib in this process; empty where it is part of something else.
std::string zlib_file() {
  Dl_info zlib{};
  const bool found = dladdr(reinterpret_cast<const void*>(&zlibVersion), &zlib) != 0;
  const std::string file = found && zlib.dli_fname ? zlib.dli_fname : "";
  return file.find("libz.") == std::string::npos ? "" : file;
}

TEST(RunTimeLibrary, InTheFolderBesideTheEngineIsFoundWithoutTheSystem) {
  if (zlib_file().empty()) GTEST_SKIP() << "there is no shared zlib to copy";
  const std::string name = "libheadrace_carried_" + std::to_string(getpid()) + ".so.1";
  const std::filesystem::path folder = own_folder() / "lib";
  std::filesystem::create_directories(folder);
  std::filesystem::copy_file(zlib_file(), folder / name);
  RunTimeLibrary library(name.c_str(), "libcarried1");
  std::filesystem::remove(folder / name);
  ASSERT_TRUE(library.is_open());
  decltype(zlibVersion)* version = nullptr;
  library.find(version, "zlibVersion");
  ASSERT_NE(version, nullptr);
  EXPECT_STREQ(version(), zlibVersion());
}

TEST(RunTimeLibrary, OfTheSystemIsFoundByItsName) {
  RunTimeLibrary library("libc.so.6", "libc6");
  EXPECT_TRUE(library.is_open());
}

TEST(RunTimeLibrary, ThatIsMissingNamesItsPackage) {
  RunTimeLibrary library("libheadrace_nowhere.so.1", "libnowhere1");
  ASSERT_FALSE(library.is_open());
  EXPECT_NE(library.missing().hint.find("apt-get install libnowhere1"), std::string::npos);
  EXPECT_NE(library.missing().what.find("libheadrace_nowhere.so.1"), std::string::npos);
}

}  // namespace
}  // namespace headrace
