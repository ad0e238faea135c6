// Compiles the kernel groups of a function, loads them like the runtime does, and runs them beside the reference
// evaluator.
#pragma once

#include "lib/Codegen/CPU/CpuKernels.h"
#include "lib/Reference/Evaluate.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace plimsoll::codegen::test {

/// The kernel entry point (runtime/Core/Backend.h): operand addresses and a half-open range of units.
using KernelFunction = void (*)(void *const *operands, int64_t begin, int64_t end);

/// A shared object in memory, mapped into this process.
class LoadedModule {
public:
  explicit LoadedModule(const std::vector<uint8_t> &image);
  ~LoadedModule();
  KernelFunction find(const std::string &symbol) const;

private:
  void *handle = nullptr;
};

/// How a test lays out an operand: row-major; dimensions in reverse order; or row-major with gaps (innermost stride 2).
enum class Storage { Dense, Reversed, Gapped };
OperandLayout layoutOf(mlir::RankedTensorType type, Storage storage);

/// Memory of one operand in a layout; elements are converted from and to a HostTensor. Unused bytes hold 0xAB.
class OperandBuffer {
public:
  OperandBuffer(mlir::RankedTensorType type, OperandLayout layout);
  void set(const reference::HostTensor &tensor);
  reference::HostTensor get() const;
  void *data() { return bytes.data(); }
  const std::vector<char> &raw() const { return bytes; }
  /// Whether every byte outside the layout's elements is still 0xAB.
  bool gapsUntouched() const;

private:
  mlir::RankedTensorType type;
  OperandLayout layout;
  std::vector<char> bytes;
};

/// Parses `text`, a module with one function whose body is one graph.group and a return of its results.
struct GroupCase {
  GroupCase(mlir::MLIRContext &context, const std::string &text);
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp function;
  graph::GroupOp group;
};

/// Ranges a launch is cut into: one piece; pieces of one unit; uneven pieces.
enum class Cut { Whole, Units, Uneven };

struct RunSettings {
  std::string cpu = "native";
  std::vector<Storage> inputs{}; ///< missing entries are Dense
  std::vector<Storage> outputs{};
  Cut cut = Cut::Whole;
  int inPlaceInput = -1; ///< this input shares storage with output 0
};

/// Random values of a type: floats around 0 (rounded to the type), small integers, booleans.
reference::HostTensor randomTensor(mlir::RankedTensorType type, uint64_t seed, double scale = 1);

/// Runs the generated kernel; results come back as host tensors.
std::vector<reference::HostTensor> runKernel(GroupCase &test, const std::vector<reference::HostTensor> &inputs,
                                             const RunSettings &settings);
/// The reference evaluator's results.
std::vector<reference::HostTensor> runReference(GroupCase &test, const std::vector<reference::HostTensor> &inputs);

/// Fails the current test unless every element differs by at most `relative` of its magnitude plus `absolute`.
void expectNear(const reference::HostTensor &found, const reference::HostTensor &expected, double relative,
                double absolute);

} // namespace plimsoll::codegen::test
