// SPDX-License-Identifier: Apache-2.0
// Expected values were printed by hashlib and botocore 1.44.8 (S3SigV4Auth).
#include "headrace/storage/remote/sigv4.h"

#include <gtest/gtest.h>

#include <string>

#include "headrace/storage/remote/sha256.h"
#include "headrace/storage/remote/url.h"

namespace headrace {
namespace {

constexpr int64_t kTime = 1795817109;  // 2026-11-27 22:05:09 UTC

const SigningKeys kKeys{.key = "AKIDEXAMPLE", .secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"};

std::string signature(const char* address, const SigningKeys& keys, const char* region) {
  Signer signer;
  for (int again = 0; again < 2; ++again) {  // the derived key is kept
    for (const std::string& header : signer.headers(*parse_url(address), keys, region, kTime)) {
      const size_t found = header.find("Signature=");
      if (again == 1 && found != std::string::npos) return header.substr(found + 10);
    }
  }
  return {};
}

TEST(Sha256, FollowsTheStandard) {
  EXPECT_EQ(hex(sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex(sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  // Around the border of a block: 55, 56, 64 and 119 bytes.
  EXPECT_EQ(hex(sha256(std::string(55, 'a'))),
            "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318");
  EXPECT_EQ(hex(sha256(std::string(56, 'a'))),
            "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a");
  EXPECT_EQ(hex(sha256(std::string(64, 'a'))),
            "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
  EXPECT_EQ(hex(sha256(std::string(119, 'a'))),
            "31eba51c313a5c08226adf18d4a359cfdfd8d2e816b13f4af952f7ea6584dcfb");
}

TEST(Signer, SignsAsBotocoreDoes) {
  EXPECT_EQ(signature("https://bucket.s3.us-east-1.amazonaws.com/train/a.tar", kKeys, "us-east-1"),
            "9f8041498223f24ea2d84533b4260a80a55c027d2703916a8dd74279ee5c26b6");
  EXPECT_EQ(signature("http://127.0.0.1:9000/bucket/"
                      "?continuation-token=a%2Fb%3D&delimiter=%2F&encoding-type=url&list-type=2"
                      "&max-keys=1000&prefix=train%2F",
                      kKeys, "us-east-1"),
            "cde4ee5de1b4f6d139ea76c99b5e3bb5f9056132bc537c5f14043fce346dbdfc");
  EXPECT_EQ(signature("http://127.0.0.1:9000/bucket/?prefix=&list-type=2&b=2&a=1&a=0", kKeys,
                      "us-east-1"),
            "f15813855392b9c2473b0ea311fe4fcdd6701dfb8ce9ace81794c74ed32136ba");
  SigningKeys session = kKeys;
  session.token = "FwoGZXIvYXdzEJr//token==";
  EXPECT_EQ(signature("https://bucket.s3.eu-central-1.amazonaws.com/tr%20ain/%2B%3D%26%C3%A9~.tar",
                      session, "eu-central-1"),
            "1206b76c0acb0f7553af33278ab30df52809c853fa1787a4e103dcbb3d9c5a32");
}

TEST(Signer, SignsAnUploadAsBotocoreDoes) {
  Signer signer;
  const auto headers =
      signer.headers(*parse_url("https://bucket.s3.us-east-1.amazonaws.com/train/.headrace/a"),
                     kKeys, "us-east-1", kTime, {.method = "PUT", .body = "hello", .headers = {}});
  EXPECT_TRUE(
      headers.back().ends_with("993467a802a2a7142ad073dbba72ac27362b720bac546e48834a9e8b56be3de3"))
      << headers.back();
}

}  // namespace
}  // namespace headrace
