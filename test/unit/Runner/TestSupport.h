// Helpers of the runner's unit tests: a folder that goes away, files made of bytes, and matchers for a Status.
#pragma once

#include "plimsoll/Support/Status.h"

#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sstream>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

namespace plimsoll {

inline const Status &statusOf(const Status &status) { return status; }
template <typename T> const Status &statusOf(const Result<T> &result) { return result.status(); }

} // namespace plimsoll

namespace plimsoll::runtime {

/// A fresh folder, removed with everything in it.
class TempFolder {
public:
  TempFolder() {
    std::string name = testing::TempDir() + "plimsoll-runner-XXXXXX";
    root = mkdtemp(name.data());
  }
  ~TempFolder() {
    std::error_code error;
    std::filesystem::remove_all(root, error);
  }
  std::string path(const std::string &name) const { return root + "/" + name; }

  /// Writes a file of raw bytes and returns its path.
  std::string write(const std::string &name, std::string_view bytes) const {
    std::ofstream(path(name), std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return path(name);
  }
  /// Writes an array of plain values.
  template <typename T> std::string writeValues(const std::string &name, const std::vector<T> &values) const {
    return write(name, {reinterpret_cast<const char *>(values.data()), values.size() * sizeof(T)});
  }
  std::string read(const std::string &name) const {
    std::ostringstream text;
    text << std::ifstream(path(name), std::ios::binary).rdbuf();
    return text.str();
  }

private:
  std::string root;
};

/// Expects a failed Status or Result with `exitCode` whose message contains `text`.
#define EXPECT_FAILS(expression, exitCode, text)                                                                       \
  do {                                                                                                                 \
    auto &&outcome = (expression);                                                                                     \
    EXPECT_FALSE(outcome);                                                                                             \
    EXPECT_EQ(statusOf(outcome).code(), exitCode) << statusOf(outcome).message();                                      \
    EXPECT_THAT(statusOf(outcome).message(), testing::HasSubstr(text));                                                \
  } while (false)

#define ASSERT_OK(expression)                                                                                          \
  do {                                                                                                                 \
    auto &&outcome = (expression);                                                                                     \
    ASSERT_TRUE(static_cast<bool>(outcome)) << statusOf(outcome).message();                                            \
  } while (false)

} // namespace plimsoll::runtime
