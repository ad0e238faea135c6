// Runs one library call on real buffers and judges the result. Every buffer, the workspace too, has guard bytes around
// it, and bytes between strided elements are part of the comparison: a kernel that writes where it must not is found.
#pragma once

#include "test/conformance/Specs.h"

#include <functional>
#include <map>
#include <ostream>

namespace plimsoll::runtime::conformance {

/// How far a fast result may lie from the reference.
enum class Bound {
  Exact,     ///< the same bits
  Sum,       ///< eps * terms * (the reference of the absolute values): a sum of `terms` products in any order
  Attention, ///< derived in Harness.cpp from the call's own data
};

/// Values of an operand by physical element number (gaps between strided elements included).
using Fill = std::function<double(int64_t element)>;

struct Case {
  std::string name;
  CallSpec spec;
  Bound bound = Bound::Exact;
  double terms = 1;            ///< Bound::Sum: products in one sum
  bool sameBits = true;        ///< the same bits at any thread count (false where oneDNN decides)
  std::map<size_t, Fill> fill; ///< operands that are not random in [-1, 1)
};

/// How gtest names a case in messages.
inline void PrintTo(const Case &test, std::ostream *out) { *out << test.name; }

/// All cases, every operation with at least one.
std::vector<Case> allCases();
void addMovementCases(std::vector<Case> &cases);
void addDotCases(std::vector<Case> &cases);
void addConvCases(std::vector<Case> &cases);
void addPoolCases(std::vector<Case> &cases);
void addIndexedCases(std::vector<Case> &cases);
void addAttentionCases(std::vector<Case> &cases);

/// A number in [-1, 1) that depends on its arguments alone.
double randomValue(uint64_t stream, int64_t element);

/// One operand's memory: guard, elements as the strides reach them, guard.
class Buffer {
public:
  explicit Buffer(const TensorSpec &spec);
  void *data() { return bytes.data() + GuardBytes; }
  int64_t elements() const { return count; }
  double get(int64_t element) const;
  void set(int64_t element, double value);
  bool guardsIntact() const;
  const std::vector<uint8_t> &raw() const { return bytes; }
  TensorSpec tensor;

private:
  static constexpr size_t GuardBytes = 128;
  std::vector<uint8_t> bytes;
  int64_t count;
};

/// The operands of a call, filled as the case says.
struct Operands {
  std::vector<Buffer> buffers;
  std::vector<void *> addresses();
};
Operands makeOperands(const Case &test);

/// Executes a prepared call with a workspace of exactly the size it asks for; the guards are checked by gtest.
void execute(PreparedCall &call, Operands &operands);

/// Prepares by the reference kernels and runs; the oracle of everything else.
Operands runReference(const Case &test);

/// Per written operand the allowed distance of each physical element from the reference.
std::vector<std::vector<double>> allowedDistance(const Case &test, const Operands &reference);

/// Checks every byte of `actual` against `reference` within `allowed`.
void expectClose(const Operands &actual, const Operands &reference, const std::vector<std::vector<double>> &allowed);

/// Runs the reference on explicit values (row-major, contiguous) and returns the written operands' values in order.
std::vector<std::vector<double>> evaluate(const CallSpec &spec, const std::vector<std::vector<double>> &inputs);

} // namespace plimsoll::runtime::conformance
