// SPDX-License-Identifier: Apache-2.0
// Writes coefficients as a Huffman-coded scan, sequential or progressive (ISO/IEC 10918-1, F.1.2,
// G.1.2), and makes the same choices as libjpeg's encoder where the standard leaves a choice. Any
// thread may call these functions, with any coefficients.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "headrace/codecs/image/jpeg/parts/bit_writer.h"
#include "headrace/codecs/image/jpeg/parts/scan.h"
#include "headrace/codecs/image/jpeg/parts/tables.h"

namespace headrace {

// By position of the component in the scan; tables that a scan does not need may be null.
template <class Table>
struct ScanTables {
  std::array<Table*, 4> dc{}, ac{};
};

using StoredBlocks = BlocksOf<const CoefficientPlane>;

// False if a symbol has no code, a value exceeds the format's range, or the choices do not fit the
// scan. Ends with the last padding bit.
bool write_scan(const JpegFrame& frame, const JpegScan& scan, StoredBlocks& blocks,
                const ScanTables<const HuffmanCodes>& tables, const ScanChoices& choices,
                JpegBitWriter& out);
// Counts the symbols that write_scan() would write.
bool count_scan(const JpegFrame& frame, const JpegScan& scan, StoredBlocks& blocks,
                const ScanTables<SymbolCounts>& counts);

}  // namespace headrace
