// SPDX-License-Identifier: Apache-2.0
// Token ids for language models: fixed-length windows, or documents if their ends are known.
#include "headrace/formats/tokens/tokens.h"

#include <algorithm>
#include <map>

#include "headrace/base/registry.h"
#include "headrace/base/text.h"
#include "headrace/formats/format.h"
#include "headrace/formats/shards/shard_files.h"
#include "headrace/sources/in_order.h"
#include "headrace/sources/readable_text.h"

namespace headrace {
namespace {

const ErrorCode kDocumentsUnknown{
    "HR1445", ErrorKind::kConfig, "documents of a token file are unknown",
    "window=None makes one record per document. Megatron's .idx contains the ends of documents; in "
    "other files, a token marks them: pass its id as eos= (50256 for GPT-2's <|endoftext|>)."};

LastWindow last_from(const std::string& name) {
  return name == "pad"       ? LastWindow::kPad
         : name == "overlap" ? LastWindow::kOverlap
                             : LastWindow::kDrop;
}

std::vector<TokenFile> files_of(const std::string& path, const Arguments& arguments,
                                const Progress& progress) {
  std::optional<DType> dtype;
  if (!arguments.is_none("dtype")) dtype = dtype_from_name(arguments.text("dtype"));
  std::vector<TokenFile> files;
  const std::vector<std::string> paths = shard_files(path, {".bin", ".npy"});
  std::map<std::string, std::string> given;  // by the path of the tokens
  const auto open_one = [&](int64_t i) { return open_token_file(paths[size_t(i)], dtype); };
  const auto take = [&, i = size_t{0}](TokenFile file) mutable {
    const std::string& named = paths[i++];
    // A pattern may match both of Megatron's files; either one opens the pair.
    if (given.try_emplace(file.path, named).first->second != named) return;
    files.push_back(std::move(file));
  };
  const auto count = std::ssize(paths);
  const int64_t at_once = std::ranges::any_of(paths, is_async) ? kFarFilesAtOnce : 1;
  each_in_order(0, count, at_once, open_one, take, [&](int64_t done) {
    if (progress) progress(done, count);
  });
  return files;
}

SourcePtr open_tokens(const std::string& path, const Arguments& arguments,
                      const Progress& progress) {
  const bool windows = !arguments.is_none("window");
  if (!arguments.is_none("eos") && windows) refuse_eos_of_windows(arguments.integer("eos"));
  std::vector<TokenFile> files = files_of(path, arguments, progress);
  if (!arguments.is_none("eos")) find_documents(files, arguments.integer("eos"), progress);
  const auto unknown = std::ranges::find_if(
      files, [](const TokenFile& file) { return file.document_ends.empty() && file.tokens > 0; });
  if (!windows && unknown != files.end()) {
    raise(kDocumentsUnknown, unknown->path + " does not state where documents end",
          "pass eos=50256, or window=1024");
  }
  const TokenForm form{
      .to = *dtype_from_name(arguments.text("to")),
      .vocab_size = arguments.is_none("vocab_size") ? 0 : arguments.integer("vocab_size")};
  if (windows) {
    for (TokenFile& file : files) file.document_ends = {};  // to free memory
  }
  auto tokens = std::make_shared<const TokenFiles>(std::move(files), form);
  if (!windows) return token_documents(std::move(tokens), "tokens " + path);
  const int64_t window = arguments.integer("window");
  return token_windows(
      std::move(tokens),
      {.window = window,
       .stride = arguments.is_none("stride") ? window : arguments.integer("stride"),
       .shift = arguments.is_none("shift") ? -1 : static_cast<int>(arguments.integer("shift")),
       .last = last_from(arguments.text("last")),
       .pad = arguments.integer("pad"),
       .ignore_index = arguments.integer("ignore_index")},
      "tokens " + path);
}

const FormatRecord kTokenFormat{
    .name = "tokens",
    .doc =
        "Files of token ids, for language models: raw integers (nanoGPT's train.bin), llm.c's "
        ".bin, Megatron's .bin with its .idx, .npy. Each window of tokens is a record with the "
        "fields tokens and targets (the tokens shifted by one); or input_ids and labels, which are "
        "equal, for models that shift labels themselves (shift=0). window=None makes one record "
        "per document.",
    .example = "hr.tokens(\"train.bin\", window=1024)",
    .params =
        {{.name = "window",
          .type = ParamType::kInt,
          .doc = "Tokens per record. None: one record per document, with the field tokens.",
          .fallback = int64_t{1024},
          .minimum = 1,
          .maximum = 1 << 28,
          .or_none = true,
          .decides = Affects::kFingerprint},
         {.name = "stride",
          .type = ParamType::kInt,
          .doc =
              "Distance between the starts of consecutive windows, in tokens. None: the window, so "
              "that each token is predicted once. 1: a window starts at every token.",
          .minimum = 1,
          .maximum = static_cast<double>(int64_t{1} << 40),
          .decides = Affects::kFingerprint},
         {.name = "shift",
          .type = ParamType::kInt,
          .doc = "1: fields tokens and targets, where targets are the tokens shifted by one. 0: "
                 "input_ids and labels, which are equal, as Hugging Face models expect them. None: "
                 "only tokens.",
          .fallback = int64_t{1},
          .minimum = 0,
          .maximum = 1,
          .or_none = true,
          .decides = Affects::kFingerprint},
         {.name = "dtype",
          .type = ParamType::kString,
          .doc = "Dtype of the tokens in the file. None: from the header; uint16 for a file "
                 "without a header.",
          .choices = {"uint8", "uint16", "uint32", "int16", "int32", "int64", "uint64"},
          .decides = Affects::kFingerprint},
         {.name = "to",
          .type = ParamType::kString,
          .doc = "Dtype in which tokens are delivered.",
          .fallback = std::string("int64"),
          .choices = {"int64", "int32", "uint16", "uint32"},
          .decides = Affects::kFingerprint},
         {.name = "last",
          .type = ParamType::kString,
          .doc =
              "What to do with the tokens after a file's last whole window: \"drop\" skips them, "
              "\"pad\" pads them to a full window, \"overlap\" adds a window that ends with the "
              "file and overlaps the previous one.",
          .fallback = std::string("drop"),
          .choices = {"drop", "pad", "overlap"},
          .decides = Affects::kFingerprint},
         {.name = "pad",
          .type = ParamType::kInt,
          .doc = "Token id used for padding.",
          .fallback = int64_t{0},
          .decides = Affects::kFingerprint},
         {.name = "ignore_index",
          .type = ParamType::kInt,
          .doc = "Target value used for padding, which the loss ignores.",
          .fallback = int64_t{-100},
          .decides = Affects::kFingerprint},
         {.name = "vocab_size",
          .type = ParamType::kInt,
          .doc = "Upper bound of token ids (exclusive); a record with a larger id is a bad record. "
                 "None: not checked.",
          .minimum = 1,
          .decides = Affects::kReading},
         {.name = "eos",
          .type = ParamType::kInt,
          .doc = "With window=None: the id of the token that ends a document, in files without an "
                 "index. All tokens are read once to find them.",
          .decides = Affects::kFingerprint}},
    .recognizes = is_token_file,
    .open = open_tokens,
    .shards = true,
    .knows_kinds = true};
const Register<FormatRecord> registered_tokens_format(kTokenFormat);

}  // namespace
}  // namespace headrace
