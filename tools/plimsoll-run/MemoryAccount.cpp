// Comparing the promise with what was used.
#include "tools/plimsoll-run/MemoryAccount.h"

#include "plimsoll/Support/Units.h"

#include <fmt/format.h>

namespace plimsoll::runtime {
namespace {

std::string line(const char *name, uint64_t promised, uint64_t measured) {
  double share = promised ? 100.0 * static_cast<double>(measured) / static_cast<double>(promised) : 0.0;
  return fmt::format("{:<16} promised {:>15} bytes, measured {:>15} bytes ({:.1f} %)\n", name, groupedDigits(promised),
                     groupedDigits(measured), share);
}

} // namespace

MemoryAccount accountMemory(const Session &session, uint64_t stagingBytes, uint64_t processPeakBytes) {
  MemoryAccount account;
  MemoryReport report = session.memory();
  if (const auto &promise = session.artifact().plans.at(0)->memory) {
    account.promisedTraining = promise->training_bytes;
    account.promisedProcess = promise->training_bytes + promise->process_constant_bytes;
  }
  account.arenaBytes = report.arenaBytes;
  account.touchedBytes = report.touchedPeakBytes;
  account.runtimeBytes = report.runtimeBytes;
  account.stagingBytes = stagingBytes;
  account.measuredProcess = processPeakBytes;
  return account;
}

std::string memoryText(const MemoryAccount &account) {
  return line("training memory", account.promisedTraining, account.measuredTraining()) +
         line("process memory", account.promisedProcess, account.measuredProcess);
}

Status checkMemory(const MemoryAccount &account) {
  if (account.kept())
    return Status::ok();
  bool training = account.measuredTraining() > account.promisedTraining;
  return {ExitCode::BrokenPromise,
          fmt::format("{} memory of {} bytes exceeds the promise of {} bytes; please report this with the artifact",
                      training ? "training" : "process",
                      groupedDigits(training ? account.measuredTraining() : account.measuredProcess),
                      groupedDigits(training ? account.promisedTraining : account.promisedProcess))};
}

} // namespace plimsoll::runtime
