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
  const auto page = list_page_of_xml(body, "t/");
  return page ? "" : page.error().what;
}

TEST(ObjectList, HasFilesFoldersAndWhereItGoesOn) {
  const auto page = list_page_of_xml(
      listing("<Name>bucket</Name><IsTruncated>true</IsTruncated>"
              "<NextContinuationToken>a/&lt;b&gt;==</NextContinuationToken>"
              "<Contents><Key>t/</Key><Size>0</Size></Contents>" +
              object("t/a&amp;b.jpg") + "<CommonPrefixes><Prefix>t/sub/</Prefix></CommonPrefixes>"),
      "t/");
  ASSERT_TRUE(page);
  EXPECT_EQ(page->next, "a/<b>==");
  ASSERT_EQ(page->entries.size(), 2U);
  EXPECT_EQ(page->entries[0].name, "a&b.jpg");
  EXPECT_EQ(page->entries[0].size, 7U);
  EXPECT_EQ(page->entries[0].etag, "\"e\"");
  EXPECT_EQ(page->entries[1].name, "sub");
  EXPECT_TRUE(page->entries[1].is_folder);
}

TEST(ObjectList, EscapedKeysAreTakenForWhatTheyAre) {
  const std::string escaped = object("t/a+b%2Bc%0Ad%3F");
  const auto page = list_page_of_xml(listing(escaped + "<EncodingType>url</EncodingType>"), "t/");
  ASSERT_TRUE(page);
  EXPECT_EQ(page->entries.at(0).name, "a b+c\nd?");
  EXPECT_EQ(list_page_of_xml(listing(escaped), "t/")->entries.at(0).name, "a+b%2Bc%0Ad%3F");
}

TEST(ObjectList, KeysThatAreNoPathsAreErrorsThatNameThem) {
  const std::string escaped = "<EncodingType>url</EncodingType>";
  const auto folder = [](const std::string& key) {
    return "<CommonPrefixes><Prefix>" + key + "</Prefix></CommonPrefixes>";
  };
  const std::string keys[] = {object("t/."), object("t/.."), object("t/a%00b"),
                              folder("t//"), folder("t/./"), folder("t/../")};
  for (const std::string& key : keys) {
    const auto page = list_page_of_xml(listing(escaped + object("t/a") + key), "t/");
    ASSERT_FALSE(page) << key;
    EXPECT_EQ(page.error().code->id, "HR0227") << key;
  }
  EXPECT_NE(error_of(listing(folder("t//") + folder("t/./"))).find("\"t//\""), std::string::npos);
  EXPECT_NE(error_of(listing(folder("t//") + folder("t/./"))).find("1 more"), std::string::npos);
  const auto deeper = list_page_of_xml(listing(object("t/a/b")), "t/");  // the delimiter is ignored
  ASSERT_FALSE(deeper);
  EXPECT_EQ(deeper.error().code->id, "HR0224");
  const auto page = list_page_of_xml(listing(object("t/") + object("t/...")), "t/");
  ASSERT_TRUE(page);
  ASSERT_EQ(page->entries.size(), 1U);
  EXPECT_EQ(page->entries[0].name, "...");
  const auto empty = list_page_of_xml(listing(object("t/")), "t/");
  EXPECT_TRUE(empty->entries.empty() && empty->has_keys);
  EXPECT_FALSE(list_page_of_xml(listing(""), "t/")->has_keys);
}

TEST(ObjectList, AFileThatIsNamedTwiceIsAnErrorAndAFolderIsOne) {
  const std::string folder = "<CommonPrefixes><Prefix>t/a/</Prefix></CommonPrefixes>";
  const auto first = list_page_of_xml(listing(object("t/a") + object("t/b") + folder), "t/");
  ListedNames names;
  ListPage page = *first;
  ASSERT_TRUE(names.take(page));
  EXPECT_EQ(page.entries.size(), 3U);
  page = *list_page_of_xml(listing(object("t/c") + folder), "t/");
  ASSERT_TRUE(names.take(page));
  ASSERT_EQ(page.entries.size(), 1U);
  page = *list_page_of_xml(listing(object("t/b")), "t/");
  const Result<void> again = names.take(page);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code->id, "HR0224");
  EXPECT_NE(again.error().what.find("\"b\" twice"), std::string::npos);
}

TEST(ObjectList, APartOfAListingIsNeverAllOfIt) {
  const std::string whole = listing(object("t/a") + object("t/b"));
  for (size_t cut = 0; cut < whole.size(); ++cut) {
    EXPECT_FALSE(list_page_of_xml(whole.substr(0, cut), "t/")) << cut;
  }
  EXPECT_NE(error_of(listing("<IsTruncated>true</IsTruncated>")), "");
  EXPECT_NE(error_of(listing(object("other/a"))), "");
  EXPECT_NE(error_of("<html><body>Sign in</body></html>"), "");
  EXPECT_NE(error_of("<!DOCTYPE x [<!ENTITY a \"b\">]>" + whole), "");
  EXPECT_NE(error_of(listing("<Contents><Key>t/a</Key><Size>-1</Size></Contents>")), "");
}

TEST(XmlReader, EntitiesAreTheFiveAndNumbers) {
  EXPECT_EQ(text_of_xml("&lt;&#65;&#x20ac;&amp;"), "<A\xe2\x82\xac&");
  for (const char* bad : {"&", "&x;", "&#0;", "&#x110000;", "&#;", "&lt"}) {
    EXPECT_FALSE(text_of_xml(bad)) << bad;
  }
}

}  // namespace
}  // namespace headrace
