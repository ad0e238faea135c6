// SIGINT and SIGTERM as a request: the running step is finished, a checkpoint is written, the program ends cleanly.
#pragma once

namespace plimsoll::runtime {

/// Installs the handlers. A second signal ends the process at once, as without handlers.
void installStopSignals();

/// True once a signal has arrived.
bool stopRequested();

/// Sets or clears the request without a signal (tests, embedding).
void setStopRequested(bool requested);

} // namespace plimsoll::runtime
