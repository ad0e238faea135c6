// The command line of plimsoll-run: what was asked for, parsed and checked.
#pragma once

#include "tools/plimsoll-run/Forward.h"
#include "tools/plimsoll-run/Generate.h"
#include "tools/plimsoll-run/Trainer.h"

#include <optional>
#include <string>

namespace plimsoll::runtime {

enum class Command : uint8_t { Train, Eval, Forward, Generate };

struct CommandLine {
  Command command = Command::Train;
  std::string artifact;
  SessionOptions session;
  bool json = false;
  bool verify = false;
  TrainOptions train;
  uint64_t evalBatches = 0;
  std::vector<DataSpec> data; ///< eval
  std::string weights;        ///< eval, forward, generate: checkpoint or export laid over the initial weights
  ForwardOptions forward;
  GenerateOptions generate;
  std::string promptText;
  std::string vocabularyPath;
};

/// Parses the arguments. Returns nothing and sets `exitCode` when the program is to end: 0 after --help or --version,
/// 2 with a message on stderr after a mistake.
std::optional<CommandLine> parseCommandLine(int argc, char **argv, int &exitCode);

} // namespace plimsoll::runtime
