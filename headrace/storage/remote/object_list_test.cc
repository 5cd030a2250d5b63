// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/remote/object_list.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "headrace/storage/remote/xml_reader.h"

namespace headrace {
namespace {

std::string listing(const std::string& inside) {
  return "<?xml version=\"1.0\"?>\n<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/\">" +
         inside + "</ListBucketResult>";
}

std::string object(const std::string& key) {
  return "<Contents><Key>" + key + "</Key><ETag>&quot;e&quot;</ETag><Size>7</Size></Contents>";
}

std::string error_of(const std::string& body) {
  const auto page = list_page_of_xml(body, "t/", false);
  return page ? "" : page.error().what;
}

TEST(ObjectList, HasFilesFoldersAndAContinuation) {
  const auto page = list_page_of_xml(
      listing("<Name>bucket</Name><IsTruncated>true</IsTruncated>"
              "<NextContinuationToken>a/&lt;b&gt;==</NextContinuationToken>"
              "<Contents><Key>t/</Key><Size>0</Size></Contents>" +
              object("t/a&amp;b.jpg") + "<CommonPrefixes><Prefix>t/sub/</Prefix></CommonPrefixes>"),
      "t/", false);
  ASSERT_TRUE(page);
  EXPECT_EQ(page->next, "a/<b>==");
  ASSERT_EQ(page->entries.size(), 2U);
  EXPECT_EQ(page->entries[0].name, "a&b.jpg");
  EXPECT_EQ(page->entries[0].size, 7U);
  EXPECT_EQ(page->entries[0].etag, "\"e\"");
  EXPECT_EQ(page->entries[1].name, "sub");
  EXPECT_TRUE(page->entries[1].is_folder);
}

TEST(ObjectList, EscapedKeysAreDecoded) {
  const std::string escaped = object("t/a+b%2Bc%0Ad%3F");
  const auto page =
      list_page_of_xml(listing(escaped + "<EncodingType>url</EncodingType>"), "t/", false);
  ASSERT_TRUE(page);
  EXPECT_EQ(page->entries.at(0).name, "a b+c\nd?");
  EXPECT_EQ(list_page_of_xml(listing(escaped), "t/", false)->entries.at(0).name, "a+b%2Bc%0Ad%3F");
}

TEST(ObjectList, KeysThatAreNotPathsAreErrorsThatNameThem) {
  const std::string escaped = "<EncodingType>url</EncodingType>";
  const auto folder = [](const std::string& key) {
    return "<CommonPrefixes><Prefix>" + key + "</Prefix></CommonPrefixes>";
  };
  const std::string keys[] = {object("t/."), object("t/.."), object("t/a%00b"),
                              folder("t//"), folder("t/./"), folder("t/../")};
  for (const std::string& key : keys) {
    const auto page = list_page_of_xml(listing(escaped + object("t/a") + key), "t/", false);
    ASSERT_FALSE(page) << key;
    EXPECT_EQ(page.error().code->id, "HR0227") << key;
  }
  EXPECT_NE(error_of(listing(folder("t//") + folder("t/./"))).find("\"t//\""), std::string::npos);
  EXPECT_NE(error_of(listing(folder("t//") + folder("t/./"))).find("1 more"), std::string::npos);
  const auto deeper =
      list_page_of_xml(listing(object("t/a/b")), "t/", false);  // the delimiter is ignored
  ASSERT_FALSE(deeper);
  EXPECT_EQ(deeper.error().code->id, "HR0224");
  const auto page = list_page_of_xml(listing(object("t/") + object("t/...")), "t/", false);
  ASSERT_TRUE(page);
  ASSERT_EQ(page->entries.size(), 1U);
  EXPECT_EQ(page->entries[0].name, "...");
  const auto empty = list_page_of_xml(listing(object("t/")), "t/", false);
  EXPECT_TRUE(empty->entries.empty() && empty->has_keys);
  EXPECT_FALSE(list_page_of_xml(listing(""), "t/", false)->has_keys);
}

TEST(ObjectList, AFlatListingHasPathsBelowTheFolder) {
  const auto page = list_page_of_xml(
      listing(object("t/a/b.jpg") + object("t/empty/") + object("t/c.jpg") + object("t/")), "t/",
      true);
  ASSERT_TRUE(page);
  ASSERT_EQ(page->entries.size(), 3U);
  EXPECT_EQ(page->entries[0].name, "a/b.jpg");
  EXPECT_EQ(page->entries[1].name, "empty");
  EXPECT_TRUE(page->entries[1].is_folder);
  for (const char* key : {"t/a//b", "t/a/../b", "t/./b", "t//", "t/a//"}) {
    const auto wrong = list_page_of_xml(listing(object(key)), "t/", true);
    ASSERT_FALSE(wrong) << key;
    EXPECT_EQ(wrong.error().code->id, "HR0227") << key;
  }
}

std::string azure(const std::string& blobs, const std::string& marker) {
  return "\xef\xbb\xbf<?xml version=\"1.0\"?><EnumerationResults ContainerName=\"c\"><Prefix>t/"
         "</Prefix><Blobs>" +
         blobs + "</Blobs><NextMarker" + (marker.empty() ? " />" : ">" + marker + "</NextMarker>") +
         "</EnumerationResults>";
}

std::string blob(const std::string& name, const std::string& more = {}) {
  return "<Blob><Name>" + name +
         "</Name><Properties><Content-Length>7</Content-Length><Etag>0x8D</" + "Etag>" + more +
         "</Properties><OrMetadata /></Blob>";
}

TEST(ObjectList, AzuresHasFilesFoldersAndAContinuation) {
  const auto page = list_page_of_azure(
      azure(
          blob("t/a&amp;b.jpg") + blob("t/dir", "<ResourceType>directory</ResourceType>") +
              "<Blob><Name Encoded=\"true\">t/%EF%BF%BE%2525</Name><Properties><Content-Length>1</"
              "Content-Length></Properties></Blob><BlobPrefix><Name>t/sub/</Name></BlobPrefix>",
          "2!8!x"),
      "t/", false);
  ASSERT_TRUE(page) << page.error().what;
  EXPECT_EQ(page->next, "2!8!x");
  ASSERT_EQ(page->entries.size(), 4U);
  EXPECT_EQ(page->entries[0].name, "a&b.jpg");
  EXPECT_EQ(page->entries[0].size, 7U);
  EXPECT_EQ(page->entries[0].etag, "\"0x8D\"");
  EXPECT_TRUE(page->entries[1].is_folder);
  EXPECT_EQ(page->entries[2].name, "\xef\xbf\xbe%25");
  EXPECT_EQ(page->entries[3].name, "sub");
  EXPECT_TRUE(page->entries[3].is_folder);
  const std::string whole = azure(blob("t/a"), "");
  EXPECT_TRUE(list_page_of_azure(whole, "t/", false)->next.empty());
  for (size_t cut = 0; cut < whole.size(); ++cut) {
    EXPECT_FALSE(list_page_of_azure(whole.substr(0, cut), "t/", false)) << cut;
  }
}

TEST(ObjectList, TheHubsHasFilesFoldersAndAContinuation) {
  const std::string whole =
      R"([{"type":"directory","oid":"1","size":0,"path":"t/sub"},)"
      R"({"type":"file","oid":"ab","size":7,"path":"t/a.json","lfs":null},)"
      R"({"type":"file","oid":"cd","size":9000000000,"path":"t/b\u00e9.tar","xetHash":"x",)"
      R"("lfs":{"oid":"sha","size":9000000000,"pointerSize":134}}])";
  const auto page = list_page_of_hub(
      whole, "https://huggingface.co/api/datasets/o/n/tree/main?expand=false&cursor=Zm%3D%3D", "t/",
      false);
  ASSERT_TRUE(page) << page.error().what;
  EXPECT_EQ(page->next, "Zm==");
  ASSERT_EQ(page->entries.size(), 3U);
  EXPECT_TRUE(page->entries[0].is_folder);
  EXPECT_EQ(page->entries[1].etag, "\"ab\"");
  EXPECT_EQ(page->entries[2].name, "b\xc3\xa9.tar");
  EXPECT_EQ(page->entries[2].etag, "\"sha\"");  // of the content, not of its pointer
  EXPECT_EQ(page->entries[2].size, 9000000000U);
  EXPECT_FALSE(list_page_of_hub(whole, "https://huggingface.co/api", "t/", false));
  EXPECT_FALSE(list_page_of_hub(R"([{"type":"file","path":"t/a"}])", "", "t/", false));
  EXPECT_FALSE(list_page_of_hub(R"({"error":"no"})", "", "t/", false));
  for (size_t cut = 0; cut < whole.size(); ++cut) {
    EXPECT_FALSE(list_page_of_hub(whole.substr(0, cut), "", "t/", false)) << cut;
  }
}

TEST(ObjectList, APartialListingIsNeverTreatedAsComplete) {
  const std::string whole = listing(object("t/a") + object("t/b"));
  for (size_t cut = 0; cut < whole.size(); ++cut) {
    EXPECT_FALSE(list_page_of_xml(whole.substr(0, cut), "t/", false)) << cut;
  }
  EXPECT_NE(error_of(listing("<IsTruncated>true</IsTruncated>")), "");
  EXPECT_NE(error_of(listing(object("other/a"))), "");
  EXPECT_NE(error_of("<html><body>Sign in</body></html>"), "");
  EXPECT_NE(error_of("<!DOCTYPE x [<!ENTITY a \"b\">]>" + whole), "");
  EXPECT_NE(error_of(listing("<Contents><Key>t/a</Key><Size>-1</Size></Contents>")), "");
}

TEST(XmlReader, EntitiesAreTheFiveStandardOnesAndNumbers) {
  EXPECT_EQ(text_of_xml("&lt;&#65;&#x20ac;&amp;"), "<A\xe2\x82\xac&");
  for (const char* bad : {"&", "&x;", "&#0;", "&#x110000;", "&#;", "&lt"}) {
    EXPECT_FALSE(text_of_xml(bad)) << bad;
  }
}

}  // namespace
}  // namespace headrace
