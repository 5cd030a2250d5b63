// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/hdf5/hdf5_messages.h"

#include <algorithm>

namespace headrace {
namespace {

constexpr size_t kMaxSpaceDimensions = 32, kMaxFilters = 32, kMaxValues = 1024;

class LayoutParser {
 public:
  LayoutParser(const Hdf5File& file, const Hdf5Message& message)
      : file_(file), message_(message), in_(file.cursor(message.bytes)) {}

  Hdf5Layout parse() {
    const uint8_t version = in_.u8();
    if (version < 1 || version > 5) bad("of version " + std::to_string(version));
    if (version < 3) {
      parse_old();
    } else {
      const uint8_t what = in_.u8();
      if (what > 3) bad("of the unknown class " + std::to_string(what));
      out_.what = static_cast<Hdf5Layout::Class>(what);
      parse_young(version);
    }
    if (!in_.good()) bad("that is truncated");
    return std::move(out_);
  }

 private:
  [[noreturn]] void bad(const std::string& how) const {
    file_.damaged(message_.address, "a data layout " + how);
  }

  void parse_old() {
    const uint8_t dimensions = in_.u8(), what = in_.u8();
    if (what > 2) bad("of the unknown class " + std::to_string(what));
    out_.what = static_cast<Hdf5Layout::Class>(what);
    in_.skip(5);
    if (out_.what != Hdf5Layout::Class::kCompact) out_.address = in_.address();
    if (out_.what == Hdf5Layout::Class::kChunked) {
      take_chunk(dimensions, 4);
      return;
    }
    in_.skip(4U * dimensions);  // truncated to 32 bits; the dataspace has the full values
    if (out_.what == Hdf5Layout::Class::kCompact) take_data(in_.u32());
  }

  void parse_young(uint8_t version) {
    switch (out_.what) {
      case Hdf5Layout::Class::kCompact:
        take_data(in_.u16());
        break;
      case Hdf5Layout::Class::kContiguous:
        out_.address = in_.address();
        out_.bytes = in_.length();
        break;
      case Hdf5Layout::Class::kChunked:
        if (version == 3) {
          const uint8_t dimensions = in_.u8();
          out_.address = in_.address();
          take_chunk(dimensions, 4);
        } else {
          parse_indexed();
        }
        break;
      case Hdf5Layout::Class::kVirtual:
        break;
    }
  }

  void parse_indexed() {
    const uint8_t flags = in_.u8(), dimensions = in_.u8(), width = in_.u8();
    if (width < 1 || width > 8) bad("with zero-width dimensions");
    out_.edges_unfiltered = (flags & 1) != 0;
    take_chunk(dimensions, width);
    const uint8_t index = in_.u8();
    if (index < 1 || index > 5) bad("with the unknown chunk index " + std::to_string(index));
    out_.index = static_cast<Hdf5Index>(index);
    switch (out_.index) {
      case Hdf5Index::kSingle:
        if (flags & 2) {
          out_.single_bytes = in_.length();
          out_.single_mask = in_.u32();
        }
        break;
      case Hdf5Index::kFixedArray:
        in_.skip(1);  // repeated in its header
        break;
      case Hdf5Index::kExtensible:
        in_.skip(5);
        break;
      case Hdf5Index::kTree:
        in_.skip(6);
        break;
      default:
        break;
    }
    out_.address = in_.address();
  }

  // The last dimension is the size of an element.
  void take_chunk(uint8_t dimensions, int width) {
    if (dimensions < 2 || dimensions > kMaxSpaceDimensions + 1)
      bad("with chunks without dimensions");
    for (int i = 0; i < dimensions; ++i) out_.chunk.push_back(in_.number(width));
    if (!in_.good()) bad("that is truncated");
    if (std::count(out_.chunk.begin(), out_.chunk.end(), 0) > 0) bad("with empty chunks");
    out_.element_bytes = out_.chunk.back();
    out_.chunk.pop_back();
  }

  void take_data(uint32_t bytes) {
    const std::span<const uint8_t> data = in_.bytes(bytes);
    if (!in_.good()) bad("whose data is truncated");
    out_.data.assign(data.begin(), data.end());
  }

