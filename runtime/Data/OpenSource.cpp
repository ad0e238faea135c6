// Picks the opener of a kind, and the safetensors kind: a sample array under one key, or whole batches under keys with
// "{i}" that are used in rotation (batch b of the run reads the key with i = b mod count).
#include "runtime/Core/SafeTensors.h"
#include "runtime/Data/Source.h"

#include <algorithm>
#include <fmt/format.h>

namespace plimsoll::runtime {
namespace {

Element elementOfDtype(artifact::DType dtype) {
  switch (dtype) {
  case artifact::DType::F32:
    return Element::F32;
  case artifact::DType::F64:
    return Element::F64;
  case artifact::DType::F16:
    return Element::F16;
  case artifact::DType::BF16:
    return Element::BF16;
  case artifact::DType::I64:
    return Element::I64;
  case artifact::DType::I32:
    return Element::I32;
  case artifact::DType::I16:
    return Element::I16;
  case artifact::DType::I8:
    return Element::I8;
  case artifact::DType::U8:
    return Element::U8;
  case artifact::DType::Bool:
    return Element::Bool;
  }
  return Element::U8;
}

/// Whole batches: one tensor of the port's shape per batch.
class BatchSource final : public Source {
public:
  BatchSource(const DataSpec &spec, const PortInfo &port, DataFile mapped, double scale, double offset)
      : file(std::move(mapped)), what(describe(spec)), target(port.dtype), elements(port.elements()), factor(scale),
        summand(offset) {}

  /// Takes the tensors of `archive` under `key` with {i} = 0, 1, … for as long as they exist.
  Status collect(const SafeTensors &archive, const std::string &key, const PortInfo &port) {
    size_t hole = key.find("{i}");
    for (uint64_t i = 0;; ++i) {
      std::string name = fmt::format("{}{}{}", key.substr(0, hole), i, key.substr(hole + 3));
      const NamedTensor *tensor = archive.find(name);
      if (!tensor)
        return i ? Status::ok() : badInput(fmt::format("{}: has no tensor {}", what, inQuotes(name)));
      if (tensor->shape != port.shape)
        return badInput(fmt::format("{}: tensor {} has shape {}, port {} needs {}", what, inQuotes(name),
                                    dimsText(tensor->shape), port.name, dimsText(port.shape)));
      ElementFormat format{elementOfDtype(tensor->dtype), false, factor, summand};
      if (Status status = checkConvertible(format, target, what); !status)
        return status;
      batches.push_back({format, static_cast<size_t>(tensor->bytes.data() - archive.fileBytes().data())});
    }
  }

  SourceUnit unit() const override { return SourceUnit::Batch; }
  uint64_t count() const override { return batches.size(); }
  void useWindow(uint64_t bytes) override { file.useWindow(bytes); }
  uint64_t residentBytes() const override { return file.windowBytes(); }
  Status checkUnchanged() const override { return file.checkUnchanged(); }

  Status read(uint64_t index, std::byte *out) override {
    const Batch &batch = batches[index];
    return convertFromFile(file, batch.byteOffset, batch.format, elements, target, out, what, "batch", index);
  }

private:
  struct Batch {
    ElementFormat format;
    size_t byteOffset;
  };
  DataFile file;
  std::string what;
  artifact::DType target;
  uint64_t elements;
  double factor, summand;
  std::vector<Batch> batches;
};

} // namespace

Result<std::unique_ptr<Source>> openSafeTensorsSource(const DataSpec &spec, const PortInfo &port) {
  auto key = spec.options.find("key");
  if (key == spec.options.end() || key->second.empty())
    return Status(ExitCode::Usage, fmt::format("{}: key=NAME is missing; name the tensor", describe(spec)));
  Result<double> scale = numberOption(spec, "scale", 1.0), offset = numberOption(spec, "offset", 0.0);
  if (!scale)
    return scale.status();
  if (!offset)
    return offset.status();
  Result<DataFile> file = DataFile::open(spec.path);
  if (!file)
    return file.status();
  Result<SafeTensors> archive = SafeTensors::parse(file->bytes(), spec.path);
  if (!archive)
    return archive.status();
  if (key->second.find("{i}") != std::string::npos) {
    auto source = std::make_unique<BatchSource>(spec, port, std::move(*file), *scale, *offset);
    if (Status status = source->collect(*archive, key->second, port); !status)
      return status;
    return std::unique_ptr<Source>(std::move(source));
  }
  const NamedTensor *tensor = archive->find(key->second);
  if (!tensor)
    return badInput(fmt::format("{}: has no tensor {}", describe(spec), inQuotes(key->second)));
  ArrayView view{static_cast<size_t>(tensor->bytes.data() - archive->fileBytes().data()), elementOfDtype(tensor->dtype),
                 false, tensor->shape};
  return makeArraySource(spec, port, std::move(*file), view);
}

Result<std::unique_ptr<Source>> openSource(const DataSpec &spec, const PortInfo &port) {
  if (spec.kind == "tokens")
    return openTokenSource(spec, port);
  if (spec.kind == "npy")
    return openNpySource(spec, port);
  if (spec.kind == "idx")
    return openIdxSource(spec, port);
  if (spec.kind == "safetensors")
    return openSafeTensorsSource(spec, port);
  if (spec.kind == "constant")
    return openConstantSource(spec, port);
  return internalError(fmt::format("no opener for data kind {}", spec.kind));
}

} // namespace plimsoll::runtime
