// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <string>
#include <unordered_set>
#include <vector>

#include "headrace/formats/hdf5/hdf5_chunks.h"

namespace headrace {
namespace {

constexpr uint64_t kPrefix = 6,
                   kChecksum = 4;  // signature, version, type of the elements

// Shared by both index types: elements in blocks that may be divided into pages.
class ArrayIndex {
 protected:
  ArrayIndex(const Hdf5File& file, uint64_t address, bool filtered, uint64_t limit,
             const Hdf5ElementUse& use)
      : file_(file), address_(address), filtered_(filtered), limit_(limit), use_(use) {}

  void take_header(Hdf5Cursor& in) {
    in.skip(4);
    const uint8_t version = in.u8(), what = in.u8();
    element_bytes_ = in.u8();
    const unsigned address_bytes = file_.address_bytes();
    const bool fits =
        filtered_ ? element_bytes_ > address_bytes + 4 && element_bytes_ <= address_bytes + 4 + 8
                  : element_bytes_ == address_bytes;
    if (version != 0 || what != (filtered_ ? 1 : 0) || !fits) {
      file_.damaged(address_, "an index of chunks that does not fit its dataset");
    }
  }

  // Checks a block's first bytes: does it belong to this index?
  void check_block(std::span<const uint8_t> block, uint64_t address) const {
    Hdf5Cursor in = file_.cursor(block.subspan(4));
    const uint8_t version = in.u8(), what = in.u8();
    if (version != 0 || what != (filtered_ ? 1 : 0) || in.address() != address_) {
      file_.damaged(address, "a block of another index of chunks");
    }
  }

  void take(std::span<const uint8_t> raw, uint64_t first) const {
    Hdf5Cursor in = file_.cursor(raw);
    const int size_bytes = static_cast<int>(element_bytes_) - file_.address_bytes() - 4;
    for (uint64_t i = first; i < limit_ && in.left() >= element_bytes_; ++i) {
      const uint64_t address = in.address();
      const uint64_t bytes = filtered_ ? in.number(size_bytes) : 0;
      const uint32_t mask = filtered_ ? in.u32() : 0;
      if (address != kHdf5Undefined) use_(i, address, bytes, mask);
    }
  }

  // Pages of a block, each with its own checksum; unwritten ones are skipped. Bits of `written`
  // starting at `bit`, most significant first, say which were written.
  void take_pages(uint64_t address, uint64_t elements, uint64_t page_elements, uint64_t first,
                  std::span<const uint8_t> written, uint64_t bit) const {
    for (uint64_t done = 0; done < elements && first + done < limit_; ++bit) {
      const uint64_t count = std::min(page_elements, elements - done);
      if (bit / 8 >= written.size()) file_.damaged(address, "an index of chunks without its pages");
      if (written[bit / 8] & (0x80 >> bit % 8)) {
        const std::vector<uint8_t> page =
            file_.read(address, count * element_bytes_ + kChecksum, "a page of an index of chunks");
        file_.check(page, address, "a page of an index of chunks");
        take(std::span(page).first(page.size() - kChecksum), first + done);
      }
      address += page_elements * element_bytes_ + kChecksum;
      done += count;
    }
  }

  const Hdf5File& file_;
  uint64_t address_;
  bool filtered_;
  uint64_t limit_;
  const Hdf5ElementUse& use_;
  unsigned element_bytes_ = 0;
};

class FixedArray : ArrayIndex {
 public:
  FixedArray(const Hdf5File& file, uint64_t address, bool filtered, uint64_t limit,
             const Hdf5ElementUse& use)
      : ArrayIndex(file, address, filtered, limit, use) {}

  void read() {
    const uint64_t bytes = 8 + file_.length_bytes() + file_.address_bytes() + kChecksum;
    const std::vector<uint8_t> header =
        file_.read_checked(address_, bytes, "FAHD", "an index of chunks");
    Hdf5Cursor in = file_.cursor(header);
    take_header(in);
    const uint8_t page_bits = in.u8();
    const uint64_t elements = in.length();
    const uint64_t block = in.address();
    if (elements < limit_ || page_bits > 31) {
      file_.damaged(address_, "an index of " + std::to_string(elements) + " chunks where " +
                                  std::to_string(limit_) + " are needed");
    }
    if (block == kHdf5Undefined || elements == 0) return;
    if (elements > file_.file().size() / element_bytes_) {
      file_.damaged(address_, "an index of more chunks than the file has room for");
    }
    const uint64_t page = uint64_t{1} << page_bits;
    const uint64_t head = kPrefix + file_.address_bytes();
    const bool paged = elements > page;
    const uint64_t body =
        paged ? ((elements + page - 1) / page + 7) / 8 : elements * element_bytes_;
    const std::vector<uint8_t> raw =
        file_.read_checked(block, head + body + kChecksum, "FADB", "a block of an index of chunks");
    check_block(raw, block);
    const std::span<const uint8_t> inside = std::span(raw).subspan(head, body);
    if (paged) {
      take_pages(block + raw.size(), elements, page, 0, inside, 0);
    } else {
      take(inside, 0);
    }
  }
};

// The first elements are in the index block; then come data blocks that it references; then data
// blocks referenced by "super blocks". Each super block has as many data blocks as the previous
// one, or twice as many, of the same or twice the size.
class ExtensibleArray : ArrayIndex {
 public:
  ExtensibleArray(const Hdf5File& file, uint64_t address, bool filtered, uint64_t limit,
                  const Hdf5ElementUse& use)
      : ArrayIndex(file, address, filtered, limit, use) {}

