// Token files: a flat array of little-endian uint16 or uint32 token numbers, read as windows of the port's length.
// Sample i is the window that starts at token i * stride + shift; stride defaults to the window length.
#include "runtime/Data/Source.h"

#include <fmt/format.h>

namespace plimsoll::runtime {
namespace {

struct TokenLayout {
  Element element = Element::U16;
  uint64_t window = 1; ///< tokens per sample
  uint64_t stride = 1; ///< tokens between the starts of neighbouring samples
  uint64_t shift = 0;  ///< tokens skipped before the first window
  uint64_t vocab = 0;  ///< tokens must be below this; 0 = not checked
};

class TokenSource final : public Source {
public:
  TokenSource(const DataSpec &spec, const PortInfo &port, DataFile mapped, const TokenLayout &tokenLayout)
      : file(std::move(mapped)), layout(tokenLayout), target(port.dtype), what(describe(spec)) {
    uint64_t tokens = file.fileBytes() / elementBytes(layout.element);
    samples = (tokens - layout.shift - layout.window) / layout.stride + 1;
  }
  SourceUnit unit() const override { return SourceUnit::Sample; }
  uint64_t count() const override { return samples; }
  void useWindow(uint64_t bytes) override { file.useWindow(bytes); }
  uint64_t residentBytes() const override { return file.windowBytes(); }
  Status checkUnchanged() const override { return file.checkUnchanged(); }
  const DataFile *sharedFile() const override { return &file; }

  Status read(uint64_t index, std::byte *out) override {
    uint64_t first = index * layout.stride + layout.shift;
    ElementFormat format{layout.element, false, 1.0, 0.0};
    Status status = convertFromFile(file, first * elementBytes(layout.element), format, layout.window, target, out,
                                    what, "token window", index);
    if (!status)
      return status;
    return layout.vocab ? checkVocabulary(index, first, out) : Status::ok();
  }

private:
  Status checkVocabulary(uint64_t index, uint64_t first, const std::byte *out) const {
    for (uint64_t i = 0; i < layout.window; ++i) {
      double token = readScalar(target, out + i * dtypeBytes(target));
      if (token >= static_cast<double>(layout.vocab))
        return badInput(fmt::format("{}: sample {}, token {}: {} is outside the vocabulary of {}; correct the token "
                                    "file or its type (u16, u32)",
                                    what, index, first + i, token, layout.vocab));
    }
    return Status::ok();
  }

  DataFile file;
  TokenLayout layout;
  artifact::DType target;
  std::string what;
  uint64_t samples = 0;
};

Result<Element> tokenElement(const DataSpec &spec) {
  bool u16 = spec.options.count("u16") != 0, u32 = spec.options.count("u32") != 0;
  auto endsWith = [&](std::string_view suffix) {
    return spec.path.size() >= suffix.size() &&
           std::string_view(spec.path).substr(spec.path.size() - suffix.size()) == suffix;
  };
  if (!u16 && !u32) {
    u16 = endsWith(".u16") || endsWith(".u16.bin");
    u32 = endsWith(".u32") || endsWith(".u32.bin");
  }
  if (u16 == u32)
    return Status(ExitCode::Usage,
                  fmt::format("{}: the token type is {}; say u16 or u32 after the path, or name the file *.u16.bin",
                              describe(spec), u16 ? "given twice" : "not given"));
  return u16 ? Element::U16 : Element::U32;
}

Result<TokenLayout> tokenLayout(const DataSpec &spec, const PortInfo &port) {
  TokenLayout layout;
  Result<Element> element = tokenElement(spec);
  if (!element)
    return element.status();
  layout.element = *element;
  if (port.shape.empty())
    return Status(ExitCode::Usage,
                  fmt::format("{}: port {} is a scalar, expected [batch, tokens]", describe(spec), port.name));
  if (isFloat(port.dtype))
    return Status(ExitCode::Usage, fmt::format("{}: tokens cannot feed port {} of type {}, expected an integer port; "
                                               "use npy for floating-point data",
                                               describe(spec), port.name, dtypeName(port.dtype)));
  layout.window = port.elements() / static_cast<uint64_t>(port.shape[0]);
  Result<uint64_t> shift = unsignedOption(spec, "shift", 0), stride = unsignedOption(spec, "stride", layout.window),
                   vocab = unsignedOption(spec, "vocab", 0);
  for (const Result<uint64_t> *option : {&shift, &stride, &vocab})
    if (!*option)
      return option->status();
  if (*stride == 0)
    return Status(ExitCode::Usage, fmt::format("{}: stride=0, expected at least 1", describe(spec)));
  layout.shift = *shift;
  layout.stride = *stride;
  layout.vocab = *vocab;
  return layout;
}

} // namespace

Result<std::unique_ptr<Source>> openTokenSource(const DataSpec &spec, const PortInfo &port) {
  Result<TokenLayout> layout = tokenLayout(spec, port);
  if (!layout)
    return layout.status();
  Result<DataFile> file = DataFile::open(spec.path);
  if (!file)
    return file.status();
  uint64_t bytes = file->bytes().size(), width = elementBytes(layout->element);
  if (bytes % width != 0)
    return badInput(fmt::format("{}: {} bytes is not a multiple of {} ({}); the file is truncated or of another type",
                                describe(spec), bytes, width, elementName(layout->element)));
  uint64_t tokens = bytes / width;
  if (tokens < layout->window || tokens - layout->window < layout->shift)
    return badInput(fmt::format("{}: holds {} tokens, one sample needs {} (window {} + shift {}); give more data",
                                describe(spec), tokens, layout->window + layout->shift, layout->window, layout->shift));
  return std::unique_ptr<Source>(std::make_unique<TokenSource>(spec, port, std::move(*file), *layout));
}

} // namespace plimsoll::runtime
