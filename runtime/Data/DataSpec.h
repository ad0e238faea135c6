// The command-line grammar that says where an input port's samples come from:
//
//   spec    = port "=" kind "(" argument { "," argument } ")"
//   kind    = "tokens" | "npy" | "idx" | "safetensors" | "constant"
//   argument= first: a path (or a number for constant); then flags ("u16") and options ("shift=1")
//
// A path with commas or parentheses is written in double quotes. docs/Runner.md lists the options of every kind.
#pragma once

#include "plimsoll/Support/Status.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace plimsoll::runtime {

/// One parsed `--data` value: syntax only, nothing opened.
struct DataSpec {
  std::string port;                           ///< name of the input port that is fed
  std::string kind;                           ///< "tokens", "npy", "idx", "safetensors" or "constant"
  std::string path;                           ///< file path; the number's text for "constant"
  std::map<std::string, std::string> options; ///< "scale" -> "0.5"; a flag maps to ""
};

/// Parses one `--data` value. Fails with Usage when the text does not follow the grammar, the kind is unknown, or an
/// option is not one of the kind's options (the message lists those that are).
Result<DataSpec> parseDataSpec(std::string_view text);

/// Parses several; fails also when a port is named twice.
Result<std::vector<DataSpec>> parseDataSpecs(const std::vector<std::string> &texts);

/// An unsigned or floating-point option of `spec`, or `fallback` when absent. Fails with Usage on a malformed number.
Result<uint64_t> unsignedOption(const DataSpec &spec, const std::string &key, uint64_t fallback);
Result<double> numberOption(const DataSpec &spec, const std::string &key, double fallback);

} // namespace plimsoll::runtime
