// Whether this machine can run code compiled for a target: instruction sets are checked before any of it is mapped, so
// that the answer is a message and not an illegal instruction.
#pragma once

#include "plimsoll/Support/Status.h"
#include "runtime/Artifact/Artifact_generated.h"

namespace plimsoll::runtime {

/// Checks Target.triple (architecture), Target.cpu (the levels x86-64, -v2, -v3, -v4) and Target.features (LLVM's
/// "+avx2,-sse4a,…" list; the entries with '+' are required). Features that no vector code depends on are not checked.
/// Fails with VersionMismatch listing every missing feature.
Status checkHost(const artifact::TargetT &target);

} // namespace plimsoll::runtime
