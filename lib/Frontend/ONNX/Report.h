// What import and lint have to say about a model: every finding at once, each with what was found and what to do.
#pragma once

#include "plimsoll/Support/Status.h"

#include <string>
#include <vector>

namespace plimsoll::onnx {

enum class Severity { Note, Warning, Error };

/// One thing worth knowing. `code` is a stable kebab-case identifier ("unsupported-node", "dead-parameter", ...);
/// `subject` is the node, initializer or input it is about; `op` the ONNX operator where there is one.
struct Finding {
  Severity severity = Severity::Note;
  std::string code, subject, op, message, advice;
  ExitCode exitCode = ExitCode::Ok; ///< for errors: what the process exits with
};

/// Findings in the order of the model.
struct ImportReport {
  std::vector<Finding> findings;

  void add(Finding finding);
  bool hasErrors() const;
  /// BadInput before Unsupported before Ok.
  ExitCode exitCode() const;
  size_t count(const std::string &code) const;
  /// One line per finding: "error: unsupported-node: node 'x' (If): ...; advice".
  std::string toText() const;
  /// {"findings": [{"severity", "code", "subject", "op", "message", "advice"}], "exit_code": n}.
  std::string toJson() const;
  /// The errors as one Status (ok without errors).
  Status status() const;
};

} // namespace plimsoll::onnx
