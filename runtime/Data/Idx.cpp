// IDX files (the MNIST family): two zero bytes, an element code, the rank, big-endian dimensions, big-endian data.
// Gzip-compressed files are inflated when they are opened (DataFile).
#include "runtime/Data/Source.h"

#include <fmt/format.h>

namespace plimsoll::runtime {
namespace {

std::optional<Element> idxElement(unsigned code) {
  switch (code) {
  case 0x08:
    return Element::U8;
  case 0x09:
    return Element::I8;
  case 0x0b:
    return Element::I16;
  case 0x0c:
    return Element::I32;
  case 0x0d:
    return Element::F32;
  case 0x0e:
    return Element::F64;
  default:
    return std::nullopt;
  }
}

Result<ArrayView> parseIdx(std::span<const std::byte> bytes, const std::string &what) {
  auto byteAt = [&](size_t i) { return static_cast<unsigned>(bytes[i]); };
  if (bytes.size() < 4 || byteAt(0) != 0 || byteAt(1) != 0)
    return badInput(fmt::format("{}: is not an IDX file (wrong first bytes); expected the MNIST format", what));
  auto element = idxElement(byteAt(2));
  if (!element)
    return badInput(
        fmt::format("{}: unknown IDX element code 0x{:02x}, expected 08 09 0b 0c 0d or 0e", what, byteAt(2)));
  size_t rank = byteAt(3);
  if (rank == 0 || bytes.size() < 4 + 4 * rank)
    return badInput(
        fmt::format("{}: the IDX header claims {} dimensions, the file ends before them; it is truncated", what, rank));
  ArrayView view{4 + 4 * rank, *element, true, {}};
  for (size_t d = 0; d < rank; ++d) {
    size_t at = 4 + 4 * d;
    view.shape.push_back(int64_t(byteAt(at)) << 24 | byteAt(at + 1) << 16 | byteAt(at + 2) << 8 | byteAt(at + 3));
  }
  auto expected = denseBytes(view.shape, elementBytes(*element));
  uint64_t found = bytes.size() - view.byteOffset;
  if (!expected || *expected != found)
    return badInput(fmt::format("{}: shape {} of {} needs {} data bytes, the file holds {}; it is truncated or damaged",
                                what, dimsText(view.shape), elementName(*element),
                                expected ? std::to_string(*expected) : "more than 2^63", found));
  return view;
}

} // namespace

Result<std::unique_ptr<Source>> openIdxSource(const DataSpec &spec, const PortInfo &port) {
  Result<DataFile> file = DataFile::open(spec.path);
  if (!file)
    return file.status();
  Result<ArrayView> view = parseIdx(file->bytes(), describe(spec));
  if (!view)
    return view.status();
  return makeArraySource(spec, port, std::move(*file), *view);
}

} // namespace plimsoll::runtime
