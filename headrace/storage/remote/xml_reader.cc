// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/remote/xml_reader.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "headrace/base/text.h"

namespace headrace {
namespace {

void add_utf8(uint32_t point, std::string& out) {
  const auto tail = [&](int shift) { out += static_cast<char>(0x80 | ((point >> shift) & 0x3f)); };
  if (point < 0x80) {
    out += static_cast<char>(point);
  } else if (point < 0x800) {
    out += static_cast<char>(0xc0 | (point >> 6));
    tail(0);
  } else if (point < 0x10000) {
    out += static_cast<char>(0xe0 | (point >> 12));
    tail(6), tail(0);
  } else {
    out += static_cast<char>(0xf0 | (point >> 18));
    tail(12), tail(6), tail(0);
  }
}

bool add_entity(std::string_view name, std::string& out) {
  constexpr std::pair<std::string_view, char> kNamed[] = {
      {"lt", '<'}, {"gt", '>'}, {"amp", '&'}, {"quot", '"'}, {"apos", '\''}};
  for (const auto& [known, character] : kNamed) {
    if (name != known) continue;
    out += character;
    return true;
  }
  if (!name.starts_with('#')) return false;
  name.remove_prefix(1);
  const bool is_hex = name.starts_with('x');
  if (is_hex) name.remove_prefix(1);
  uint32_t point = 0;
  const auto [end, error] =
      std::from_chars(name.data(), name.data() + name.size(), point, is_hex ? 16 : 10);
  if (name.empty() || error != std::errc() || end != name.data() + name.size() ||
      point > 0x10ffff || point == 0) {
    return false;
  }
  add_utf8(point, out);
  return true;
}

}  // namespace

std::optional<std::string> text_of_xml(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t entity = std::min(text.find('&'), text.size());
    out.append(text.substr(0, entity));
    text.remove_prefix(entity);
    if (text.empty()) break;
    const size_t end = text.find(';');
    if (end == std::string_view::npos || !add_entity(text.substr(1, end - 1), out)) return {};
    text.remove_prefix(end + 1);
  }
  return out;
}

bool XmlReader::skip_past(std::string_view end) {
  const size_t found = rest_.find(end);
  if (found == std::string_view::npos) return false;
  rest_.remove_prefix(found + end.size());
  return true;
}

XmlReader::Event XmlReader::next() {
  if (empty_element_) {
    empty_element_ = false;
    return Event::kEnd;
  }
  for (;;) {
    if (rest_.empty()) return Event::kOver;
    if (rest_.starts_with("<?")) {
      if (!skip_past("?>")) return Event::kDamaged;
    } else if (rest_.starts_with("<!--")) {
      if (!skip_past("-->")) return Event::kDamaged;
    } else if (rest_.starts_with("<!")) {
      return Event::kDamaged;  // a DTD, CDATA
    } else if (rest_.starts_with('<')) {
      return tag();
    } else {
      const size_t end = std::min(rest_.find('<'), rest_.size());
      std::optional<std::string> text = text_of_xml(rest_.substr(0, end));
      rest_.remove_prefix(end);
      if (!text) return Event::kDamaged;
      text_ = std::move(*text);
      return Event::kText;
    }
  }
}

XmlReader::Event XmlReader::tag() {
  const size_t end = rest_.find('>');
  if (end == std::string_view::npos) return Event::kDamaged;
  std::string_view inside = rest_.substr(1, end - 1);
  rest_.remove_prefix(end + 1);
  const bool closes = inside.starts_with('/');
  if (closes) inside.remove_prefix(1);
  if (!closes && inside.ends_with('/')) {
    empty_element_ = true;
    inside.remove_suffix(1);
  }
  name_ = inside.substr(0, inside.find_first_of(" \t\r\n"));
  attributes_ = inside.substr(name_.size());
  if (const size_t colon = name_.find(':'); colon != std::string_view::npos) {
    name_.remove_prefix(colon + 1);
  }
  if (name_.empty()) return Event::kDamaged;
  return closes ? Event::kEnd : Event::kBegin;
}

}  // namespace headrace
