// NumPy array files, format versions 1 and 2: magic, header length, a Python dictionary literal, then the data.
// Source: NEP 1 (the .npy format). Accepted: C order, little endian (or one-byte) numbers and booleans.
#include "runtime/Data/Source.h"

#include <charconv>
#include <cstring>
#include <fmt/format.h>

namespace plimsoll::runtime {
namespace {

constexpr size_t maxHeaderBytes = 65536;

/// The text of a value in the header dictionary: what follows `'key':`, up to its end. Empty when absent.
std::string_view headerValue(std::string_view header, std::string_view key) {
  size_t at = header.find(fmt::format("'{}'", key));
  if (at == std::string_view::npos || (at = header.find(':', at)) == std::string_view::npos)
    return {};
  header.remove_prefix(at + 1);
  size_t begin = header.find_first_not_of(' ');
  if (begin == std::string_view::npos)
    return {};
  header.remove_prefix(begin);
  size_t end = header[0] == '(' ? header.find(')') : header.find_first_of(",}");
  return end == std::string_view::npos ? std::string_view() : header.substr(0, end + (header[0] == '(' ? 1 : 0));
}

std::optional<Element> parseDescr(std::string_view descr) {
  struct Row {
    std::string_view code;
    Element element;
  };
  static const Row rows[] = {{"f4", Element::F32}, {"f8", Element::F64}, {"f2", Element::F16}, {"i8", Element::I64},
                             {"i4", Element::I32}, {"i2", Element::I16}, {"i1", Element::I8},  {"u1", Element::U8},
                             {"u2", Element::U16}, {"u4", Element::U32}, {"b1", Element::Bool}};
  if (descr.size() != 5 || descr.front() != '\'' || descr.back() != '\'')
    return std::nullopt;
  std::string_view code = descr.substr(2, 2);
  bool oneByte = code[1] == '1';
  if (descr[1] != '<' && !(oneByte && (descr[1] == '|' || descr[1] == '>')))
    return std::nullopt;
  for (const Row &row : rows)
    if (row.code == code)
      return row.element;
  return std::nullopt;
}

std::optional<std::vector<int64_t>> parseShape(std::string_view text) {
  std::vector<int64_t> shape;
  if (text.size() < 2 || text.front() != '(' || text.back() != ')')
    return std::nullopt;
  text = text.substr(1, text.size() - 2);
  while (true) {
    size_t begin = text.find_first_not_of(", ");
    if (begin == std::string_view::npos)
      return shape;
    text.remove_prefix(begin);
    int64_t dim = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), dim);
    if (error != std::errc() || dim < 0)
      return std::nullopt;
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    shape.push_back(dim);
    if (shape.size() > 32 || (!text.empty() && text[0] != ',' && text[0] != ' '))
      return std::nullopt;
  }
}

/// Length of everything before the data, and the header text.
Result<std::pair<size_t, std::string_view>> splitHeader(std::span<const std::byte> bytes, const std::string &what) {
  auto byteAt = [&](size_t i) { return static_cast<size_t>(bytes[i]); };
  static const char magic[] = "\x93NUMPY";
  if (bytes.size() < 12 || std::memcmp(bytes.data(), magic, 6) != 0)
    return badInput(fmt::format("{}: is not a .npy file (wrong first bytes); save it with numpy.save", what));
  size_t version = byteAt(6);
  if (version != 1 && version != 2)
    return badInput(fmt::format("{}: .npy version {}, expected 1 or 2; save it with numpy.save", what, version));
  size_t prefix = version == 1 ? 10 : 12;
  size_t length = byteAt(8) | byteAt(9) << 8;
  if (version == 2)
    length |= byteAt(10) << 16 | byteAt(11) << 24;
  if (length > maxHeaderBytes || prefix + length > bytes.size())
    return badInput(fmt::format("{}: the .npy header claims {} bytes, beyond the file or the limit of {}; the file is "
                                "damaged",
                                what, length, maxHeaderBytes));
  return std::pair(prefix + length, std::string_view(reinterpret_cast<const char *>(bytes.data()) + prefix, length));
}

Result<ArrayView> parseNpy(std::span<const std::byte> bytes, const std::string &what) {
  auto header = splitHeader(bytes, what);
  if (!header)
    return header.status();
  auto [dataOffset, text] = *header;
  std::string_view descr = headerValue(text, "descr"), order = headerValue(text, "fortran_order");
  auto element = parseDescr(descr);
  if (!element)
    return badInput(fmt::format("{}: element type {}, expected one of <f2 <f4 <f8 i1 <i2 <i4 <i8 u1 <u2 <u4 b1", what,
                                descr.empty() ? std::string_view("missing") : descr));
  if (order != "False")
    return badInput(fmt::format("{}: the array is not in C order; save numpy.ascontiguousarray(a)", what));
  auto shape = parseShape(headerValue(text, "shape"));
  if (!shape)
    return badInput(fmt::format("{}: the .npy header has no readable shape; the file is damaged", what));
  auto expected = denseBytes(*shape, elementBytes(*element));
  uint64_t found = bytes.size() - dataOffset;
  if (!expected || *expected != found)
    return badInput(fmt::format("{}: shape {} of {} needs {} data bytes, the file holds {}; it is truncated or damaged",
                                what, dimsText(*shape), elementName(*element),
                                expected ? std::to_string(*expected) : "more than 2^63", found));
  return ArrayView{dataOffset, *element, false, std::move(*shape)};
}

} // namespace

Result<std::unique_ptr<Source>> openNpySource(const DataSpec &spec, const PortInfo &port) {
  Result<DataFile> file = DataFile::open(spec.path);
  if (!file)
    return file.status();
  Result<ArrayView> view = parseNpy(file->bytes(), describe(spec));
  if (!view)
    return view.status();
  return makeArraySource(spec, port, std::move(*file), *view);
}

} // namespace plimsoll::runtime
