// Convolutions, transposed convolutions and pooling.
#include "lib/Frontend/ONNX/Importer.h"

using namespace mlir;

namespace plimsoll::onnx {

/// Window attributes over the spatial dimensions; pads are begins then ends.
struct Window {
  std::vector<int64_t> kernel, strides, dilations, pads;
  bool ceil = false;
};

static bool positive(const std::vector<int64_t> &list) {
  return llvm::all_of(list, [](int64_t v) { return v >= 1 && v <= (int64_t(1) << 31); });
}

/// Result size of one dimension; 0 when the window does not fit.
static int64_t windowSize(const Window &w, size_t d, int64_t size) {
  size_t n = w.kernel.size();
  int64_t room = size + w.pads[d] + w.pads[d + n] - w.dilations[d] * (w.kernel[d] - 1) - 1;
  if (room < 0)
    return 0;
  int64_t out = room / w.strides[d] + 1;
  if (w.ceil && room % w.strides[d] != 0 && out * w.strides[d] < size + w.pads[d]) // the last window must start inside
    ++out;
  return out;
}

/// Attributes with ONNX's defaults; SAME_* pads resolved. False when lengths or values are wrong.
static bool readWindow(const Lowering &lowering, ArrayRef<int64_t> spatial, ArrayRef<int64_t> kernel, Window &w) {
  const Node &node = lowering.node;
  size_t n = spatial.size();
  w.kernel = intsAttribute(node, "kernel_shape", kernel.vec());
  w.strides = intsAttribute(node, "strides", std::vector<int64_t>(n, 1));
  w.dilations = intsAttribute(node, "dilations", std::vector<int64_t>(n, 1));
  w.pads = intsAttribute(node, "pads", std::vector<int64_t>(2 * n, 0));
  w.ceil = intAttribute(node, "ceil_mode", 0) != 0;
  std::string mode = textAttribute(node, "auto_pad", "NOTSET");
  bool ok = n >= 1 && n <= 3 && w.kernel.size() == n && w.strides.size() == n && w.dilations.size() == n &&
            w.pads.size() == 2 * n && positive(w.kernel) && positive(w.strides) && positive(w.dilations) &&
            llvm::all_of(w.pads, [](int64_t pad) { return pad >= 0 && pad <= (int64_t(1) << 31); }) &&
            (kernel.empty() || kernel == ArrayRef<int64_t>(w.kernel));
  if (!ok || mode == "NOTSET" || mode.empty())
    return ok;
  if (mode != "VALID" && mode != "SAME_UPPER" && mode != "SAME_LOWER")
    return false;
  for (size_t d = 0; d < n; ++d) {
    int64_t out = (spatial[d] + w.strides[d] - 1) / w.strides[d];
    int64_t total =
        mode == "VALID"
            ? 0
            : std::max<int64_t>(0, (out - 1) * w.strides[d] + w.dilations[d] * (w.kernel[d] - 1) + 1 - spatial[d]);
    w.pads[d] = mode == "SAME_LOWER" ? total - total / 2 : total / 2;
    w.pads[d + n] = total - w.pads[d];
  }
  return true;
}

/// Adds bias input `i` along dimension 1; the zero bias that the exporter computes for bias-less layers adds nothing.
static Value withBias(Lowering &lowering, Value y, size_t i) {
  const HostTensor *known = lowering.host(i);
  bool zero = known && (known->splat || known->count() == 1) && known->real(0) == 0;
  if (!lowering.has(i) || zero)
    return y;
  if (lowering.dims(i) != Dims{shapeOf(y)[1]} || lowering.dtype(i) != lowering.dtype(0))
    return {};
  return graph::AddOp::create(lowering.b, y, alongAxis(lowering.b, lowering.tensor(i), 1, shapeOf(y)));
}

static LogicalResult lowerConv(Lowering &lowering) {
  Dims x = lowering.dims(0), w = lowering.dims(1);
  int64_t groups = intAttribute(lowering.node, "group", 1);
  Window window;
  if (x.size() < 3 || x.size() != w.size() || !lowering.isFloatInput(0) || lowering.dtype(0) != lowering.dtype(1) ||
      groups < 1 || w[0] % groups != 0 || w[1] > x[1] || w[1] * groups != x[1] ||
      !readWindow(lowering, ArrayRef<int64_t>(x).drop_front(2), ArrayRef<int64_t>(w).drop_front(2), window))
    return lowering.bad(
        "expected x (N, C, s...), w (O, C/group, k...) with 1 to 3 spatial dimensions and fitting attributes");
  Dims shape{x[0], w[0]};
  for (size_t d = 2; d < x.size(); ++d)
    shape.push_back(windowSize(window, d - 2, x[d]));
  if (!elementCount(shape) || productOf(shape) == 0)
    return lowering.bad("expected a window that fits the padded input");
  Value input = lowering.tensor(0);
  Value y = graph::ConvOp::create(lowering.b, graph::tensorLike(input.getType(), shape), input, lowering.tensor(1),
                                  window.strides, window.pads, window.dilations, groups);
  y = withBias(lowering, y, 2);
  return y ? lowering.done(y) : lowering.bad("expected a bias of one value per output channel");
}

/// Pads that give the wanted output_shape, split as auto_pad says.
static void padsForShape(const Lowering &lowering, ArrayRef<int64_t> spatial, std::vector<int64_t> &outputPadding,
                         Window &w) {
  std::vector<int64_t> wanted = intsAttribute(lowering.node, "output_shape");
  std::string mode = textAttribute(lowering.node, "auto_pad", "NOTSET");
  size_t n = spatial.size();
  for (size_t d = 0; d < n && (!wanted.empty() || mode.rfind("SAME", 0) == 0); ++d) {
    int64_t target = wanted.empty() ? spatial[d] * w.strides[d] : wanted[wanted.size() - n + d];
    int64_t total =
        w.strides[d] * (spatial[d] - 1) + outputPadding[d] + (w.kernel[d] - 1) * w.dilations[d] + 1 - target;
    outputPadding[d] += std::max<int64_t>(0, -total); // a larger result than the window reaches ends in zeros
    total = std::max<int64_t>(0, total);
    w.pads[d] = mode == "SAME_UPPER" ? total / 2 : total - total / 2;
    w.pads[d + n] = total - w.pads[d];
  }
}

static LogicalResult lowerConvTranspose(Lowering &lowering) {
  Dims x = lowering.dims(0), w = lowering.dims(1);
  int64_t groups = intAttribute(lowering.node, "group", 1);
  Window window;
  size_t n = x.size() < 3 ? 0 : x.size() - 2;
  std::vector<int64_t> outputPadding = intsAttribute(lowering.node, "output_padding", std::vector<int64_t>(n, 0));
  size_t wanted = intsAttribute(lowering.node, "output_shape").size();
  if (n == 0 || x.size() != w.size() || !lowering.isFloatInput(0) || lowering.dtype(0) != lowering.dtype(1) ||
      groups < 1 || w[0] != x[1] || x[1] % groups != 0 || outputPadding.size() != n || (wanted != 0 && wanted < n) ||
      !elementCount(Dims{w[1], groups}) ||
      !readWindow(lowering, ArrayRef<int64_t>(x).drop_front(2), ArrayRef<int64_t>(w).drop_front(2), window))
    return lowering.bad(
        "expected x (N, C, s...), w (C, O/group, k...) with 1 to 3 spatial dimensions and fitting attributes");
  padsForShape(lowering, ArrayRef<int64_t>(x).drop_front(2), outputPadding, window);
  Dims shape{x[0], w[1] * groups};
  for (size_t d = 0; d < n; ++d) {
    bool fits = outputPadding[d] >= 0 && outputPadding[d] < std::max(window.strides[d], window.dilations[d]);
    shape.push_back(fits ? window.strides[d] * (x[d + 2] - 1) + outputPadding[d] +
                               (window.kernel[d] - 1) * window.dilations[d] + 1 - window.pads[d] - window.pads[d + n]
                         : 0);
    if (shape.back() < 1 || windowSize(window, d, shape.back()) != x[d + 2])
      return lowering.bad("expected pads and output_padding (below the stride) that leave a result");
  }
  if (!elementCount(shape))
    return lowering.bad("expected a result that fits in memory");
  Value input = lowering.tensor(0);
  Value y = graph::ConvInputGradOp::create(lowering.b, graph::tensorLike(input.getType(), shape), input,
                                           lowering.tensor(1), window.strides, window.pads, window.dilations, groups);
  y = withBias(lowering, y, 2);
  return y ? lowering.done(y) : lowering.bad("expected a bias of one value per output channel");
}

void addConvolutions(LowerTable &table) {
  table["Conv"] = lowerConv;
  table["ConvTranspose"] = lowerConvTranspose;
}

/// Result shape of a pool; empty when attributes or sizes do not fit.
static Dims poolShape(Lowering &lowering, Window &window) {
  Dims x = lowering.dims(0), shape;
  if (x.size() < 3 || !lowering.isFloatInput(0) ||
      !readWindow(lowering, ArrayRef<int64_t>(x).drop_front(2), {}, window))
    return {};
  for (size_t d = 0; d + 2 < x.size(); ++d)
    if (window.pads[d] >= window.dilations[d] * window.kernel[d] ||
        window.pads[d + x.size() - 2] >= window.dilations[d] * window.kernel[d])
      return {};
  shape = {x[0], x[1]};
  for (size_t d = 2; d < x.size(); ++d)
    shape.push_back(windowSize(window, d - 2, x[d]));
  return elementCount(shape).value_or(0) == 0 ? Dims() : shape;
}

static constexpr const char *poolExpected =
    "expected (N, C, s...) with 1 to 3 spatial dimensions and a window that fits";

static LogicalResult lowerMaxPool(Lowering &lowering) {
  Window window;
  if (!lowering.isFloatInput(0))
    return lowering.unsupported("pooling of integers", "convert the input to a float type");
  Dims shape = poolShape(lowering, window);
  if (shape.empty())
    return lowering.bad(poolExpected);
  Value x = lowering.tensor(0);
  Type indices = RankedTensorType::get(shape, lowering.b.getI32Type());
  auto pool = graph::MaxPoolOp::create(lowering.b, graph::tensorLike(x.getType(), shape), indices, x, window.kernel,
                                       window.strides, window.pads, window.dilations);
  return lowering.done(pool.getResult());
}

static LogicalResult lowerAveragePool(Lowering &lowering) {
  Window window;
  Dims shape = poolShape(lowering, window);
  if (shape.empty())
    return lowering.bad(poolExpected);
  Value x = lowering.tensor(0);
  bool includePad = intAttribute(lowering.node, "count_include_pad", 0) != 0;
  return lowering.done(graph::AvgPoolOp::create(lowering.b, graph::tensorLike(x.getType(), shape), x, window.kernel,
                                                window.strides, window.pads, window.dilations, includePad));
}

template <bool average> static LogicalResult lowerGlobalPool(Lowering &lowering) {
  Dims shape = lowering.dims(0), dims;
  if (shape.size() < 3 || !lowering.isFloatInput(0))
    return lowering.bad(poolExpected);
  for (size_t d = 2; d < shape.size(); ++d) {
    dims.push_back(static_cast<int64_t>(d));
    shape[d] = 1;
  }
  Value x = lowering.tensor(0);
  Value pooled = average ? meanOf(lowering.b, x, dims) : graph::reduceMax(lowering.b, x, dims);
  return lowering.done(graph::reshape(lowering.b, pooled, shape));
}

void addPooling(LowerTable &table) {
  table["MaxPool"] = lowerMaxPool;
  table["AveragePool"] = lowerAveragePool;
  table["GlobalAveragePool"] = lowerGlobalPool<true>;
  table["GlobalMaxPool"] = lowerGlobalPool<false>;
}

} // namespace plimsoll::onnx
