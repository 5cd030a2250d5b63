// SPDX-License-Identifier: Apache-2.0
// The source of documents in token files: a record is one document, of any length.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "headrace/formats/tokens/token_files.h"
#include "headrace/sources/source.h"

namespace headrace {

// Throws Exception HR1446.
[[noreturn]] void refuse_eos_of_windows(int64_t end_token);

// Fills in document_ends for files that lack it: each document ends with this token, and tokens
// after the last one are a document, too. Reads all files once. Throws Exception: HR1446 for a
// token that the dtype of a file cannot represent, HR02xx, what `progress` throws.
void find_documents(std::vector<TokenFile>& files, int64_t end_token, const Progress& progress);

// REQUIRES: every file with tokens has document_ends. Empty documents are left out, and counted.
// Throws Exception HR1444 if no document remains.
SourcePtr token_documents(std::shared_ptr<const TokenFiles> files, std::string title);

}  // namespace headrace
