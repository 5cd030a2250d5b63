// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/folder/folder_listing.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "headrace/base/text.h"
#include "headrace/storage/file_times.h"
#include "headrace/storage/temporary_folder.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kJpegStart = "\xFF\xD8\xFF\xE0 and more of a JPEG";
constexpr std::string_view kPngStart = "\x89PNG\r\n\x1A\n and more of a PNG";

class FolderListingTest : public testing::Test {
 protected:
  std::vector<std::string> files() const {
    const FolderListing listing = list_folder(folder.path(), {});
    std::vector<std::string> out;
    for (int64_t i = 0; i < listing.paths.size(); ++i) {
      const ListedFolder& at = listing.folders[i];
      for (int64_t j = at.first; j < at.first + at.count; ++j) {
        out.push_back(joined(listing.paths[i], listing.names[j]));
      }
    }
    return out;
  }
  using Names = std::vector<std::string>;
  TemporaryFolder folder;
};

TEST_F(FolderListingTest, FindsImagesAtAnyDepthSortedByBytes) {
  for (const char* name : {"b.jpg", "B.jpg", "a10.jpg", "a2.jpg", "\xC3\xA9.jpg", "z.jpg", "_.jpg",
                           "sub/deep/c.png", "sub/d.png"}) {
    folder.write(name, "");
  }
  EXPECT_EQ(files(), (Names{"B.jpg", "_.jpg", "a10.jpg", "a2.jpg", "b.jpg", "z.jpg", "\xC3\xA9.jpg",
                            "sub/d.png", "sub/deep/c.png"}));
}

TEST_F(FolderListingTest, FilesWithKnownSuffixesAreListedWithoutReadingThem) {
  for (const char* name :
       {"a.jpg", "b.JPEG", "c.Png", "d.bmp", "e.webp", "f.tif", "g.TIFF", "h.ppm", "i.pgm"}) {
    folder.write(name, "no image");
  }
  EXPECT_EQ(files().size(), 9u);
}

TEST_F(FolderListingTest, TheContentDecidesForOtherNames) {
  folder.write("photo", kJpegStart);
  folder.write("photo.dat", kPngStart);
  folder.write("short.dat", "\xFF");
  folder.write("notes.txt", "some text");
  folder.write("empty", "");
  EXPECT_EQ(files(), (Names{"photo", "photo.dat"}));
  EXPECT_EQ(list_folder(folder.path(), {}).others, 3);
}

TEST_F(FolderListingTest, HiddenFilesAndFoldersAreIgnored) {
  folder.write(".hidden.jpg", kJpegStart);
  folder.write("._a.jpg", kJpegStart);
  folder.write(".ipynb_checkpoints/a.jpg", kJpegStart);
  folder.write("a.jpg", kJpegStart);
  EXPECT_EQ(files(), (Names{"a.jpg"}));
}

TEST_F(FolderListingTest, AFolderNamedLikeAnImageIsAFolder) {
  folder.write("x.jpg/y.jpg", "");
  EXPECT_EQ(files(), (Names{"x.jpg/y.jpg"}));
}

TEST_F(FolderListingTest, PipesAndSocketsAreNotImages) {
  ASSERT_EQ(::mkfifo((folder / "pipe.jpg").c_str(), 0600), 0);
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  fs::create_symlink("pipe", folder / "link.jpg");
  EXPECT_TRUE(files().empty());
}

TEST_F(FolderListingTest, LinksAreFollowed) {
  TemporaryFolder elsewhere;
  elsewhere.write("a.jpg", "");
  elsewhere.write("photo", kJpegStart);
  fs::create_symlink(elsewhere.path(), folder / "linked");
  fs::create_symlink(elsewhere / "photo", folder / "other");
  fs::create_symlink("nowhere", folder / "broken.jpg");  // reading it reports the error
  fs::create_symlink("nowhere", folder / "broken");
  EXPECT_EQ(files(), (Names{"broken.jpg", "other", "linked/a.jpg", "linked/photo"}));
}

TEST_F(FolderListingTest, LoopsOfLinksTerminate) {
  folder.write("a/b/x.jpg", "");
  fs::create_symlink("..", folder / "a/b/up");
  fs::create_symlink(folder.path(), folder / "a/root");
  fs::create_symlink("self", folder / "self");
  fs::create_symlink(".", folder / "here");
  EXPECT_EQ(files(), (Names{"a/b/x.jpg"}));
}

