// Session::open: the one place that knows which backends exist.
#include "runtime/Artifact/Files.h"
#include "runtime/Artifact/Reader.h"
#include "runtime/CPU/CpuBackend.h"
#include "runtime/Core/HostFeatures.h"
#include "runtime/Core/SessionCore.h"

#include <new>

namespace plimsoll::runtime {

static Result<std::unique_ptr<Backend>> createBackend(const artifact::TargetT &target, const SessionOptions &options) {
  if (target.kind == "cpu") {
    CpuOptions cpu;
    cpu.threads = options.threads ? options.threads : target.threads;
    cpu.referenceKernels = options.referenceKernels;
    return createCpuBackend(cpu);
  }
  return Status{ExitCode::VersionMismatch, "the artifact is for the target " + inQuotes(target.kind) +
                                               ", this program runs cpu; compile it with --target=cpu"};
}

static Result<std::unique_ptr<Session>> openChecked(const std::string &artifactPath, const SessionOptions &options) {
  Result<artifact::ArtifactT> artifact = readArtifact(artifactPath);
  if (!artifact)
    return artifact.status();
  auto failed = [&](const Status &status) {
    return Status{status.code(), inQuotes(artifactPath) + ": " + status.message()};
  };
  if (artifact->target->kind == "cpu")
    if (Status status = checkHost(*artifact->target); !status)
      return failed(status);
  Result<std::unique_ptr<Backend>> backend = createBackend(*artifact->target, options);
  if (!backend)
    return failed(backend.status());
  auto session = makeSession(std::move(*artifact), std::move(*backend), {artifactPath, options});
  if (!session)
    return failed(session.status());
  return session;
}

Result<std::unique_ptr<Session>> Session::open(const std::string &artifactPath, const SessionOptions &options) {
  try {
    return openChecked(artifactPath, options);
  } catch (const std::bad_alloc &) {
    return badInput(inQuotes(artifactPath) + ": not enough memory to load it");
  }
}

} // namespace plimsoll::runtime
