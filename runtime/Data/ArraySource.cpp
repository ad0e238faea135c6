// Dense arrays (npy, idx, safetensors) as samples along their first dimension, and the constant source.
#include "runtime/Data/Source.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>

namespace plimsoll::runtime {

uint64_t PortInfo::elements() const {
  uint64_t product = 1;
  for (int64_t dim : shape)
    product *= static_cast<uint64_t>(dim);
  return product;
}

std::string describe(const DataSpec &spec) { return fmt::format("--data {}={}({})", spec.port, spec.kind, spec.path); }

std::string dimsText(const std::vector<int64_t> &shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

std::optional<uint64_t> denseBytes(const std::vector<int64_t> &shape, size_t elementSize) {
  uint64_t product = elementSize;
  for (int64_t dim : shape) {
    if (dim < 0)
      return std::nullopt;
    if (dim > 0 && product > uint64_t(std::numeric_limits<int64_t>::max()) / static_cast<uint64_t>(dim))
      return std::nullopt;
    product *= static_cast<uint64_t>(dim);
  }
  return product;
}

namespace {

class ArraySource final : public Source {
public:
  ArraySource(const DataSpec &spec, const PortInfo &port, DataFile mapped, const ArrayView &view,
              ElementFormat elementFormat)
      : file(std::move(mapped)), format(elementFormat), target(port.dtype), what(describe(spec)),
        begin(view.byteOffset), samples(static_cast<uint64_t>(view.shape[0])),
        rowElements(port.elements() / static_cast<uint64_t>(port.shape[0])),
        rowBytes(rowElements * elementBytes(view.element)) {}

  SourceUnit unit() const override { return SourceUnit::Sample; }
  uint64_t count() const override { return samples; }
  void useWindow(uint64_t bytes) override { file.useWindow(bytes); }
  uint64_t residentBytes() const override { return file.windowBytes(); }
  Status checkUnchanged() const override { return file.checkUnchanged(); }

  Status read(uint64_t index, std::byte *out) override {
    return convertFromFile(file, begin + index * rowBytes, format, rowElements, target, out, what, "sample", index);
  }

private:
  DataFile file;
  ElementFormat format;
  artifact::DType target;
  std::string what;
  uint64_t begin; ///< file offset of the first sample
  uint64_t samples;
  uint64_t rowElements;
  uint64_t rowBytes;
};

class ConstantSource final : public Source {
public:
  ConstantSource(const PortInfo &port, double number) : dtype(port.dtype), elements(port.elements()), value(number) {}
  SourceUnit unit() const override { return SourceUnit::Constant; }
  uint64_t count() const override { return 0; }
  void useWindow(uint64_t) override {}
  uint64_t residentBytes() const override { return 0; }
  Status checkUnchanged() const override { return Status::ok(); }
  Status read(uint64_t, std::byte *out) override {
    for (uint64_t i = 0; i < elements; ++i)
      writeScalar(dtype, value, out + i * dtypeBytes(dtype));
    return Status::ok();
  }

private:
  artifact::DType dtype;
  uint64_t elements;
  double value;
};

} // namespace

Status convertFromFile(DataFile &file, uint64_t offset, const ElementFormat &format, uint64_t count,
                       artifact::DType target, std::byte *out, const std::string &what, const char *unit,
                       uint64_t unitIndex) {
  size_t width = elementBytes(format.element);
  uint64_t piece = std::max<uint64_t>(file.largestRead() / width, 1);
  for (uint64_t done = 0; done < count; done += piece) {
    uint64_t elements = std::min(piece, count - done);
    const std::byte *source = file.view(offset + done * width, elements * width);
    if (!source)
      return badInput(fmt::format("{}: cannot map the file ({})", what, strerror(errno)));
    if (auto fault = convertElements(format, source, elements, target, out + done * artifact::dtypeBytes(target)))
      return badInput(fmt::format("{}: {} {}, element {}: {}; correct the data file", what, unit, unitIndex,
                                  done + fault->index, fault->reason));
  }
  return Status::ok();
}

Result<std::unique_ptr<Source>> makeArraySource(const DataSpec &spec, const PortInfo &port, DataFile file,
                                                const ArrayView &view) {
  Result<double> scale = numberOption(spec, "scale", 1.0), offset = numberOption(spec, "offset", 0.0);
  if (!scale)
    return scale.status();
  if (!offset)
    return offset.status();
  if (port.shape.empty())
    return Status(ExitCode::Usage, fmt::format("{}: port {} is a scalar, expected one with a batch dimension; use "
                                               "constant(NUMBER)",
                                               describe(spec), port.name));
  if (view.shape.empty() || view.shape[0] == 0)
    return badInput(fmt::format("{}: array of shape {} holds no samples; its first dimension must be the samples",
                                describe(spec), dimsText(view.shape)));
  uint64_t stored = *denseBytes(view.shape, 1) / static_cast<uint64_t>(view.shape[0]);
  uint64_t expected = port.elements() / static_cast<uint64_t>(port.shape[0]);
  if (stored != expected)
    return badInput(fmt::format("{}: array of shape {} has {} elements per sample, port {} of shape {} needs {}; "
                                "store matching samples or compile for this shape",
                                describe(spec), dimsText(view.shape), stored, port.name, dimsText(port.shape),
                                expected));
  ElementFormat format{view.element, view.bigEndian && elementBytes(view.element) > 1, *scale, *offset};
  if (Status status = checkConvertible(format, port.dtype, describe(spec)); !status)
    return status;
  return std::unique_ptr<Source>(std::make_unique<ArraySource>(spec, port, std::move(file), view, format));
}

Result<std::unique_ptr<Source>> openConstantSource(const DataSpec &spec, const PortInfo &port) {
  DataSpec asOption = spec;
  asOption.options["value"] = spec.path;
  Result<double> value = numberOption(asOption, "value", 0.0);
  if (!value)
    return value.status();
  return std::unique_ptr<Source>(std::make_unique<ConstantSource>(port, *value));
}

} // namespace plimsoll::runtime