// 44 links once made 23 folders appear as 2^22.
TEST_F(FolderListingTest, LinksThatMultiplyAreRejected) {
  folder.write("0/x.jpg", "");
  for (int i = 1; i <= 22; ++i) {
    fs::create_directory(folder / std::to_string(i));
    for (const char* name : {"left", "right"}) {
      fs::create_directory_symlink("../" + std::to_string(i - 1),
                                   folder / (std::to_string(i) + "/" + name));
    }
  }
  try {
    list_folder(folder.path(), {});
    FAIL();
  } catch (const Exception& exception) {
    EXPECT_EQ(exception.error().code->id, "HR0408");
    EXPECT_NE(exception.error().what.find("more than 256 paths"), std::string::npos);
  }
}

TEST_F(FolderListingTest, AFolderWithSeveralPathsIsListedUnderEach) {
  folder.write("pool/x.jpg", "");
  fs::create_directory_symlink("pool", folder / "cat");
  fs::create_directory_symlink("pool", folder / "dog");
  EXPECT_EQ(files(), (Names{"cat/x.jpg", "dog/x.jpg", "pool/x.jpg"}));
}

TEST_F(FolderListingTest, NamesMayHoldAnyBytes) {
  folder.write("new\nline.jpg", "");
  folder.write("not utf-8 \xFF.jpg", "");
  folder.write("quote\".jpg", "");
  EXPECT_EQ(files(), (Names{"new\nline.jpg", "not utf-8 \xFF.jpg", "quote\".jpg"}));
}

TEST_F(FolderListingTest, RemembersEveryFolderEvenWithoutImages) {
  folder.write("a/b/c/notes.txt", "x");
  fs::create_directory(folder / "empty");
  const FolderListing listing = list_folder(folder.path(), {});
  ASSERT_EQ(listing.paths.size(), 5);
  for (int64_t i = 0; i < listing.paths.size(); ++i) {
    struct stat status{};
    ASSERT_EQ(::stat(joined(folder.path(), listing.paths[i]).c_str(), &status), 0);
    EXPECT_EQ(listing.folders[i].inode, status.st_ino);
    EXPECT_EQ(listing.folders[i].changed_ns, changed_ns(status));
  }
}

TEST_F(FolderListingTest, ReportsItsProgressAndCanBeCanceled) {
  for (int i = 0; i < 5000; ++i) folder.write(std::to_string(i) + ".jpg", "");
  int64_t told = 0;
  list_folder(folder.path(), [&](int64_t done, int64_t) { told = done; });
  EXPECT_EQ(told, 4096);
  struct Canceled {};
  EXPECT_THROW(list_folder(folder.path(), [](int64_t, int64_t) { throw Canceled(); }), Canceled);
}

TEST_F(FolderListingTest, AMissingFolderIsAnError) {
  try {
    list_folder(folder / "none", {});
    FAIL();
  } catch (const Exception& exception) {
    EXPECT_EQ(exception.error().code->id, "HR0201");
    EXPECT_EQ(exception.error().where.file, folder / "none");
  }
}

// Root ignores permissions, so this runs as nobody, in a process of its own.
void list_as_nobody(const std::string& path) {
  if (::geteuid() == 0 && ::setuid(65534) != 0) ::_exit(3);
  try {
    const FolderListing listing = list_folder(path, {});
    std::fprintf(stderr, "%d unreadable", static_cast<int>(listing.unreadable));
    ::_exit(0);
  } catch (const Exception& exception) {
    std::fputs(exception.what(), stderr);
    ::_exit(1);
  }
}

TEST_F(FolderListingTest, UnreadableFoldersAreNamedWithAHint) {
  folder.write("open/a.jpg", "");
  folder.write("closed/a.jpg", "");
  fs::permissions(folder.path(), fs::perms(0755));
  EXPECT_EXIT(list_as_nobody(folder.path()), testing::ExitedWithCode(0), "");
  fs::permissions(folder / "closed", fs::perms::none);
  EXPECT_EXIT(list_as_nobody(folder.path()), testing::ExitedWithCode(1),
              "HR0202 .*could not list it(.|\n)*closed(.|\n)*chmod");
  fs::permissions(folder / "closed", fs::perms(0755));
  folder.write("secret.dat", kJpegStart);
  fs::permissions(folder / "secret.dat", fs::perms::none);
  // A file with an unknown suffix that cannot be read is skipped and counted.
  EXPECT_EXIT(list_as_nobody(folder.path()), testing::ExitedWithCode(0), "1 unreadable");
  fs::rename(folder / "secret.dat", folder / "secret.jpg");  // is not opened
  EXPECT_EXIT(list_as_nobody(folder.path()), testing::ExitedWithCode(0), "0 unreadable");
}

TEST_F(FolderListingTest, SuffixesOfAvailableCodecsAreNotReported) {
  EXPECT_EQ(unread_suffix("a.b.tiff"), "");
  EXPECT_EQ(unread_suffix("a.JPG"), "");
  EXPECT_EQ(unread_suffix("a.txt"), "");
  EXPECT_EQ(unread_suffix("webp"), "");
}

}  // namespace
}  // namespace headrace
