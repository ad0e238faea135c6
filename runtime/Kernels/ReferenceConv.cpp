// Reference convolution and its two adjoints. All three walk the same set of (x, w, y) triples that one multiplication
// of the forward pass touches; they differ in which of the three is the sum.
#include "runtime/Kernels/Geometry.h"
#include "runtime/Kernels/ReferenceCalls.h"

#include <algorithm>

namespace plimsoll::runtime {

/// Calls `visit(xAt, wAt, yAt)` with contiguous offsets for every product x * w that contributes to y, for one image n
/// and one output channel o.
template <typename Visit> static void visitProducts(const ConvGeometry &conv, int64_t n, int64_t o, Visit visit) {
  const WindowGeometry &win = conv.window;
  const int64_t group = o / conv.outPerGroup();
  for (int64_t p0 = 0; p0 < win.output[0]; ++p0)
    for (int64_t p1 = 0; p1 < win.output[1]; ++p1)
      for (int64_t p2 = 0; p2 < win.output[2]; ++p2)
        for (int64_t c = 0; c < conv.inPerGroup(); ++c)
          for (int64_t k0 = 0; k0 < win.kernel[0]; ++k0)
            for (int64_t k1 = 0; k1 < win.kernel[1]; ++k1)
              for (int64_t k2 = 0; k2 < win.kernel[2]; ++k2) {
                const int64_t i0 = win.coordinate(0, p0, k0), i1 = win.coordinate(1, p1, k1);
                const int64_t i2 = win.coordinate(2, p2, k2);
                if (!win.inside(0, i0) || !win.inside(1, i1) || !win.inside(2, i2))
                  continue;
                const int64_t channel = group * conv.inPerGroup() + c;
                const int64_t x =
                    (((n * conv.inChannels + channel) * win.input[0] + i0) * win.input[1] + i1) * win.input[2] + i2;
                const int64_t w =
                    (((o * conv.inPerGroup() + c) * win.kernel[0] + k0) * win.kernel[1] + k1) * win.kernel[2] + k2;
                const int64_t y =
                    (((n * conv.outChannels + o) * win.output[0] + p0) * win.output[1] + p1) * win.output[2] + p2;
                visit(x, w, y);
              }
}

/// Sums left * right into a double per element of the result (allocated at load), then rounds once.
template <typename T> class ConvLoops {
public:
  enum class Role { Output, Input, Weight };
  ConvLoops(ConvGeometry geometry, Role role, int64_t resultCount)
      : conv(geometry), sumRole(role), sums(static_cast<size_t>(resultCount)) {}

  void run(const T *left, const T *right, T *result) {
    std::fill(sums.begin(), sums.end(), 0.0);
    for (int64_t n = 0; n < conv.batch; ++n)
      for (int64_t o = 0; o < conv.outChannels; ++o)
        visitProducts(conv, n, o, [&](int64_t x, int64_t w, int64_t y) {
          const auto [target, l, r] = sumRole == Role::Output  ? std::array{y, x, w}
                                      : sumRole == Role::Input ? std::array{x, y, w}
                                                               : std::array{w, x, y};
          sums[static_cast<size_t>(target)] += static_cast<double>(left[l]) * right[r];
        });
    std::transform(sums.begin(), sums.end(), result, [](double sum) { return static_cast<T>(sum); });
  }

private:
  ConvGeometry conv;
  Role sumRole;
  std::vector<double> sums;
};

ReferenceCall::Body referenceConv(const CallSpec &spec) {
  if (spec.op != "conv" && spec.op != "conv_input_grad" && spec.op != "conv_weight_grad")
    return {};
  const TensorSpec &first = spec.operands[0], &second = spec.operands[1], &result = spec.operands[2];
  return makeForFloat(result.dtype, [&](auto zero) -> ReferenceCall::Body {
    using T = decltype(zero);
    using Loops = ConvLoops<T>;
    const bool forward = spec.op == "conv", input = spec.op == "conv_input_grad";
    const ConvGeometry conv = forward ? convGeometry(spec, first, second, result)
                              : input ? convGeometry(spec, result, second, first)
                                      : convGeometry(spec, first, result, second);
    const auto role = forward ? Loops::Role::Output : input ? Loops::Role::Input : Loops::Role::Weight;
    auto loops = std::make_shared<Loops>(conv, role, elementCount(result.shape));
    return [loops](Operands o) {
      loops->run(static_cast<const T *>(o[0]), static_cast<const T *>(o[1]), static_cast<T *>(o[2]));
    };
  });
}

} // namespace plimsoll::runtime