  const Hdf5File& file_;
  const Hdf5Message& message_;
  Hdf5Cursor in_;
  Hdf5Layout out_;
};

}  // namespace

Hdf5Space hdf5_space(const Hdf5File& file, const Hdf5Object& object) {
  const Hdf5Message* message = object.find(Hdf5MessageType::kDataspace);
  if (!message) file.damaged(object.address(), "a dataset without a shape");
  Hdf5Cursor in = file.cursor(message->bytes);
  const uint8_t version = in.u8(), rank = in.u8(), flags = in.u8(), type = in.u8();
  if (version < 1 || version > 2 || rank > kMaxSpaceDimensions) {
    file.damaged(message->address, "a shape of version " + std::to_string(version) + " with " +
                                       std::to_string(rank) + " dimensions");
  }
  if (version == 1) in.skip(4);
  Hdf5Space space;
  space.null = version == 2 && type == 2;
  for (int i = 0; i < rank; ++i) space.sizes.push_back(in.length());
  const uint64_t unlimited = UINT64_MAX >> (64 - 8 * file.length_bytes());
  for (int i = 0; i < rank && (flags & 1); ++i) {
    const uint64_t most = in.length();
    space.most.push_back(most == unlimited ? UINT64_MAX : most);
    if (most < space.sizes[i]) file.damaged(message->address, "a shape larger than its maximum");
  }
  if (!in.good()) file.damaged(message->address, "a shape that is truncated");
  if (space.most.empty()) space.most = space.sizes;
  return space;
}

Hdf5Layout hdf5_layout(const Hdf5File& file, const Hdf5Message& message) {
  return LayoutParser(file, message).parse();
}

std::vector<Hdf5Filter> hdf5_filters(const Hdf5File& file, const Hdf5Object& object) {
  const Hdf5Message* message = object.find(Hdf5MessageType::kFilters);
  if (!message) return {};
  Hdf5Cursor in = file.cursor(message->bytes);
  const uint8_t version = in.u8(), count = in.u8();
  if (version < 1 || version > 2 || count > kMaxFilters) {
    file.damaged(message->address, "a list of filters of version " + std::to_string(version) +
                                       " with " + std::to_string(count) + " filters");
  }
  if (version == 1) in.skip(6);
  std::vector<Hdf5Filter> filters(count);
  for (Hdf5Filter& filter : filters) {
    filter.id = in.u16();
    const uint16_t name_bytes = version == 1 || filter.id >= 256 ? in.u16() : 0;
    in.skip(2);  // flags: whether it is optional; a chunk's mask says whether it was used
    const uint16_t values = in.u16();
    const size_t padded = version == 1 ? (name_bytes + 7U) / 8 * 8 : name_bytes;
    const std::span<const uint8_t> name = in.bytes(padded);
    filter.name.assign(name.begin(), std::find(name.begin(), name.end(), 0));
    if (values > kMaxValues) file.damaged(message->address, "a filter of too many values");
    for (int i = 0; i < values; ++i) filter.values.push_back(in.u32());
    if (version == 1 && values % 2 != 0) in.skip(4);
  }
  if (!in.good()) file.damaged(message->address, "a list of filters that is truncated");
  return filters;
}

std::string name_of(const Hdf5Filter& filter) {
  struct Known {
    uint16_t id;
    const char* name;
  };
  static constexpr Known kKnown[] = {{1, "deflate"},   {2, "shuffle"},  {3, "fletcher32"},
                                     {4, "szip"},      {5, "nbit"},     {6, "scaleoffset"},
                                     {305, "lzo"},     {307, "bzip2"},  {32000, "lzf"},
                                     {32001, "blosc"}, {32004, "lz4"},  {32008, "bitshuffle"},
                                     {32013, "zfp"},   {32015, "zstd"}, {32026, "blosc2"}};
  for (const Known& known : kKnown) {
    if (known.id == filter.id) {
      return std::string(known.name) + " (filter " + std::to_string(filter.id) + ")";
    }
  }
  std::string printable;
  for (char c : filter.name) {
    if (c >= ' ' && c <= '~' && printable.size() < 64) printable += c;
  }
  return (printable.empty() ? "unnamed" : printable) + " (filter " + std::to_string(filter.id) +
         ")";
}

std::vector<uint8_t> hdf5_fill_value(const Hdf5File& file, const Hdf5Object& object) {
  const Hdf5Message* message = object.find(Hdf5MessageType::kFillValue);
  const bool old = !message;
  if (old) message = object.find(Hdf5MessageType::kOldFillValue);
  if (!message) return {};
  Hdf5Cursor in = file.cursor(message->bytes);
  bool there = true;
  if (!old) {
    const uint8_t version = in.u8();
    if (version < 1 || version > 3)
      file.damaged(message->address, "a fill value without a version");
    if (version == 3) {
      there = (in.u8() & 0x20) != 0;
    } else {
      in.skip(2);
      const bool defined = in.u8() != 0;
      there = version == 1 || defined;
    }
  }
  if (!there) return {};
  const uint32_t bytes = in.u32();
  const std::span<const uint8_t> value = in.bytes(bytes);
  if (!in.good()) file.damaged(message->address, "a fill value that is truncated");
  return {value.begin(), value.end()};
}

}  // namespace headrace
