// SPDX-License-Identifier: Apache-2.0
// Documents of token files, each a record: its tokens, as many as it has.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "headrace/formats/tokens/token_files.h"
#include "headrace/sources/source.h"

namespace headrace {

// Throws Exception HR1446.
[[noreturn]] void refuse_eos_of_windows(int64_t end_token);

// Fills in where documents end in files that do not say it: each with this token. What comes after
// the last one is a document, too. All files are read once. Throws Exception: HR1446 a
// token that a file's dtype does not have, HR02xx, what `progress` throws.
void find_documents(std::vector<TokenFile>& files, int64_t end_token, const Progress& progress);

// REQUIRES: every file with tokens has document_ends. Documents without a token are left out, and
// counted. Throws Exception HR1444 where no document is left.
SourcePtr token_documents(std::shared_ptr<const TokenFiles> files, std::string title);

}  // namespace headrace