  void read() {
    const uint64_t bytes = 12 + 6 * file_.length_bytes() + file_.address_bytes() + kChecksum;
    const std::vector<uint8_t> header =
        file_.read_checked(address_, bytes, "EAHD", "an index of chunks");
    Hdf5Cursor in = file_.cursor(header);
    take_header(in);
    const uint8_t max_bits = in.u8();
    inside_ = in.u8();
    const uint8_t min_elements = in.u8(), min_pointers = in.u8(), page_bits = in.u8();
    in.skip(6 * file_.length_bytes());  // statistics
    const uint64_t block = in.address();
    if (max_bits == 0 || max_bits > 64 || !std::has_single_bit(min_elements) ||
        !std::has_single_bit(min_pointers) || min_pointers < 2 || page_bits > 31 ||
        std::bit_width(min_elements) - 1 > max_bits) {
      file_.damaged(address_, "a chunk index with invalid sizes");
    }
    offset_bytes_ = (max_bits + 7) / 8;
    min_elements_ = min_elements;
    page_elements_ = uint64_t{1} << page_bits;
    super_blocks_ = 1 + max_bits - (std::bit_width(min_elements) - 1);
    direct_supers_ = 2 * (std::bit_width(min_pointers) - 1);
    direct_blocks_ = 2 * (uint64_t{min_pointers} - 1);
    if (block != kHdf5Undefined) read_index_block(block);
  }

 private:
  void read_index_block(uint64_t address) {
    const uint64_t head = kPrefix + file_.address_bytes();
    const uint64_t elements = uint64_t{inside_} * element_bytes_;
    const uint64_t supers = super_blocks_ > direct_supers_ ? super_blocks_ - direct_supers_ : 0;
    const uint64_t pointers = (direct_blocks_ + supers) * file_.address_bytes();
    const std::vector<uint8_t> raw = file_.read_checked(
        address, head + elements + pointers + kChecksum, "EAIB", "a block of an index of chunks");
    check_block(raw, address);
    take(std::span(raw).subspan(head, elements), 0);
    Hdf5Cursor in = file_.cursor(std::span(raw).subspan(head + elements, pointers));
    uint64_t first = inside_;
    for (unsigned super = 0; super < super_blocks_ && first < limit_; ++super) {
      const uint64_t blocks = uint64_t{1} << super / 2;
      uint64_t block_elements = 0, all = 0;
      if (super > 100 ||
          __builtin_mul_overflow(uint64_t{1} << (super + 1) / 2, min_elements_, &block_elements) ||
          __builtin_mul_overflow(blocks, block_elements, &all)) {
        return;  // no dataset has this many chunks
      }
      if (super < direct_supers_) {
        for (uint64_t i = 0; i < blocks; ++i) {
          read_data_block(in.address(), block_elements, first + i * block_elements, {}, 0);
        }
      } else {
        read_super_block(in.address(), blocks, block_elements, first);
      }
      if (__builtin_add_overflow(first, all, &first)) return;
    }
  }

  void read_super_block(uint64_t address, uint64_t blocks, uint64_t elements, uint64_t first) {
    if (address == kHdf5Undefined) return;
    visit_once(address);
    const uint64_t head = kPrefix + file_.address_bytes() + offset_bytes_;
    const uint64_t pages = elements > page_elements_ ? elements / page_elements_ : 0;
    const uint64_t bits = blocks * ((pages + 7) / 8);
    if (blocks > file_.file().size() || bits > file_.file().size()) {
      file_.damaged(address, "a block of an index of chunks that is larger than the file");
    }
    const std::vector<uint8_t> raw =
        file_.read_checked(address, head + bits + blocks * file_.address_bytes() + kChecksum,
                           "EASB", "a block of an index of chunks");
    check_block(raw, address);
    const std::span<const uint8_t> written = std::span(raw).subspan(head, bits);
    Hdf5Cursor in = file_.cursor(std::span(raw).subspan(head + bits));
    for (uint64_t i = 0; i < blocks && first + i * elements < limit_; ++i) {
      read_data_block(in.address(), elements, first + i * elements, written, i * pages);
    }
  }

  void read_data_block(uint64_t address, uint64_t elements, uint64_t first,
                       std::span<const uint8_t> written, uint64_t bit) {
    if (address == kHdf5Undefined || first >= limit_) return;
    visit_once(address);
    const bool paged = elements > page_elements_;
    if (elements > file_.file().size() / element_bytes_) {
      file_.damaged(address, "a block of an index of chunks that is larger than the file");
    }
    const uint64_t head = kPrefix + file_.address_bytes() + offset_bytes_;
    const uint64_t body = paged ? 0 : elements * element_bytes_;
    const std::vector<uint8_t> raw = file_.read_checked(address, head + body + kChecksum, "EADB",
                                                        "a block of an index of chunks");
    check_block(raw, address);
    if (paged) {
      take_pages(address + raw.size(), elements, page_elements_, first, written, bit);
    } else {
      take(std::span(raw).subspan(head, body), first);
    }
  }

  void visit_once(uint64_t address) {
    if (!seen_.insert(address).second)
      file_.damaged(address, "an index of chunks that refers to itself");
  }

  uint8_t inside_ = 0;
  unsigned offset_bytes_ = 0, super_blocks_ = 0, direct_supers_ = 0;
  uint64_t min_elements_ = 0, page_elements_ = 0, direct_blocks_ = 0;
  std::unordered_set<uint64_t> seen_;
};

}  // namespace

void visit_hdf5_fixed_array(const Hdf5File& file, uint64_t address, bool filtered, uint64_t limit,
                            const Hdf5ElementUse& use) {
  FixedArray(file, address, filtered, limit, use).read();
}

void visit_hdf5_extensible_array(const Hdf5File& file, uint64_t address, bool filtered,
                                 uint64_t limit, const Hdf5ElementUse& use) {
  ExtensibleArray(file, address, filtered, limit, use).read();
}

}  // namespace headrace
