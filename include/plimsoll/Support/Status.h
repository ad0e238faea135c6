// Status and Result: how the LLVM-free half (planner, runtime, artifact reader) reports failure.
// A Status carries the documented process exit code and one message: what was found, what was expected, what to do.
#pragma once

#include <optional>
#include <string>
#include <utility>

namespace plimsoll {

/// Process exit codes, part of the public contract (README, "Exit codes").
enum class ExitCode : int {
  Ok = 0,
  Internal = 1,
  Usage = 2,
  BadInput = 3,        ///< bad or hostile input: model, recipe, data, checkpoint, artifact
  Unsupported = 4,     ///< every unsupported node is listed at once
  DoesNotFit = 5,      ///< no plan within the budget; carries the bound and the fixes
  BrokenPromise = 6,   ///< measured memory exceeded the promise
  NumericStop = 7,     ///< NaN or infinity under a stopping policy
  VersionMismatch = 8, ///< artifact, library or CPU does not match what was compiled for
};

/// Success, or an exit code with a message. Cheap to move; must not be dropped.
class [[nodiscard]] Status {
public:
  Status() = default;
  Status(ExitCode exitCode, std::string text) : codeValue(exitCode), messageText(std::move(text)) {}
  static Status ok() { return {}; }
  bool isOk() const { return codeValue == ExitCode::Ok; }
  explicit operator bool() const { return isOk(); }
  ExitCode code() const { return codeValue; }
  const std::string &message() const { return messageText; }

private:
  ExitCode codeValue = ExitCode::Ok;
  std::string messageText;
};

inline Status badInput(std::string text) { return {ExitCode::BadInput, std::move(text)}; }
inline Status internalError(std::string text) { return {ExitCode::Internal, std::move(text)}; }

/// A value or a failed Status. Dereference only after testing.
template <typename T> class [[nodiscard]] Result {
public:
  Result(T v) : content(std::move(v)) {}
  Result(Status failure) : failureStatus(std::move(failure)) {}
  explicit operator bool() const { return content.has_value(); }
  T &operator*() { return *content; }
  const T &operator*() const { return *content; }
  T *operator->() { return &*content; }
  const T *operator->() const { return &*content; }
  const Status &status() const { return failureStatus; }

private:
  std::optional<T> content;
  Status failureStatus;
};

} // namespace plimsoll
