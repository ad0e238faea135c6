// The last step: a planned module, its kernels and its initial state become files on disk.
#pragma once

#include "dialects/Plan/Plan.h"
#include "lib/Frontend/ONNX/WeightStore.h"
#include "plimsoll/Support/Status.h"
#include "runtime/Artifact/Artifact_generated.h"

#include "mlir/IR/BuiltinOps.h"

#include <cstdint>
#include <string>
#include <vector>

namespace plimsoll {

/// Everything an artifact is made of. `target` and `provenance` are filled by the caller, weights_hash by emission.
struct EmitInput {
  mlir::ModuleOp module;            ///< the variables
  plan::ProgramOp program;          ///< the plan
  const onnx::WeightStore &weights; ///< initial values by variable name
  std::vector<uint8_t> kernels;     ///< ELF shared object; empty when no kernel is launched
  artifact::TargetT target;
  artifact::ProvenanceT provenance;
  std::vector<std::pair<std::string, int64_t>> bindings; ///< bound dims
  uint64_t budgetBytes = 0;                              ///< 0 = none
  uint64_t stagingBytes = 0;                             ///< what the runner may keep of the data files
  uint64_t processConstantBytes = 0;                     ///< stated constant for code, libraries and thread stacks
};

/// Writes the initial state to `weightsPath` (safetensors) and returns its hash. Variables with a fill are left out.
Result<std::string> writeWeights(const std::string &weightsPath, mlir::ModuleOp module,
                                 const onnx::WeightStore &weights);

/// Writes `path` and, beside it, the weights file named like it ("step.plim" -> "step.safetensors"). Both appear whole
/// or not at all, the artifact last, and are read back and verified. Equal input gives equal bytes.
Status emitArtifact(const std::string &path, EmitInput input);

} // namespace plimsoll
