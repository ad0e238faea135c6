// The conformance harness: see Harness.h.
#include "test/conformance/Harness.h"

#include "runtime/Kernels/Geometry.h"
#include "runtime/Kernels/Reference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace plimsoll::runtime::conformance {

static constexpr uint8_t GuardByte = 0xab;

double randomValue(uint64_t stream, int64_t element) {
  uint64_t x = stream * 0x9e3779b97f4a7c15ull + static_cast<uint64_t>(element) + 1;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return static_cast<double>((x ^ (x >> 31)) >> 11) * 0x1p-52 - 1.0;
}

static int64_t reachedElements(const TensorSpec &spec) {
  int64_t last = 0;
  for (size_t d = 0; d < spec.shape.size(); ++d)
    last += (spec.shape[d] - 1) * spec.strides[d];
  return last + 1;
}

Buffer::Buffer(const TensorSpec &spec) : tensor(spec), count(reachedElements(spec)) {
  bytes.assign(static_cast<size_t>(count * dtypeBytes(spec.dtype)) + 2 * GuardBytes, GuardByte);
}

template <typename T> static T loadAs(const uint8_t *base, int64_t element) {
  T value;
  std::memcpy(&value, base + static_cast<size_t>(element) * sizeof(T), sizeof value);
  return value;
}

template <typename T> static void storeAs(uint8_t *base, int64_t element, double value) {
  const T stored = static_cast<T>(value);
  std::memcpy(base + static_cast<size_t>(element) * sizeof(T), &stored, sizeof stored);
}

double Buffer::get(int64_t element) const {
  const uint8_t *base = bytes.data() + GuardBytes;
  switch (tensor.dtype) {
  case DType::F64:
    return loadAs<double>(base, element);
  case DType::I64:
    return static_cast<double>(loadAs<int64_t>(base, element));
  case DType::I32:
    return loadAs<int32_t>(base, element);
  case DType::F32:
    return loadAs<float>(base, element);
  case DType::I16:
  case DType::F16:
  case DType::BF16:
    return loadAs<int16_t>(base, element);
  default:
    return loadAs<uint8_t>(base, element);
  }
}

void Buffer::set(int64_t element, double value) {
  uint8_t *base = bytes.data() + GuardBytes;
  switch (tensor.dtype) {
  case DType::F64:
    return storeAs<double>(base, element, value);
  case DType::I64:
    return storeAs<int64_t>(base, element, value);
  case DType::I32:
    return storeAs<int32_t>(base, element, value);
  case DType::F32:
    return storeAs<float>(base, element, value);
  case DType::I16:
  case DType::F16:
  case DType::BF16:
    return storeAs<int16_t>(base, element, value);
  default:
    return storeAs<uint8_t>(base, element, value);
  }
}

bool Buffer::guardsIntact() const {
  const auto guard = [](uint8_t byte) { return byte == GuardByte; };
  return std::all_of(bytes.begin(), bytes.begin() + GuardBytes, guard) &&
         std::all_of(bytes.end() - GuardBytes, bytes.end(), guard);
}

std::vector<void *> Operands::addresses() {
  std::vector<void *> all;
  for (Buffer &buffer : buffers)
    all.push_back(buffer.data());
  return all;
}

static double defaultValue(DType dtype, uint64_t stream, int64_t element) {
  const double random = randomValue(stream, element);
  const bool isFloat = dtype == DType::F32 || dtype == DType::F64;
  return isFloat ? random : dtype == DType::Bool ? random > 0 : std::floor(random * 100);
}

Operands makeOperands(const Case &test) {
  Operands operands;
  const uint64_t stream = std::hash<std::string>{}(test.name);
  for (size_t i = 0; i < test.spec.operands.size(); ++i) {
    Buffer &buffer = operands.buffers.emplace_back(test.spec.operands[i]);
    const auto fill = test.fill.find(i);
    for (int64_t at = 0; at < buffer.elements(); ++at)
      buffer.set(at, fill != test.fill.end() ? fill->second(at) : defaultValue(buffer.tensor.dtype, stream + i, at));
  }
  return operands;
}

void execute(PreparedCall &call, Operands &operands) {
  const auto workspaceBytes = static_cast<size_t>(call.workspaceBytes());
  constexpr size_t guard = 256;
  auto *memory = static_cast<uint8_t *>(std::aligned_alloc(64, (workspaceBytes + guard + 63) / 64 * 64));
  std::memset(memory, 0xff, workspaceBytes); // NaN: a kernel that reads scratch before writing it shows
  std::memset(memory + workspaceBytes, GuardByte, guard);
  const std::vector<void *> addresses = operands.addresses();
  call.execute(addresses, memory);
  for (size_t i = 0; i < guard; ++i)
    ASSERT_EQ(memory[workspaceBytes + i], GuardByte) << "workspace overrun at byte " << i;
  std::free(memory);
  for (size_t i = 0; i < operands.buffers.size(); ++i)
    ASSERT_TRUE(operands.buffers[i].guardsIntact()) << "operand " << i << " overrun";
}

static Operands runReferenceOn(const Case &test, Operands operands) {
  auto call = prepareReference(test.spec);
  EXPECT_TRUE(call) << call.status().message();
  if (call)
    execute(**call, operands);
  return operands;
}

Operands runReference(const Case &test) { return runReferenceOn(test, makeOperands(test)); }

static double epsilonOf(DType dtype) {
  return dtype == DType::F64 ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
}

static bool isFloatType(DType dtype) { return dtype == DType::F32 || dtype == DType::F64; }

