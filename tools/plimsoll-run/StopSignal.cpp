// Signal handlers that only set a flag.
#include "tools/plimsoll-run/StopSignal.h"

#include <csignal>

namespace plimsoll::runtime {
namespace {

volatile std::sig_atomic_t stopFlag = 0;

extern "C" void onStopSignal(int) { stopFlag = 1; }

} // namespace

void installStopSignals() {
  struct sigaction action {};
  action.sa_handler = onStopSignal;
  action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  // A full disk or file-size limit is reported by write(), a closed pipe by stdout; neither may kill the run.
  signal(SIGXFSZ, SIG_IGN);
}

bool stopRequested() { return stopFlag != 0; }
void setStopRequested(bool requested) { stopFlag = requested ? 1 : 0; }

} // namespace plimsoll::runtime
