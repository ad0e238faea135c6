// Resize: one dimension at a time, as a view (whole-factor nearest), a gather (nearest) or a product with a constant
// interpolation matrix (linear, cubic), so that gradients come from ops that have them already.
#include "lib/Frontend/ONNX/Importer.h"

#include <cmath>

using namespace mlir;

namespace plimsoll::onnx {

namespace {
/// How one dimension is resampled.
struct Resample {
  std::string mode, coordinates, nearest;
  double cubic = -0.75;
  bool excludeOutside = false;
  int64_t in = 1, out = 1;
  double scale = 1;
};

/// Position in the input of result index `i`.
double sourceOf(const Resample &r, int64_t i) {
  double x = static_cast<double>(i), in = static_cast<double>(r.in), out = static_cast<double>(r.out);
  if (r.coordinates == "align_corners")
    return r.out == 1 ? 0 : x * (in - 1) / (r.scale * in - 1);
  if (r.coordinates == "asymmetric")
    return x / r.scale;
  if (r.coordinates == "pytorch_half_pixel")
    return r.out > 1 ? (x + 0.5) / r.scale - 0.5 : 0;
  if (r.coordinates == "half_pixel_symmetric") {
    double adjustment = out / (r.scale * in), centre = in / 2;
    return centre * (1 - adjustment) + (x + 0.5) / r.scale - 0.5;
  }
  return (x + 0.5) / r.scale - 0.5;
}

int64_t nearestOf(const Resample &r, double x) {
  double rounded = std::floor(x);
  if (r.nearest == "ceil")
    rounded = std::ceil(x);
  else if (r.nearest == "round_prefer_floor")
    rounded = std::ceil(x - 0.5);
  else if (r.nearest == "round_prefer_ceil")
    rounded = std::floor(x + 0.5);
  return std::clamp<int64_t>(static_cast<int64_t>(rounded), 0, r.in - 1);
}

/// Weights of the neighbours floor(x)-1 ... floor(x)+2 (cubic) or floor(x), floor(x)+1 (linear).
std::vector<double> neighbourWeights(const Resample &r, double t) {
  if (r.mode == "linear")
    return {1 - t, t};
  double a = r.cubic;
  auto inner = [a](double d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
  auto outer = [a](double d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
  return {outer(1 + t), inner(t), inner(1 - t), outer(2 - t)};
}

/// (in, out) interpolation matrix.
HostTensor interpolation(const Resample &r, DType dtype) {
  std::vector<double> matrix(static_cast<size_t>(r.in * r.out), 0);
  for (int64_t i = 0; i < r.out; ++i) {
    double x = sourceOf(r, i), base = std::floor(x);
    std::vector<double> weights = neighbourWeights(r, x - base);
    int64_t first = static_cast<int64_t>(base) - (r.mode == "cubic" ? 1 : 0);
    double total = 0;
    for (size_t k = 0; k < weights.size(); ++k) {
      int64_t at = first + static_cast<int64_t>(k);
      bool outside = at < 0 || at >= r.in;
      weights[k] = outside && r.excludeOutside ? 0 : weights[k];
      total += weights[k];
    }
    for (size_t k = 0; k < weights.size(); ++k) {
      int64_t at = std::clamp<int64_t>(first + static_cast<int64_t>(k), 0, r.in - 1);
      matrix[static_cast<size_t>(at * r.out + i)] += r.excludeOutside ? weights[k] / total : weights[k];
    }
  }
  HostTensor tensor;
  tensor.dtype = dtype;
  tensor.dims = {r.in, r.out};
  for (double value : matrix)
    tensor.push(value);
  return tensor;
}

Value repeatEach(ImplicitLocOpBuilder &b, Value x, size_t d, int64_t times) {
  Dims wide(shapeOf(x)), merged(shapeOf(x)), inner;
  wide.insert(wide.begin() + static_cast<long>(d) + 1, times);
  merged[d] *= times;
  for (size_t i = 0; i < wide.size(); ++i)
    if (i != d + 1)
      inner.push_back(static_cast<int64_t>(i));
  return graph::reshape(b, graph::broadcast(b, x, inner, wide), merged);
}

Value resampleNearest(Lowering &lowering, Value x, size_t d, const Resample &r) {
  std::vector<int64_t> indices;
  for (int64_t i = 0; i < r.out; ++i)
    indices.push_back(nearestOf(r, sourceOf(r, i)));
  int64_t times = r.out / r.in;
  bool repeats = times * r.in == r.out;
  for (int64_t i = 0; repeats && i < r.out; ++i)
    repeats = indices[static_cast<size_t>(i)] == i / times;
  if (repeats)
    return repeatEach(lowering.b, x, d, times);
  Dims shape(shapeOf(x));
  shape[d] = r.out;
  Value list = lowering.importer.constant(hostInts(std::move(indices)));
  return graph::GatherOp::create(lowering.b, graph::tensorLike(x.getType(), shape), x, list, static_cast<int64_t>(d));
}

Value resampleByMatrix(Lowering &lowering, Value x, size_t d, const Resample &r) {
  ImplicitLocOpBuilder &b = lowering.b;
  Value matrix = lowering.importer.constant(interpolation(r, lowering.dtype(0)));
  Dims swap;
  for (size_t i = 0; i < shapeOf(x).size(); ++i)
    swap.push_back(static_cast<int64_t>(i));
  std::swap(swap[d], swap.back());
  Value last = graph::transpose(b, x, swap);
  Dims shape(shapeOf(last));
  Value rows = graph::reshape(b, last, {productOf(shape) / r.in, r.in});
  shape.back() = r.out;
  return graph::transpose(b, graph::reshape(b, dotOf(b, rows, matrix), shape), swap);
}

/// Result size and scale per dimension from `sizes` or `scales`, over all dims or `axes`; false when they do not fit.
bool resizeTargets(Lowering &lowering, size_t scalesAt, size_t sizesAt, Dims &out, std::vector<double> &scales) {
  Dims in = lowering.dims(0);
  const HostTensor *sizes = lowering.host(sizesAt), *factors = lowering.host(scalesAt);
  if (factors && factors->count() == 0)
    factors = nullptr;
  std::vector<int64_t> axes = intsAttribute(lowering.node, "axes");
  for (size_t d = 0; axes.size() < in.size() && !findAttribute(lowering.node, "axes"); ++d)
    axes.push_back(static_cast<int64_t>(d));
  if ((!sizes && !factors) || (sizes ? sizes : factors)->count() != axes.size())
    return false;
  out = in;
  scales.assign(in.size(), 1);
  for (size_t i = 0; i < axes.size(); ++i) {
    std::optional<int64_t> axis = normalAxis(axes[i], static_cast<int64_t>(in.size()));
    if (!axis)
      return false;
    size_t d = static_cast<size_t>(*axis);
    double size = sizes ? sizes->real(i) : std::floor(static_cast<double>(in[d]) * factors->real(i));
    if (!(size >= 1 && size <= 1e7))
      return false;
    out[d] = static_cast<int64_t>(size);
    scales[d] = sizes ? size / static_cast<double>(in[d]) : factors->real(i);
  }
  return elementCount(out).has_value();
}
} // namespace

static LogicalResult resize(Lowering &lowering, size_t scalesAt, size_t sizesAt, const Resample &base) {
  Dims in = lowering.dims(0), out;
  std::vector<double> scales;
  if (!lowering.isFloatInput(0) || !resizeTargets(lowering, scalesAt, sizesAt, out, scales))
    return lowering.bad("expected a float input and known sizes or scales, one per resized dimension");
  Value x = lowering.tensor(0);
  for (size_t d = 0; d < in.size(); ++d) {
    Resample r = base;
    r.in = in[d];
    r.out = out[d];
    r.scale = scales[d];
    if (r.in == r.out && r.scale == 1)
      continue;
    if (r.mode != "nearest" && r.in * r.out > (int64_t(1) << 26))
      return lowering.unsupported("an interpolation matrix of more than 67,108,864 elements",
                                  "resize in smaller steps");
    x = r.mode == "nearest" ? resampleNearest(lowering, x, d, r) : resampleByMatrix(lowering, x, d, r);
  }
  return lowering.done(x);
}

static LogicalResult lowerResize(Lowering &lowering) {
  const Node &node = lowering.node;
  Resample r;
  r.mode = textAttribute(node, "mode", "nearest");
  r.coordinates = textAttribute(node, "coordinate_transformation_mode", "half_pixel");
  r.nearest = textAttribute(node, "nearest_mode", "round_prefer_floor");
  r.cubic = floatAttribute(node, "cubic_coeff_a", -0.75);
  r.excludeOutside = intAttribute(node, "exclude_outside", 0) != 0;
  static const std::set<std::string> modes = {"nearest", "linear", "cubic"};
  static const std::set<std::string> coordinates = {"half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric",
                                                    "half_pixel_symmetric"};
  bool stretch = textAttribute(node, "keep_aspect_ratio_policy", "stretch") == "stretch";
  if (!modes.count(r.mode) || !coordinates.count(r.coordinates) || !stretch || intAttribute(node, "antialias", 0) != 0)
    return lowering.unsupported("resizing with mode " + r.mode + ", " + r.coordinates +
                                    (stretch ? "" : ", keeping the aspect ratio") + ", or antialias",
                                "use nearest, linear or cubic without antialias");
  return resize(lowering, 2, 3, r);
}

void addResize(LowerTable &table) { table["Resize"] = lowerResize; }

} // namespace plimsoll::onnx
