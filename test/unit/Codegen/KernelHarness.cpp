// See KernelHarness.h.
#include "KernelHarness.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

#include <cmath>
#include <dlfcn.h>
#include <random>
#include <sys/mman.h>
#include <unistd.h>

using namespace mlir;
using plimsoll::reference::HostTensor;

namespace plimsoll::codegen::test {

LoadedModule::LoadedModule(const std::vector<uint8_t> &image) {
  int file = memfd_create("kernels", MFD_CLOEXEC);
  EXPECT_GE(file, 0);
  EXPECT_EQ(write(file, image.data(), image.size()), static_cast<ssize_t>(image.size()));
  handle = dlopen(("/proc/self/fd/" + std::to_string(file)).c_str(), RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(handle, nullptr) << dlerror();
  close(file);
}
LoadedModule::~LoadedModule() {
  if (handle)
    dlclose(handle);
}
KernelFunction LoadedModule::find(const std::string &symbol) const {
  return reinterpret_cast<KernelFunction>(dlsym(handle, symbol.c_str()));
}

OperandLayout layoutOf(RankedTensorType type, Storage storage) {
  OperandLayout layout;
  layout.strides.resize(type.getRank());
  int64_t stride = storage == Storage::Gapped ? 2 : 1;
  for (int64_t i = 0; i < type.getRank(); ++i) {
    int64_t d = storage == Storage::Reversed ? i : type.getRank() - 1 - i;
    layout.strides[d] = stride;
    stride *= type.getDimSize(d);
  }
  return layout;
}

static int64_t elementBytes(RankedTensorType type) { return std::max<int64_t>(type.getElementTypeBitWidth() / 8, 1); }

OperandBuffer::OperandBuffer(RankedTensorType tensorType, OperandLayout operandLayout)
    : type(tensorType), layout(std::move(operandLayout)) {
  int64_t span = 1;
  for (auto [size, stride] : llvm::zip(type.getShape(), layout.strides))
    span += std::max<int64_t>(size - 1, 0) * stride;
  bytes.assign((span + 1) * elementBytes(type), static_cast<char>(0xAB));
}

static int64_t placeOf(ArrayRef<int64_t> index, const OperandLayout &layout) {
  int64_t place = 0;
  for (auto [i, stride] : llvm::zip(index, layout.strides))
    place += i * stride;
  return place;
}

void OperandBuffer::set(const HostTensor &tensor) {
  std::vector<char> dense = reference::toBytes(tensor);
  int64_t size = elementBytes(type), from = 0;
  reference::forEachIndex(type.getShape(), [&](ArrayRef<int64_t> index) {
    std::copy_n(dense.begin() + from, size, bytes.begin() + placeOf(index, layout) * size);
    from += size;
  });
}
HostTensor OperandBuffer::get() const {
  std::vector<char> dense;
  int64_t size = elementBytes(type);
  reference::forEachIndex(type.getShape(), [&](ArrayRef<int64_t> index) {
    auto from = bytes.begin() + placeOf(index, layout) * size;
    dense.insert(dense.end(), from, from + size);
  });
  return *reference::fromBytes(type, dense);
}
bool OperandBuffer::gapsUntouched() const {
  std::vector<bool> used(bytes.size(), false);
  int64_t size = elementBytes(type);
  reference::forEachIndex(type.getShape(), [&](ArrayRef<int64_t> index) {
    std::fill_n(used.begin() + placeOf(index, layout) * size, size, true);
  });
  for (size_t i = 0; i < bytes.size(); ++i)
    if (!used[i] && bytes[i] != static_cast<char>(0xAB))
      return false;
  return true;
}

GroupCase::GroupCase(MLIRContext &context, const std::string &text) {
  context.loadDialect<graph::GraphDialect, func::FuncDialect>();
  module = parseSourceString<ModuleOp>(text, &context);
  EXPECT_TRUE(module) << text;
  if (!module)
    return;
  function = *module->getOps<func::FuncOp>().begin();
  group = *function.getOps<graph::GroupOp>().begin();
}

HostTensor randomTensor(RankedTensorType type, uint64_t seed, double scale) {
  std::mt19937_64 random(seed);
  HostTensor tensor = HostTensor::zeros(type);
  std::normal_distribution<double> normal(0, scale);
  for (double &value : tensor.floats)
    value = normal(random);
  for (int64_t &value : tensor.ints)
    value = static_cast<int64_t>(random() % (type.getElementTypeBitWidth() == 1 ? 2 : 7));
  reference::roundInPlace(tensor);
  return tensor;
}

static void launch(KernelFunction kernel, std::vector<void *> &operands, const KernelInfo &info, Cut cut) {
  int64_t step = cut == Cut::Whole ? std::max<int64_t>(info.extent, 1)
                                   : (cut == Cut::Units ? 1 : std::max<int64_t>(info.extent / 3, 1));
  for (int64_t begin = 0; begin < info.extent; begin += step)
    kernel(operands.data(), begin, std::min(begin + step, info.extent));
}

std::vector<HostTensor> runKernel(GroupCase &test, const std::vector<HostTensor> &inputs, const RunSettings &settings) {
  auto storageAt = [](const std::vector<Storage> &all, size_t i) { return i < all.size() ? all[i] : Storage::Dense; };
  SmallVector<OperandLayout> inputLayouts, outputLayouts;
  std::vector<OperandBuffer> buffers;
  for (auto [i, type] : llvm::enumerate(test.group.getInputs().getTypes())) {
    inputLayouts.push_back(layoutOf(cast<RankedTensorType>(type), storageAt(settings.inputs, i)));
    buffers.emplace_back(cast<RankedTensorType>(type), inputLayouts.back());
    buffers.back().set(inputs[i]);
  }
  for (auto [i, type] : llvm::enumerate(test.group.getOutputs().getTypes())) {
    outputLayouts.push_back(layoutOf(cast<RankedTensorType>(type), storageAt(settings.outputs, i)));
    buffers.emplace_back(cast<RankedTensorType>(type), outputLayouts.back());
  }
  CpuKernelModule module(test.group.getContext(), {settings.cpu});
  FailureOr<KernelInfo> info = module.add(test.group, inputLayouts, outputLayouts);
  EXPECT_TRUE(succeeded(info));
  FailureOr<std::vector<uint8_t>> image = module.finish();
  EXPECT_TRUE(succeeded(image));
  if (failed(info) || failed(image))
    return {};
  LoadedModule loaded(*image);
  std::vector<void *> operands;
  for (OperandBuffer &buffer : buffers)
    operands.push_back(buffer.data());
  if (settings.inPlaceInput >= 0)
    operands[inputs.size()] = operands[settings.inPlaceInput];
  KernelFunction kernel = loaded.find(info->symbol);
  EXPECT_NE(kernel, nullptr);
  launch(kernel, operands, *info, settings.cut);
  std::vector<HostTensor> results;
  for (size_t i = 0; i < outputLayouts.size(); ++i) {
    bool inPlace = i == 0 && settings.inPlaceInput >= 0;
    const OperandBuffer &buffer = inPlace ? buffers[settings.inPlaceInput] : buffers[inputs.size() + i];
    EXPECT_TRUE(buffer.gapsUntouched()) << "output " << i;
    results.push_back(buffer.get());
  }
  return results;
}

std::vector<HostTensor> runReference(GroupCase &test, const std::vector<HostTensor> &inputs) {
  reference::VariableState state;
  FailureOr<std::vector<HostTensor>> results =
      reference::evaluate(test.function, inputs, state, {/*exactDouble=*/true});
  EXPECT_TRUE(succeeded(results));
  return succeeded(results) ? *results : std::vector<HostTensor>();
}

void expectNear(const HostTensor &found, const HostTensor &expected, double relative, double absolute) {
  ASSERT_EQ(found.ints, expected.ints);
  ASSERT_EQ(found.floats.size(), expected.floats.size());
  for (size_t i = 0; i < found.floats.size(); ++i) {
    double want = expected.floats[i], got = found.floats[i];
    if (std::isnan(want) || std::isinf(want)) {
      EXPECT_TRUE(std::isnan(want) ? std::isnan(got) : got == want)
          << "element " << i << ": " << got << " instead of " << want;
      continue;
    }
    ASSERT_LE(std::abs(got - want), relative * std::abs(want) + absolute)
        << "element " << i << ": " << got << " instead of " << want;
  }
}

} // namespace plimsoll::codegen::test
