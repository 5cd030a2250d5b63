// SPDX-License-Identifier: Apache-2.0
// Expected values: azure-storage-blob 12.31.1's (SharedKeyCredentialPolicy), as it printed them,
// for the storage emulator's public account and key. (It calls the header Range "byte_range".)
#include "headrace/storage/remote/azure_signature.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

constexpr const char* kAccount = "devstoreaccount1";
constexpr const char* kKey =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

HeaderPairs sent() {
  return {{"x-ms-version", "2021-12-02"}, {"x-ms-date", "Sat, 28 Nov 2026 19:40:05 GMT"}};
}

std::string signature(const char* address, const HttpCall& call, const HeaderPairs& headers) {
  return azure_authorization(kAccount, kKey, *parse_url(address), call, headers);
}

TEST(AzureSignature, EqualsThatOfItsSdk) {
  EXPECT_EQ(signature("https://devstoreaccount1.blob.core.windows.net/photos/tr%20ain/"
                      "%2B%3D%26%C3%A9.tar",
                      {.range = "bytes=0-4095", .if_match = "\"0x8D4BCC2E4835CD0\""}, sent()),
            "SharedKey devstoreaccount1:B/zPkyRwNosP/dqP1M6onaLTWtCfcx6CRzZjZXPwKQ4=");
  EXPECT_EQ(signature("http://127.0.0.1:10000/devstoreaccount1/photos?comp=list&delimiter=%2F"
                      "&marker=a%2Fb%3D&maxresults=1000&prefix=tr%20ain%2F&restype=container",
                      {}, sent()),
            "SharedKey devstoreaccount1:U1jg16II86nGWtbiGsEwYV8qXj85TfgI1BV9133nCPs=");
  HeaderPairs upload = sent();
  upload.emplace_back("x-ms-blob-type", "BlockBlob");
  EXPECT_EQ(signature("https://devstoreaccount1.blob.core.windows.net/photos/a",
                      {.method = "PUT", .body = "hello"}, upload),
            "SharedKey devstoreaccount1:4oG5Pap5+tWLIFZHXQU4H9CW6jL5ozzZKBdMozJ8imE=");
}

TEST(AzureSignature, AKeyThatIsNotBase64GivesNoSignature) {
  for (const char* key : {"abc", "ab=c", "a b=", "====", "abcd="}) {
    EXPECT_TRUE(azure_authorization(kAccount, key, *parse_url("http://h/c/b"), {}, sent()).empty())
        << key;
  }
}

TEST(Base64, FollowsTheStandard) {  // RFC 4648, 10
  const std::pair<const char*, const char*> pairs[] = {{"", ""},
                                                       {"f", "Zg=="},
                                                       {"fo", "Zm8="},
                                                       {"foo", "Zm9v"},
                                                       {"foob", "Zm9vYg=="},
                                                       {"fooba", "Zm9vYmE="},
                                                       {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : pairs) {
    EXPECT_EQ(base64(bytes), text);
    EXPECT_EQ(bytes_of_base64(text), bytes);
  }
}

}  // namespace
}  // namespace headrace
