// The Session over any backend. Session::open (OpenSession.cpp) picks the backend; tests hand in their own.
#pragma once

#include "plimsoll/Runtime/Session.h"
#include "runtime/Core/Backend.h"

namespace plimsoll::runtime {

/// Where an artifact lies and how to run it.
struct SessionSource {
  std::string artifactPath; ///< its folder holds Artifact.weights_file
  SessionOptions options;
};

/// Allocates arenas, loads kernels, prepares library calls and resolves every entry of plan 0 of a *verified* artifact.
/// Kernel module images are dropped from the artifact once loaded. Fails as Session::open does.
Result<std::unique_ptr<Session>> makeSession(artifact::ArtifactT artifact, std::unique_ptr<Backend> backend,
                                             SessionSource source);

} // namespace plimsoll::runtime