/// Bound::Sum: the reference of |inputs| is, element by element, the sum of |products|.
static std::vector<std::vector<double>> sumDistance(const Case &test) {
  Operands absolute = makeOperands(test);
  for (Buffer &buffer : absolute.buffers)
    for (int64_t at = 0; isFloatType(buffer.tensor.dtype) && at < buffer.elements(); ++at)
      buffer.set(at, std::abs(buffer.get(at)));
  const Operands scale = runReferenceOn(test, std::move(absolute));
  std::vector<std::vector<double>> allowed;
  for (const Buffer &buffer : scale.buffers) {
    std::vector<double> &distance = allowed.emplace_back(static_cast<size_t>(buffer.elements()), 0.0);
    for (int64_t at = 0; isFloatType(buffer.tensor.dtype) && at < buffer.elements(); ++at)
      distance[static_cast<size_t>(at)] = epsilonOf(buffer.tensor.dtype) * (test.terms + 1) * buffer.get(at);
  }
  return allowed;
}

/// Bound::Attention, with u = eps and data in [-1, 1): a score is a sum of D products of at most 1 times scale, so it
/// errs by at most u (D + 2) scale D and a probability relatively by twice that plus a few u for exp: `weight`. An
/// output is a mean of values under those probabilities; dP and delta are sums of Dv products, so |dP - delta| <= 2 Dv.
static std::vector<std::vector<double>> attentionDistance(const Case &test) {
  const bool grad = test.spec.op == "attention_grad";
  const std::vector<TensorSpec> &o = test.spec.operands;
  const AttentionGeometry g = attentionGeometry(test.spec, o[grad ? 1 : 0], o[grad ? 2 : 1], o[grad ? 3 : 2]);
  const double u = epsilonOf(o[0].dtype), depth = double(g.depth), valueDepth = double(g.valueDepth);
  const double score = u * (depth + 2) * g.scale * depth, weight = 2 * score + 8 * u;
  const double rows = double(g.rows * g.headsPerKeyHead()), out = weight + u * double(g.keys);
  const double gradScore = 2 * valueDepth * weight + 2 * u * valueDepth * valueDepth + valueDepth * out;
  const double sumRows = g.scale * (gradScore + u * double(g.keys) * 2 * valueDepth);
  std::vector<double> perOperand(o.size(), 0.0);
  if (!grad) {
    perOperand[o.size() - 2] = out;
    perOperand[o.size() - 1] = score + u * (double(g.keys) + 8 + std::log(double(g.keys)) + g.scale * depth);
  } else {
    perOperand[o.size() - 3] = sumRows;
    perOperand[o.size() - 2] = rows * sumRows;
    perOperand[o.size() - 1] = rows * (weight + u * rows);
  }
  std::vector<std::vector<double>> allowed;
  for (size_t i = 0; i < o.size(); ++i)
    allowed.emplace_back(static_cast<size_t>(reachedElements(o[i])), perOperand[i]);
  return allowed;
}

std::vector<std::vector<double>> allowedDistance(const Case &test, const Operands &reference) {
  if (test.bound == Bound::Sum)
    return sumDistance(test);
  if (test.bound == Bound::Attention)
    return attentionDistance(test);
  std::vector<std::vector<double>> allowed;
  for (const Buffer &buffer : reference.buffers)
    allowed.emplace_back(static_cast<size_t>(buffer.elements()), 0.0);
  return allowed;
}

/// Physical elements that the view of a written operand covers.
static std::vector<bool> writtenElements(const Buffer &buffer) {
  std::vector<bool> covered(static_cast<size_t>(buffer.elements()), false);
  if (buffer.tensor.access == Access::Read)
    return covered;
  int64_t index[MaxRank] = {};
  do
    covered[static_cast<size_t>(elementOffset(buffer.tensor, index))] = true;
  while (nextIndex(buffer.tensor.shape, index));
  return covered;
}

static bool close(double actual, double expected, double allowed) {
  if (std::isnan(expected) || std::isinf(expected))
    return std::isnan(expected) ? std::isnan(actual) : actual == expected;
  return std::abs(actual - expected) <= allowed;
}

void expectClose(const Operands &actual, const Operands &reference, const std::vector<std::vector<double>> &allowed) {
  for (size_t i = 0; i < reference.buffers.size(); ++i) {
    const Buffer &got = actual.buffers[i], &want = reference.buffers[i];
    const std::vector<bool> covered = writtenElements(want);
    for (int64_t at = 0; at < want.elements(); ++at) {
      const double distance = covered[static_cast<size_t>(at)] ? allowed[i][static_cast<size_t>(at)] : 0.0;
      ASSERT_TRUE(close(got.get(at), want.get(at), distance))
          << "operand " << i << " element " << at << ": " << got.get(at) << " is not within " << distance << " of "
          << want.get(at);
    }
  }
}

std::vector<std::vector<double>> evaluate(const CallSpec &spec, const std::vector<std::vector<double>> &inputs) {
  Case test{"evaluate", spec, Bound::Exact, 1, true, {}};
  size_t next = 0;
  for (size_t i = 0; i < spec.operands.size(); ++i)
    if (spec.operands[i].access != Access::Write) {
      const std::vector<double> &values = inputs.at(next++);
      EXPECT_EQ(values.size(), static_cast<size_t>(reachedElements(spec.operands[i]))) << "operand " << i;
      test.fill[i] = [&values](int64_t at) { return values.at(static_cast<size_t>(at)); };
    }
  const Operands result = runReference(test);
  std::vector<std::vector<double>> outputs;
  for (const Buffer &buffer : result.buffers)
    if (buffer.tensor.access != Access::Read) {
      std::vector<double> &values = outputs.emplace_back();
      int64_t index[MaxRank] = {};
      do
        values.push_back(buffer.get(elementOffset(buffer.tensor, index)));
      while (nextIndex(buffer.tensor.shape, index));
    }
  return outputs;
}

} // namespace plimsoll::runtime::conformance
