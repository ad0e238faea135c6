// How long one command takes, predicted from its shapes: what the planner weighs a recompute and a transfer by.
// A roofline: the larger of the time its arithmetic takes and the time its bytes take, plus the start of the command.
// The numbers are constants of a machine profile and never measured at compile time, so equal input gives equal plans.
#pragma once

#include "plimsoll/Planner/Schedule.h"
#include "plimsoll/Support/Status.h"

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"

#include <optional>

namespace plimsoll {

/// Speeds of one kind of machine. "Per thread" numbers grow with the threads a program runs with.
struct TargetProfile {
  /// f32 flops a second and thread that library operations reach (a multiply-add is 2). f64 runs at half of it, f16 and
  /// bf16 at twice.
  double dotFlops = 0;
  double convFlops = 0, convInputGradFlops = 0, convWeightGradFlops = 0;
  double groupedConvFlops = 0; ///< convolutions with few channels in a group (depthwise)
  double attentionFlops = 0, attentionGradFlops = 0;
  double scalarOps = 0;       ///< simple element operations (add, select) a second and thread in generated kernels
  double indexedElements = 0; ///< elements a second that gathers, scatters, scans and pools look at, per thread

  double threadBandwidth = 0; ///< bytes a second and thread between memory and one core
  double memoryBandwidth = 0; ///< bytes a second of the whole machine's memory
  double cacheBandwidth = 0;  ///< bytes a second and thread from the shared cache
  double cacheBytes = 0;      ///< a command whose operands are no larger finds them in the cache
  double launchSeconds = 0;   ///< from one command to the next

  planner::TransferSpeed disk; ///< device arena to a file and back
};

/// The CPU target's numbers; CostModel.cpp says how they were measured.
TargetProfile cpuProfile();

/// Replaces the number called `key` ("dot_flops", "disk_read_bandwidth", ...). Fails with Usage when there is no such
/// number (naming all) or the value is not positive and finite.
Status setProfileNumber(TargetProfile &profile, llvm::StringRef key, double value);

/// "240e9", "20GB/s" or "16MiB" as a number; nullopt for anything else.
std::optional<double> parseProfileNumber(llvm::StringRef text);

/// What a command does, as far as its duration is concerned.
struct CommandWork {
  double arithmeticSeconds = 0; ///< on one thread
  uint64_t bytes = 0;           ///< read and written, each operand once
};

class CostModel {
public:
  /// The CPU target on one thread.
  CostModel() : CostModel(cpuProfile(), 1) {}
  /// `threads`: that share each command; at least 1.
  CostModel(const TargetProfile &profile, unsigned threads);

  /// Arithmetic of one run of `op` (a kernel group, or a library operation) on one thread, in seconds.
  double arithmeticSeconds(mlir::Operation *op) const;

  /// Duration in seconds of a command that does `work`.
  double seconds(const CommandWork &work) const;

  const TargetProfile &profile() const { return machine; }

private:
  TargetProfile machine;
  double threads;
};

/// Bytes of the elements a strided window reaches, each once: dimensions of stride 0 do not count.
uint64_t windowBytes(mlir::RankedTensorType type, llvm::ArrayRef<int64_t> strides);

} // namespace plimsoll
